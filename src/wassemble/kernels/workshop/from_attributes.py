"""Kernels from tables of which attribute belongs to which label."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.labelled import LabelledKernel
from wassemble.kernels.workshop.from_tables import read_table
from wassemble.kernels.workshop.spaces import Names, count_names, read_spaces

__all__ = ["kernel_from_attributes"]


def kernel_from_attributes(table: Any, attributes: Names, targets: Names) -> LabelledKernel:
    """K = the table with each column divided by its sum (paper, section 6.1).

    So the attributes of each target label sum to 1, and a label with many attributes has
    no advantage.

    Parameters
    ----------
    table : array of shape (n_attributes, n_targets)
        At least 0: presence, or strength, of each attribute in each target label.
    attributes : LabelSpace or iterable of str
        Names of the rows: the models' labels.
    targets : LabelSpace or iterable of str
        Names of the columns.

    Examples
    --------
    >>> kernel = kernel_from_attributes(
    ...     [[1, 0], [1, 1]], ["stripes", "hooves"], ["zebra", "horse"]
    ... )
    >>> kernel.to_dense()
    array([[0.5, 0. ],
           [0.5, 1. ]])
    """
    source, target = read_spaces(attributes, targets)
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
