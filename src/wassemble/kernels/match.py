"""Kernels that say which label is which, and nothing else: no entry is stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import Array, convert_like, is_torch_array, namespace
from wassemble._checks import check_count, fail
from wassemble.kernels.base import Arrays, EntryRange, Kernel, Shape
from wassemble.kernels.diagonal import DiagonalKernel
from wassemble.kernels.sparse import SparseKernel


class IdentityKernel(Kernel):
    """Each label is similar to itself alone.

    Examples
    --------
    >>> IdentityKernel(3).apply([0.2, 0.3, 0.5])
    array([0.2, 0.3, 0.5])
    """

    storages: ClassVar = {"identity": frozenset()}
    is_symmetric = True
    is_identity = True
    is_diagonal = True
    is_sparse = True
    dtype = None
    entries = EntryRange(1.0, 1.0, True)
    _is_of_one_library = False

    def __init__(self, n_labels: int) -> None:
        self._n_labels = check_count(n_labels, "n_labels")
        self.shape = (self._n_labels, self._n_labels)

    @property
    def T(self) -> IdentityKernel:
        return self

    @cached_property
    def leads_somewhere(self) -> np.ndarray:
        return np.ones(self._n_labels, dtype=bool)

    def apply(self, v: Array) -> Array:
        v = self._read_vectors(v, "v")
        return v.clone() if is_torch_array(v) else v.copy()

    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        return partial(np.copyto, out, v)

    def log_apply(self, log_v: Array) -> Array:
        return self.apply(log_v)

    def to_dense(self) -> np.ndarray:
        return np.eye(self._n_labels)

    def to_sparse(self) -> sp.csr_array:
        return sp.csr_array(sp.eye_array(self._n_labels))

    def factors(self) -> list[Kernel]:
        return [SparseKernel._trusted(self.to_sparse())]

    def _stored_arrays(self) -> tuple[str, Arrays]:
        return "identity", {}

    @classmethod
    def _from_stored(cls, storage: str, arrays: Arrays, shape: Shape, *, symmetric: bool) -> Kernel:
        if shape[0] != shape[1]:
            fail(f"an identity must have as many source as target labels; got {shape}.")
        return cls(shape[0])

    @classmethod
    def _from_entries(cls, entries: sp.csr_array, *, symmetric: bool) -> IdentityKernel:
        n_source, n_target = entries.shape
        if n_source != n_target or (entries != sp.eye_array(n_source)).nnz:
            fail("an identity must have the similarity 1 of each label to itself, and no other.")
        return cls(n_source)

    def _select(self, rows: np.ndarray, columns: np.ndarray) -> Kernel:
        if np.array_equal(rows, columns) and len(np.unique(rows)) == len(rows):
            return IdentityKernel(len(rows))
        return MatchKernel._trusted(np.arange(self._n_labels), self._n_labels)._select(
            rows, columns
        )

    def convert(self, like: Array | None, dtype: Any) -> IdentityKernel:
        return self

    def scaled(self, log_u: Array, log_v: Array) -> DiagonalKernel:
        log_u, log_v = self._read_scalings(log_u, log_v)
        return DiagonalKernel._trusted(namespace(log_u).exp(log_u + log_v))

    def inner(self, cost: Array) -> Array:
        return self._read_cost(cost).diagonal().sum()

    def links(self) -> sp.coo_array:
        return sp.coo_array(sp.eye_array(self._n_labels))

    def squared_distance_to_identity(self) -> float:
        return 0.0


class MatchKernel(Kernel):
    """Each source label is one target label, or none: the kernel of labels matched by name.

    Parameters
    ----------
    places : int array of shape (n_source,)
        The target label that each source label is, -1 for none. No target label is there
        twice, so that the kernel is one-to-one; several source labels that stand for one
        target label make a `SparseKernel`.
    n_target : int
        Number of target labels.

    Examples
    --------
    >>> kernel = MatchKernel([1, -1, 0], n_target=2)
    >>> kernel.apply([0.4, 0.6])
    array([0.6, 0. , 0.4])
    >>> kernel.apply_transpose([0.5, 0.2, 0.3])
    array([0.3, 0.5])
    """

    storages: ClassVar = {"match": frozenset({"places"})}
    is_sparse = True
    is_one_to_one = True
    dtype = None
    entries = EntryRange(1.0, 1.0, True)
    _is_of_one_library = False

    def __init__(self, places: Any, n_target: int) -> None:
        n_target = check_count(n_target, "n_target")
        places = np.asarray(places)
        if places.ndim != 1 or not places.size or places.dtype.kind not in "iu":
            fail(
                "`places` must be whole numbers, one for each source label; got"
                f" {places.dtype} of shape {places.shape}."
            )
        if places.min() < -1 or places.max() >= n_target:
            wrong = places[(places < -1) | (places >= n_target)][0]
            fail(f"`places` must be from 0 to {n_target - 1}, or -1; got {wrong}.")
        goals, counts = np.unique(places[places >= 0], return_counts=True)
        if (counts > 1).any():
            fail(
                "`places` must have each target label once; got"
                f" {goals[counts > 1][0]} more often.",
                hint="a `SparseKernel` joins several source labels to one target label",
            )
        self._hold(places.astype(np.int64), n_target)

    def _hold(self, places: np.ndarray, n_target: int) -> None:
        places = places.view()
        places.flags.writeable = False
        self.places = places
        self.shape = (len(places), n_target)
        self._lost = np.flatnonzero(places < 0)

    @cached_property
    def T(self) -> MatchKernel:
        sources = np.full(self.shape[1], -1)
        matched = np.flatnonzero(self.places >= 0)
        sources[self.places[matched]] = matched
        transpose = MatchKernel._trusted(sources, len(self.places))
        transpose.__dict__["T"] = self
        return transpose

    @property
    def leads_somewhere(self) -> np.ndarray:
        return self.places >= 0

    def matched_sources(self) -> tuple[np.ndarray, None]:
        return self.T.places, None

    def apply(self, v: Array) -> Array:
        return self._pick(self._read_vectors(v, "v"), 0.0)

    def log_apply(self, log_v: Array) -> Array:
        return self._pick(self._read_vectors(log_v, "log_v"), -np.inf)

    def _pick(self, values: Array, missing: float) -> Array:
        """The values of the target labels that the source labels are."""
        places = convert_like(self.places, values)
        picked = values[..., places]
        if not len(self._lost):
            return picked
        if is_torch_array(values):  # the gradient needs the old values untouched
            return namespace(values).where(places >= 0, picked, missing)
        picked[..., self._lost] = missing
        return picked

    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        # Clipped, -1 is label 0; without it NumPy would write to a copy first.
        take = partial(np.take, v, self.places, axis=-1, out=out, mode="clip")
        if not len(self._lost):
            return take

        def take_and_clear() -> None:
            take()
            out[..., self._lost] = 0

        return take_and_clear

    def to_dense(self) -> np.ndarray:
        return self.to_sparse().toarray()

    def to_sparse(self) -> sp.csr_array:
        matched = self.places >= 0
        starts = np.concatenate([[0], np.cumsum(matched)])
        goals = self.places[matched]
        return sp.csr_array((np.ones(len(goals)), goals, starts), shape=self.shape)

    def factors(self) -> list[Kernel]:
        return [SparseKernel._trusted(self.to_sparse())]

    def _stored_arrays(self) -> tuple[str, Arrays]:
        return "match", {"places": self.places}

    @classmethod
    def _from_stored(cls, storage: str, arrays: Arrays, shape: Shape, *, symmetric: bool) -> Kernel:
        return cls(arrays["places"], shape[1])

    @classmethod
    def _from_entries(cls, entries: sp.csr_array, *, symmetric: bool) -> MatchKernel:
        if (entries.data != 1).any() or (np.diff(entries.indptr) > 1).any():
            fail("a match must have the similarity 1 of each label to one other, and no other.")
        places = np.full(entries.shape[0], -1)
        places[np.diff(entries.indptr) == 1] = entries.indices
        return cls(places, entries.shape[1])

    def _select(self, rows: np.ndarray, columns: np.ndarray) -> Kernel:
        if any(len(np.unique(some)) < len(some) for some in (rows, columns)):
            return SparseKernel(self.to_sparse())._select(rows, columns)
        # One more for what is nowhere, found as the last.
        wanted = np.full(self.shape[1] + 1, -1)
        wanted[columns] = np.arange(len(columns))
        return MatchKernel._trusted(wanted[self.places[rows]], len(columns))

    def convert(self, like: Array | None, dtype: Any) -> MatchKernel:
        return self

    def scaled(self, log_u: Array, log_v: Array) -> SparseKernel:
        return SparseKernel._trusted(self.to_sparse()).scaled(log_u, log_v)

    def inner(self, cost: Array) -> Array:
        cost = self._read_cost(cost)
        matched = np.flatnonzero(self.places >= 0)
        return cost[matched, self.places[matched]].sum()

    def links(self) -> sp.coo_array:
        return sp.coo_array(self.to_sparse())

    def squared_distance_to_identity(self) -> float:
        n_labels, n_matched = len(self.places), len(self.places) - len(self._lost)
        n_own = int((self.places == np.arange(n_labels)).sum())
        return float(n_labels + n_matched - 2 * n_own)
