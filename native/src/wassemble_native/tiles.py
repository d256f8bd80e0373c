"""Samples under way: scalings as mantissas and exponents, in arrays that the library fills."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble_native.kernels import KernelStruct, PackedKernel
from wassemble_native.library import function

# An exponent below every other: the number 0.
_NONE = {np.dtype(np.float32): -(2.0**20), np.dtype(np.float64): -(2.0**40)}
# Multiplications in one call, some tenths of a second: Ctrl-C is heard between calls.
_MOST = 2**31
_UNTRUSTED, _HAS_MASS, _OVERFLOWN = 1, 2, 4
# Sweeps between two leaps of an approach.
_CYCLE = 4
_SMALL_ORDER = 1e-3


class GroupStruct(ctypes.Structure):
    """`Group` of sweeps.h."""

    _fields_ = (
        ("kernel", KernelStruct),
        ("n_models", ctypes.c_int64),
        ("histograms", ctypes.c_void_p),
        ("u_mantissas", ctypes.c_void_p),
        ("u_exponents", ctypes.c_void_p),
    )


class TileStruct(ctypes.Structure):
    """`Tile` of sweeps.h."""

    _fields_ = (
        ("n_models", ctypes.c_int64),
        ("n_rows", ctypes.c_int64),
        ("n_target", ctypes.c_int64),
        ("n_groups", ctypes.c_int64),
        ("groups", ctypes.POINTER(GroupStruct)),
        ("weights", ctypes.c_void_p),
        ("weight_steps", ctypes.c_int64 * 3),
        ("order", ctypes.c_double),
        ("exponent", ctypes.c_double),
        ("v_mantissas", ctypes.c_void_p),
        ("v_exponents", ctypes.c_void_p),
        ("omega", ctypes.c_void_p),
        ("starts_at_one", ctypes.c_int64),
        ("keeps_v", ctypes.c_int64),
        ("components", ctypes.c_void_p),
        ("n_components", ctypes.c_int64),
        ("consensus", ctypes.c_void_p),
        ("residuals", ctypes.c_void_p),
        ("flags", ctypes.c_void_p),
    )


class ApproachStruct(ctypes.Structure):
    """`Approach` of sweeps.h."""

    _fields_ = (
        ("first", ctypes.c_int64),
        ("last", ctypes.c_int64),
        ("patience", ctypes.c_int64),
        ("max_sweeps", ctypes.c_int64),
        ("goal", ctypes.c_double),
        ("n_sweeps", ctypes.c_void_p),
        ("arrived", ctypes.c_void_p),
    )


class NativeTile:
    """Samples of models, swept in place.

    Parameters
    ----------
    kernels : sequence of PackedKernel
        One for each group of models, of one floating type.
    histograms : sequence of arrays of shape (n_models, n_rows, n_source), one per group
    weights : array of shape (n_models, 1 or n_rows, 1 or n_target)
        Of the models of all groups, in order; they sum to 1 over models.
    order, exponent : float
        Of lines p, u and v; order 0 is Algorithm 1.
    log_v : array of shape (n_models, n_rows, n_target), optional
        Where to start; at v = 1 if not given.
    components : int array of shape (n_target,), optional
        Number of the component of each label, from 0.
    by_component : bool
        Whether residuals compare shares of each component (without ``components``: of all).
    keeps_u : bool
        Whether steps may become longer: the last u is kept for that.
    """

    def __init__(
        self,
        kernels: Sequence[PackedKernel],
        histograms: Sequence[np.ndarray],
        weights: np.ndarray,
        *,
        order: float,
        exponent: float,
        log_v: np.ndarray | None = None,
        components: np.ndarray | None = None,
        by_component: bool = False,
        keeps_u: bool = False,
    ) -> None:
        self.dtype = kernels[0].dtype
        self._kernels = list(kernels)
        self.histograms = [np.ascontiguousarray(h, self.dtype) for h in histograms]
        self._order, self._exponent = float(order), float(exponent)
        self._exact_weights = _with_excess(np.asarray(weights, np.float64), order)
        self._weights = np.ascontiguousarray(self._exact_weights, self.dtype)
        self._components, self._n_components = None, int(by_component)
        if by_component and components is not None:
            self._components = np.ascontiguousarray(components, np.int32)
            self._n_components = int(components.max()) + 1
        self._none = _NONE[self.dtype]
        self._check()
        size = (self.n_models, self.n_rows, self.n_target)
        self.omega: np.ndarray | None = None
        self._starts_at_one = log_v is None
        self._v = [np.empty(size, self.dtype) for _ in range(2)]
        if log_v is not None:
            self._v = _split_logs(log_v, size, self.dtype, self._none)
        self._u = [
            [np.empty(h.shape, self.dtype) for _ in range(2)] for h in self.histograms if keeps_u
        ]
        self._untrusted = np.zeros(self.n_rows, np.uint8)
        self._point()

    def _check(self) -> None:
        n_target = self._kernels[0].shape[1]
        sizes = {h.shape[1] for h in self.histograms if h.ndim == 3}
        fit = len(self._kernels) == len(self.histograms) and len(sizes) == 1
        for kernel, h in zip(self._kernels, self.histograms, strict=fit):
            fit &= kernel.dtype == self.dtype and kernel.shape == (h.shape[-1], n_target)
            fit &= h.ndim == 3 and len(h) > 0
        self.n_rows, self.n_target = max(sizes, default=0), n_target
        self.n_models = sum(map(len, self.histograms))
        axes = ((self.n_models + 1,), (1, self.n_rows), (1, self.n_target))
        fit &= self._weights.ndim == 3 and all(
            n in allowed for n, allowed in zip(self._weights.shape, axes, strict=True)
        )
        if self._components is not None:
            fit &= self._components.shape == (n_target,) and int(self._components.min()) >= 0
        if not fit:
            raise ValueError("kernels, histograms, weights and components must fit each other")

    def _point(self) -> None:
        """Room for what comes out, and the structure that the library reads."""
        self.consensus = np.empty((self.n_rows, self.n_target), self.dtype)
        self._residuals = np.empty(self.n_rows)
        groups = (GroupStruct * len(self._kernels))(
            *(self._group(index) for index in range(len(self._kernels)))
        )
        steps = [
            0 if n == 1 else stride // self._weights.itemsize
            for n, stride in zip(self._weights.shape, self._weights.strides, strict=True)
        ]
        self._struct = TileStruct(
            self.n_models,
            self.n_rows,
            self.n_target,
            len(groups),
            groups,
            self._weights.ctypes.data,
            (ctypes.c_int64 * 3)(*steps),
            self._order,
            self._exponent,
            *(v.ctypes.data for v in self._v),
            None if self.omega is None else self.omega.ctypes.data,
            self._starts_at_one,
            True,
            None if self._components is None else self._components.ctypes.data,
            self._n_components,
            self.consensus.ctypes.data,
            None,
            self._untrusted.ctypes.data,
        )
        self._groups = groups  # the structure only points to them
        self._address = ctypes.addressof(self._struct)
        self._call = function("sweep", self.dtype)
        work = sum(h.size * kernel.shape[1] for kernel, h in self._pairs())
        self._at_once = max(1, _MOST // max(1, work))

    def _pairs(self) -> zip[tuple[PackedKernel, np.ndarray]]:
        return zip(self._kernels, self.histograms, strict=True)

    def _group(self, index: int) -> GroupStruct:
        u = self._u[index] if self._u else None
        return GroupStruct(
            self._kernels[index].struct,
            len(self.histograms[index]),
            self.histograms[index].ctypes.data,
            *((None, None) if u is None else (part.ctypes.data for part in u)),
        )

    def restart(self) -> None:
        """Forget all sweeps: start at v = 1, from histograms that may have changed."""
        self._struct.starts_at_one, self._starts_at_one = 1, True
        if self.omega is not None:
            self.relax(None)

    def relax(self, omega: np.ndarray | None) -> None:
        """From now on take each row's updates ``omega`` times as far."""
        if omega is not None and (not self._u or omega.shape != (self.n_rows,)):
            raise ValueError("longer steps need the last u, and one omega per row")
        self.omega = None if omega is None else np.ascontiguousarray(omega, self.dtype)
        self._struct.omega = None if self.omega is None else self.omega.ctypes.data

    def sweep(
        self, n_sweeps: int, *, watch: bool = False, keeps_v: bool = True
    ) -> np.ndarray | None:
        """Do some sweeps; with ``watch``, return each row's residual after the last.

        Without ``keeps_v`` the last v is not computed: only a restart can follow.
        """
        self._sweep(n_sweeps, watch=watch, keeps_v=keeps_v or watch)
        return self._residuals.copy() if watch else None

    def approach(
        self, rows: np.ndarray, n_sweeps: np.ndarray, goal: float, patience: int, max_sweeps: int
    ) -> np.ndarray:
        """Bring some rows near their fixed points, with leaps to where their sweeps are heading.

        A row goes on until its residual is at most ``goal``, for ``patience`` sweeps at most, or
        until it gets no nearer. Where sweeps have several fixed points, it may end at another one.

        Parameters
        ----------
        rows : bool array of shape (n_rows,)
        n_sweeps : int64 array of shape (n_rows,)
            How many sweeps rows have had, no more than ``max_sweeps`` in the end; those of here
            are added.

        Returns
        -------
        arrived : bool array of shape (n_rows,)
        """
        rows = rows & (n_sweeps + _CYCLE <= max_sweeps) & (patience >= _CYCLE)
        arrived = np.zeros(self.n_rows, dtype=bool)
        if not rows.all():
            if rows.any():
                some, n_had = self.take(rows), n_sweeps[rows]
                all_of = np.ones(some.n_rows, dtype=bool)
                arrived[rows] = some.approach(all_of, n_had, goal, patience, max_sweeps)
                n_sweeps[rows] = n_had
                self._put(rows, some)
            return arrived
        if n_sweeps.shape != rows.shape or n_sweeps.dtype != np.int64:
            raise ValueError("rows and n_sweeps must fit the tile")
        struct, call = self._struct, function("approach", self.dtype)
        struct.residuals, struct.keeps_v = self._residuals.ctypes.data, True
        way = ApproachStruct(
            0, 0, patience, max_sweeps, goal, n_sweeps.ctypes.data, arrived.ctypes.data
        )
        at_once = max(1, self._at_once * self.n_rows * 4 // patience)
        for first in range(0, self.n_rows, at_once):
            way.first, way.last = first, min(first + at_once, self.n_rows)
            if call(self._address, ctypes.addressof(way)):
                raise MemoryError("no memory for the sweeps of some samples")
        struct.starts_at_one, self._starts_at_one = 0, False
        return arrived

    def consensus_after(self, n_sweeps: int) -> np.ndarray | None:
        """The consensus after so many sweeps from v = 1; None if not every row can be trusted."""
        self.restart()
        flags = self._sweep(n_sweeps, watch=False, keeps_v=False)
        return None if flags & (_UNTRUSTED | _OVERFLOWN) else self.consensus.copy()

    def _sweep(self, n_sweeps: int, *, watch: bool, keeps_v: bool) -> int:
        """Do some sweeps; the flags of all rows together."""
        struct, left, flags = self._struct, n_sweeps, 0
        while left > 0:
            now = min(left, self._at_once)
            left -= now
            struct.residuals = self._residuals.ctypes.data if watch and not left else None
            struct.keeps_v = keeps_v or left > 0
            flags = self._call(self._address, now)
            if flags < 0:
                raise MemoryError("no memory for the sweeps of some samples")
            struct.starts_at_one, self._starts_at_one = 0, False
        return int(flags)

    @property
    def untrusted(self) -> np.ndarray:
        """Rows whose numbers left the range at some sweep, by mask."""
        return (self._untrusted & _UNTRUSTED) > 0

    @property
    def is_cut_off(self) -> np.ndarray:
        """Rows in which some v is 0, once they have been swept, by mask."""
        if self._starts_at_one:
            return np.zeros(self.n_rows, dtype=bool)
        return np.asarray((self._v[1] < self._none / 2).any(axis=(0, 2)))

    @property
    def has_mass(self) -> np.ndarray:
        """Rows whose consensus is above 0 somewhere, however small, by mask."""
        return (self._untrusted & _HAS_MASS) > 0

    def log_v(self, rows: Any) -> np.ndarray:
        """Natural logs of v of some rows, -inf for 0."""
        mantissas, exponents = (part[:, rows].astype(np.float64) for part in self._v)
        logs = np.log(mantissas) + exponents * np.log(2)
        return np.where(exponents < self._none / 2, -np.inf, logs)

    def stuck(self, rows: Any) -> np.ndarray:
        """Which of some rows have mass that no kernel takes to a label where v is above 0."""
        some = self if isinstance(rows, slice) else self.take(rows)
        found = np.zeros(some.n_rows, np.uint8)
        if function("find_stuck", self.dtype)(some._address, found.ctypes.data):
            raise MemoryError("no memory for the product of some samples")
        return found > 0

    def convert(
        self, kernels: Sequence[PackedKernel], histograms: Sequence[np.ndarray]
    ) -> NativeTile:
        """The tile in the type of other ``kernels``, with the scalings that it has.

        ``histograms`` are those it was made from, in as many digits as there are.
        """
        other = self._copy()
        other.dtype = kernels[0].dtype
        other._kernels = list(kernels)
        other.histograms = [np.ascontiguousarray(h, other.dtype) for h in histograms]
        other._weights = np.ascontiguousarray(self._exact_weights, other.dtype)
        other._none = _NONE[other.dtype]
        other._check()
        if self._starts_at_one:  # nothing is in them yet
            other._v = [np.empty(part.shape, other.dtype) for part in self._v]
        else:
            other._v = [part.astype(other.dtype) for part in self._v]
            other._v[1][self._v[1] < self._none / 2] = other._none
        other._u = [
            [np.empty(h.shape, other.dtype) for _ in u]
            for h, u in zip(other.histograms, self._u, strict=False)
        ]
        other._untrusted = np.zeros(other.n_rows, np.uint8)
        other._point()
        return other

    def start_again(self, rows: np.ndarray) -> None:
        """Bring the rows of a mask back to v = 1."""
        self._v[0][:, rows], self._v[1][:, rows] = 1, 0

    def _put(self, rows: np.ndarray, other: NativeTile) -> None:
        """Take over the scalings of some rows."""
        if self._starts_at_one:  # nobody has filled them in
            self.start_again(np.ones(self.n_rows, dtype=bool))
        self._struct.starts_at_one, self._starts_at_one = 0, False
        for part, of_some in zip(self._v, other._v, strict=True):
            part[:, rows] = of_some
        self._untrusted[rows] = other._untrusted

    def _copy(self) -> NativeTile:
        other = NativeTile.__new__(NativeTile)
        other.__dict__.update(self.__dict__)
        return other

    def take(self, rows: np.ndarray) -> NativeTile:
        """The tile of some rows alone."""
        other = self._copy()
        other.histograms = [np.ascontiguousarray(h[:, rows]) for h in self.histograms]
        if self._weights.shape[1] != 1:
            other._exact_weights = self._exact_weights[:, rows]
            other._weights = np.ascontiguousarray(self._weights[:, rows])
        other._v = [np.ascontiguousarray(part[:, rows]) for part in self._v]
        other._u = [[np.ascontiguousarray(part[:, rows]) for part in u] for u in self._u]
        other._untrusted = self._untrusted[rows]
        other.omega = None if self.omega is None else self.omega[rows]
        other.n_rows = len(other._untrusted)
        other._point()
        return other


def _with_excess(weights: np.ndarray, order: float) -> np.ndarray:
    """Weights, and one model more: by how much they sum to more than 1, before they are rounded.

    Of a small order that is taken for rounding, which would be blown up by 1 / order.
    """
    excess = weights.sum(axis=0, keepdims=True) - 1
    return np.concatenate([weights, 0 * excess if order < _SMALL_ORDER else excess])


def _split_logs(
    log_v: np.ndarray, size: tuple[int, ...], dtype: np.dtype, none: float
) -> list[np.ndarray]:
    """Mantissas and whole exponents of numbers given by their natural logs."""
    if log_v.shape != size:
        raise ValueError(f"`log_v` must have shape {size}; got {log_v.shape}")
    logs = np.asarray(log_v, np.float64) / np.log(2)
    there = np.isfinite(logs)
    logs = np.where(there, logs, 0)
    exponents = np.rint(logs)
    mantissas = np.exp2(logs - exponents)
    return [mantissas.astype(dtype), np.where(there, exponents, none).astype(dtype)]
