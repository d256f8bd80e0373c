"""The solvers: a closed form, and sweeps: native, on the numbers themselves, on logarithms.

Each belongs to a problem and solves its tiles one by one; `select_solver` chooses. A solver
hands over rows as they finish, and decides itself which rows it trusts to which arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from wassemble._arrays import new_zeros
from wassemble.kernels import Kernel
from wassemble.kernels.base import EntryRange
from wassemble.solvers.closed_form import solve_one_to_one
from wassemble.solvers.components import Components
from wassemble.solvers.debias import Debiasing, NoCorrection
from wassemble.solvers.exchange import agree_on_any
from wassemble.solvers.log_sweep import LogSweep
from wassemble.solvers.loop import Ending, Status, Stopping, run
from wassemble.solvers.mixed_sweep import MixedSweep
from wassemble.solvers.native_sweep import (
    Approach,
    NativeSweep,
    approach,
    find_native,
    native_types,
    pack,
)
from wassemble.solvers.newton import NewtonSweep, rows_at_once
from wassemble.solvers.plain_sweep import PlainLimits, PlainSweep, unsafe_rows
from wassemble.solvers.problem import BarycenterProblem
from wassemble.solvers.sweeps import NarrowSweep, Rows, Sweep
from wassemble.solvers.tiles import (
    NATIVE,
    NATIVE_LEAVING,
    NATIVE_SPARSE_ROWS,
    ONE_PASS,
    PRODUCT_ROWS,
    SWEPT,
    SWEPT_FLOAT64,
    Tile,
)

Finish: TypeAlias = Callable[[Ending, Tile], None]
"""Receives rows of a tile as they finish."""

# Entries of a kernel above which no copy of it is made in another type.
_LARGE = 2**24
# Sweeps for each label after which Newton's method takes over: they then took about as long as it
# will. It takes the fewer steps the more sweeps were done; sweeps on logarithms are dearer, and
# where kernels have zeros they may drift for ever. Few labels cost little but the calls into NumPy.
_PATIENCE = 4
_PATIENCE_IN_LOGS = 3
_PATIENCE_WITH_ZEROS = 1
_FEWEST = 64
# The least residual that plain sweeps in float32 get to without waiting for their rounding.
_RESOLVED_IN_FLOAT32 = 2e-6
# Sweeps that are left in any case to rows that others have brought near.
_N_AFTER = 2


class Solver(ABC):
    """What solves the tiles of a problem.

    Attributes
    ----------
    name : {"closed form", "native", "plain", "log", "mixed"}
        "native" and "plain" hand rows that outgrow them to "log".
    reason : str
        Why it was chosen, in a sentence.
    tile_size, product_rows : int
        Numbers in one array of a tile, and rows times models that it has in any case.
    checks_numbers : bool
        Whether it has tiles checked itself, where it does not find out on the way.
    """

    name: ClassVar[str]
    checks_numbers: ClassVar[bool] = False
    tile_size: int = SWEPT
    product_rows: int = PRODUCT_ROWS

    def __init__(self, problem: BarycenterProblem, reason: str) -> None:
        self._problem = problem
        self.reason = reason

    @abstractmethod
    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        """Solve the samples of ``tile``, whose models all vote on all of them."""

    def __repr__(self) -> str:
        return f"<{self.name}: {self.reason}>"


class ClosedFormSolver(Solver):
    """The fixed point by its formula: every kernel one-to-one."""

    name = "closed form"
    checks_numbers = True  # a look of its own would be a third of one pass
    tile_size = ONE_PASS

    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        rows = solve_one_to_one(tile, self._problem.mass, keep_scalings=keep_scalings)
        status = np.full(tile.n_rows, Status.CONVERGED, dtype=np.int8)
        status[rows.unreachable] = Status.UNREACHABLE_MASS
        finish(Ending(slice(None), rows, status, 0.0, 0), tile)


class LogSolver(Solver):
    """Sweeps on logarithms."""

    name = "log"

    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        self.sweep(tile, self.start, finish, keep_scalings=keep_scalings)

    def start(self, tile: Tile, components: Components | None) -> Sweep:
        """The sweeps of a tile, before the first."""
        return LogSweep(tile, self._problem.mass, components, NoCorrection())

    def stopping(self, *, measured: bool) -> Stopping:
        """When rows stop."""
        problem = self._problem
        # Longer steps towards one of several fixed points may end at another. Debiasing has a
        # third block, for which they are not known to be safe.
        relaxed = (
            problem.tolerance is not None
            and problem.has_one_fixed_point
            and not problem.rule.debias
        )
        return Stopping(problem.rule.max_sweeps, problem.tolerance, relaxed, measured)

    def patience(self, tile: Tile, per_label: int | None) -> int | None:
        """Sweeps after which Newton's method takes over; None: never.

        ``per_label`` of them for each label; None: as many as sweeps on logarithms get.
        """
        problem = self._problem
        if per_label is None:
            has_zeros = any(group.kernel.entries.has_zeros for group in tile.groups)
            per_label = _PATIENCE_WITH_ZEROS if has_zeros else _PATIENCE_IN_LOGS
        sizes = [group.kernel.shape for group in tile.groups]
        is_large = tile.n_models * max(max(each) * each[1] for each in sizes) > _LARGE
        alone = problem.like is None and tile.exchange.is_alone
        if is_large or not (alone and problem.has_one_minimum):
            return None
        return max(_FEWEST, per_label * max(max(each) for each in sizes) // 8 * 8)

    def sweep(
        self,
        tile: Tile,
        start: Callable[[Tile, Components | None], Sweep],
        finish: Finish,
        *,
        keep_scalings: bool,
        patience: int | None = None,
    ) -> np.ndarray:
        """Sweep a tile; return the rows that need another arithmetic."""
        stopping = replace(
            self.stopping(measured=keep_scalings), patience=self.patience(tile, patience)
        )
        is_watched = stopping.tolerance is not None or stopping.measured
        components = self._problem.components(tile.models) if is_watched else None

        def hasten(index: np.ndarray, rows: Rows) -> None:
            assert stopping.patience is not None  # it came to its end
            left = replace(tile.take(index), log_v=rows.log_v)
            before = np.zeros(left.n_rows, np.int64) if left.n_before is None else left.n_before
            left = replace(left, n_before=before + stopping.patience)
            self._hasten(left, components, stopping, finish, keep_scalings=keep_scalings)

        return run(
            start(tile, components),
            tile.n_rows,
            stopping,
            lambda ending: finish(ending, tile),
            keep_scalings=keep_scalings,
            exchange=tile.exchange,
            hasten=hasten,
            n_before=tile.n_before,
        )

    def _hasten(
        self,
        tile: Tile,
        components: Components | None,
        stopping: Stopping,
        finish: Finish,
        *,
        keep_scalings: bool,
    ) -> None:
        """Bring rows that are slow to their end by Newton's method, within the sweeps left."""
        tolerance = stopping.tolerance
        assert tolerance is not None  # or nobody would have lost patience
        step = rows_at_once(tile)
        for start in range(0, tile.n_rows, step):
            part = tile.take(np.arange(start, min(start + step, tile.n_rows)))

            def finish_part(ending: Ending, part: Tile = part) -> None:
                finish(ending, part)

            run(
                NewtonSweep(part, self._problem.mass, components, tolerance=tolerance),
                part.n_rows,
                replace(stopping, relaxed=False),
                finish_part,
                keep_scalings=keep_scalings,
                n_before=part.n_before,
            )


class DebiasedSolver(LogSolver):
    """Sweeps on logarithms, with the step that takes out the kernel's blur."""

    def start(self, tile: Tile, components: Components | None) -> Sweep:
        kernel = tile.groups[0].kernel
        log_d = new_zeros((tile.n_rows, kernel.shape[1]), self._problem.like)
        return LogSweep(tile, self._problem.mass, components, Debiasing(kernel, log_d))


class MixedSolver(LogSolver):
    """Sweeps on logarithms, the first with their products in half precision."""

    name = "mixed"

    def start(self, tile: Tile, components: Components | None) -> Sweep:
        problem = self._problem
        assert problem.tolerance is not None  # the rule sees to it
        return MixedSweep(
            tile,
            problem.mass,
            components,
            tolerance=problem.tolerance,
            max_sweeps=problem.rule.max_sweeps,
        )


class NarrowSolver(LogSolver, ABC):
    """Sweeps of a narrower range than logarithms have, in one floating type after the other.

    Rows that outgrow one type go on to the next, and in the end to logarithms.
    """

    def __init__(self, problem: BarycenterProblem, reason: str, types: Sequence[Any]) -> None:
        super().__init__(problem, reason)
        self.types = types

    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        left = np.arange(tile.n_rows)
        for dtype in self.types:
            rest = tile if len(left) == tile.n_rows else tile.take(left)
            # Rows are left in the order in which they were given up.
            left = np.sort(left[self.try_type(rest, dtype, finish, keep_scalings=keep_scalings)])
            if not len(left):
                return
        rest = tile if len(left) == tile.n_rows else tile.take(left)
        self.solve_rest(rest, finish, keep_scalings=keep_scalings)

    def solve_rest(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        """Solve rows that no type holds."""
        self.sweep(tile, self.start, finish, keep_scalings=keep_scalings)

    def try_type(
        self, tile: Tile, dtype: Any, finish: Finish, *, keep_scalings: bool
    ) -> np.ndarray:
        """Sweep the rows that may be swept in ``dtype``; the places of those that are left."""
        return self._sweep_safe(tile, dtype, finish, keep_scalings=keep_scalings)

    def _sweep_safe(
        self,
        tile: Tile,
        dtype: Any,
        finish: Finish,
        *,
        keep_scalings: bool,
        patience: int = _PATIENCE,
    ) -> np.ndarray:
        unsafe = self.unsafe(tile, dtype)
        safe = tile if unsafe is None else tile.take(np.flatnonzero(~unsafe))
        left = np.zeros(0, dtype=np.int64)
        if safe.n_rows:
            with np.errstate(all="ignore"):  # rows that leave the safe range are handed over
                left = self.sweep(
                    safe,
                    self.start_in(dtype, keep_scalings=keep_scalings),
                    finish,
                    keep_scalings=keep_scalings,
                    patience=patience,
                )
        if unsafe is None:
            return left
        return np.concatenate([np.flatnonzero(unsafe), np.flatnonzero(~unsafe)[left]])

    @abstractmethod
    def start_in(
        self, dtype: Any, *, keep_scalings: bool
    ) -> Callable[[Tile, Components | None], NarrowSweep]:
        """What starts the sweeps of a tile in a floating type."""

    def convert(self, tile: Tile, dtype: Any) -> Tile:
        """The tile as sweeps in ``dtype`` read it."""
        return tile.convert(dtype, lambda kernel: kernel)

    def approaches(self, tile: Tile) -> bool:
        """Whether rows have other sweeps first, which bring them near.

        Those may end elsewhere if there are several fixed points, and drift for ever if models'
        mass may fail to meet.
        """
        return (
            self._problem.tolerance is not None
            and tile.log_v is None
            and self.patience(tile, _PATIENCE) is not None
            and not any(group.kernel.entries.has_zeros for group in tile.groups)
        )

    @abstractmethod
    def unsafe(self, tile: Tile, dtype: Any) -> np.ndarray | None:
        """Rows that need not be tried, by mask; None: none."""


class NativeSolver(NarrowSolver):
    """Sweeps in extended range, in native code."""

    name = "native"
    tile_size = NATIVE

    def __init__(self, problem: BarycenterProblem, reason: str, types: Sequence[Any]) -> None:
        super().__init__(problem, reason, types)
        if problem.tolerance is not None:
            self.tile_size = NATIVE_LEAVING
        if all(kernel.is_sparse for kernel in problem.voting_kernels):
            self.product_rows = NATIVE_SPARSE_ROWS

    def start_in(
        self, dtype: Any, *, keep_scalings: bool
    ) -> Callable[[Tile, Components | None], NativeSweep]:
        mass, stopping = self._problem.mass, self.stopping(measured=keep_scalings)
        keeps_v = keep_scalings or stopping.tolerance is not None
        return lambda tile, components: NativeSweep(
            tile, mass, components, dtype, relaxed=stopping.relaxed, keeps_v=keeps_v
        )

    def unsafe(self, tile: Tile, dtype: Any) -> None:
        return None

    def try_type(
        self, tile: Tile, dtype: Any, finish: Finish, *, keep_scalings: bool
    ) -> np.ndarray:
        if not self.approaches(tile):
            return super().try_type(tile, dtype, finish, keep_scalings=keep_scalings)
        near = self._approach(tile, dtype)
        lost, kept = np.flatnonzero(near.lost), np.flatnonzero(~near.lost)
        left = [lost[:0]]
        if len(lost):  # leaps may have led them astray
            rest = tile if not len(kept) else tile.take(lost)
            left.append(lost[super().try_type(rest, dtype, finish, keep_scalings=keep_scalings)])
        if len(kept):
            near = near.take(kept) if len(lost) else near
            tile = replace(tile.take(kept) if len(lost) else tile, n_before=near.n_sweeps)
            mass = self._problem.mass
            rest_of_kept = self.sweep(
                tile,
                lambda tile, components: NativeSweep(
                    tile, mass, components, dtype, relaxed=True, keeps_v=True, near=near
                ),
                finish,
                keep_scalings=keep_scalings,
                patience=_PATIENCE,
            )
            left.append(kept[rest_of_kept])
        return np.concatenate(left)

    def _approach(self, tile: Tile, dtype: Any) -> Approach:
        problem, patience = self._problem, self.patience(tile, _PATIENCE)
        assert problem.tolerance is not None  # or there would be nothing to approach
        assert patience is not None
        return approach(
            tile,
            problem.mass,
            problem.components(tile.models),
            self._approach_types(tile, dtype),
            tolerance=problem.tolerance,
            patience=patience,
            max_sweeps=problem.rule.max_sweeps - _N_AFTER,
        )

    def _approach_types(self, tile: Tile, dtype: Any) -> list[Any]:
        """float32 brings rows nearly as near as their tolerance asks, in half the time."""
        is_first = dtype == self.types[0] == np.float64
        if is_first and all(pack(group.kernel, np.float32).is_exact for group in tile.groups):
            return [np.float32, dtype]
        return [dtype]


class PlainSolver(NarrowSolver):
    """Sweeps on the numbers themselves."""

    name = "plain"

    def __init__(
        self,
        problem: BarycenterProblem,
        reason: str,
        types: Sequence[Any],
        *,
        fits_float32: bool = False,
    ) -> None:
        super().__init__(problem, reason, types)
        self._starts_narrow = fits_float32 and types[0] == np.float64
        self._converted: dict[tuple[Kernel, Any], Kernel] = {}
        if types[0] == np.float64:
            self.tile_size = SWEPT_FLOAT64

    def start_in(
        self, dtype: Any, *, keep_scalings: bool
    ) -> Callable[[Tile, Components | None], PlainSweep]:
        mass = self._problem.mass

        def start(tile: Tile, components: Components | None) -> PlainSweep:
            return PlainSweep(self.convert(tile, dtype), mass, components)

        return start

    def convert(self, tile: Tile, dtype: Any) -> Tile:
        if tile.groups[0].histograms.dtype == dtype:
            return tile
        return tile.convert(dtype, lambda kernel: self._convert_kernel(kernel, dtype))

    def _convert_kernel(self, kernel: Kernel, dtype: Any) -> Kernel:
        """The kernel in ``dtype``; those of the problem are kept for its other tiles."""
        known = self._converted.get((kernel, dtype))
        converted = kernel.convert(None, dtype) if known is None else known
        if any(kernel is own for own in self._problem.kernels):
            self._converted[kernel, dtype] = converted
        return converted

    def unsafe(self, tile: Tile, dtype: Any) -> np.ndarray | None:
        unsafe = None
        limits = PlainLimits.of(dtype)
        for group in tile.groups:
            here = unsafe_rows(group.histograms, group.kernel.entries, self._problem.mass, limits)
            if here is not None:
                unsafe = here if unsafe is None else unsafe | here
        if not tile.exchange.is_alone:
            unsafe = agree_on_any(
                tile.exchange, np.zeros(tile.n_rows) if unsafe is None else unsafe
            )
        return unsafe if unsafe is not None and unsafe.any() else None

    def approaches(self, tile: Tile) -> bool:
        return self._starts_narrow and super().approaches(tile)

    def try_type(
        self, tile: Tile, dtype: Any, finish: Finish, *, keep_scalings: bool
    ) -> np.ndarray:
        if not self.approaches(tile):
            return super().try_type(tile, dtype, finish, keep_scalings=keep_scalings)
        return self._sweep_safe(
            self._approach(tile),
            dtype,
            finish,
            keep_scalings=keep_scalings,
            patience=_PATIENCE // 2,
        )

    def _approach(self, tile: Tile) -> Tile:
        """The tile with scalings from sweeps in float32, which take half the time."""
        size = (tile.n_models, tile.n_rows, tile.groups[0].kernel.shape[1])
        log_v, n_before = np.zeros(size), np.zeros(tile.n_rows, dtype=np.int64)
        stopping = self.stopping(measured=True)
        assert stopping.tolerance is not None  # or there would be nothing to approach
        goal = max(stopping.tolerance, _RESOLVED_IN_FLOAT32)
        most = min(self.patience(tile, _PATIENCE // 2) or 0, stopping.max_sweeps - _N_AFTER)
        unsafe = self.unsafe(tile, np.float32)
        safe = np.arange(tile.n_rows) if unsafe is None else np.flatnonzero(~unsafe)
        if most < 1 or not len(safe):
            return tile

        def keep(ending: Ending) -> None:
            assert ending.rows.log_v is not None  # they were asked for
            n_before[safe[ending.index]] = ending.n_sweeps
            log_v[:, safe[ending.index]] = ending.rows.log_v

        part = tile if unsafe is None else tile.take(safe)
        components = self._problem.components(tile.models)
        with np.errstate(all="ignore"):  # rows that leave the safe range start again
            run(
                self.start_in(np.float32, keep_scalings=True)(part, components),
                len(safe),
                replace(stopping, tolerance=goal, max_sweeps=most),
                keep,
                keep_scalings=True,
            )
        return replace(tile, log_v=log_v, n_before=n_before)


def select_solver(problem: BarycenterProblem) -> Solver:
    """The solver that `solve_barycenter` uses for ``problem``, with the reason.

    Examples
    --------
    >>> problem = BarycenterProblem([[0.5, 0.5], [0.9, 0.1]], [[1.0, 0.2], [0.2, 1.0]])
    >>> select_solver(problem).name in ("native", "plain")
    True
    """
    if problem.like is not None and (arrays := problem.in_numpy()) is not problem:
        return select_solver(arrays)
    kernels = problem.voting_kernels
    balanced = problem.rule.is_balanced
    if problem.rule.debias:
        return DebiasedSolver(problem, "the debiased barycenter is computed in logarithms")
    exchange = problem.exchange  # ranks must come to the same choice
    moves = not all(kernel.is_one_to_one for kernel in kernels)
    if not agree_on_any(exchange, np.array([moves]))[0]:
        if balanced:
            return ClosedFormSolver(
                problem, "one-to-one kernels: Algorithm 1 gives the geometric mean at once"
            )
        if problem.tolerance is not None:
            return ClosedFormSolver(
                problem, "one-to-one kernels: the fixed point of Algorithm 2 has a formula"
            )
    if problem.like is not None:
        finite = "torch tensors: logarithms keep the gradients finite"
        if problem.rule.mixed_precision:
            return MixedSolver(problem, f"{finite}; the first products in half precision")
        return LogSolver(problem, finite)
    native = _select_native(problem)
    return select_plain(problem) if native is None else native


def _select_native(problem: BarycenterProblem) -> NativeSolver | None:
    """Native sweeps, if they are there and know what the problem needs."""
    native = find_native()
    if native is None or not problem.exchange.is_alone:
        return None
    types = _types_from(problem.dtype)
    for kernel in problem.voting_kernels:
        types = native_types(kernel, types)
    if not types:
        return None
    return NativeSolver(
        problem,
        f"native sweeps ({native.level()}) in extended range, {np.dtype(types[0])}",
        types,
    )


def select_plain(problem: BarycenterProblem) -> Solver:
    """Plain sweeps in the types that may hold what comes, or logarithms."""
    mass = problem.mass
    small = [t for t in (np.float32, np.float64) if 0 < mass.order < PlainLimits.of(t).order]
    types = [each for each in _types_from(problem.dtype) if each not in small]
    if not types:
        return LogSolver(
            problem,
            f"order epsilon / (epsilon + mass_penalty) = {mass.order:.3g} is below"
            f" {PlainLimits.of(np.float64).order:g}, too small for powers in float64",
        )
    fits, has_zeros = [], True
    for dtype in types:
        entries = _entries_in(dtype, problem)
        has_zeros = entries.has_zeros
        if _fits_plain(entries, dtype):
            fits.append(dtype)
    if not fits:
        return LogSolver(
            problem,
            f"kernel entries from {entries.smallest:.3g} to {entries.largest:.3g} are too far"
            f" apart for plain sums in {np.dtype(types[-1])}",
        )
    used = f"in {np.dtype(fits[0])}"
    if not has_zeros:
        narrow = np.float32 not in small and _fits_plain(
            _entries_in(np.float32, problem), np.float32
        )
        return PlainSolver(
            problem,
            f"every kernel entry is above 0 and a number {used}",
            fits,
            fits_float32=narrow,
        )
    if agree_on_any(problem.exchange, np.array([problem.has_empty_labels]))[0]:
        return LogSolver(problem, "a kernel has a row or a column of zeros")
    return PlainSolver(
        problem,
        f"kernels with zeros: rows whose histograms are all above 0, {used}; the others in logs",
        fits,
    )


def _fits_plain(entries: EntryRange, dtype: Any) -> bool:
    return entries.fit(np.finfo(dtype)) and 1e-10 <= entries.largest <= 1e10


def _entries_in(dtype: Any, problem: BarycenterProblem) -> EntryRange:
    """Bounds on the entries of all kernels in ``dtype``, on every rank; none if one is too large.

    A large kernel in another type would take too much memory.
    """
    bounds = []
    for kernel in problem.voting_kernels:
        is_large = dtype != problem.dtype and _is_large(kernel)
        in_type = kernel.convert(None, dtype) if kernel.keeps_logs and not is_large else kernel
        entries = in_type.entries
        smallest = 0.0 if is_large else entries.smallest
        bounds.append((-smallest, entries.largest, entries.has_zeros))
    # Ranks must come to the same choice.
    below, largest, has_zeros = problem.exchange.largest(np.max(bounds, axis=0)).tolist()
    return EntryRange(-below, largest, bool(has_zeros))


def _is_large(kernel: Kernel) -> bool:
    is_dense = (kernel.keeps_entries or kernel.keeps_logs) and not kernel.is_sparse
    return is_dense and not kernel.is_diagonal and kernel.shape[0] * kernel.shape[1] > _LARGE


def _types_from(dtype: Any) -> list[Any]:
    """Floating types of sweeps on predictions of ``dtype``, the narrowest first."""
    return [np.float32, np.float64] if dtype == np.float32 else [np.float64]
