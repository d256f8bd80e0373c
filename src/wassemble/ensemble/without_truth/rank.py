"""A leaderboard without truth: how right each model is thought to be, and whom it repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from wassemble._checks import Number, check_count
from wassemble._pictures import Bars, draw, show
from wassemble.ensemble.tables import read_models
from wassemble.ensemble.without_truth.choice import choose_rung
from wassemble.ensemble.without_truth.learn import hear, say_relatives
from wassemble.ensemble.without_truth.relatives import Relatives, find_relatives, mark_answers
from wassemble.ensemble.without_truth.rungs import Fitted, Known
from wassemble.ensemble.without_truth.votes import Votes, divided
from wassemble.errors import tell_count
from wassemble.inputs import Kind, Predictions
from wassemble.labels import LabelSpace
from wassemble.metrics.resamples import wilson_interval
from wassemble.solvers.stacked import mark_best

# Samples with truth by which a model is judged without asking the others.
_ENOUGH_GOLD = 50
# Models of a drawing.
_N_DRAWN = 20


@dataclass(frozen=True)
class Ranked:
    """One model.

    Attributes
    ----------
    accuracy : float
        How often it is thought to be right where it answers: by the consensus, as if that were
        right; by the mean of the *others* where nothing is learned of models. nan where nobody
        else answered.
    low, high : float
        95 % interval over samples (Wilson 1927); it does not know whether the consensus is right.
    coverage, silence : float
        Share of all samples that it answered, and about which it was asked and said nothing.
    conflict : float
        Share of its answers that some other model contradicts.
    share : float
        How much of a vote it has: less than 1 if it repeats others.
    relative : str or None
        The model that it repeats most.
    """

    model: str
    accuracy: float
    low: float
    high: float
    n_answers: int
    coverage: float
    silence: float
    conflict: float
    share: float
    relative: str | None


@dataclass(frozen=True, eq=False)
class Ranking:
    """Models ranked by each other, and the consensus that ranks them.

    Attributes
    ----------
    models : tuple of Ranked
        Best first, by the lower end of the interval.
    consensus : Predictions
        How likely each label is, for each sample; the highest is the quality of the answer.
    agreement : array of shape (n_models, n_models), or None
        Share of samples that both answered with the same label, in the order of ``names``.
    names : tuple of str
        The models as they were given.
    confusions : dict of str to array of shape (n_labels, n_target)
        How often each model gives each of its labels where a label of the consensus is believed
        true; columns sum to 1, or to 0 where none was.
    n_effective : float
        How many independent models they amount to.
    belief : str
        What was learned of models; see `learn_ensemble`.
    reasons : tuple of str
        Why that.
    """

    models: tuple[Ranked, ...]
    consensus: Predictions
    agreement: np.ndarray | None
    names: tuple[str, ...]
    confusions: dict[str, np.ndarray]
    n_effective: float
    belief: str
    reasons: tuple[str, ...]

    @cached_property
    def quality(self) -> np.ndarray:
        """How likely the best label of each sample is thought to be, ``(n_samples,)``."""
        return np.asarray(self.consensus.scores.max(axis=1))

    def disputed(self, n_samples: int = 10) -> list[Any]:
        """Ids of the samples that models are least of one mind about, worst first."""
        worst = np.argsort(self.quality, kind="stable")[: check_count(n_samples, "n_samples")]
        return [self.consensus.samples.tolist()[row] for row in worst]

    def draw_samples(self, n_samples: int, seed: int = 0) -> list[Any]:
        """Ids of samples to ask a person about, for ``gold``.

        Drawn at random, one for each label that the consensus gives, then another for each, and
        so on: rare labels have little truth otherwise.
        """
        n_drawn = min(check_count(n_samples, "n_samples"), self.consensus.n_samples)
        order = np.random.default_rng(seed).permutation(self.consensus.n_samples)
        turn = count_earlier(self.consensus.scores[order].argmax(axis=1))
        drawn = np.sort(order[np.argsort(turn, kind="stable")[:n_drawn]])
        return [self.consensus.samples.tolist()[row] for row in drawn]

    def to_dict(self) -> dict[str, Any]:
        """All but the consensus, ready for JSON."""
        agreement = None
        if self.agreement is not None:
            agreement = [[_or_none(x) for x in row] for row in self.agreement.tolist()]
        return {
            "models": [
                {name: _or_none(value) for name, value in asdict(each).items()}
                for each in self.models
            ],
            "names": list(self.names),
            "agreement": agreement,
            "confusions": {name: table.tolist() for name, table in self.confusions.items()},
            "n_effective": self.n_effective,
            "belief": self.belief,
            "reasons": list(self.reasons),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw how right the best models are thought to be, with intervals; the axes."""
        return draw(self._picture(), ax)

    def _picture(self) -> Bars:
        best = self.models[:_N_DRAWN]
        ends = {"low": [each.low for each in best], "high": [each.high for each in best]}
        right = [each.accuracy for each in best]
        return Bars("thought to be right", [each.model for each in best], right, **ends)

    def _repr_html_(self) -> str:
        return show([self._picture()], repr(self))

    def __repr__(self) -> str:
        return (
            f"Ranking({tell_count(len(self.models), 'model')},"
            f" {tell_count(self.consensus.n_samples, 'sample')}, best {self.models[0].model!r})"
        )


def rank_models(
    models: Sequence[Any] | Mapping[str, Any],
    *,
    gold: Any = None,
    balance: Mapping[str, float] | None = None,
    kernels: Mapping[str, Any] | None = None,
    target: LabelSpace | Sequence[str] | None = None,
    kind: Kind | None = None,
    aliases: Any = None,
    other: str | Mapping[str, str] | None = None,
    fold: bool = False,
    normalize: bool = False,
    caution: float = 0.5,
) -> Ranking:
    """Rank models by each other, where nobody knows the truth.

    Parameters
    ----------
    models, gold, balance, kernels, target, kind, aliases, other, fold, normalize, caution
        As in `learn_ensemble` without truth.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=200)
    >>> def answer(accuracy):
    ...     return np.eye(2)[np.where(rng.random(200) < accuracy, truth, 1 - truth)]
    >>> models = {"good": answer(0.9), "fair": answer(0.75), "poor": answer(0.6)}
    >>> ranking = rank_models(
    ...     [Predictions(name, range(200), ["no", "yes"], x) for name, x in models.items()]
    ... )
    >>> [each.model for each in ranking.models]
    ['good', 'fair', 'poor']
    """
    heard = hear(
        read_models(models, kind, normalize=normalize)[0],
        gold=gold,
        balance=balance,
        kernels=kernels,
        target=None if target is None else LabelSpace(target),
        kind=kind,
        aliases=aliases,
        other=other,
        fold=fold,
        normalize=normalize,
    )
    caution = Number(at_least=0)(caution, "caution")
    return rank_votes(heard.votes, heard.known, caution=caution)


def rank_votes(votes: Votes, known: Known, *, caution: float = 0.5) -> Ranking:
    """Rank those who voted."""
    relatives = find_relatives(votes, known)
    known = replace(known, shares=relatives.shares)
    choice = choose_rung(votes, known, relatives, caution=caution)
    fitted = choice.rung.fit(votes, known)
    consensus = Predictions(
        "consensus", votes.samples, votes.target, fitted.consensus, kind="multiclass"
    )
    # By what is sure: a model that was right once is not the best.
    ranked = sorted(_describe(fitted, relatives), key=lambda each: -np.nan_to_num(each.low))
    return Ranking(
        tuple(ranked),
        consensus,
        relatives.agreement,
        votes.models,
        _confusions(fitted),
        relatives.n_effective,
        str(choice.rung),
        (*choice.reasons, *say_relatives(relatives, votes.models)),
    )


def count_earlier(labels: np.ndarray) -> np.ndarray:
    """How many of the same label come before each.

    Examples
    --------
    >>> count_earlier(np.array([3, 1, 3, 3, 1])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    earlier = np.empty(len(labels), dtype=np.int64)
    earlier[order] = np.arange(len(labels)) - np.searchsorted(ordered, ordered)
    return earlier


def _describe(fitted: Fitted, relatives: Relatives) -> list[Ranked]:
    votes, known = fitted.votes, fitted.known
    right, judged = judge_answers(fitted)
    if known.gold is not None:
        right, judged = _judge_by_gold(votes, known.gold, right, judged)
    silent = np.asarray(votes.silent.sum(axis=0)).ravel()
    conflict = _count_conflicts(votes) / np.maximum(votes.n_answers, 1)
    accuracy = np.divide(right, judged, out=np.full(len(right), np.nan), where=judged > 0)
    low, high = wilson_interval(accuracy, judged)
    nearest = _find_nearest(relatives, votes.models)
    return [
        Ranked(
            model,
            float(accuracy[place]),
            float(low[place]),
            float(high[place]),
            round(votes.n_answers[place]),
            float(votes.n_answers[place] / votes.n_samples),
            float(silent[place] / votes.n_samples),
            float(conflict[place]),
            float(relatives.shares[place]),
            nearest[place],
        )
        for place, model in enumerate(votes.models)
    ]


def judge_answers(fitted: Fitted) -> tuple[np.ndarray, np.ndarray]:
    """Answers of each model that are thought right, and all that could be judged.

    By what was learned of each model; for a mean, which learns nothing, by the best label of the
    mean of the others.
    """
    votes = fitted.votes
    if fitted.meaning is not None:
        return votes.by_model((fitted.sums.said * votes.images).sum(axis=1)), votes.n_answers
    right, judged = np.zeros(votes.n_models), np.zeros(votes.n_models)
    for owner, own, others in fitted.compare_with_others():
        met = (mark_best(own) * mark_best(others)).sum(axis=1)
        right += np.bincount(owner, met, minlength=votes.n_models)
        judged += np.bincount(owner, others.sum(axis=1), minlength=votes.n_models)
    return right, judged


def _judge_by_gold(
    votes: Votes, gold: np.ndarray, right: np.ndarray, judged: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same, by the truth alone for models with enough answers to it."""
    rows = np.flatnonzero(gold >= 0)
    told = mark_answers(votes.on(rows))
    n_right = np.zeros(votes.n_models)
    for label, answers in enumerate(told):
        n_right += np.asarray(answers[gold[rows] == label].sum(axis=0)).ravel()
    n_told = np.asarray(votes.on(rows).answers.sum(axis=0)).ravel()
    enough = n_told >= _ENOUGH_GOLD
    return np.where(enough, n_right, right), np.where(enough, n_told, judged)


def _count_conflicts(votes: Votes) -> np.ndarray:
    """Answers of each model that some other contradicts, ``(n_models,)``."""
    marked = mark_answers(votes)
    total = sum(np.asarray(answers.sum(axis=1)).ravel() for answers in marked)
    conflicts = np.zeros(votes.n_models)
    for answers in marked:
        same = np.asarray(answers.sum(axis=1)).ravel()
        conflicts += answers.T @ (total > same).astype(np.float64)
    return conflicts


def _confusions(fitted: Fitted) -> dict[str, np.ndarray]:
    votes = fitted.votes
    parts = np.split(fitted.sums.said, np.flatnonzero(np.diff(votes.owner)) + 1)
    tables = (divided(part, axis=0) for part in parts)
    return dict(zip(votes.models, tables, strict=True))


def _find_nearest(relatives: Relatives, models: Sequence[str]) -> list[str | None]:
    """The nearest relative of each model."""
    if relatives.kinship is None:
        return [None] * len(models)
    others = relatives.kinship - np.eye(len(models))
    best = others.argmax(axis=1).tolist()
    return [models[near] if others[own, near] > 0 else None for own, near in enumerate(best)]


def _or_none(value: Any) -> Any:
    """What JSON can hold: None for nan."""
    return None if isinstance(value, float) and np.isnan(value) else value
