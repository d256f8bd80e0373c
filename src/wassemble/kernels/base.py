"""What every kernel is: a non-negative linear operator between two label sets.

Rows are source labels, columns are target labels. Solvers see only this interface;
how the entries are stored is the business of the final classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from wassemble._arrays import Array, is_torch_array
from wassemble._checks import as_float_array, fail

__all__ = ["EntryRange", "Kernel", "connect"]


def connect(links: Sequence[sp.coo_array]) -> np.ndarray:
    """Components of the target labels under several patterns of links, numbered from 0."""
    n_target = links[0].shape[1]
    # Each label is a node: the target's first, then the source labels of each pattern.
    below = sp.vstack(links, format="csr")
    corners = sp.csr_array((n_target, n_target)), sp.csr_array((below.shape[0],) * 2)
    graph = sp.block_array([[corners[0], None], [below, corners[1]]])
    _, labels = connected_components(graph, directed=False)
    _, numbers = np.unique(labels[:n_target], return_inverse=True)
    return numbers


@dataclass(frozen=True)
class EntryRange:
    """Bounds on the entries of a kernel; solvers choose their arithmetic by them.

    Attributes
    ----------
    smallest : float
        At most the smallest entry above 0.
    largest : float
        At least the largest entry.
    has_zeros : bool
        False promises that every entry is above 0.
    """

    smallest: float
    largest: float
    has_zeros: bool

    def fit(self, info: Any) -> bool:
        """Whether the floating type of ``info`` (a ``finfo``) holds every entry."""
        return self.smallest >= float(info.smallest_normal) and self.largest <= float(info.max) / 2


class Kernel(ABC):
    """Similarity between source labels (rows) and target labels (columns), as an operator.

    Arrays are batched over leading axes: the last axis is the label axis. Log forms
    take and give logarithms, and stay exact where the plain forms would overflow or
    underflow.
    """

    #: True only if the kernel was declared symmetric when it was built.
    is_symmetric: bool = False
    #: True if source label i is similar to target label i alone.
    is_diagonal: bool = False
    #: Number of samples of a kernel that differs per sample, else None.
    n_samples: int | None = None

    @property
    def is_one_to_one(self) -> bool:
        """Whether no label, source or target, is similar to more than one."""
        return self.is_diagonal

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of source labels and of target labels."""

    @property
    def n_source(self) -> int:
        """Number of source labels; of a kernel that is split, those of all parts."""
        return self.shape[0]

    @property
    @abstractmethod
    def dtype(self) -> Any:
        """Floating type of the entries, None for a kernel without stored entries."""

    @property
    def tensor(self) -> Array | None:
        """A torch tensor that holds entries, None where NumPy does."""
        return None

    @property
    @abstractmethod
    def entries(self) -> EntryRange:
        """Bounds on the entries."""

    @property
    @abstractmethod
    def T(self) -> Kernel:
        """The transposed kernel, from target labels to source labels."""

    @abstractmethod
    def apply(self, v: Array) -> Array:
        """K v: ``(..., n_target)`` to ``(..., n_source)``."""

    @abstractmethod
    def log_apply(self, log_v: Array) -> Array:
        """log(K exp(log_v)), exact for any spread of ``log_v``; -inf stands for 0."""

    @abstractmethod
    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        """A call that writes K v into ``out``, as often as the arrays' contents change.

        For loops: NumPy, contiguous, of the right shapes, unchecked.
        """

    def apply_transpose(self, u: Array) -> Array:
        """K^T u: ``(..., n_source)`` to ``(..., n_target)``."""
        return self.T.apply(u)

    def log_apply_transpose(self, log_u: Array) -> Array:
        """log(K^T exp(log_u)), exact for any spread of ``log_u``."""
        return self.T.log_apply(log_u)

    @abstractmethod
    def to_dense(self) -> Array:
        """All entries, ``(n_source, n_target)``, with a leading sample axis if they differ."""

    @abstractmethod
    def convert(self, like: Array | None, dtype: Any) -> Kernel:
        """The same kernel in the array library of ``like`` (None: NumPy), as ``dtype``.

        Entries that ``dtype`` could not hold keep their wider type.
        """

    @abstractmethod
    def scaled(self, log_u: Array, log_v: Array) -> Kernel:
        """diag(exp(log_u)) K diag(exp(log_v)) for one sample: a coupling, as a kernel."""

    @abstractmethod
    def inner(self, cost: Array) -> Array:
        """Sum over all pairs of labels of entry times ``cost`` (<C, K>)."""

    @abstractmethod
    def links(self) -> sp.coo_array:
        """Pattern of the entries above 0 in any sample, as a sparse 0/1 matrix."""

    @cached_property
    def row_sums(self) -> np.ndarray:
        """K 1: the whole similarity of each source label, ``(..., n_source)``, in NumPy."""
        return self.apply(np.ones(self.shape[1], dtype=self.dtype))

    @cached_property
    def has_empty_labels(self) -> bool:
        """Whether some source or target label is similar to no other."""
        links = self.links()
        used = [np.unique(labels).size for labels in (links.row, links.col)]
        return used != list(self.shape)

    @cached_property
    def target_components(self) -> np.ndarray:
        """Number of the connected component of each target label, ``(n_target,)``."""
        return connect([self.links()])

    @abstractmethod
    def squared_distance_to_identity(self) -> Array:
        """||K - I||_F squared of a square kernel; one value per sample if they differ."""

    @abstractmethod
    def restrict(self, source: np.ndarray) -> Kernel:
        """The kernel of the source labels ``source``, by mask; diagonal ones stay whole."""

    def add_parts(self, sums: Array) -> Array:
        """Sums over the source labels here, with those of a kernel that is split added."""
        return sums

    def take(self, rows: Any) -> Kernel:
        """The kernel of the samples ``rows``: itself unless it differs per sample."""
        return self

    #: Whether products with torch tensors need the entries in torch too (see `convert`).
    _is_of_one_library: bool = True

    def _read(self, value: Any, name: str) -> Array:
        """``value`` as a floating array in the array library of the kernel."""
        array = as_float_array(value, name, like=self.tensor)
        if self._is_of_one_library and self.tensor is None and is_torch_array(array):
            fail(
                f"`{name}` must be a NumPy array, as the kernel is; got a torch tensor.",
                hint=f"`kernel.convert({name}, {name}.dtype)` is the same kernel in torch",
            )
        return array

    def _read_vectors(self, value: Any, name: str) -> Array:
        array = self._read(value, name)
        self._check_last_axis(array)
        return array

    def _read_scalings(self, log_u: Any, log_v: Any) -> tuple[Array, Array]:
        log_u, log_v = self._read(log_u, "log_u"), self._read(log_v, "log_v")
        for array, name, n_labels in zip(
            (log_u, log_v), ("log_u", "log_v"), self.shape, strict=True
        ):
            if tuple(array.shape) != (n_labels,):
                fail(
                    f"`{name}` must have shape {(n_labels,)}, one number per label;"
                    f" got shape {tuple(array.shape)}."
                )
        return log_u, log_v

    def _read_cost(self, value: Any) -> Array:
        cost = self._read(value, "cost")
        if tuple(cost.shape) != self.shape:
            fail(
                f"`cost` must have the shape of the kernel, {self.shape};"
                f" got shape {tuple(cost.shape)}."
            )
        return cost

    def _check_last_axis(self, array: Array) -> None:
        if array.ndim == 0 or array.shape[-1] != self.shape[1]:
            fail(
                f"a kernel with {self.shape[1]} target labels applies to arrays whose last axis"
                f" has length {self.shape[1]}; got shape {tuple(array.shape)}.",
                hint="`apply_transpose` goes from source labels to target labels",
            )

    def __repr__(self) -> str:
        n_source, n_target = self.shape
        kind = "" if self.dtype is None else f", {str(self.dtype).removeprefix('torch.')}"
        return f"{type(self).__name__}({n_source} source x {n_target} target labels{kind})"
