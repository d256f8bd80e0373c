"""Fewer cases than all combinations of values, where any few of the values still meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import pytest

Setting = tuple[int, int]  # which axis has which value, by place


def covering(strength: int, **axes: Sequence[Any]) -> Any:
    """Parametrises a test so that any ``strength`` values of different axes meet in some case.

    A fault is nearly always one of two or three things together: where arguments are independent,
    a case in which all of them meet in one more way finds nothing new. An axis called ``sweeps``
    is that of the fixture.
    """
    cases = cover(strength, [len(values) for values in axes.values()])
    return pytest.mark.parametrize(
        tuple(axes),
        [
            tuple(values[place] for values, place in zip(axes.values(), case, strict=True))
            for case in cases
        ],
        ids=lambda value: str(getattr(value, "__name__", value)),
        indirect=[name for name in axes if name == "sweeps"],
    )


def cover(strength: int, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Places of the values of each case: the longest axes in full, the others dealt out to them."""
    order = sorted(range(len(sizes)), key=lambda axis: -sizes[axis])
    lengths = [sizes[axis] for axis in order]
    rows: list[list[int | None]] = list(map(list, product(*map(range, lengths[:strength]))))
    for axis in range(strength, len(lengths)):
        missing = set(_groups([range(length) for length in lengths[: axis + 1]], strength))
        for number, row in enumerate(rows):
            found = [
                (missing & set(_of(row, axis, value, strength))) for value in range(lengths[axis])
            ]
            best = max(
                range(lengths[axis]),
                key=lambda value: (len(found[value]), (value + number) % lengths[axis]),
            )
            row.append(best)
            missing -= found[best]
        further: list[list[int | None]] = []
        for group in sorted(missing):
            _place(group, further, axis + 1)
        rows += further
    return sorted(
        tuple((row[order.index(axis)] or 0) for axis in range(len(sizes))) for row in rows
    )


def _groups(values: Sequence[Sequence[int]], strength: int) -> Iterator[tuple[Setting, ...]]:
    """Settings of the last axis with those of others that must meet."""
    *others, last = ([(axis, value) for value in own] for axis, own in enumerate(values))
    for some in combinations(others, strength - 1):
        yield from product(*some, last)


def _of(
    row: Sequence[int | None], axis: int, value: int, strength: int
) -> Iterator[tuple[Setting, ...]]:
    """What would meet in a row with a value of ``axis``."""
    known = [(place, own) for place, own in enumerate(row[:axis]) if own is not None]
    return ((*some, (axis, value)) for some in combinations(known, strength - 1))


def _place(group: tuple[Setting, ...], rows: list[list[int | None]], length: int) -> None:
    """Put settings that have not met into a row that has room, or into a new one."""
    for row in rows:
        if all(row[axis] in (None, value) for axis, value in group):
            break
    else:
        row = [None] * length
        rows.append(row)
    for axis, value in group:
        row[axis] = value
