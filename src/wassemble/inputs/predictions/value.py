"""Predictions with names: what one model said about which samples, over its own labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import as_float_array, check_count, fail, option
from wassemble._extras import load_extra
from wassemble.labels import LabelSpace, check_readable, enumerate_names

Kind = Literal["multiclass", "multilabel"]

# Files round: a histogram written with few decimals still is one.
SUM_SLACK = 0.015
# Sums as near as this are those of histograms that were cut off or badly rounded, more likely than
# not, but may be sums of anything.
NEARLY = 0.3
# Two decimals may each be off by this much, and their sum by this much at most: many labels
# could explain any sum.
_ROUNDING = 0.005
_MOST_SLACK = 0.05


@dataclass(frozen=True)
class Origin:
    """What an account says of how a table was read."""

    file: str | None = None  # its name; None for what is no file
    id_column: str | None = None  # name of the column or index with the sample ids, if it has one
    ids: str | None = None  # in words, where the ids were
    has_ids: bool = True  # if not, its rows were counted
    doubts: tuple[str, ...] = ()  # what makes one doubt that the table means what was read
    is_wide: bool = False  # it is a table with a column for each label
    labels_occur: bool = False  # its labels are those that occur, in the order in which they do

    def of_normalized(self) -> Origin:
        """The same, of a table whose rows were divided by their sums."""
        done = "each row divided by its sum"
        if self.ids is not None and self.ids.endswith(done):
            return self  # twice is no more than once
        return replace(self, ids=done if self.ids is None else f"{self.ids}, {done}")


class Misfit(NamedTuple):
    """The sample of a table that is furthest from a histogram: why the table is multi-label."""

    sample: str | int
    mass: float
    is_hard: bool

    @property
    def is_near(self) -> bool:
        """Whether it may be a histogram that was rounded or cut off."""
        return not self.is_hard and abs(self.mass - 1) <= NEARLY

    def __str__(self) -> str:
        if self.is_hard:
            return f"sample {self.sample!r} has {self.mass:.0f} labels"
        return f"sample {self.sample!r} sums to {self.mass:.4g}"


class TopLabel(NamedTuple):
    """One of the best labels of a sample, and its score."""

    sample: str | int
    label: str | None
    confidence: float | None
    note: str


class Predictions:
    """What one model said: sample ids, label names, and a score for each pair.

    Parameters
    ----------
    model : str
        Name of the model.
    samples : sequence of str or int
        Identifiers, each once.
    labels : LabelSpace or iterable of str or int
        The labels that the model declares: those that it could have answered.
    scores : array of shape (n_samples, n_labels)
        Non-negative; nan where the model reported nothing (the rest of a top-5 list).
        A row of nan is an abstention. A floating array is kept, not copied: for as long as the
        predictions are used it must not be changed.
    kind : {"multiclass", "multilabel"}, optional
        Histograms over labels that exclude each other, or scores of labels that do not;
        detected if not given.
    is_hard : bool
        The model named its labels without a score; ``scores`` holds 1 at each.

    Examples
    --------
    >>> Predictions("tiny", ["a", "b"], ["cat", "dog"], [[0.9, 0.1], [0.2, 0.8]])
    Predictions('tiny': 2 samples x 2 labels, multiclass)
    """

    def __init__(
        self,
        model: str,
        samples: Iterable[Any],
        labels: LabelSpace | Iterable[str | int],
        scores: Any,
        *,
        kind: Kind | None = None,
        is_hard: bool = False,
    ) -> None:
        if not isinstance(model, str) or not model:
            fail(f"the model must have a name; got {model!r}.")
        check_kind(kind)
        self.model = model
        self.labels = labels if isinstance(labels, LabelSpace) else LabelSpace(labels)
        self.samples = read_samples(samples, model)
        is_plain = type(scores) is np.ndarray and scores.dtype in (np.float64, np.float32)
        if not is_plain and is_frame(scores):
            fail(
                f"the scores of {model!r} must be an array, in the order of samples and labels; got"
                " a data frame.",
                hint="`fuse` takes data frames by name, {name: frame}; `.to_numpy()` of it, if it"
                " is known to be in the right order",
            )
        self.scores: np.ndarray = (
            scores if is_plain else np.asarray(as_float_array(scores, f"scores of {model}"))
        )
        if self.scores.dtype.itemsize < 4:  # a format for files, not for sums
            self.scores = self.scores.astype(np.float32)
        self.is_hard = is_hard
        self.origin = Origin()
        expected = (len(self.samples), len(self.labels))
        if self.scores.shape != expected:
            fail(
                f"the scores of {model!r} must have shape (n_samples, n_labels) = {expected};"
                f" got {self.scores.shape}."
            )
        self._check_scores()
        if kind != "multilabel":
            self._refuse_percentages()
        self.kind_is_detected = kind is None
        self.kind: Kind = detect_kind(self.scores) if kind is None else kind

    def _check_scores(self) -> None:
        scores = self.scores
        lowest = np.fmin.reduce(scores, axis=None, initial=0.0)
        highest = np.fmax.reduce(scores, axis=None, initial=0.0)
        if lowest >= 0 and highest < math.inf:
            return
        for wrong, must in ((np.isinf(scores), "be finite"), (scores < 0, "not be negative")):
            if wrong.any():
                row, column = np.argwhere(wrong)[0]
                fail(
                    f"the scores of {self.model!r} must {must}; got {scores[row, column]:g} at"
                    f" sample {self.samples.tolist()[row]!r}, label {self.labels[column]!r}.",
                    hint="logits become histograms by a softmax; a missing score is nan",
                )

    def _refuse_percentages(self) -> None:
        if not self.scores.max(initial=0, where=~np.isnan(self.scores)) > 1 + SUM_SLACK:
            return
        sums = np.asarray(np.nansum(self.scores, axis=1, dtype=np.float64))
        told = sums > 0
        shares, sums = self.scores[told] / 100, sums[told] / 100
        near = is_near_one(shares, sums)
        is_partial = np.isnan(shares).any(axis=1)
        # What is missing from a row may be the rest of its 100.
        if near.any() and (near | (is_partial & (sums < 1))).all():
            every = "every row" if near.all() else "every row without an empty cell"
            fail(
                f"the scores of {self.model!r} must be histograms, which sum to 1; {every} sums"
                " to 100, or nearly so, as percentages do.",
                hint=f"divide the scores by 100, or {option('normalize', True)} divides each row by"
                " its sum",
            )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.samples)

    @property
    def answered(self) -> np.ndarray:
        """Samples about which the model said something, as a mask.

        A histogram without any mass is an abstention; scores that are all 0 say "none of
        these".
        """
        seen = ~np.isnan(self.scores)
        if self.kind == "multiclass":
            seen &= self.scores > 0
        return seen.any(axis=1)

    @property
    def unobserved_mass(self) -> np.ndarray:
        """Mass of each histogram that was not reported, ``(n_samples,)``; 0 for scores."""
        if self.kind == "multilabel":
            return np.zeros(self.n_samples)
        sums = np.asarray(np.nansum(self.scores, axis=1, dtype=np.float64))
        left = 1 - sums
        is_partial = np.isnan(self.scores).any(axis=1)
        is_partial |= (left > 0) & ~is_near_one(self.scores, sums)
        return np.where(is_partial, np.clip(left, 0, 1), 0.0)

    @property
    def misfit(self) -> Misfit | None:
        """What shows that these are no histograms; None if that was declared, or they are."""
        if self.kind == "multiclass" or not self.kind_is_detected:
            return None
        off = ~_fits(self.scores)
        if not off.any():  # the kind was told from more rows than these
            return None
        sums = np.asarray(np.nansum(self.scores, axis=1, dtype=np.float64))
        # Of sums that are equal but for rounding, the first.
        row = int(np.where(off, np.abs(sums - 1).round(6), -1).argmax())
        return Misfit(self.samples.tolist()[row], float(sums[row]), self.is_hard)

    def normalized(self) -> Predictions:
        """Histograms: each row divided by its sum; rows without any mass are left as they are.

        Examples
        --------
        >>> votes = Predictions("votes", ["a"], ["cat", "dog"], [[3, 1]], kind="multilabel")
        >>> votes.normalized().scores
        array([[0.75, 0.25]])
        """
        sums = np.nansum(self.scores, axis=1, dtype=np.float64, keepdims=True)
        scores = (self.scores / np.where(sums > 0, sums, 1)).astype(self.scores.dtype)
        return self.replace(
            scores=scores,
            kind="multiclass",
            kind_is_detected=False,
            origin=self.origin.of_normalized(),
        )

    def to_pandas(self) -> Any:
        """A pandas frame: samples in the index, one column per label, nan where unobserved.

        Examples
        --------
        >>> tiny = Predictions("tiny", ["a", "b"], ["cat", "dog"], [[0.9, 0.1], [0.2, 0.8]])
        >>> tiny.to_pandas().to_dict("index")
        {'a': {'cat': 0.9, 'dog': 0.1}, 'b': {'cat': 0.2, 'dog': 0.8}}
        """
        pd = load_extra("pandas", "scale", purpose="a pandas frame")
        index = pd.Index(self.samples, name=self.origin.id_column or "sample")
        return pd.DataFrame(self.scores.copy(), index=index, columns=list(self.labels))

    def top(self, k: int = 1) -> list[TopLabel]:
        """The ``k`` best labels of each sample, best first; of equal ones, the first.

        Labels with a score of 0 or none are left out. A sample without any other has one row,
        whose label and confidence are None. ``note`` says so, and which labels tie with those
        that are listed.

        Examples
        --------
        >>> scores = [[0.9, 0.1, 0.0], [0.4, 0.2, 0.4], [0.0, 0.0, 0.0]]
        >>> for row in Predictions("tiny", ["a", "b", "c"], ["cat", "dog", "cow"], scores).top():
        ...     print(tuple(row))
        ('a', 'cat', 0.9, '')
        ('b', 'cat', 0.4, "tied with 'cow'")
        ('c', None, None, 'no answer')
        """
        k = check_count(k, "k")
        scores = np.nan_to_num(self.scores)
        order = np.argsort(-scores, axis=1, kind="stable")
        values = np.take_along_axis(scores, order, axis=1)
        # Equal scores lie together.
        is_next = np.pad(values[:, 1:] == values[:, :-1], ((0, 0), (0, 1)))
        is_tied = is_next | np.pad(is_next[:, :-1], ((0, 0), (1, 0)))
        names = self.labels.names
        rows: list[TopLabel] = []
        for row, sample in enumerate(self.samples.tolist()):
            n_found = len(rows)
            best = zip(order[row, :k].tolist(), values[row].tolist(), is_tied[row], strict=False)
            for place, value, tied in best:
                if value > 0:
                    note = self._note_ties(scores[row], place) if tied else ""
                    rows.append(TopLabel(sample, names[place], value, note))
            if len(rows) == n_found:
                rows.append(TopLabel(sample, None, None, "no answer"))
        return rows

    def _note_ties(self, scores: np.ndarray, place: int) -> str:
        equal = np.flatnonzero(scores == scores[place]).tolist()
        return f"tied with {enumerate_names(self.labels[i] for i in equal if i != place)}"

    def take(self, rows: Any) -> Predictions:
        """The samples ``rows``, by index, mask or slice."""
        return self.replace(samples=self.samples[rows], scores=self.scores[rows])

    def replace(self, **changes: Any) -> Predictions:
        """A copy with some attributes changed, which are not checked again.

        Examples
        --------
        >>> tiny = Predictions("tiny", ["a"], ["cat", "dog"], [[0.9, 0.1]])
        >>> tiny.replace(model="large")
        Predictions('large': 1 samples x 2 labels, multiclass)
        """
        other = object.__new__(Predictions)
        other.__dict__.update(self.__dict__ | changes)
        return other

    def __repr__(self) -> str:
        return (
            f"Predictions({self.model!r}: {self.n_samples:,} samples x {len(self.labels):,}"
            f" labels, {self.kind})"
        )


def check_kind(kind: Any, *, normalize: bool = False) -> None:
    """Refuse a kind that is none, or that rows of sum 1 are not; None is to be detected."""
    if kind not in (None, *get_args(Kind)):
        fail(f'`kind` must be "multiclass" or "multilabel"; got {kind!r}.')
    if normalize and kind == "multilabel":
        fail(f"{option('normalize')} makes histograms; got {option('kind', 'multilabel')}.")


def detect_kind(scores: np.ndarray) -> Kind:
    """Histograms if every row could be one: sums of 1, or less where scores are missing.

    Rows of scores with two decimals may be off by as much as rounding explains.

    One missing score makes the whole table partial: the first answers of a list may be all the
    labels that a file happens to name.
    """
    return "multiclass" if _fits(scores).all() else "multilabel"


def _fits(scores: np.ndarray) -> np.ndarray:
    """Rows that could be histograms of a table of histograms, as a mask."""
    sums = np.asarray(np.nansum(scores, axis=1, dtype=np.float64))
    partial = bool(np.isnan(scores).any())
    fits: np.ndarray = is_near_one(scores, sums) | (sums == 0) | (partial & (sums < 1))
    return fits


def is_near_one(scores: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Rows whose sum is 1 but for rounding, as a mask; more is allowed if all have two decimals."""
    off = np.abs(sums - 1)
    near = off <= SUM_SLACK
    widest = min(_MOST_SLACK, _ROUNDING * scores.shape[1]) + 1e-6
    rows = np.flatnonzero(~near & (off <= widest))
    near[rows] = are_rounded(scores[rows]).all(axis=1)
    return near


def are_rounded(scores: np.ndarray) -> np.ndarray:
    """Scores of two decimals at most, as a mask; so is what is missing."""
    hundreds = np.nan_to_num(scores) * 100
    rounded: np.ndarray = np.abs(hundreds - np.rint(hundreds)) < 1e-3
    return rounded


def have_numbers(many: Iterable[Any]) -> bool:
    """Whether sample ids are whole numbers: those of every one of ``many`` that has samples."""
    ids = [each.samples for each in many]
    return all(some.dtype.kind == "i" for some in [some for some in ids if len(some)] or ids)


def read_samples(samples: Iterable[Any], model: str) -> np.ndarray:
    """Sample ids as an array of int64 or of text, each once."""
    if isinstance(samples, str):
        fail(f"the samples of {model!r} must come as a list; got one text, {samples!r}.")
    if isinstance(samples, np.ndarray):
        if samples.size == 0 and samples.dtype.kind in "iu":
            return np.empty(0, dtype=np.int64)
        samples = samples.tolist()
    given = list(samples)
    if given and all(isinstance(s, int | np.integer) and not isinstance(s, bool) for s in given):
        ids = np.array(given)
        if ids.dtype.kind != "i":  # beyond int64: as text
            ids = np.array([str(s) for s in given], dtype=object)
    else:
        for place, sample in enumerate(given):
            if not isinstance(sample, str | int | np.integer) or sample == "":
                fail(
                    f"a sample id must be a text or a whole number; got {sample!r} at row"
                    f" {place} of {model!r}."
                )
        ids = np.empty(len(given), dtype=object)
        ids[:] = [str(sample) for sample in given]
        check_readable(ids.tolist(), "a sample id")
    # Numbers are compared as an array: as objects, millions of them would fill the memory.
    n_different = len(np.unique(ids) if ids.dtype.kind == "i" else set(ids.tolist()))
    if n_different < len(ids):
        names, counts = np.unique(ids.astype(str), return_counts=True)
        twice = names[counts > 1].tolist()
        fail(
            f"the sample ids of {model!r} must differ; got more than once:"
            f" {enumerate_names(twice)}.",
            hint="one row per sample; a long table has one row per sample and label",
        )
    return ids
