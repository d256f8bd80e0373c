"""As in `scipy.sparse`: arrays of two axes, by rows or by coordinates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import fill, refuse


class sparray:  # noqa: N801
    """What the two kinds share: most is done on the dense array, which is small here."""

    shape: tuple[int, int]
    data: np.ndarray
    ndim = 2
    __array_priority__ = 10.1  # NumPy leaves products with these to them

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"scipy.sparse.{type(self).__name__}.{name}")

    @property
    def dtype(self) -> np.dtype:
        """Type of the entries."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.data)

    @property
    def T(self) -> coo_array:
        """The transpose."""
        coo = self.tocoo()
        return coo_array((coo.data, (coo.col, coo.row)), shape=self.shape[::-1])

    def tocoo(self) -> coo_array:
        """By coordinates."""
        return coo_array(self)

    def tocsr(self, copy: bool = False) -> csr_array:
        """By rows."""
        return csr_array(self, copy=copy)

    def toarray(self) -> np.ndarray:
        """Dense; entries at the same place are summed."""
        coo, dense = self.tocoo(), np.zeros(self.shape, self.dtype)
        np.add.at(dense, (coo.row, coo.col), coo.data)
        return dense

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The same in another type."""
        made = type(self)(self, copy=copy)
        made.data = made.data.astype(dtype, copy=False)
        return made

    def diagonal(self) -> np.ndarray:
        """Entries of each place with itself."""
        return self.toarray().diagonal()

    def sum(self, axis: int | None = None, dtype: Any = None) -> Any:
        """Sums along an axis, or of all."""
        return self.toarray().sum(axis, dtype)

    def max(self, axis: int) -> coo_array:
        """The largest entry along an axis, as a table of one row."""
        return coo_array(self.toarray().max(axis)[None])

    def power(self, exponent: float) -> Any:
        """Each stored entry raised."""
        made = type(self)(self, copy=True)
        made.data = made.data**exponent
        return made

    def __abs__(self) -> csr_array:
        return csr_array(np.abs(self.toarray()))

    def __add__(self, other: Any) -> csr_array:
        return csr_array(self.toarray() + _dense(other))

    def __sub__(self, other: Any) -> csr_array:
        return csr_array(self.toarray() - _dense(other))

    def __mul__(self, other: Any) -> csr_array:
        return csr_array(self.toarray() * _dense(other))

    __rmul__ = __mul__

    def __pow__(self, exponent: float) -> Any:
        return self.power(exponent)

    def __gt__(self, number: float) -> csr_array:
        return csr_array(self.toarray() > number)

    def __ne__(self, other: Any) -> Any:
        return csr_array(self.toarray() != _dense(other))

    __hash__ = None  # type: ignore[assignment]

    def __matmul__(self, other: Any) -> Any:
        product = self.toarray() @ _dense(other)
        return csr_array(product) if issparse(other) else product

    def __rmatmul__(self, other: Any) -> np.ndarray:
        return np.asarray(other @ self.toarray())

    def __getitem__(self, where: Any) -> csr_array:
        found = self.toarray()[where]
        if np.ndim(found) != 2:
            refuse(f"a part of a scipy.sparse.{type(self).__name__} that is no table")
        return csr_array(found)


class spmatrix(sparray):  # noqa: N801
    """The older kind, of which there are none here."""


class coo_array(sparray):  # noqa: N801
    """Entries with their rows and columns."""

    def __init__(
        self, given: Any, shape: Any = None, dtype: Any = None, copy: bool = False
    ) -> None:
        if isinstance(given, coo_array):
            parts, shape = (given.data, given.row, given.col), given.shape
        elif isinstance(given, csr_array):
            rows = np.repeat(np.arange(given.shape[0]), np.diff(given.indptr))
            parts, shape = (given.data, rows, given.indices), given.shape
        elif isinstance(given, tuple) and len(given) == 2 and np.ndim(given[0]) == 1:
            data, (rows, columns) = given
            parts = np.asarray(data), np.asarray(rows, int), np.asarray(columns, int)
            shape = shape or (int(parts[1].max()) + 1, int(parts[2].max()) + 1)
        elif isinstance(given, tuple):
            parts, shape = (np.zeros(0), np.zeros(0, int), np.zeros(0, int)), given
        else:
            dense = np.asarray(given)
            rows, columns = dense.nonzero()
            parts, shape = (dense[rows, columns], rows, columns), dense.shape
        self.data, self.row, self.col = (np.array(each) if copy else each for each in parts)
        self.shape = (int(shape[0]), int(shape[1]))
        if dtype is not None:
            self.data = self.data.astype(dtype)

    @property
    def coords(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns."""
        return self.row, self.col


class csr_array(sparray):  # noqa: N801
    """Entries row by row: those of row i lie from ``indptr[i]`` to ``indptr[i + 1]``."""

    def __init__(
        self, given: Any, shape: Any = None, dtype: Any = None, copy: bool = False
    ) -> None:
        is_by_rows = isinstance(given, csr_array) or (isinstance(given, tuple) and len(given) == 3)
        if isinstance(given, csr_array):
            parts, shape = (given.data, given.indices, given.indptr), given.shape
        elif is_by_rows:
            parts = tuple(map(np.asarray, given))
            shape = shape or (len(parts[2]) - 1, int(parts[1].max()) + 1)
        else:
            coo = coo_array(given, shape)
            order, shape = np.argsort(coo.row, kind="stable"), coo.shape
            starts = np.searchsorted(coo.row[order], np.arange(shape[0] + 1))
            parts = coo.data[order], coo.col[order], starts
        self.data, self.indices, self.indptr = (np.array(each) if copy else each for each in parts)
        self.shape = (int(shape[0]), int(shape[1]))
        if not is_by_rows:
            self.sum_duplicates()
        if dtype is not None:
            self.data = self.data.astype(dtype)

    def sum_duplicates(self) -> None:
        """Add entries at the same place; columns are in order then."""
        coo = coo_array(self)
        flat, place = np.unique(coo.row * self.shape[1] + coo.col, return_inverse=True)
        data = np.zeros(len(flat), self.dtype)
        np.add.at(data, place, self.data)
        self._hold(data, *divmod(flat, max(self.shape[1], 1)))

    sort_indices = sum_duplicates

    def eliminate_zeros(self) -> None:
        """Forget stored entries that are 0."""
        coo, kept = coo_array(self), self.data != 0
        self._hold(self.data[kept], coo.row[kept], coo.col[kept])

    def check_format(self, full_check: bool = True) -> None:
        """Refuse indices that are out of range."""
        if self.nnz and not 0 <= self.indices.min() <= self.indices.max() < self.shape[1]:
            raise ValueError("indices must be columns")

    def _hold(self, data: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> None:
        self.data, self.indices = data, columns
        self.indptr = np.searchsorted(rows, np.arange(self.shape[0] + 1))


def issparse(value: Any) -> bool:
    """Whether it is one of these."""
    return isinstance(value, sparray)


def eye_array(n: int) -> coo_array:
    """The identity."""
    return coo_array((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, n))


def diags_array(diagonal: Any) -> coo_array:
    """A diagonal and nothing beside it."""
    diagonal = np.asarray(diagonal)
    (places,) = diagonal.nonzero()
    return coo_array((diagonal[places], (places, places)), shape=diagonal.shape * 2)


def vstack(blocks: Sequence[Any], format: str = "csr") -> csr_array:  # noqa: A002
    """Arrays one below the other."""
    return csr_array(np.vstack([_dense(block) for block in blocks]))


def block_array(blocks: Sequence[Sequence[Any]]) -> csr_array:
    """Arrays beside and below each other; None is a block of zeros."""
    heights = [next(b.shape[0] for b in row if b is not None) for row in blocks]
    widths = [next(b.shape[1] for b in col if b is not None) for col in zip(*blocks, strict=True)]
    dense = [
        [
            np.zeros((height, width)) if block is None else _dense(block)
            for block, width in zip(row, widths, strict=True)
        ]
        for row, height in zip(blocks, heights, strict=True)
    ]
    return csr_array(np.block(dense))


def _dense(value: Any) -> Any:
    return value.toarray() if issparse(value) else value


from . import csgraph  # noqa: E402, F401 - as in SciPy, there without being asked for

fill(sys.modules[__name__])
