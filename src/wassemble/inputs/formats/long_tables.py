"""Long tables: one row per sample and label, made dense a few samples at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wassemble._checks import fail, option
from wassemble.inputs.predictions.value import are_rounded
from wassemble.labels import LabelSpace, enumerate_names


class LongTable:
    """Scores listed by sample and label; what is not listed was not observed.

    ``ids`` and ``names`` are sample and label of each row; a label is None or empty where the
    model abstained. Without ``scores`` the labels are hard: 1 where they are named. Those
    ``declared`` are the labels, else those that are named. ``place`` words a row for a message.

    The attribute ``ids`` has the samples, each once, in the order of first appearance.
    """

    def __init__(
        self,
        ids: Sequence[Any] | np.ndarray,
        names: Sequence[str | None],
        scores: np.ndarray | None,
        declared: LabelSpace | None,
        place: Callable[[int], str] = "row {}".format,
    ) -> None:
        n_rows = len(ids)
        row_of: dict[Any, int] = {}
        rows = np.fromiter((row_of.setdefault(i, len(row_of)) for i in ids), np.int64, n_rows)
        self.ids = list(row_of) if row_of else ids  # whose type is kept
        self.labels = find_labels(filter(None, names), declared)
        self.labels_occur = declared is None
        column_of: dict[str | None, int] = {name: i for i, name in enumerate(self.labels)}
        columns = np.fromiter((column_of[n] if n else -1 for n in names), np.int64, n_rows)
        self.is_hard = scores is None
        if scores is None:
            values = np.ones(n_rows)
        else:
            values = scores
            for row in np.flatnonzero((columns < 0) & ~np.isnan(values)).tolist():
                where = f"{place(row)}, sample {ids[row]!r}"
                fail(f"a row with a score must have a label; got none at {where}.")
        order = _unique_order(ids, names, rows, columns, len(self.labels), place)
        kept = order[columns[order] >= 0]
        self._rows, self._columns, self._values = rows[kept], columns[kept], values[kept]

    def find_telling(self) -> tuple[np.ndarray, np.ndarray]:
        """Samples that tell the kind of all, by their places, and their scores.

        The least and the largest sum, one with a label that is not listed, and one whose
        score is no score; told from what is listed, without a table of all labels.
        """
        n_samples = len(self.ids)
        if n_samples == 0:
            return np.empty(0, np.int64), np.empty((0, len(self.labels)), self._values.dtype)
        known = ~np.isnan(self._values)
        values = np.where(known, self._values, 0.0)
        sums = np.bincount(self._rows, values, n_samples)
        n_listed = np.bincount(self._rows, known, n_samples)
        some = np.flatnonzero(sums > 0)
        # Sums of scores with few decimals may be further from 1.
        fine = np.bincount(self._rows, ~are_rounded(values), n_samples)[some] > 0
        telling: list[int] = []
        for group in (some[fine], some[~fine]):
            if group.size:
                telling += [group[sums[group].argmin()], group[sums[group].argmax()]]
        telling += np.flatnonzero(n_listed < len(self.labels))[:1].tolist()
        telling += self._rows[(values < 0) | np.isinf(values)][:1].tolist()
        places = np.unique(np.array(telling or [0], dtype=np.int64))
        return places, np.concatenate([self._dense(place, place + 1) for place in places.tolist()])

    def _dense(self, start: int, stop: int) -> np.ndarray:
        first, last = np.searchsorted(self._rows, [start, stop])
        block = np.full((stop - start, len(self.labels)), np.nan, self._values.dtype)
        listed = slice(first, last)
        block[self._rows[listed] - start, self._columns[listed]] = self._values[listed]
        return block

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Scores of ``n_rows`` samples at a time, nan where nothing is listed."""
        for start in range(0, max(1, len(self.ids)), n_rows):
            yield self._dense(start, min(start + n_rows, len(self.ids)))


def find_labels(names: Iterable[str], declared: LabelSpace | None) -> LabelSpace:
    """The labels that were declared, else those that are named, in the order of appearance."""
    named = dict.fromkeys(names)
    if declared is None:
        if not named:
            fail(
                "the table must name at least one label; got none.",
                hint=f"{option('labels')} lists those that the model could have named",
            )
        return LabelSpace(named)
    unknown = [name for name in named if name not in declared]
    if unknown:
        fail(
            f"every label of the table must be in {option('labels')}; got"
            f" {enumerate_names(unknown)}."
        )
    return declared


def _unique_order(
    ids: Sequence[Any] | np.ndarray,
    names: Sequence[str | None],
    rows: np.ndarray,
    columns: np.ndarray,
    n_labels: int,
    place: Callable[[int], str],
) -> np.ndarray:
    """The rows by sample, then label; each pair once, and no sample with and without label."""
    keys = rows * (n_labels + 1) + columns + 1
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(np.diff(keys[order]) == 0)
    if twice.size:
        first, second = (int(i) for i in order[twice[0] : twice[0] + 2])
        pair = f"sample {ids[first]!r}, " + (
            f"label {names[first]!r}," if names[first] else "without a label,"
        )
        fail(
            f"a long table must have one row per sample and label; got {pair} at {place(first)}"
            f" and {place(second)}."
        )
    # Abstentions come first among the rows of their sample.
    sorted_rows = rows[order]
    both = np.flatnonzero((columns[order][:-1] < 0) & (np.diff(sorted_rows) == 0))
    if both.size:
        first, second = (int(i) for i in order[both[0] : both[0] + 2])
        fail(
            f"a sample must have labels or none; got sample {ids[first]!r} without a label at"
            f" {place(first)} and with one at {place(second)}."
        )
    return order
