"""Names of a matrix' rows and columns: given beside it, or brought along by a data frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wassemble._arrays import is_frame
from wassemble._checks import fail
from wassemble.inputs.formats.named_tables import read_named_table
from wassemble.labels import LabelSpace

Names = LabelSpace | Iterable[str | int]


def read_names(
    matrix: Any, name: str, source: Names | None, target: Names | None
) -> tuple[Any, LabelSpace, LabelSpace]:
    """The matrix in the order of its names, and these: of its rows and of its columns.

    A data frame has names; those that are given beside it say the order, and must be the
    same. Anything else is as it is, and its names must be given; without ``target``, those of
    the rows are those of the columns too.
    """
    if not is_frame(matrix):
        if source is None:
            fail(
                f"`{name}` must come with the names of its labels; got a {type(matrix).__name__}"
                " and no names.",
                hint="`source` and `target` name rows and columns; a data frame has names",
            )
        return matrix, *read_spaces(source, target)
    table = read_named_table(matrix, name)
    rows = table.rows if source is None else read_spaces(source, None)[0]
    columns = table.columns if target is None else read_spaces(target, None)[0]
    if target is None and set(rows) == set(columns):
        columns = rows
    rows, columns = read_spaces(rows, columns)
    return table.ordered(rows, columns), rows, columns


def read_spaces(source: Names, target: Names | None) -> tuple[LabelSpace, LabelSpace]:
    """Both as label spaces; the same object twice if their names are the same.

    Examples
    --------
    >>> source, target = read_spaces(["cat", "dog"], None)
    >>> source is target
    True
    """
    first = source if isinstance(source, LabelSpace) else LabelSpace(source)
    if target is None:
        return first, first
    second = target if isinstance(target, LabelSpace) else LabelSpace(target)
    return first, first if second == first else second
