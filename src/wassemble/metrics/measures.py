"""Measures: metrics as values that know their name, their direction and what they need.

One table has those that are known by name: to learn an ensemble by, to score files, to
compare rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from wassemble._checks import fail, option
from wassemble._extras import load_extra
from wassemble.errors import InvalidInputError
from wassemble.metrics.arguments import read_cost
from wassemble.metrics.multi_class import (
    are_right,
    are_right_of_top,
    costs_of_answers,
    expected_calibration_error,
    log_losses,
    squared_gaps,
)
from wassemble.metrics.multi_label import mean_precision, precisions
from wassemble.metrics.ordered import quadratic_kappa, squared_distances
from wassemble.metrics.resamples import Resamples

Task = Literal["multiclass", "multilabel"]
"""One true label per sample, or any number of them."""

_Each = Callable[[np.ndarray, np.ndarray], np.ndarray]
_Many = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
_Value = Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]


@dataclass(frozen=True)
class Measure:
    """A metric of scores and truth.

    Attributes
    ----------
    name : str
    each : callable or None
        ``each(scores, truth)``, a number per sample whose weighted mean is the metric, where
        it is such a mean.
    whole : callable or None
        ``whole(scores, truth, sample_weight)``, a number, where it is not.
    is_loss : bool
        Whether lower is better.
    task : "multiclass", "multilabel" or None
        What the truth must be: the place of the true label, (n_samples,); or 0, 1 and nan
        for each label, (n_samples, n_labels). None if any will do.
    is_ordered : bool
        Whether it looks at the order of the labels: then ``each`` and ``whole`` take their
        ``positions``, too.
    many : callable or None
        ``many(scores, truth, counts)``: ``whole`` for many counts of the samples at once,
        where that is fast.

    Examples
    --------
    >>> scores, truth = np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1])
    >>> round(LOG_LOSS.value(scores, truth), 3), round(LOG_LOSS.score(scores, truth), 3)
    (0.49, -0.49)
    """

    name: str
    each: _Each | None = None
    whole: _Value | None = None
    is_loss: bool = False
    task: Task | None = None
    is_ordered: bool = False
    many: _Many | None = None

    def on_line(self, positions: Sequence[float] | None) -> Measure:
        """The same of labels at these positions, if it looks at their order."""
        if not self.is_ordered or positions is None:
            return self
        ways: tuple[Any, Any] = (self.each, self.whole)
        each, whole = (way and partial(way, positions=positions) for way in ways)
        return replace(self, each=each, whole=whole)

    def value(
        self, scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> float:
        """The metric as it is known: the lower the better if it is a loss."""
        if self.each is not None:
            return float(np.average(self.each(scores, truth), weights=sample_weight))
        assert self.whole is not None, "a measure has one of both"
        return float(self.whole(scores, truth, sample_weight))

    def score(
        self, scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> float:
        """The metric with the sign that makes higher better."""
        return float(self._upwards(self.value(scores, truth, sample_weight)))

    def resampled(self, scores: np.ndarray, truth: np.ndarray, resamples: Resamples) -> np.ndarray:
        """The score on each resample, ``(n_resamples,)``; higher is better."""
        if self.each is not None:
            return self._upwards(resamples.means(self.each(scores, truth)))
        if self.many is not None:
            values = [self.many(scores, truth, counts) for counts in resamples.blocks()]
            return self._upwards(np.concatenate(values))
        drawn = (
            np.repeat(np.arange(len(truth)), times)
            for counts in resamples.blocks()
            for times in counts.astype(np.intp)
        )
        return self._upwards(np.array([self._value_or_nan(scores[i], truth[i]) for i in drawn]))

    def _value_or_nan(self, scores: np.ndarray, truth: np.ndarray) -> float:
        """The value of a resample; nan where there is none, as where it has one label alone."""
        try:
            return self.value(scores, truth)
        except InvalidInputError:
            return np.nan

    @property
    def resamples_one_by_one(self) -> bool:
        """Whether every resample takes as long as the samples themselves."""
        return self.each is None and self.many is None

    @property
    def n_resamples(self) -> int:
        """Resamples that cost little."""
        if self.resamples_one_by_one:
            return 100
        return 200 if self.each is None else 1000

    def _upwards(self, values: Any) -> Any:
        # 0 - x, for -x of 0 would be shown as -0.
        return 0 - values if self.is_loss else values


def _mean_average_precision(
    scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None
) -> float:
    weight = np.ones(len(truth)) if sample_weight is None else sample_weight
    return float(mean_precision(precisions(scores, truth, weight[:, None]))[0])


def _mean_average_precisions(
    scores: np.ndarray, truth: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    # Sums of counts are exact in float32, and half as many bytes.
    return mean_precision(
        precisions(scores, truth, np.ascontiguousarray(counts.T, dtype=np.float32))
    )


def _given(values: np.ndarray, _: np.ndarray) -> np.ndarray:
    return values


ACCURACY = Measure("accuracy", are_right, task="multiclass")
TOP_5_ACCURACY = Measure("top_5_accuracy", partial(are_right_of_top, top_k=5), task="multiclass")
LOG_LOSS = Measure("log_loss", log_losses, is_loss=True, task="multiclass")
BRIER_SCORE = Measure("brier_score", squared_gaps, is_loss=True, task="multiclass")
CALIBRATION_ERROR = Measure(
    "calibration_error", whole=expected_calibration_error, is_loss=True, task="multiclass"
)
RANKED_PROBABILITY_SCORE = Measure(
    "rps", squared_distances, is_loss=True, task="multiclass", is_ordered=True
)
QUADRATIC_KAPPA = Measure(
    "quadratic_kappa", whole=quadratic_kappa, task="multiclass", is_ordered=True
)
MEAN_AVERAGE_PRECISION = Measure(
    "mAP", whole=_mean_average_precision, task="multilabel", many=_mean_average_precisions
)
MEAN = Measure("mean", _given)
"""Of figures that are there already, one per sample, where higher is better."""
MEAN_LOSS = Measure("mean loss", _given, is_loss=True)
"""Of losses that are there already, one per sample."""

USUAL: dict[Task, Measure] = {"multiclass": ACCURACY, "multilabel": MEAN_AVERAGE_PRECISION}
"""What is measured where nothing else is asked for."""

MULTICLASS = (ACCURACY, TOP_5_ACCURACY, LOG_LOSS, BRIER_SCORE, CALIBRATION_ERROR)
"""Of one true label per sample."""

ORDERED = (RANKED_PROBABILITY_SCORE, QUADRATIC_KAPPA)
"""Of one true label per sample, where labels have an order."""

_BY_NAME = {each.name.casefold(): each for each in (*MULTICLASS, *ORDERED, MEAN_AVERAGE_PRECISION)}
_BY_NAME["neg_log_loss"] = LOG_LOSS  # scikit-learn's name of its score


def measure(metric: Any, task: Task | None = None) -> Measure:
    """The measure that ``metric`` names or is.

    Parameters
    ----------
    metric : str, Measure or callable
        "accuracy", "top_5_accuracy", "log_loss", "brier_score", "calibration_error",
        "rps" or "quadratic_kappa" (multi-class; the last two of labels with an order) or "mAP"
        (multi-label), the name of a scikit-learn scorer, a scorer made
        by `sklearn.metrics.make_scorer`, what `cost_measure` makes, or any function of
        ``(scores, truth)`` where higher is better.
    task : "multiclass" or "multilabel", optional
        What it must be for.

    Examples
    --------
    >>> measure("log_loss").is_loss, measure("map").name
    (True, 'mAP')
    """
    known = _BY_NAME.get(metric.casefold()) if isinstance(metric, str) else None
    if isinstance(metric, Measure):
        known = metric
    if known is None:
        return _made_of(metric, task)
    if task is not None and known.task not in (None, task):
        fail(
            f"metric {known.name!r} is not for {task} tasks.",
            hint=f"these are: {', '.join(_names(task))}",
        )
    return known


def cost_measure(cost: Any) -> Measure:
    """What answers cost, a loss, to learn or to compare by; see `mean_cost`.

    Parameters
    ----------
    cost : array of shape (n_labels, n_answers)
        Cost of each answer (column) for each true label (row).

    Examples
    --------
    >>> steps = cost_measure([[0, 2, 4], [2, 0, 4], [4, 4, 0]])  # husky, beagle, car
    >>> steps.value(np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1]]), np.array([0, 1]))
    1.0
    """
    matrix = read_cost(cost)

    def each(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return costs_of_answers(np.nan_to_num(scores), truth, matrix)[0]

    return Measure("mean_cost", each, is_loss=True, task="multiclass")


def _names(task: Task | None) -> list[str]:
    """Names to choose from."""
    known = dict.fromkeys(_BY_NAME.values())
    return [each.name for each in known if task is None or each.task == task]


def _made_of(metric: Any, task: Task | None) -> Measure:
    """Of a scikit-learn scorer or a function."""
    name = ""
    if isinstance(metric, str):
        library = load_extra("sklearn.metrics", "learn", purpose=f"the metric {metric!r}")
        if metric not in library.get_scorer_names():
            fail(
                f"{option('metric')} must be one of {', '.join(_names(task))}, a scikit-learn"
                f" scorer or a function; got {metric!r}."
            )
        metric, name = library.get_scorer(metric), metric
    if not callable(metric):
        fail(f"{option('metric')} must be a name or a function of (scores, truth); got {metric!r}.")
    if hasattr(metric, "_score_func"):
        from wassemble.metrics.scorers import ask_scorer  # which needs scikit-learn

        name = name or str(metric)
        return Measure(name, whole=partial(ask_scorer, metric, name))
    name = getattr(metric, "__name__", repr(metric))
    return Measure(name, whole=lambda scores, truth, _: float(metric(scores, truth)))
