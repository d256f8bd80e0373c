"""How sure a score is, and the difference between two rules on the same samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wassemble._arrays import detached
from wassemble._checks import Number, as_float_array, fail, refuse_names
from wassemble.metrics.measures import MEAN, Measure, measure as read_measure
from wassemble.metrics.resamples import MOST_DRAWS, Resamples, percentile_interval

_FEWEST_RESAMPLES = 100


@dataclass(frozen=True)
class Comparison:
    """How much better one rule is than another on the same samples."""

    difference: float  # on the samples themselves; above 0 where the first is better
    standard_error: float  # standard deviation of the difference over the resamples
    low: float  # percentile interval over the resamples, from here
    high: float  # to here
    sure: float  # share of the resamples in which the first is better, equal ones counted half
    n_resamples: int = 0  # on which both have a score

    @property
    def is_better(self) -> bool:
        """Whether the first is better by more than one standard error."""
        return self.difference > self.standard_error

    @property
    def is_worse(self) -> bool:
        """Whether the first is worse by more than one standard error."""
        return self.difference < -self.standard_error

    @property
    def is_sure(self) -> bool:
        """Whether the first is better in at least 95 % of the resamples."""
        return self.sure >= 0.95

    @property
    def verdict(self) -> str:
        """What it means for the first, in a few words."""
        if self.is_worse:
            return "worse, by more than one standard error"
        if self.low > 0:
            return "better"
        return "likely better, not surely" if self.is_better else "as good, within noise"

    def reverse(self) -> Comparison:
        """The second rule minus the first."""
        # 0 - x, for -x of 0 would be shown as -0.
        return replace(
            self,
            difference=0 - self.difference,
            low=0 - self.high,
            high=0 - self.low,
            sure=1 - self.sure,
        )

    def __str__(self) -> str:
        return f"{self.difference:+.4f} (95 % interval {self.low:+.4f} to {self.high:+.4f})"


@dataclass(frozen=True, eq=False)
class Estimate:
    """A score, higher is better, and what it is on each resample of the samples."""

    score: float
    drawn: np.ndarray

    @classmethod
    def mean(cls, estimates: Sequence[Estimate]) -> Estimate:
        """Mean over rules, as over several shuffles of one kernel."""
        score = float(np.mean([each.score for each in estimates]))
        return cls(score, np.mean([each.drawn for each in estimates], axis=0))

    @property
    def standard_error(self) -> float:
        """Standard deviation over the resamples."""
        return float(np.nanstd(self.drawn))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % percentile interval."""
        return percentile_interval(self.drawn)

    def minus(self, other: Estimate, *, confidence: float = 0.95) -> Comparison:
        """The gain over another rule on the same resamples."""
        drawn = self.drawn - other.drawn
        drawn = drawn[~np.isnan(drawn)]
        return Comparison(
            float(self.score - other.score),
            float(drawn.std()) if len(drawn) else np.nan,
            *percentile_interval(drawn, confidence),
            float(np.mean((drawn > 0) + (drawn == 0) / 2)) if len(drawn) else np.nan,
            len(drawn),
        )


class PairedBootstrap:
    """A measure on fixed samples, and on the same resamples of them for every rule.

    Parameters
    ----------
    measure : Measure
    truth : array of shape (n_samples, ...)
        What the measure compares scores with.
    sample_weight : array of shape (n_samples,), optional
        Samples are drawn in proportion to it.
    groups : array of shape (n_samples,), optional
        Samples of one group are drawn together; not with ``sample_weight``.
    n_resamples : int, optional
        If not given, as many as the measure does fast, and fewer of very many samples.
    seed : int

    Examples
    --------
    >>> from wassemble.metrics import ACCURACY
    >>> bootstrap = PairedBootstrap(ACCURACY, np.array([0, 1, 0, 0]))
    >>> good, bad = np.eye(2)[[0, 1, 0, 0]], np.eye(2)[[0, 0, 0, 1]]
    >>> gain = bootstrap.estimate(good).minus(bootstrap.estimate(bad))
    >>> gain.difference, gain.low, gain.high
    (0.5, 0.0, 1.0)
    """

    def __init__(
        self,
        measure: Measure,
        truth: np.ndarray,
        *,
        sample_weight: np.ndarray | None = None,
        groups: Any = None,
        n_resamples: int | None = None,
        seed: int = 0,
    ) -> None:
        self.measure, self.truth, self.sample_weight = measure, truth, sample_weight
        if n_resamples is None:
            bound = max(_FEWEST_RESAMPLES, MOST_DRAWS // len(truth))
            n_resamples = min(measure.n_resamples, bound)
        self.resamples = Resamples.draw(
            len(truth),
            *(() if groups is None else (groups,)),
            sample_weight=sample_weight,
            n_resamples=n_resamples,
            seed=seed,
        )

    def estimate(self, scores: np.ndarray) -> Estimate:
        """The score of a rule."""
        drawn = self.measure.resampled(scores, self.truth, self.resamples)
        return Estimate(self.measure.score(scores, self.truth, self.sample_weight), drawn)


def compare(
    first: Any,
    second: Any,
    truth: Any = None,
    *,
    measure: str | Measure | Callable[[np.ndarray, np.ndarray], float] | None = None,
    groups: Any = None,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """How much better one rule is than another, paired (Efron and Tibshirani 1993, chapter 13).

    Samples are drawn with replacement, the same ones for both rules.

    Parameters
    ----------
    first, second : arrays of shape (n_samples,), or of shape (n_samples, ...) with ``measure``
        A value per sample, the higher the better, whose means are compared; or scores.
    truth : array of shape (n_samples, ...), optional
        Goes with ``measure``.
    measure : str, Measure or callable, optional
        See `measure`.
    groups : array of shape (n_samples,), optional
        Samples of one group are drawn together: frames of a video, texts of an author.
    n_resamples : int
    confidence : float
        Share of the resamples in the interval from ``low`` to ``high``.
    seed : int

    Examples
    --------
    >>> right_a, right_b = [1, 1, 1, 1, 1, 0, 1, 1], [1, 0, 1, 0, 1, 0, 0, 1]
    >>> found = compare(right_a, right_b)
    >>> found.difference, found.low, found.high
    (0.375, 0.0, 0.75)
    """
    confidence = Number(above=0, below=1)(confidence, "confidence")
    if measure is None:
        if truth is not None:
            fail("`truth` must come with a `measure` that takes it; got it alone.")
        arrays = [_read_values(first, "first"), _read_values(second, "second")]
        arrays.append(np.zeros(len(arrays[0])))
    else:
        if truth is None:
            fail("`truth` must be given with `measure`; got none.")
        given = {"first": first, "second": second, "truth": truth}
        for name, each in given.items():
            refuse_names(each, name)
        arrays = [np.asarray(detached(each)) for each in given.values()]
    if len({array.shape[:1] for array in arrays}) > 1 or not arrays[0].shape:
        fail(
            "`first`, `second` and `truth` must hold the same samples; got shapes"
            f" {', '.join(str(array.shape) for array in arrays)}."
        )
    if not len(arrays[0]):
        fail("`first` must hold at least one sample; got none.")
    known = MEAN if measure is None else read_measure(measure)
    bootstrap = PairedBootstrap(known, arrays[2], groups=groups, n_resamples=n_resamples, seed=seed)
    one, other = (bootstrap.estimate(scores) for scores in arrays[:2])
    if not np.isfinite(one.score - other.score):
        fail(f"`measure` must be finite on all samples; got {one.score} and {other.score}.")
    comparison = one.minus(other, confidence=confidence)
    if (n_known := comparison.n_resamples) < 2:
        fail(f"`measure` must be a number on some resamples; got nan on all but {n_known}.")
    return comparison


def _read_values(values: Any, name: str) -> np.ndarray:
    array = detached(as_float_array(values, name)).astype(np.float64)
    if array.ndim != 1 or not len(array):
        fail(
            f"`{name}` must hold one value per sample; got shape {array.shape}.",
            hint="`measure` and `truth` compare scores",
        )
    if not np.isfinite(array).all():
        sample = int((~np.isfinite(array)).argmax())
        fail(f"`{name}` must be finite; got {array[sample]} at sample {sample}.")
    return array
