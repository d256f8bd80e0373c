"""Kernels that join labels of the same name."""

import numpy as np

from wassemble._checks import check_flag
from wassemble.kernels.base import Kernel
from wassemble.kernels.builders.spaces import count_names
from wassemble.kernels.match import IdentityKernel, MatchKernel
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_spaces
from wassemble.kernels.sparse import SparseKernel
from wassemble.labels import Matching, Meanings


def from_names(
    source: Names, target: Names, *, aliases: Meanings | None = None, fold: bool = False
) -> LabelledKernel:
    """K = 1 where a source label is a target label by name, else 0.

    A label that stands for several target labels has its shares there. The kernel is an
    `IdentityKernel` if both spaces are the same, a `MatchKernel` if labels match one to one, else
    a `SparseKernel`.

    Parameters
    ----------
    source, target : LabelSpace or iterable of str
    aliases : mapping of str to str, or of str to {str: share}, optional
        The target label that a name stands for, or several of them.
    fold : bool
        Match what is left by names without regard to case, underscores, hyphens and
        repeated spaces, and numbers by their value.

    Examples
    --------
    >>> kernel = from_names(["cat", "Dog", "auto"], ["dog", "cat"], fold=True)
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
        count_names(list(dict.fromkeys(names)), what)
        for names, what in (
            ([name for name, _ in matching.aliased], "matched by aliases"),
            ([name for name, _ in matching.folded], "matched by folded names"),
            (matching.unmatched, "without a target label"),
        )
        if names
    ]
    return LabelledKernel(kernel_of_matching(matching), source, target, "equal names", notes)


def kernel_of_matching(matching: Matching) -> Kernel:
    """K = 1 where a source label was matched to a target label, its shares if to several."""
    source, target, places = matching.source, matching.target, matching.places
    if source == target and (places == range(len(source))).all():
        return IdentityKernel(len(source))
    goals = places[places >= 0]
    if matching.shared or len(np.unique(goals)) < len(goals):
        return SparseKernel(matching.to_sparse())
    return MatchKernel(places, len(target))
