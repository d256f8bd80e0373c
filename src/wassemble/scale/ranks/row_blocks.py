"""A kernel too large for one machine: its rows are split over ranks.

Why rows: v has as many entries as there are target labels and every rank needs all of it,
because the consensus does; u has one entry per source label and is needed only where that
label's row is. With row blocks K v needs no exchange, K^T u is one sum over ranks, and
histograms are split like the rows. Columns would need sums for K v and a gather for the
consensus as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import count
from typing import Any, NoReturn, final

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import Array, log_of, namespace
from wassemble._checks import fail
from wassemble.kernels import EntryRange, Kernel, as_kernel
from wassemble.scale.ranks.exchange import Ranks

_numbers = count()


@final
class RowBlockKernel(Kernel):
    """The rows of one model's kernel that this rank holds; the others hold the rest.

    Every rank of the group makes it at the same time. ``shape``, ``apply``, ``to_dense``
    and ``links`` are those of the block; ``apply_transpose`` adds up the ranks: one
    exchange, two in logarithms.

    Parameters
    ----------
    block : Kernel, array or sparse matrix of shape (n_rows, n_target)
        Some source labels by all target labels.
    group : torch.distributed.ProcessGroup, optional
        The ranks that share the kernel; the default group if not given.
    """

    is_split = True

    def __init__(self, block: Any, group: Any = None) -> None:
        ranks = Ranks(group)
        with ranks.together():
            block = as_kernel(block)
            if block.n_samples is not None or block.is_diagonal or block.dtype is None:
                fail(f"a block of rows must be a dense, sparse or low-rank kernel; got {block}.")
        n_rows, *sizes = ranks.gather(np.array([*block.shape, block.dtype.itemsize])).T
        if any((size != size[0]).any() for size in sizes):
            fail(
                "the blocks of a kernel must have the same target labels (columns) and one"
                f" floating type; got {sizes[0].tolist()} columns of {sizes[1].tolist()}"
                " bytes per entry."
            )
        self._hold(block, ranks, _entries(block, ranks), is_transpose=False)
        self._n_source = int(n_rows.sum())
        self._has_empty_labels = self.entries.has_zeros and _has_empty_labels(block, ranks)
        #: Ranks that share the kernel.
        self.n_blocks = ranks.n_ranks
        #: Kernels made later have higher numbers, on every rank.
        self.number = next(_numbers)

    def _hold(
        self, block: Kernel, ranks: Ranks, entries: EntryRange, *, is_transpose: bool
    ) -> None:
        self._block = block
        self.shape, self.dtype, self.tensor = block.shape, block.dtype, block.tensor
        self._ranks = ranks
        self._entries = entries
        self._is_transpose = is_transpose

    def _with(self, block: Kernel, *, is_transpose: bool) -> RowBlockKernel:
        other = RowBlockKernel.__new__(RowBlockKernel)
        other._hold(block, self._ranks, self._entries, is_transpose=is_transpose)
        other._n_source, other._has_empty_labels = self._n_source, self._has_empty_labels
        other.n_blocks, other.number = self.n_blocks, self.number
        return other

    @property
    def n_source(self) -> int:
        return self.shape[0] if self._is_transpose else self._n_source

    @property
    def entries(self) -> EntryRange:
        return self._entries

    @property
    def has_empty_labels(self) -> bool:  # asked of all ranks at once
        return self._has_empty_labels

    @cached_property
    def T(self) -> RowBlockKernel:
        # No way back to this object: in a cycle the group would live on until Python ends,
        # and its threads would abort the process.
        return self._with(self._block.T, is_transpose=not self._is_transpose)

    def apply(self, v: Array) -> Array:
        image = self._block.apply(v)
        return self._ranks.sum(image) if self._is_transpose else image

    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        multiply = self._block.bind(v, out)
        if not self._is_transpose:
            return multiply

        def multiply_and_add() -> None:
            multiply()
            out[...] = self._ranks.sum(out)

        return multiply_and_add

    def log_apply(self, log_v: Array) -> Array:
        log_image = self._block.log_apply(log_v)
        if not self._is_transpose:
            return log_image
        xp = namespace(log_image)
        top = self._ranks.largest(log_image)
        top = xp.where(xp.isfinite(top), top, 0.0)
        return log_of(self._ranks.sum(xp.exp(log_image - top))) + top

    def add_parts(self, sums: Array) -> Array:
        return self._ranks.sum(sums)

    def to_dense(self) -> Array:
        return self._block.to_dense()

    def convert(self, like: Array | None, dtype: Any) -> RowBlockKernel:
        converted = self._block.convert(like, dtype)
        return self._with(converted, is_transpose=self._is_transpose)

    def scaled(self, log_u: Array, log_v: Array) -> Kernel:
        return self._block.scaled(log_u, log_v)

    def inner(self, cost: Array) -> Array:
        return self._block.inner(cost)

    def links(self) -> sp.coo_array:
        return self._block.links()

    def select(self, rows: Any = None, columns: Any = None) -> RowBlockKernel:
        if columns is not None:
            self._need_whole("target labels")
        return self._with(self._block.select(rows), is_transpose=self._is_transpose)

    def power(self, exponent: float) -> Kernel:
        self._need_whole("powers")

    def embed(self, *labels: Any) -> Kernel:
        self._need_whole("more labels")

    def squared_distance_to_identity(self) -> Array:
        self._need_whole("the distance to the identity")

    def _need_whole(self, what: str) -> NoReturn:
        fail(f"{what} must be asked of a whole kernel; got a block of rows.")


def _entries(block: Kernel, ranks: Ranks) -> EntryRange:
    """Bounds on the entries of all blocks."""
    here = block.entries
    # A block without entries bounds nothing.
    below = -here.smallest if here.largest > 0 else -np.inf
    below, largest, has_zeros = ranks.largest(
        np.array([below, here.largest, here.has_zeros])
    ).tolist()
    return EntryRange(0.0 if largest == 0 else -below, largest, bool(has_zeros))


def _has_empty_labels(block: Kernel, ranks: Ranks) -> bool:
    """Whether some row of any block, or some column of all, is empty."""
    links = block.links()
    reached = np.zeros(block.shape[1])
    reached[links.col] = 1
    empty_rows = np.unique(links.row).size < block.shape[0]
    is_empty = ranks.largest(np.array([float(empty_rows)]))[0] > 0
    return bool(is_empty or not ranks.largest(reached).all())
