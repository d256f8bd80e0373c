"""Sweeps in extended range, in native code: mantissas and exponents apart.

`wassemble-native` is a distribution of its own, found here if it is installed. No power or
quotient leaves the range of its type; only what enters a product is brought to one scale per row.
Rows for which that would lose something are handed over.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from wassemble.kernels import Kernel
from wassemble.solvers.components import Components
from wassemble.solvers.mass import MassRule
from wassemble.solvers.sweeps import Rows
from wassemble.solvers.tiles import Tile

_INTERFACE = 3
# The least residual that sweeps in a type get to without waiting for their rounding.
_RESOLVED = {np.dtype(np.float32): 1e-6}
# Dense entries above which products are left to BLAS, which blocks them for the caches.
_LARGE = 2**22
# Laid out for native products once, as long as the kernel lives; by floating type.
_packed: WeakKeyDictionary[Kernel, dict[Any, Any]] = WeakKeyDictionary()


def find_native() -> Any | None:
    """The package of native sweeps; None if there is none or $WASSEMBLE_NATIVE is 0."""
    return None if os.environ.get("WASSEMBLE_NATIVE") == "0" else _import_native()


@cache
def _import_native() -> Any | None:
    try:
        import wassemble_native
    except (ImportError, OSError):  # not installed, or built for another kind of machine
        return None
    return wassemble_native if wassemble_native.INTERFACE == _INTERFACE else None


def native_types(kernel: Kernel, types: list[Any]) -> list[Any]:
    """Those of ``types`` in which ``kernel`` has native sweeps.

    Where a kernel has zeros, what is 0 must be told from what is too small.
    """
    factors = kernel.factors()
    if factors is None or any(
        not f.is_sparse and f.shape[0] * f.shape[1] > _LARGE for f in factors
    ):
        return []
    if kernel.entries.has_zeros:
        types = [each for each in types if pack(kernel, each).is_exact]
    return types


def pack(kernel: Kernel, dtype: Any) -> Any:
    """The kernel, laid out for native products."""
    native = _import_native()
    assert native is not None  # whoever asks has found it
    known, dtype = _packed.setdefault(kernel, {}), np.dtype(dtype)
    if dtype not in known:
        factors = kernel.factors() or []
        known[dtype] = native.PackedKernel(
            [_matrix(factor) for factor in factors],
            dtype,
            in_logs=[factor.keeps_logs for factor in factors],
        )
    return known[dtype]


def _matrix(factor: Kernel) -> Any:
    if factor.is_sparse:
        return factor.to_sparse()
    return factor.to_log_dense() if factor.keeps_logs else factor.to_dense()


@dataclass
class Approach:
    """Rows near their fixed points, as native sweeps with leaps have left them."""

    tile: Any  # of wassemble_native
    n_sweeps: np.ndarray  # (n_rows,)

    @property
    def lost(self) -> np.ndarray:
        """Rows whose numbers left the range, by mask."""
        return np.asarray(self.tile.untrusted)

    def take(self, rows: np.ndarray) -> Approach:
        """Some rows alone."""
        return replace(self, tile=self.tile.take(rows), n_sweeps=self.n_sweeps[rows])


def approach(
    tile: Tile,
    mass: MassRule,
    components: Components | None,
    types: Sequence[Any],
    *,
    tolerance: float,
    patience: int,
    max_sweeps: int,
) -> Approach:
    """Sweep each row with leaps until it is near its fixed point, in one type after the other.

    In each for ``patience`` sweeps at most, in all for ``max_sweeps``.

    Sweeps of a fixed point must go on from there: the last steps here were leaps. Only where
    there is one fixed point, and every kernel entry is above 0: else rows may drift for ever.
    """
    near: Any = None
    n_sweeps = np.zeros(tile.n_rows, dtype=np.int64)
    arrived = np.zeros(tile.n_rows, dtype=bool)
    settled = arrived.copy()  # with nothing left to do for wider types
    for dtype in types:
        if near is None:
            near = _start(tile, mass, components, dtype, keeps_u=True)
        else:
            kernels = [pack(group.kernel, dtype) for group in tile.groups]
            histograms = [group.histograms for group in tile.groups]
            # What float32 takes for 0 may be all that a row has.
            lost = near.untrusted | near.is_cut_off
            n_sweeps[lost] = 0
            settled &= ~lost
            near = near.convert(kernels, histograms)
            near.start_again(lost)
        goal = max(tolerance, _RESOLVED.get(np.dtype(dtype), 0.0))
        arrived = settled | near.approach(~settled, n_sweeps, goal, patience, max_sweeps)
        if goal == tolerance:
            settled = arrived
    near.start_again(~arrived | near.is_cut_off)  # leaps that lead nowhere may have led far off
    return Approach(near, n_sweeps)


def _start(
    tile: Tile, mass: MassRule, components: Components | None, dtype: Any, *, keeps_u: bool
) -> Any:
    native = _import_native()
    assert native is not None  # the solver has found it
    return native.NativeTile(
        [pack(group.kernel, dtype) for group in tile.groups],
        [group.histograms for group in tile.groups],
        tile.weights,
        order=mass.order,
        exponent=mass.exponent,
        log_v=tile.log_v,
        components=None if components is None else components.labels,
        by_component=components is not None,
        keeps_u=keeps_u,
    )


class NativeSweep:
    """Sweeps in extended range; ``relaxed`` if steps may become longer.

    From where an approach has brought the rows, if one is given. Without ``keeps_v`` nobody goes on
    from the last sweep, and v is left out of it.
    """

    checks_numbers: ClassVar[bool] = True

    hopeless = False

    def __init__(
        self,
        tile: Tile,
        mass: MassRule,
        components: Components | None,
        dtype: Any,
        *,
        relaxed: bool,
        keeps_v: bool,
        near: Approach | None = None,
    ) -> None:
        self._has_zeros = any(group.kernel.entries.has_zeros for group in tile.groups)
        self._keeps_v = keeps_v or self._has_zeros  # which tells where mass is stuck
        if near is None:
            self._tile = _start(tile, mass, components, dtype, keeps_u=relaxed)
        else:
            self._tile = near.tile
        self._doubtful = np.zeros(tile.n_rows, dtype=bool)

    def restart(self) -> None:
        """Forget all sweeps: start at v = 1 again, from histograms that may have changed."""
        self._tile.restart()
        self._doubtful[:] = False

    def step(self, n_sweeps: int = 1, *, watch: bool) -> np.ndarray | None:
        found = self._tile.sweep(n_sweeps, watch=watch, keeps_v=self._keeps_v)
        if watch:
            self._doubtful |= ~np.isfinite(found)  # a wider range may know better
        return found

    def consensus_after(self, n_sweeps: int) -> np.ndarray | None:
        """Line p after so many sweeps from v = 1, without a look; None if it is not trusted."""
        p: np.ndarray | None = self._tile.consensus_after(n_sweeps)
        return p

    def relax(self, omega: np.ndarray) -> None:
        """From now on take each row's updates ``omega`` times as far."""
        self._tile.relax(omega if (omega != 1).any() else None)

    def untrusted(self) -> np.ndarray:
        """Rows whose numbers left the range at some sweep."""
        return self._tile.untrusted | self._doubtful

    def read(self, rows: Any, *, keep_scalings: bool) -> Rows:
        """The state of ``rows``."""
        return Rows(
            np.array(self._tile.consensus[rows]),  # the next sweep writes over it
            self._tile.log_v(rows) if keep_scalings else None,
            self._tile.stuck(rows) if self._has_zeros else None,
            self._tile.has_mass[rows],
        )

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone."""
        self._tile = self._tile.take(rows)
        self._doubtful = self._doubtful[rows]
