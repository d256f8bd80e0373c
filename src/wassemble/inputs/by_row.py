"""Tables without sample ids, whose rows belong together by their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble._checks import fail

__all__ = ["common_row_ids"]


def common_row_ids(models: Sequence[Any]) -> np.ndarray:
    """Sample ids of the rows of all models: those that some have, else counted from 0.

    ``models`` are predictions or open files. Different numbers of rows are refused, and so
    are ids of two models that differ.
    """
    first, *others = models
    for other in others:
        if len(other.samples) != len(first.samples):
            fail(
                "models whose rows are matched by their order must have the same number of rows;"
                f" got {len(first.samples):,} of {first.model!r} and {len(other.samples):,} of"
                f" {other.model!r}."
            )
    named = [model for model in models if model.origin.has_ids]
    if not named:
        return np.arange(len(first.samples))
    for other in named[1:]:
        ones, theirs = named[0].samples.astype(str), other.samples.astype(str)
        wrong = np.flatnonzero(ones != theirs)
        if wrong.size:
            row = int(wrong[0])
            one, other_id = str(ones[row]), str(theirs[row])
            fail(
                "rows that are matched by their order must have the same ids, if they have any;"
                f" got {one!r} of {named[0].model!r} and {other_id!r} of {other.model!r}"
                f" at row {row}, counted from 0.",
                hint="leave out `by_row=True` to match them by id",
            )
    ids: np.ndarray = named[0].samples
    return ids
