"""How right on samples that nothing was learned from: an ensemble beside its rivals, or a table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble.label_overlap import tell_strangers
from wassemble.ensemble.learning.choice import Standing
from wassemble.ensemble.learning.fitting import FittedRecipe
from wassemble.ensemble.learning.learn import LearnedEnsemble
from wassemble.ensemble.learning.trial import Trial, read_trial
from wassemble.ensemble.tables import warn_of_inputs
from wassemble.errors import InvalidInputError
from wassemble.inputs import Kind, Predictions
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.metrics import (
    MEAN_AVERAGE_PRECISION,
    MULTICLASS,
    TOP_5_ACCURACY,
    Comparison,
    Measure,
    measure as read_measure,
    precision_recall_f1,
)

# A rule that is fast is timed again, up to so many times or seconds.
_N_TIMINGS = 3
_SECONDS = 0.2
_N_WARM = 8
_USUAL: dict[Kind, tuple[str, ...]] = {
    "multiclass": ("accuracy", "log_loss", "brier_score"),
    "multilabel": ("mAP",),
}
# A rule minus itself.
_NONE = Comparison(0.0, 0.0, 0.0, 0.0, 0.5)


@dataclass(frozen=True)
class Evaluation:
    """What was chosen on validation data, and whether it holds elsewhere.

    Attributes
    ----------
    outcomes : tuple of Standing
        The chosen rule and its rivals, best first.
    sharpened : dict of str to float, or None
        Multi-class: other metrics of the chosen rule after its learned temperature. Rivals
        have none, so that ``outcomes`` are all without.
    decided : dict of str to float, or None
        Multi-label: precision, recall and F1 of the chosen rule with its learned thresholds,
        which belong to no other rule.
    """

    task: Kind
    metric: str
    n_samples: int
    outcomes: tuple[Standing, ...]
    sharpened: dict[str, float] | None
    decided: dict[str, float] | None
    seed: int

    @property
    def chosen(self) -> Standing:
        """The rule that was learned."""
        return next(each for each in self.outcomes if each.is_chosen)

    @property
    def best_simple(self) -> Standing | None:
        """The best single model or mean on these samples beside the chosen rule.

        Its weights may be learned. None if there is no other.
        """
        return next((e for e in self.outcomes if e.is_simple and not e.is_chosen), None)

    @property
    def best_plain(self) -> Standing:
        """The best rule without anything learned on these samples; may be the chosen one."""
        return next(each for each in self.outcomes if each.is_plain)

    @property
    def best_single(self) -> Standing:
        """The best single model on these samples."""
        return next(each for each in self.outcomes if each.model is not None)

    @property
    def gain(self) -> Comparison:
        """The chosen rule minus the best simple one beside it.

        That one is picked on these very samples, which favours it.
        """
        return _NONE if self.best_simple is None else self.gain_over(self.best_simple)

    def gain_over(self, other: Standing) -> Comparison:
        """The chosen rule minus another."""
        return _NONE if other.against_chosen is None else other.against_chosen.reverse()

    @property
    def is_worse_than_simple(self) -> bool:
        """Whether the chosen rule loses to the best simple one by more than a standard error."""
        return self.gain.is_worse

    @property
    def verdict(self) -> str:
        """The chosen rule against the best simple one beside it, in a few words."""
        return "there is no other simple rule" if self.best_simple is None else self.gain.verdict

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row of a table for each rule, best first."""
        return [
            {
                "rule": each.name,
                "chosen": each.is_chosen,
                self.metric: each.score,
                "standard_error": each.standard_error,
                "against_chosen": "" if each.against_chosen is None else str(each.against_chosen),
                "microseconds": each.microseconds,
                **{name: value for name, value in each.figures.items() if name != self.metric},
            }
            for each in self.outcomes
        ]

    def lines(self) -> list[str]:
        """The table and what follows from it, for a terminal."""
        width = max(len(each.name) for each in self.outcomes)
        said = [f"{self.metric} on {self.n_samples:,} samples that nothing was learned from:"]
        for each in self.outcomes:
            mark = "*" if each.is_chosen else " "
            against = "chosen" if each.against_chosen is None else str(each.against_chosen)
            said.append(
                f"{mark} {each.score:.4f} +- {each.standard_error:.4f}  {each.name:<{width}}"
                f"  {each.microseconds:8.1f} us per sample  {against}"
            )
        return [*said, *self.conclusion()]

    def conclusion(self) -> list[str]:
        """The best simple rule beside the chosen one, and by how much they differ."""
        if self.best_simple is None:
            return []
        return [
            f"best simple rule beside the chosen one: {self.best_simple.name}",
            f"the chosen rule differs from it by {self.gain}: {self.verdict}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "outcomes": [each.to_dict() for each in self.outcomes],
            "chosen": self.chosen.name,
            "best_simple": None if self.best_simple is None else self.best_simple.name,
            "best_plain": self.best_plain.name,
            "best_single": self.best_single.name,
            "gain": asdict(self.gain),
            "is_worse_than_simple": self.is_worse_than_simple,
            "verdict": self.verdict,
        }


def evaluate_ensemble(
    learned: LearnedEnsemble,
    models: Sequence[Any] | Mapping[str, Any],
    truth: Any,
    *,
    metric: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    fold: bool = False,
    seed: int = 0,
) -> Evaluation:
    """The chosen rule beside every rival, on samples that nothing was learned from.

    Parameters
    ----------
    learned : LearnedEnsemble
    models : dict of name to data frame or Predictions, or list of either
        The models that were learned from, on other samples; matched as in
        `LearnedEnsemble.predict`.
    truth : see `read_trial`
    metric : str or callable, optional
        The one learned by if not given. A function of one's own must be given again.
    sample_weight : array of shape (n_samples,), optional
        Metrics that know no weights are then left out of the other figures.
    groups : dict, Series, sequence or Predictions, optional
        See `learn_ensemble`.
    fold : bool
        Match labels of the models and of the truth with those that were learned without regard
        to case, underscores, hyphens and repeated spaces.
    seed : int
        Of the bootstrap.

    Examples
    --------
    >>> from wassemble import Predictions, learn_ensemble
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=90)
    >>> good = np.where(truth[:, None] == [0, 1], 0.8, 0.2)
    >>> a = Predictions("good", range(90), ["cat", "dog"], good)
    >>> b = Predictions("bad", range(90), ["cat", "dog"], np.full((90, 2), 0.5))
    >>> names = [["cat", "dog"][i] for i in truth]
    >>> seen, unseen = slice(60), slice(60, 90)
    >>> learned = learn_ensemble([a.take(seen), b.take(seen)], names[seen])
    >>> evaluation = evaluate_ensemble(learned, [a.take(unseen), b.take(unseen)], names[unseen])
    >>> evaluation.chosen.score, evaluation.is_worse_than_simple
    (1.0, False)
    """
    trial = read_held_out(
        learned, models, truth, sample_weight=sample_weight, groups=groups, fold=fold
    )
    return evaluate_on(learned, trial, measure_of(learned, metric), seed)


def evaluate_on(learned: LearnedEnsemble, trial: Trial, measure: Measure, seed: int) -> Evaluation:
    """The same, on samples that were read."""
    bootstrap = trial.bootstrap(measure, seed)
    outcomes: list[Standing] = []
    for rule in (learned.fitted, *learned.rivals):
        scores, seconds = _timed(rule, trial)
        estimate = bootstrap.estimate(scores)
        if rule is learned.fitted:
            chosen_scores, chosen = scores, estimate
        microseconds = 1e6 * seconds / trial.n_samples
        outcomes.append(
            Standing.of(rule.recipe, estimate, chosen, microseconds, _figures(scores, trial))
        )
    is_sharpened = learned.task == "multiclass" and learned.temperature != 1
    return Evaluation(
        task=learned.task,
        metric=measure.name,
        n_samples=trial.n_samples,
        # The chosen rule comes first of equal ones.
        outcomes=tuple(sorted(outcomes, key=lambda each: (-each.score, not each.is_chosen))),
        sharpened=_figures(learned.sharpen(chosen_scores), trial) if is_sharpened else None,
        decided=_decided(chosen_scores, trial, learned.thresholds),
        seed=seed,
    )


def read_held_out(
    learned: LearnedEnsemble,
    models: Sequence[Any] | Mapping[str, Any],
    truth: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    fold: bool = False,
) -> Trial:
    """The models that were learned from, on other samples, with the truth of each."""
    given = learned.read_models(models)
    trial = read_trial(
        learned.matched_models(given, fold=fold),
        truth,
        target=learned.target,
        kind=learned.fusion.kind,
        sample_weight=sample_weight,
        groups=groups,
        aliases=learned.fusion.aliases,
        other=learned.fusion.other,
        fold=fold,
        first=given[0],
    )
    if trial.task != learned.task:
        fail(f"the truth must be {learned.task}, as it was when learning; got {trial.task}.")
    return trial


def measure_of(learned: LearnedEnsemble, metric: Any = None) -> Measure:
    """The metric that was learned by, or the one given."""
    positions = learned.target.positions
    if metric is not None:
        return read_measure(metric, learned.task).on_line(positions)
    try:
        return read_measure(learned.metric, learned.task).on_line(positions)
    except InvalidInputError:
        fail(
            f"`metric` must be given again if it is a function; {learned.metric!r} was learned by.",
            hint="metric=...",
        )


def _timed(fitted: FittedRecipe, trial: Trial) -> tuple[np.ndarray, float]:
    """Scores of a rule, and the seconds that it took: the least of a few times."""
    fitted.fuse([model.take(slice(_N_WARM)) for model in trial.models])
    seconds: list[float] = []
    while len(seconds) < _N_TIMINGS and sum(seconds) < _SECONDS:
        started = time.perf_counter()
        scores = fitted.fuse(trial.models)
        seconds.append(time.perf_counter() - started)
    return scores, min(seconds)


def _figures(scores: np.ndarray, trial: Trial) -> dict[str, float]:
    """Other metrics than the user's."""
    if trial.task == "multiclass":
        return {
            each.name: each.value(scores, trial.truth, trial.sample_weight)
            for each in MULTICLASS
            if each != TOP_5_ACCURACY or scores.shape[1] > 5
        }
    values = {"mAP": MEAN_AVERAGE_PRECISION.value(scores, trial.truth, trial.sample_weight)}
    if trial.sample_weight is None and scores.shape[1] > 3:
        figures = asdict(precision_recall_f1(scores, trial.truth, top_k=3))
        values |= {f"top_3_{name}": figures[name] for name in _DECISIONS}
    return values


_DECISIONS = tuple(
    f"{figure}_{over}"
    for over in ("per_class", "overall")
    for figure in ("precision", "recall", "f1")
)


def _decided(
    scores: np.ndarray, trial: Trial, thresholds: np.ndarray | None
) -> dict[str, float] | None:
    if thresholds is None or trial.sample_weight is not None:
        return None
    figures = asdict(precision_recall_f1(scores, trial.truth, threshold=thresholds))
    return {name: figures[name] for name in _DECISIONS}


@dataclass(frozen=True)
class Score:
    """One metric on the samples whose truth is known.

    Attributes
    ----------
    value : float
        log_loss and brier_score are losses: the lower the better.
    low, high : float
        Bootstrap interval of 95 % over samples.
    n_scored : int
        Samples of the file whose truth is known.
    n_without_truth : int
        Samples of the file whose truth is not known; they do not count.
    n_missing : int
        Samples of the truth that the file lacks; they do not count.
    n_without_answer : int
        Scored samples without any score above 0; they count as wrong.
    """

    model: str
    metric: str
    value: float
    low: float
    high: float
    n_scored: int
    n_without_truth: int
    n_missing: int
    n_without_answer: int


def score_predictions(
    predictions: Predictions,
    truth: Any,
    *,
    metrics: Sequence[Any] = (),
    target: LabelSpace | None = None,
    kind: Kind | None = None,
    aliases: Any = None,
    fold: bool = False,
    seed: int = 0,
) -> list[Score]:
    """Scores of one model, or of a consensus, against the truth; matched by id and by name.

    Parameters
    ----------
    predictions : Predictions
    truth : see `read_trial`
    metrics : sequence of str or callable
        See `learn_ensemble`; accuracy, log_loss and brier_score if none is given, or mAP where
        samples may have several labels.
    target : LabelSpace, optional
        All labels, for metrics of labels with an order from the lowest to the highest; those of
        the model and the truth if not given.
    aliases : dict of str to str, or Aliases, optional
        True labels that labels of the model stand for; see `Fusion`.
    fold : bool
        Match names without regard to case, underscores, hyphens and repeated spaces, and
        numbers by their value: 2, 2.0 and 02.
    seed : int
        Of the bootstrap.

    Examples
    --------
    >>> fused = Predictions("fused", range(4), ["cat", "dog"], [[0.9, 0.1]] * 4)
    >>> score_predictions(fused, ["cat", "cat", "cat", "dog"], metrics=["accuracy"])[0].value
    0.75
    """
    trial = read_trial([predictions], truth, target=target, kind=kind, aliases=aliases, fold=fold)
    measures = [read_measure(metric, trial.task) for metric in metrics or _USUAL[trial.task]]
    if target is None and any(measure.is_ordered for measure in measures):
        trial = trial.in_order()
    measures = [measure.on_line(trial.target.positions) for measure in measures]
    if true := trial.strange_labels:
        said, remedy = tell_strangers(true, predictions.labels, repr(predictions.model))
        fail(said, hint=remedy)
    scores = _as_target(trial)
    n_true = truth.n_samples if isinstance(truth, Predictions) else len(truth)
    results = []
    for measure in measures:
        low, high = trial.bootstrap(measure, seed).estimate(scores).interval
        if measure.is_loss:
            low, high = 0 - high, 0 - low
        results.append(
            Score(
                model=predictions.model,
                metric=measure.name,
                value=measure.value(scores, trial.truth),
                low=low,
                high=high,
                n_scored=trial.n_samples,
                n_without_truth=predictions.n_samples - trial.n_samples,
                n_missing=n_true - trial.n_samples,
                n_without_answer=int((scores.max(axis=1, initial=0) <= 0).sum()),
            )
        )
    return results


def _as_target(trial: Trial) -> np.ndarray:
    """Scores of the only model of a trial, of the target labels that its labels stand for."""
    [model] = trial.models
    known = np.nan_to_num(model.scores)
    matching = model.labels.match(trial.target, aliases=trial.aliases.of_model(model.model))
    lost = [name for name in matching.unmatched if known[:, model.labels.place(name)].any()]
    if lost:
        told = f"{model.model}: scores of labels that are no target labels do not count"
        warn_of_inputs([f"{told}: {enumerate_names(lost)}"])
    shares = matching.to_sparse()
    if trial.kind == "multiclass":
        return np.asarray(known @ shares)
    scores = np.zeros((trial.n_samples, len(trial.target)))
    for place, goal in zip(*shares.nonzero(), strict=True):
        np.maximum(scores[:, goal], known[:, place], out=scores[:, goal])
    return scores
