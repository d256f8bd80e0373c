"""Data frames that hold a number for each pair of names: kernels, costs, ratings, weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.inputs.formats.columns import (
    as_narwhals,
    column_type,
    counts_rows,
    load_narwhals,
    read_label_names,
    read_scores,
)
from wassemble.inputs.formats.layout import ID_NAMES
from wassemble.inputs.formats.sources import blame
from wassemble.labels import LabelSpace, enumerate_names, read_name

# Names by which a column of row names is recognised if it does not hold text.
_ROW_NAMES = ("source", "label", "model", *ID_NAMES)


@dataclass(frozen=True, eq=False)
class NamedTable:
    """A number for each row and column, both of which have names."""

    name: str  # what the table is called in messages
    rows: LabelSpace
    columns: LabelSpace
    values: np.ndarray  # (n_rows, n_columns)

    def ordered(
        self,
        rows: Sequence[str],
        columns: Sequence[str],
        *,
        titles: tuple[str, str] = ("source label", "target label"),
    ) -> np.ndarray:
        """The numbers of exactly these names, in this order; what ``titles`` calls them."""
        sides = (("row", rows, self.rows), ("column", columns, self.columns))
        for title, (side, wanted, known) in zip(titles, sides, strict=True):
            missing = [name for name in wanted if name not in known]
            there = set(wanted)
            besides = [name for name in known if name not in there]
            if missing or besides:
                got = [f"none for {enumerate_names(missing)}"] if missing else []
                got += [f"{enumerate_names(besides)} besides"] if besides else []
                fail(
                    f"`{self.name}` must have a {side} for each {title}, by name, and no other;"
                    f" got {' and '.join(got)}.",
                    hint="`.T` turns rows into columns"
                    if set(rows) == set(self.columns) and set(columns) == set(self.rows)
                    else "`.to_numpy()` goes by position",
                )
        return self.values[np.ix_(self.rows.places(rows), self.columns.places(columns))]


def read_named_table(frame: Any, name: str) -> NamedTable:
    """The numbers of a data frame with the names of its rows and columns.

    The rows' names are in the index of a pandas frame, unless that only counts the rows; else
    in the only column of text; else in a column called "source", "label", "model", "sample",
    "sample_id" or "id". Without any of these, the rows of a pandas frame are named 0, 1, 2 ...

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"": ["dog", "cat"], "cat": [0.2, 1.0], "dog": [1.0, 0.3]})
    >>> read_named_table(table, "kernel").ordered(["cat", "dog"], ["cat", "dog"])
    array([[1. , 0.3],
           [0.2, 1. ]])
    """
    with blame(f"`{name}`", "a data frame that can be read"):
        table = as_narwhals(frame)
        holder = _find_row_names(table)
        if holder is None:
            index = load_narwhals().maybe_get_index(table).tolist()
            rows = [read_name(each, f" at row {row}") for row, each in enumerate(index)]
        else:
            named = read_label_names(table.get_column(holder), holder)
            rows = [read_name(each, f" at row {row}") for row, each in enumerate(named)]
        columns = [each for each in table.columns if each != holder]
        if not columns or not rows:
            fail(f"there must be at least one row and column; got {len(rows)}, {len(columns)}.")
        for each in columns:
            if column_type(table.get_column(each)) in ("text", "other"):
                example = table.get_column(each).to_list()[0]
                fail(f"the column {each!r} must hold numbers; got {example!r}.")
        return NamedTable(name, LabelSpace(rows), LabelSpace(columns), read_scores(table, columns))


def _find_row_names(table: Any) -> str | None:
    """The column that names the rows; None for the index of pandas."""
    has_index = load_narwhals().maybe_get_index(table) is not None
    if has_index and not counts_rows(table):
        return None
    texts = [each for each in table.columns if column_type(table.get_column(each)) == "text"]
    known = [each for each in _ROW_NAMES if each in table.columns]
    holders = texts or known
    if not holders and has_index:
        return None
    if len(holders) != 1:
        fail(
            "one column must name the rows, as text; got"
            f" {enumerate_names(holders) if holders else 'none'}.",
            hint="a pandas frame may have the names in its index; pairs of names in two columns"
            " go into a dict, {(row, column): number}",
        )
    return str(holders[0])
