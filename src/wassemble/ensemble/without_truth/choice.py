"""The safe choice without truth: a richer rung must predict models that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr

from wassemble.ensemble.without_truth.relatives import Relatives
from wassemble.ensemble.without_truth.rungs import (
    RUNGS,
    Confusions,
    Fitted,
    Known,
    Rung,
    Sums,
)
from wassemble.ensemble.without_truth.votes import Votes
from wassemble.metrics import Comparison

_N_FOLDS = 5
# Votes that are enough to choose by.
_MOST_VOTES = 200_000
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Rated:
    """A rung, and how well the consensus of some models foretells the answers of others.

    Attributes
    ----------
    foretold : array of shape (n_samples,)
        Sum of the logs of how likely each answer of a left-out model was.
    n_answers : float
    """

    rung: Rung
    foretold: np.ndarray
    n_answers: float

    @property
    def score(self) -> float:
        """Mean log likelihood of an answer."""
        return float(self.foretold.sum() / max(self.n_answers, 1))

    @property
    def standard_error(self) -> float:
        """Of the score, over samples."""
        return float(self.foretold.std() * np.sqrt(len(self.foretold)) / max(self.n_answers, 1))

    def minus(self, other: Rated) -> Comparison:
        """The gain over another, for each answer, with its error over samples."""
        gain = (self.foretold - other.foretold) / max(self.n_answers, 1)
        difference, error = float(gain.sum()), float(gain.std() * np.sqrt(len(gain)))
        sure = float(ndtr(difference / error)) if error > 0 else 0.5
        return Comparison(
            difference, error, difference - 1.96 * error, difference + 1.96 * error, sure
        )


@dataclass(frozen=True)
class RungChoice:
    """Which rung is taken, and why."""

    rung: Rung
    reasons: tuple[str, ...]
    rated: tuple[Rated, ...]
    comparisons: dict[str, Comparison]


def choose_rung(
    votes: Votes,
    known: Known,
    relatives: Relatives,
    *,
    caution: float,
    rungs: Sequence[Rung] = RUNGS,
) -> RungChoice:
    """The richest rung that gains more than ``caution`` standard errors over those below it.

    What counts is how well the consensus of some models foretells what others answer, models
    being left out with their relatives. Where many models repeat each other even that flatters,
    and no rung is taken that trusts in their independence.
    """
    few = _thin(votes, known)
    rated = [rate_rung(rung, *few, relatives) for rung in rungs if rung.suits(votes)]
    current, reasons, comparisons = rated[0], [], {}
    for each in rated[1:]:
        gain = comparisons[str(each.rung)] = each.minus(current)
        enough = gain.difference > caution * gain.standard_error
        blocked = relatives.are_many and each.rung.trusts_independence
        reasons.append(_say(each, current, gain, caution, enough=enough, blocked=blocked))
        if enough and not blocked:
            current = each
    return RungChoice(current.rung, tuple(reasons), tuple(rated), comparisons)


def rate_rung(rung: Rung, votes: Votes, known: Known, relatives: Relatives) -> Rated:
    """Fit a rung to the votes of some models, and foretell those of the others, in turn."""
    foretold = np.zeros(votes.n_samples)
    fold = _deal(votes, relatives)
    for number in range(fold.max() + 1):
        kept, left_out = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        if not len(kept):
            continue
        part = Known(known.shares[kept], known.balance, known.gold)
        fitted = rung.fit(votes.of(kept), part)
        foretold += _foretell(votes.of(left_out), _filled(fitted))
    return Rated(rung, foretold, votes.n_answers.sum())


def _filled(fitted: Fitted) -> np.ndarray:
    """The consensus, and the balance of labels where nobody voted."""
    empty = ~fitted.consensus.any(axis=1, keepdims=True)
    return np.where(empty, fitted.balance, fitted.consensus)


def _foretell(votes: Votes, consensus: np.ndarray) -> np.ndarray:
    """The log of how likely the answers on each sample were, given a consensus of others.

    What an answer has to do with the consensus is learned on every other sample. That a model
    answered at all is not foretold: who says ever the same thing tells nothing here.
    """
    votes = votes.of(np.flatnonzero(~votes.says_one_thing)).best
    foretold = np.zeros(votes.n_samples)
    is_even = np.arange(votes.n_samples) % 2 == 0
    for half in (is_even, ~is_even):
        other = votes.on(np.flatnonzero(~half))
        sums = Sums.of(other, consensus[~half])
        balance = sums.believed / max(sums.believed.sum(), 1)
        meaning = Confusions().meaning(other, sums, balance, np.ones(other.n_models))
        given = votes.given[np.flatnonzero(half)].tocoo()
        likely = np.einsum("vt,vt->v", consensus[half][given.row], meaning[given.col])
        told = given.data * np.log(np.maximum(likely, _TINY))
        foretold[half] = np.bincount(given.row, told, minlength=int(half.sum()))
    return foretold


def _deal(votes: Votes, relatives: Relatives) -> np.ndarray:
    """The fold of each model; near relatives lie in one, and folds have as many answers."""
    family = np.arange(votes.n_models)
    if relatives.kinship is not None:
        family = _families(relatives.kinship)
    size = np.bincount(family, votes.n_answers, minlength=votes.n_models)
    n_folds = min(_N_FOLDS, len(np.unique(family)))
    fold, held = np.zeros(votes.n_models, dtype=np.int64), np.zeros(n_folds)
    for own in np.argsort(-size, kind="stable").tolist():
        fold[own] = held.argmin()
        held[fold[own]] += size[own]
    return fold[family]


def _families(kinship: np.ndarray) -> np.ndarray:
    """The number of each model's family: relatives, and their relatives."""
    return np.asarray(connected_components(kinship > 0, directed=False)[1])


def _thin(votes: Votes, known: Known) -> tuple[Votes, Known]:
    """Every so many samples, if there are more votes than one needs to choose by."""
    step = int(np.ceil(votes.given.nnz / _MOST_VOTES))
    if step <= 1:
        return votes, known
    rows = np.arange(0, votes.n_samples, step)
    gold = None if known.gold is None else known.gold[rows]
    return votes.on(rows), Known(known.shares, known.balance, gold)


def _say(
    each: Rated, current: Rated, gain: Comparison, caution: float, *, enough: bool, blocked: bool
) -> str:
    """Why a rung is taken or not, in words."""
    if np.allclose(each.foretold, current.foretold, rtol=1e-9, atol=0):
        # With each of three models left out, the other two agree with each other equally.
        return f"{each.rung} against {current.rung}: they foretell the same, not taken"
    errors = f"{caution:g} standard {'error' if caution == 1 else 'errors'}"
    told = (
        f"{each.rung} against {current.rung}: log likelihood of an answer of a left-out model"
        f" {gain}, {'more' if enough else 'not more'} than {errors} ({gain.standard_error:.4f})"
        " above"
    )
    if enough and blocked:
        return f"{told}, but a tenth of the votes or more repeat others: not taken"
    return f"{told}: {'taken' if enough else 'not taken'}"
