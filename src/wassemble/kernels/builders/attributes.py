"""Kernels from tables of which attribute belongs to which label."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import fail
from wassemble.kernels.builders.spaces import count_names
from wassemble.kernels.builders.tables import read_table
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.named.labelled import LabelledKernel
from wassemble.kernels.named.naming import Names, read_names

__all__ = ["from_attributes"]


def from_attributes(
    table: Any, attributes: Names | None = None, targets: Names | None = None
) -> LabelledKernel:
    """K = the table with each column divided by its sum (paper, section 6.1).

    So the attributes of each target label sum to 1, and a label with many attributes has
    no advantage.

    Parameters
    ----------
    table : array of shape (n_attributes, n_targets), or data frame
        At least 0: presence, or strength, of each attribute in each target label. A data
        frame is read by name: attributes are named in its index (pandas) or in a column of
        text.
    attributes : LabelSpace or iterable of str
        Names of the rows: the models' labels.
    targets : LabelSpace or iterable of str
        Names of the columns. Both may be left out with a data frame, which must have exactly
        these names.

    Examples
    --------
    >>> kernel = from_attributes(
    ...     [[1, 0], [1, 1]], ["stripes", "hooves"], ["zebra", "horse"]
    ... )
    >>> kernel.to_dense()
    array([[0.5, 0. ],
           [0.5, 1. ]])
    """
    if not is_frame(table) and targets is None:
        fail("`targets` must name the columns of the table; got no names.")
    table, source, target = read_names(table, "table", attributes, targets)
    values = read_table(table, "table", source, target)
    totals = values.sum(axis=0, dtype=np.float64)
    unused = [source[i] for i in np.flatnonzero(~values.any(axis=1)).tolist()]
    empty = [target[j] for j in np.flatnonzero(totals == 0).tolist()]
    notes = [
        count_names(names, what)
        for names, what in ((empty, "without any attribute"), (unused, "that no target label has"))
        if names
    ]
    kernel = DenseKernel(values / np.where(totals > 0, totals, 1))
    return LabelledKernel(
        kernel, source, target, "attributes, each column divided by its sum", notes
    )
