"""Rungs: from few parameters to many, what is believed of models whose truth nobody knows.

Each fits itself to votes alone by expectation and maximisation, in logs, from the label-aware
mean on: what it believes of the samples tells what to believe of the models, and the other way
round (Dawid and Skene 1979). All that is kept of the samples are sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from scipy.special import softmax

from wassemble._checks import fail
from wassemble.ensemble.without_truth.votes import Answers, Votes, divided

_MOST_ROUNDS = 100
_TOLERANCE = 1e-4
# Votes that a prior is worth: what all models have in common, and the rung below.
_PRIOR_VOTES = 4.0
_BELOW_VOTES = 2.0
# Steps after which shares of knowing the truth no longer change a consensus.
_N_STEPS = 10
# A model is never thought to be right in all cases.
_MOST_RELIABLE = 0.995
_TINY = 1e-12
# Numbers that are looked at together.
_TILE = 1_000_000


@dataclass(frozen=True, eq=False)
class Known:
    """What is known, or asked for, before anything is learned.

    Attributes
    ----------
    shares : array of shape (n_models,)
        How much of a vote each model has: relatives share theirs.
    balance : array of shape (n_target,), or None
        How often each label is true; None: it is learned.
    gold : array of shape (n_samples,), or None
        Place of the true label, -1 where nobody knows.
    """

    shares: np.ndarray
    balance: np.ndarray | None = None
    gold: np.ndarray | None = None

    def believe(self, consensus: np.ndarray) -> np.ndarray:
        """The consensus, with the truth where it is known."""
        if self.gold is None:
            return consensus
        told = np.eye(consensus.shape[1])[self.gold]
        return np.where((self.gold >= 0)[:, None], told, consensus)


@dataclass(frozen=True, eq=False)
class Sums:
    """All that a fit keeps of samples: new votes add to them.

    Attributes
    ----------
    said : array of shape (n_labels of all models, n_target)
        Votes for each label of each model, by what was believed true.
    kept_silent : array of shape (n_models, n_target)
    believed : array of shape (n_target,)
        Samples for which each label was believed true.
    """

    said: np.ndarray
    kept_silent: np.ndarray
    believed: np.ndarray

    @staticmethod
    def of(votes: Votes, consensus: np.ndarray) -> Sums:
        """Of the votes on samples that a consensus is believed of."""
        said, silent = votes.given_by_label @ consensus, votes.silent_by_model @ consensus
        return Sums(np.asarray(said), np.asarray(silent), consensus.sum(axis=0))

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.said + other.said,
            self.kept_silent + other.kept_silent,
            self.believed + other.believed,
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a rung came to believe.

    Attributes
    ----------
    consensus : array of shape (n_samples, n_target)
        How likely each label is, given the votes; 0 where nobody voted and nothing is learned.
    weights : array of shape (n_models,)
        On the simplex: of a mean. The shares of votes for other rungs.
    balance : array of shape (n_target,)
    meaning : array of shape (n_labels of all models, n_target), or None
        The log of how likely a model gives each of its labels, where each target label is true.
    silence : array of shape (n_models, n_target), or None
        The same of saying nothing; 0 where that is not looked at.
    """

    rung: Rung
    votes: Votes
    known: Known
    consensus: np.ndarray
    weights: np.ndarray
    balance: np.ndarray
    sums: Sums
    meaning: np.ndarray | None = None
    silence: np.ndarray | None = None

    def believe(self, votes: Votes) -> np.ndarray:
        """The consensus on other samples of the same models."""
        if self.meaning is None or self.silence is None:
            return votes.mean(self.weights)
        return _weigh(self.rung.hear(votes), self.meaning, self.silence, self.balance, self.weights)

    def compare_with_others(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Each answer beside the mean of the others, some samples at a time.

        Yields
        ------
        owner : array of shape (n_answers,)
            Place of the model.
        own, others : arrays of shape (n_answers, n_target)
            Its answer by name, and the mean without it: histograms; 0 where there is none.
        """
        n_numbers = len(self.votes.target) * self.votes.given.nnz / max(1, self.votes.n_samples)
        n_together = max(1, int(_TILE / max(1, n_numbers)))
        for start in range(0, self.votes.n_samples, n_together):
            rows = np.arange(start, min(start + n_together, self.votes.n_samples))
            votes = self.votes.on(rows)
            if votes.given.nnz:
                answers = Answers(votes)
                yield answers.owner, answers.sum_of(votes.images), self._others(votes, answers)

    def _others(self, votes: Votes, answers: Answers) -> np.ndarray:
        pull = votes.images * self.weights[votes.owner][:, None]
        rest = (votes.given @ pull)[answers.row] - answers.sum_of(pull)
        speak = votes.declares * self.weights[:, None]
        total = (votes.answers @ speak)[answers.row] - speak[answers.owner]
        is_there = (total > _TINY) & (rest > _TINY)
        return divided(np.where(is_there, rest, 0) / np.where(is_there, total, 1), axis=1)

    def update(self, votes: Votes) -> Fitted:
        """The same after votes on new samples, which change the sums; nothing is fitted anew."""
        if (votes.models, votes.target) != (self.votes.models, self.votes.target):
            fail("new votes must be of the same models, in their order, for the same labels.")
        consensus = self.believe(votes)
        sums = self.sums + Sums.of(self.rung.hear(votes), consensus)
        return replace(self.rung.after(self, sums), consensus=consensus, votes=votes)

    @property
    def reliability(self) -> np.ndarray:
        """How often each model is thought to be right where it answers, ``(n_models,)``."""
        votes, said = self.votes, self.sums.said
        right = votes.by_model((said * votes.images).sum(axis=1))
        total = votes.by_model(said.sum(axis=1))
        return np.divide(right, total, out=np.full(len(total), np.nan), where=total > 0)


class Rung(ABC):
    """What is believed of models."""

    key: ClassVar[str]
    #: Whether it can be misled by models that are relatives of each other.
    trusts_independence: ClassVar[bool] = False

    @abstractmethod
    def fit(self, votes: Votes, known: Known) -> Fitted:
        """What the votes tell."""

    def suits(self, votes: Votes) -> bool:
        """Whether there is anything in such votes that it could learn."""
        return True

    def __str__(self) -> str:
        return self.key

    def hear(self, votes: Votes) -> Votes:
        """What it makes of votes before it looks at them: nothing else."""
        return votes

    def after(self, fitted: Fitted, sums: Sums) -> Fitted:
        """What is believed after more votes."""
        return replace(fitted, sums=sums)


class _Mean(Rung):
    """The label-aware mean of the votes."""

    def fit(self, votes: Votes, known: Known) -> Fitted:
        weights = self._weigh(votes, known)
        weights = (weights if weights.any() else known.shares) / (
            weights.sum() or known.shares.sum()
        )
        consensus = votes.mean(weights)
        balance = known.balance
        if balance is None:
            balance = _smooth(consensus.sum(axis=0))
        sums = Sums.of(votes, known.believe(consensus))
        return Fitted(self, votes, known, consensus, weights, balance, sums)

    @abstractmethod
    def _weigh(self, votes: Votes, known: Known) -> np.ndarray:
        """Weights of models, of any sum."""


@final
@dataclass(frozen=True)
class Equal(_Mean):
    """Every model counts as much; relatives share."""

    key: ClassVar[str] = "equal weights"

    def _weigh(self, votes: Votes, known: Known) -> np.ndarray:
        return known.shares


@final
@dataclass(frozen=True)
class Agreement(_Mean):
    """A model counts as much as it agrees with the label-aware mean of the others."""

    key: ClassVar[str] = "weights by agreement"

    def _weigh(self, votes: Votes, known: Known) -> np.ndarray:
        return known.shares * measure_agreement(Equal().fit(votes, known))


class _Product(Rung):
    """The product of how likely each answer is, where each label is true."""

    def fit(self, votes: Votes, known: Known) -> Fitted:
        return _maximise(self, self.hear(votes), known)

    def hear(self, votes: Votes) -> Votes:
        # Shares are no odds: a model that gives its best label .6 may be right nineteen times out
        # of twenty. How often it is right is what is learned here.
        return votes.best

    def after(self, fitted: Fitted, sums: Sums) -> Fitted:
        return _revise(self, fitted, sums)

    @abstractmethod
    def meaning(
        self, votes: Votes, sums: Sums, balance: np.ndarray, shares: np.ndarray
    ) -> np.ndarray:
        """How likely each label of each model is, where each target label is true."""

    @abstractmethod
    def silence(self, votes: Votes, sums: Sums) -> np.ndarray:
        """How likely each model keeps silent, where each target label is true."""


@final
@dataclass(frozen=True)
class Reliability(_Product):
    """A model knows the truth so often, and else answers as it usually does.

    One number for each model, or ``per_label`` one for each model and label. Where labels have an
    order, ``near`` also learns how many grades from the truth all models guess.
    """

    key: ClassVar[str] = "reliability"

    per_label: bool = False
    near: bool = False

    @property
    def trusts_independence(self) -> bool:  # type: ignore[override]
        return self.per_label

    def suits(self, votes: Votes) -> bool:
        """Only grades can be near."""
        return not self.near or votes.steps is not None

    def __str__(self) -> str:
        each = "reliability per model and label" if self.per_label else "reliability per model"
        return f"{each}, errors near" if self.near else each

    def meaning(
        self, votes: Votes, sums: Sums, balance: np.ndarray, shares: np.ndarray
    ) -> np.ndarray:
        """How likely each label of each model is, where each target label is true."""
        usual = _usual(votes, sums)
        knows = _Knowing(votes, sums, usual, balance, shares if self.near else None)
        share = knows.per_label() if self.per_label else knows.per_model()
        return knows.meaning(share)

    def silence(self, votes: Votes, sums: Sums) -> np.ndarray:
        """Of silence it thinks nothing."""
        return np.ones_like(sums.kept_silent)


@final
@dataclass(frozen=True)
class Confusions(_Product):
    """Each model's confusions, and when it keeps silent; where votes are few, its reliability."""

    key: ClassVar[str] = "confusions"
    trusts_independence: ClassVar[bool] = True

    def meaning(
        self, votes: Votes, sums: Sums, balance: np.ndarray, shares: np.ndarray
    ) -> np.ndarray:
        """How likely each label of each model is, where each target label is true."""
        below = Reliability().meaning(votes, sums, balance, shares)
        # Who says ever the same: how often it speaks is all there is to know.
        alone = votes.says_one_thing[votes.owner]
        below[alone] = _usual(votes, sums)[alone][:, None]
        speaks = 1 - _silent_share(sums)[votes.owner][:, None]
        return (sums.said + _BELOW_VOTES * below * speaks) / self._total(votes, sums)[votes.owner]

    def silence(self, votes: Votes, sums: Sums) -> np.ndarray:
        """How likely each model keeps silent, where each target label is true."""
        share = _silent_share(sums)
        prior = _BELOW_VOTES * share[:, None]
        found = (sums.kept_silent + prior) / self._total(votes, sums)
        return np.where(share[:, None] > 0, found, 1.0)

    def _total(self, votes: Votes, sums: Sums) -> np.ndarray:
        return votes.by_model(sums.said) + sums.kept_silent + _BELOW_VOTES


RUNGS: tuple[Rung, ...] = (
    Equal(),
    Agreement(),
    Reliability(),
    Reliability(per_label=True),
    Reliability(per_label=True, near=True),
    Confusions(),
)
"""From few parameters to many."""


def measure_agreement(fitted: Fitted) -> np.ndarray:
    """Share of its answers in which each model agrees with the mean of the others.

    Of a model with few answers little is known: it is drawn to what all have.
    """
    n_models = fitted.votes.n_models
    agreed, asked = np.zeros(n_models), np.zeros(n_models)
    for owner, own, others in fitted.compare_with_others():
        there = others.sum(axis=1)
        agreed += np.bincount(owner, (own * others).sum(axis=1), minlength=n_models)
        asked += np.bincount(owner, there, minlength=n_models)
    usual = agreed.sum() / max(asked.sum(), _TINY)
    return (agreed + _PRIOR_VOTES * usual) / (asked + _PRIOR_VOTES)


class _Knowing:
    """How often models know the truth, by what they said where it was believed."""

    def __init__(
        self,
        votes: Votes,
        sums: Sums,
        usual: np.ndarray,
        balance: np.ndarray,
        shares: np.ndarray | None,
    ) -> None:
        self._votes = votes
        self._shares = shares  # of a vote; None: guesses lie anywhere
        self._alone = alone = votes.says_one_thing[votes.owner][:, None]
        # A model that says ever the same tells by speaking: how much likelier that makes the
        # label than it is without.
        self._meant = np.where(alone, votes.meant / np.maximum(balance, _TINY), votes.meant)
        self._guess = np.where(alone, 1.0, np.broadcast_to(usual[:, None], votes.meant.shape))
        self._n_votes = votes.declares * votes.by_model(sums.said)
        # Who knows the truth says what is meant: of few pairs of labels.
        self._pairs = row, column = np.nonzero(votes.meant)
        self._owner = votes.owner[row]
        self._place = self._owner * self._n_votes.shape[1] + column
        self._said = sums.said
        self._pairs_said, self._pairs_meant = sums.said[row, column], self._meant[row, column]

    def per_model(self) -> np.ndarray:
        """One number for each model, ``(n_models, 1)``."""
        share = np.full((self._votes.n_models, 1), 0.5)
        n_votes = self._n_votes.sum(axis=1, keepdims=True)
        for _ in range(_N_STEPS):
            knew = self._count_known(share).sum(axis=1, keepdims=True)
            share = _draw(knew, n_votes, knew.sum() / max(n_votes.sum(), _TINY))
            self._guess_nearby(share)
        return share

    def per_label(self) -> np.ndarray:
        """One number for each model and label, ``(n_models, n_target)``."""
        below = self.per_model()
        share = below
        for _ in range(_N_STEPS):
            share = _draw(self._count_known(share), self._n_votes, below)
            self._guess_nearby(share)
        return share

    def _count_known(self, share: np.ndarray) -> np.ndarray:
        """Votes that came from knowing the truth, ``(n_models, n_target)``."""
        shape = self._n_votes.shape
        known = self._split_known(share)
        return np.bincount(self._place, known, minlength=shape[0] * shape[1]).reshape(shape)

    def _split_known(self, share: np.ndarray) -> np.ndarray:
        """The same of each pair of a label and what it may mean, ``(n_pairs,)``."""
        own = share[self._owner, 0 if share.shape[1] == 1 else self._pairs[1]]
        knowing, guessing = own * self._pairs_meant, (1 - own) * self._guess[self._pairs]
        return np.asarray(self._pairs_said * knowing / np.maximum(knowing + guessing, _TINY))

    def _guess_nearby(self, share: np.ndarray) -> None:
        """Learn how many grades from the truth the guesses of all models lie."""
        steps = self._votes.steps
        if steps is None or self._shares is None:
            return
        guessed = self._said.copy()
        guessed[self._pairs] -= self._split_known(share)
        guessed = np.where(self._alone, 0, guessed * self._shares[self._votes.owner][:, None])
        expected = self._guess * self._votes.by_model(guessed)[self._votes.owner]
        found, usual = (np.bincount(steps.ravel(), x.ravel()) for x in (guessed, expected))
        nearby = self._guess * ((found + 1) / (usual + 1))[steps]
        nearby = nearby / self._votes.by_model(nearby)[self._votes.owner]
        self._guess = np.where(self._alone, self._guess, nearby)

    def meaning(self, share: np.ndarray) -> np.ndarray:
        """How likely each label is, of models that know the truth so often."""
        own = share[self._votes.owner]
        speaks = self._votes.declares[self._votes.owner]
        return np.where(speaks, own * self._meant + (1 - own) * self._guess, self._guess)


def _draw(knew: np.ndarray, n_votes: np.ndarray, usual: np.ndarray | float) -> np.ndarray:
    """Shares of knowing the truth, drawn to what is usual where votes are few."""
    share = (knew + _PRIOR_VOTES * usual) / (n_votes + _PRIOR_VOTES)
    return np.asarray(np.minimum(share, _MOST_RELIABLE))


def _usual(votes: Votes, sums: Sums) -> np.ndarray:
    """How often each model gives each of its labels, ``(n_labels,)``; drawn to what all say."""
    said = sums.said.sum(axis=1)
    overall = votes.images.T @ said
    prior = votes.meant @ (overall / max(overall.sum(), _TINY)) + 1e-3
    prior = prior / votes.by_model(prior)[votes.owner]
    found = said + prior
    return np.asarray(found / votes.by_model(found)[votes.owner])


def _silent_share(sums: Sums) -> np.ndarray:
    return np.asarray(sums.kept_silent.sum(axis=1) / max(sums.believed.sum(), _TINY))


def _maximise(rung: _Product, votes: Votes, known: Known) -> Fitted:
    """Expectation and maximisation, from the label-aware mean on."""
    consensus = known.believe(votes.mean(known.shares))
    balance = known.balance
    if balance is None and votes.says_one_thing.any():
        # Who says ever the same cannot tell how often a label is true.
        balance = _smooth(consensus.sum(axis=0))
    fixed = replace(known, balance=balance)
    draft = Fitted(rung, votes, fixed, consensus, known.shares, np.empty(0), _no_sums)
    for _ in range(_MOST_ROUNDS):
        draft = _revise(rung, draft, Sums.of(votes, consensus))
        believed = known.believe(draft.believe(votes))
        change = np.abs(believed - consensus).max(initial=0)
        consensus = believed
        if change < _TOLERANCE:
            break
    return replace(draft, consensus=consensus)


_no_sums = Sums(np.empty((0, 0)), np.empty((0, 0)), np.empty(0))


def _revise(rung: _Product, fitted: Fitted, sums: Sums) -> Fitted:
    """What is believed of models by these sums."""
    votes = fitted.votes
    balance = fitted.known.balance
    balance = _smooth(sums.believed) if balance is None else balance
    meaning = _log(rung.meaning(votes, sums, balance, fitted.known.shares))
    silence = _log(rung.silence(votes, sums))
    return replace(fitted, sums=sums, balance=balance, meaning=meaning, silence=silence)


def _weigh(
    votes: Votes, meaning: np.ndarray, silence: np.ndarray, balance: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """How likely each target label is, given the votes."""
    evidence = votes.given @ (meaning * shares[votes.owner][:, None])
    if votes.silent.nnz:
        evidence = evidence + votes.silent @ (silence * shares[:, None])
    return np.asarray(softmax(evidence + _log(balance), axis=1))


def _smooth(believed: np.ndarray) -> np.ndarray:
    """Shares of labels, one sample of each added."""
    return np.asarray((believed + 1) / (believed + 1).sum())


def _log(values: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(values, _TINY))
