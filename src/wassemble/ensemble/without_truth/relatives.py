"""Relatives: models that agree beyond what their reliability explains share their vote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from wassemble.ensemble.without_truth.rungs import Confusions, Fitted, Known, Reliability
from wassemble.ensemble.without_truth.votes import Votes

_N_ROUNDS = 3
# Samples in common that a doubt is worth, and standard errors that may be chance.
_PRIOR_SAMPLES = 20.0
_CHANCE = 2.0
# Less may be chance, or two good models among bad ones, which look alike.
_LEAST_KINSHIP = 0.5
# Samples on which models must not differ once to be copies.
_COPIED_SAMPLES = 100
# Models beyond this number are not compared in pairs: tables of pairs would fill the memory.
_MOST_COMPARED = 1000


@dataclass(frozen=True, eq=False)
class Relatives:
    """Which models repeat each other.

    Attributes
    ----------
    kinship : array of shape (n_models, n_models), or None
        0 for models that hardly agree more than their reliability explains, 1 for copies; None
        where there are too many models to compare.
    agreement : array of shape (n_models, n_models), or None
        Share of samples that both answered with the same label; nan where there is none.
    shares : array of shape (n_models,)
        How much of a vote each has: 1, or 1/2 for each of two copies.
    """

    kinship: np.ndarray | None
    agreement: np.ndarray | None
    shares: np.ndarray

    @property
    def n_effective(self) -> float:
        """How many independent models they amount to."""
        return float(self.shares.sum())

    @property
    def are_many(self) -> bool:
        """Whether a tenth of the votes or more are repetitions."""
        return self.n_effective <= len(self.shares) * 0.9


def find_relatives(votes: Votes, known: Known) -> Relatives:
    """Compare all pairs of models, given what is believed of the truth.

    Reliability and kinship are found in turn: relatives that all vote make each other look right.
    """
    shares = np.ones(votes.n_models)
    if votes.n_models > _MOST_COMPARED:
        return Relatives(None, None, shares)
    best = mark_answers(votes)
    same, both = _count_same(best), (votes.answers.T @ votes.answers).toarray()
    for _ in range(_N_ROUNDS):
        fitted = Reliability().fit(votes, Known(shares, known.balance, known.gold))
        expected = _expect_same(votes, fitted)
        chance = _CHANCE * np.sqrt(np.maximum(expected * (1 - expected / np.maximum(both, 1)), 1))
        kinship = (same - expected - chance) / (both - expected + _PRIOR_SAMPLES)
        kinship[(same == both) & (both >= _COPIED_SAMPLES)] = 1  # copies, whatever explains them
        kinship = np.where(kinship > _LEAST_KINSHIP, np.minimum(kinship, 1), 0)
        kinship[votes.says_one_thing] = 0  # there is nothing that it could say otherwise
        kinship[:, votes.says_one_thing] = 0
        np.fill_diagonal(kinship, 1)
        shares = 1 / kinship.sum(axis=1)
    agreement = np.divide(same, both, out=np.full_like(same, np.nan), where=both > 0)
    return Relatives(kinship, agreement, shares)


def mark_answers(votes: Votes) -> list[sp.csr_array]:
    """The best label of each answer: for each target label, ``(n_samples, n_models)`` of 0 and 1.

    Of labels that are equally good, the first.
    """
    given = votes.given.tocoo()
    target = votes.images.argmax(axis=1)
    leads = (votes.images.sum(axis=1) > 0)[given.col]
    row, owner = given.row[leads], votes.owner[given.col[leads]]
    order = np.lexsort((given.col[leads], -given.data[leads], owner, row))
    row, owner, label = row[order], owner[order], target[given.col[leads]][order]
    is_best = np.ones(len(row), dtype=bool)
    is_best[1:] = (row[1:] != row[:-1]) | (owner[1:] != owner[:-1])
    shape = (votes.n_samples, votes.n_models)
    marked = []
    for place in range(len(votes.target)):
        here = is_best & (label == place)
        entries = np.ones(int(here.sum())), (row[here], owner[here])
        marked.append(sp.csr_array(entries, shape=shape))
    return marked


def _count_same(best: list[sp.csr_array]) -> np.ndarray:
    """Samples that each pair of models gave the same answer, ``(n_models, n_models)``."""
    return sum((answers.T @ answers).toarray() for answers in best)


def _expect_same(votes: Votes, fitted: Fitted) -> np.ndarray:
    """The same, of models that are independent wherever the truth is given."""
    # Confusions that all have in common, such as of two breeds of dog, make nobody a relative.
    likely = Confusions().meaning(votes, fitted.sums, fitted.balance, fitted.known.shares)
    expected = np.zeros((votes.n_models, votes.n_models))
    for place in range(len(votes.target)):
        believed = votes.answers.multiply(fitted.consensus[:, [place]])
        both = (votes.answers.T @ sp.csr_array(believed)).toarray()
        by_label = votes.by_model(votes.images * likely[:, [place]])
        answers = by_label / np.maximum(by_label.sum(axis=1, keepdims=True), 1e-12)
        expected += both * (answers @ answers.T)
    return expected
