"""Kernels that join labels of the same name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from wassemble._checks import check_flag
from wassemble.kernels.base import Kernel
from wassemble.kernels.diagonal import IdentityKernel
from wassemble.kernels.labelled import LabelledKernel
from wassemble.kernels.sparse import SparseKernel
from wassemble.kernels.workshop.spaces import Names, count_names, read_spaces

__all__ = ["kernel_from_names"]


def kernel_from_names(
    source: Names,
    target: Names,
    *,
    aliases: Mapping[str, str] | None = None,
    fold: bool = False,
) -> LabelledKernel:
    """K = 1 where a source label is a target label by name, else 0.

    Parameters
    ----------
    source, target : LabelSpace or iterable of str
    aliases : mapping of str to str, optional
        For names that ``target`` does not have: the name they go by there.
    fold : bool
        Match what is left by names without regard to case, underscores, hyphens and
        repeated spaces.

    Returns
    -------
    kernel : LabelledKernel
        An `IdentityKernel` if both spaces are the same, else a `SparseKernel`.

    Examples
    --------
    >>> kernel = kernel_from_names(["cat", "Dog", "auto"], ["dog", "cat"], fold=True)
    >>> kernel.to_dense()
    array([[0., 1.],
           [1., 0.],
           [0., 0.]])
    >>> kernel.notes
    ("1 label matched by folded names: 'Dog'", "1 label without a target label: 'auto'")
    """
    source, target = read_spaces(source, target)
    matching = source.match(target, aliases=aliases, fold=check_flag(fold, "fold"))
    notes = [
        count_names(names, what)
        for names, what in (
            ([name for name, _ in matching.aliased], "matched by aliases"),
            ([name for name, _ in matching.folded], "matched by folded names"),
            (matching.unmatched, "without a target label"),
        )
        if names
    ]
    kernel: Kernel
    if source == target:
        kernel = IdentityKernel(len(source))
    else:
        rows = np.flatnonzero(matching.positions >= 0)
        places = rows, matching.positions[rows]
        kernel = SparseKernel(
            sp.csr_array((np.ones(len(rows)), places), shape=(len(source), len(target)))
        )
    return LabelledKernel(kernel, source, target, "equal names", notes)
