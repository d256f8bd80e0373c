"""Votes: what each model said about each sample, as one sparse table.

A column is a label of a model. What is learned without truth needs nothing but products with this
table, so that millions of votes of thousands of models take little time and memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._checks import fail, option, option_or
from wassemble.ensemble.plan import FusionPlan
from wassemble.inputs import Predictions
from wassemble.kernels import from_scales
from wassemble.labels import LabelSpace, enumerate_names, read_name

# Share of its mass that a sample's least labels may hold together without being votes.
_LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Votes:
    """What models said about samples.

    A model that *was asked and said nothing* is silent, which may tell something; one that *was
    not asked* has no vote and no silence.

    Attributes
    ----------
    samples : array of shape (n_samples,)
    models : tuple of str
    target : LabelSpace
        Labels of the consensus.
    given : sparse array of shape (n_samples, n_labels of all models)
        Shares of each answer, which sum to 1 for each sample and model.
    owner : array of shape (n_labels of all models,)
        Place of the model that each label belongs to; in order.
    meant : array of shape (n_labels of all models, n_target)
        How a model that knows the truth would answer: of each model, a column sums to 1 over its
        labels, or to 0 where it cannot speak of the target label.
    silent : sparse array of shape (n_samples, n_models)
        1 where a model was asked and said nothing.
    """

    samples: np.ndarray
    models: tuple[str, ...]
    target: LabelSpace
    given: sp.csr_array
    owner: np.ndarray
    meant: np.ndarray
    silent: sp.csr_array

    @staticmethod
    def of_models(plan: FusionPlan, models: Sequence[Predictions], asked: np.ndarray) -> Votes:
        """The votes of predictions on the same samples; ``asked`` is ``(n_models, n_samples)``."""
        ready = plan.complete(models)
        votes = ready.votes
        tables = [_shares(scores, said) for scores, said in zip(ready.scores, votes, strict=True)]
        kernels = [np.asarray(member.kernel.to_dense(), float) for member in plan.members]
        return Votes(
            samples=models[0].samples,
            models=tuple(member.model for member in plan.members),
            target=plan.target,
            given=sp.csr_array(sp.hstack(tables, format="csr")),
            owner=np.repeat(np.arange(len(kernels)), [len(kernel) for kernel in kernels]),
            meant=np.vstack([divided(kernel, axis=0) for kernel in kernels]),
            silent=sp.csr_array((asked & ~votes).T.astype(np.float64)),
        )

    @staticmethod
    def of_table(
        models: Sequence[Any],
        samples: Sequence[Any],
        labels: Sequence[Any],
        *,
        shares: Sequence[float] | None = None,
        target: LabelSpace | Sequence[str] | None = None,
        scales: Mapping[str, Sequence[str]] | None = None,
    ) -> Votes:
        """The votes of a long table: who, about what, says what; every model could say any label.

        Parameters
        ----------
        labels : sequence of str, int or None
            None and nan are a silence.
        shares : sequence of float, optional
            Of the labels of an answer that is a distribution, and takes several rows.
        target : list of str, optional
            Labels of the consensus; those that occur if not given. In order, from the lowest, if
            there are scales.
        scales : dict of model to list of str, optional
            Labels of models that do not have those of the consensus: grades from the lowest to
            the highest. Grades at the same place of two scales mean the same.

        Examples
        --------
        >>> votes = Votes.of_table(["ann", "bob", "bob"], [1, 1, 2], ["cat", "dog", None])
        >>> votes.given.toarray().tolist(), votes.silent.toarray().tolist()
        ([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]])
        """
        who, model = _code([str(name) for name in models])
        what, sample = _code(samples)
        given = [None if _is_nothing(label) else read_name(label) for label in labels]
        own = {} if scales is None else {str(name): LabelSpace(x) for name, x in scales.items()}
        strange = sorted(set(own) - set(who))
        if strange:
            fail(f"{option('scales')} must be of those who voted; got {enumerate_names(strange)}.")
        goal = _find_target(target, given, [name in own for name in models])
        spaces = [own.get(name, goal) for name in who]
        starts = np.cumsum([0, *(len(space) for space in spaces)])
        column = [
            -1 if label is None else starts[place] + _place_of(label, spaces[place], who[place])
            for label, place in zip(given, model.tolist(), strict=True)
        ]
        return Votes(
            samples=_as_ids(what),
            models=tuple(who),
            target=goal,
            given=_fill(sample, np.array(column), shares, (len(what), int(starts[-1]))),
            owner=np.repeat(np.arange(len(who)), np.diff(starts)),
            meant=np.vstack([_join_scales(space, goal) for space in spaces]),
            silent=_fill(
                sample, np.where(np.array(column) < 0, model, -1), None, (len(what), len(who))
            ),
        )._with_whole_answers()

    def _with_whole_answers(self) -> Votes:
        """Several votes of a model on a sample share one."""
        given = self.given.tocoo()
        total = np.asarray(self.answers[given.row, self.owner[given.col]]).ravel()
        whole = sp.csr_array((given.data / total, (given.row, given.col)), shape=given.shape)
        return replace(self, given=whole)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.samples)

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.models)

    @cached_property
    def owners(self) -> sp.csr_array:
        """1 where a label (row) belongs to a model (column)."""
        n_labels = len(self.owner)
        entries = np.ones(n_labels), (np.arange(n_labels), self.owner)
        return sp.csr_array(entries, shape=(n_labels, self.n_models))

    def by_model(self, values: np.ndarray) -> np.ndarray:
        """Sums of the rows of each model, of a table over the labels of all."""
        return np.asarray(np.add.reduceat(values, self._starts, axis=0))

    @cached_property
    def _starts(self) -> np.ndarray:
        """The first label of each model."""
        return np.flatnonzero(np.diff(self.owner, prepend=-1))

    @cached_property
    def given_by_label(self) -> sp.csc_array:
        """``given`` turned round."""
        return self.given.T

    @cached_property
    def silent_by_model(self) -> sp.csc_array:
        """``silent`` turned round."""
        return self.silent.T

    @cached_property
    def answers(self) -> sp.csr_array:
        """1 where a model answered a sample, ``(n_samples, n_models)``."""
        return sp.csr_array(self.given @ self.owners)

    @cached_property
    def n_answers(self) -> np.ndarray:
        """Samples that each model answered, ``(n_models,)``."""
        return np.asarray(self.answers.sum(axis=0)).ravel()

    @cached_property
    def declares(self) -> np.ndarray:
        """Target labels that each model can speak of, ``(n_models, n_target)``, as a mask."""
        return self.by_model(self.meant) > 0

    @cached_property
    def says_one_thing(self) -> np.ndarray:
        """Models that say ever the same label or nothing, ``(n_models,)``, as a mask.

        Only *when* such a model speaks can tell anything.
        """
        used = np.asarray(self.given.sum(axis=0)).ravel() > 0
        keeps_silent = np.asarray(self.silent.sum(axis=0)).ravel() > 0
        return (self.by_model(used.astype(float)) <= 1) & keeps_silent

    @cached_property
    def images(self) -> np.ndarray:
        """Where the share of each label goes by name, ``(n_labels, n_target)``; rows sum to 1."""
        return divided(self.meant, axis=1)

    @cached_property
    def steps(self) -> np.ndarray | None:
        """How many half grades each label lies above each target label, ``(n_labels, n_target)``.

        Halves, as the middle of three grades lies between two of four. Counted from the lowest
        number there can be; None if labels have no positions.
        """
        if self.target.positions is None:
            return None
        grade = 2 * np.argsort(np.argsort(self.target.positions))
        # Outwards from the middle, so that it does not matter which end one counts from.
        middle = grade.max() // 2
        away = np.round(self.images @ grade - middle, 9)
        own = middle + np.sign(away) * np.floor(np.abs(away) + 0.5)
        return np.asarray(own[:, None] - grade + grade.max(), dtype=np.int64)

    @cached_property
    def best(self) -> Votes:
        """The same answers, each for its best label alone, or shared by equally good ones."""
        if (self.given.data == 1).all():
            return self
        answers = Answers(self)
        top = np.maximum.reduceat(answers.share, answers.starts)
        is_best = answers.share == answers.spread(top)
        n_best = answers.spread(np.add.reduceat(is_best.astype(float), answers.starts))
        given = sp.csr_array(
            ((is_best / n_best)[is_best], answers.cells[:, is_best]), shape=self.given.shape
        )
        return replace(self, given=given)

    def mean(self, weights: np.ndarray) -> np.ndarray:
        """The label-aware mean of the votes, ``(n_samples, n_target)``; 0 where nobody voted."""
        mean = self.given @ (self.images * weights[self.owner][:, None])
        if not self.declares.all():
            total = self.answers @ (self.declares * weights[:, None])
            mean = mean / np.where(total > 0, total, 1)
        return divided(mean, axis=1)

    def of(self, kept: np.ndarray) -> Votes:
        """The votes of some models, by place."""
        columns = np.flatnonzero(np.isin(self.owner, kept))
        return Votes(
            self.samples,
            tuple(self.models[place] for place in kept.tolist()),
            self.target,
            self.given[:, columns],
            np.searchsorted(kept, self.owner[columns]),
            self.meant[columns],
            self.silent[:, kept],
        )

    def on(self, rows: np.ndarray) -> Votes:
        """The votes on some samples, by place."""
        samples, given, silent = self.samples[rows], self.given[rows], self.silent[rows]
        return replace(self, samples=samples, given=given, silent=silent)


class Answers:
    """The answers to samples, one after the other: runs of votes of one model on one sample.

    Attributes
    ----------
    cells : array of shape (2, n_votes)
        Row and column of each vote.
    share : array of shape (n_votes,)
    starts : array of shape (n_answers,)
        Where each answer begins.
    row, owner : arrays of shape (n_answers,)
        Its sample and its model, by place.
    """

    def __init__(self, votes: Votes) -> None:
        given = votes.given.tocoo()
        order = np.lexsort((given.col, given.row))
        self.cells = np.stack([given.row, given.col])[:, order]
        self.share = given.data[order]
        row, owner = self.cells[0], votes.owner[self.cells[1]]
        is_first = np.ones(len(row), dtype=bool)
        is_first[1:] = (row[1:] != row[:-1]) | (owner[1:] != owner[:-1])
        self.starts = np.flatnonzero(is_first)
        self.row, self.owner = row[self.starts], owner[self.starts]

    def sum_of(self, table: np.ndarray) -> np.ndarray:
        """The rows of a table over labels that each answer is of, by their shares."""
        drawn = self.share[:, None] * table[self.cells[1]]
        return np.asarray(np.add.reduceat(drawn, self.starts, axis=0))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """A value of each answer, given to each of its votes."""
        return np.repeat(values, np.diff(self.starts, append=len(self.share)))


def _shares(scores: np.ndarray, said: np.ndarray) -> sp.csr_array:
    """Rows divided by their sums; nothing where a model has no say, or hardly any."""
    shares = divided(np.where(said[:, None], scores, 0).astype(np.float64), axis=1)
    return sp.csr_array(np.where(shares > _LEAST / shares.shape[1], shares, 0))


def divided(table: np.ndarray, *, axis: int) -> np.ndarray:
    """Divided by its sums along an axis, where they are not 0."""
    sums = table.sum(axis=axis, keepdims=True)
    return np.asarray(table / np.where(sums > 0, sums, 1))


def _is_nothing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and math.isnan(label))


def _code(values: Sequence[Any]) -> tuple[list[Any], np.ndarray]:
    """Values in the order in which they first appear, and the place of each."""
    places: dict[Any, int] = {}
    coded = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    return list(places), coded


def _as_ids(samples: list[Any]) -> np.ndarray:
    ids = np.empty(len(samples), dtype=object)
    ids[:] = samples
    return ids


def _find_target(
    target: LabelSpace | Sequence[str] | None, labels: Sequence[str | None], has_own: Sequence[bool]
) -> LabelSpace:
    """The labels of the consensus: those that were told, or those that occur, in order."""
    if target is not None:
        return LabelSpace(target)
    told = {x for x, own in zip(labels, has_own, strict=True) if x is not None and not own}
    if not told:
        fail("there must be at least one vote for a label of the consensus; got none.")
    return LabelSpace(sorted(told, key=lambda name: (_number(name), name)))


def _number(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return math.inf


def _place_of(label: str, space: LabelSpace, model: str) -> int:
    if label not in space:
        fail(
            f"a vote of {model!r} must be one of {enumerate_names(space)}; got {label!r}.",
            hint=f"{option_or('`scales`', scale=f'{model}=GRADE,...')} says which labels it has",
        )
    return int(space.places([label])[0])


def _fill(
    row: np.ndarray, column: np.ndarray, shares: Sequence[float] | None, shape: tuple[int, int]
) -> sp.csr_array:
    """A sparse table of shares, 1 if there are none, where a column is named."""
    there = column >= 0
    entries = np.ones(len(row)) if shares is None else np.asarray(shares, dtype=np.float64)
    return sp.csr_array((entries[there], (row[there], column[there])), shape=shape)


def _join_scales(source: LabelSpace, target: LabelSpace) -> np.ndarray:
    """How likely each grade is where another scale's is true: those at the same place."""
    if source == target and source.positions in (None, target.positions):
        return np.eye(len(target))
    if source.positions is None:  # in the order that was told, numbers too
        target = target.on_line()
        line = np.array(target.positions)
        places = np.linspace(line.min(), line.max(), len(source))
        source = LabelSpace(source.names, positions=places)
    return divided(np.asarray(from_scales(source, target).to_dense()), axis=0)
