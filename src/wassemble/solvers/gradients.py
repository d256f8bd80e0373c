"""Barycenters of tensors that NumPy can read: solved as arrays, with gradients for torch.

What is solved is the same problem in NumPy. The gradient is computed when it is asked for, by
the `adjoint` of the sweeps, tile by tile. Of a small batch the sweeps that found the consensus are
kept for it; those of a larger one are done again. Rows that plain arithmetic cannot hold, rows that
did not converge and gradients of gradients are torch's own, through sweeps on logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from wassemble._arrays import Array, convert_like, detached
from wassemble.kernels import Kernel
from wassemble.solvers.adjoint import Adjoint, Gradients, Record, RecordedSweep
from wassemble.solvers.arithmetics import (
    Finish,
    LogSolver,
    NarrowSolver,
    PlainSolver,
    Solver,
    select_plain,
    select_solver,
)
from wassemble.solvers.components import Components
from wassemble.solvers.loop import Ending, Status
from wassemble.solvers.problem import BarycenterProblem
from wassemble.solvers.result import BarycenterResult
from wassemble.solvers.tiles import Group, Tile, rows_per_tile, run_tiles

# Numbers in one array of a tile, and in that of all its sweeps where they are done again.
_TILE = 2**17
_RECORD = 2**22
# Bytes that may be kept of the sweeps on the way there, as long as torch keeps what a backward
# needs: four arrays of the size of the predictions for each sweep, fewer than torch keeps of plain
# lines. Where that would be more, nothing is kept, and the sweeps are done again tile by tile.
_KEPT = 2**28


def requires_gradient(problem: BarycenterProblem) -> bool:
    """Whether torch will ask for the gradient of a problem of tensors."""
    import torch

    return torch.is_grad_enabled() and any(each.requires_grad for each in problem.tensors())


class RecordingSolver(PlainSolver):
    """Plain sweeps that are kept for the way back; other rows are left to the usual solver."""

    def __init__(self, problem: BarycenterProblem, usual: Solver, types: Sequence[Any]) -> None:
        reason = f"sweeps are kept for the gradient; rows that leave their range are {usual.name}"
        super().__init__(problem, reason, types)
        self.tile_size = _TILE
        self._usual = usual
        self._sweeps: list[tuple[Tile, RecordedSweep]] = []

    def start_in(
        self, dtype: Any, *, keep_scalings: bool
    ) -> Callable[[Tile, Components | None], RecordedSweep]:
        mass, n_sweeps = self._problem.mass, self._problem.rule.max_sweeps

        def start(tile: Tile, components: Components | None) -> RecordedSweep:
            sweep = RecordedSweep(self.convert(tile, dtype), mass, components, n_sweeps)
            self._sweeps.append((tile, sweep))
            return sweep

        return start

    def solve_rest(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        self._usual.solve(tile, finish, keep_scalings=keep_scalings)

    def hand_over(self, tile: Tile) -> list[tuple[np.ndarray, Record]]:
        """Rows of ``tile`` and what was kept of them, in an order that threads do not change."""
        samples, found = np.arange(self._problem.n_samples), []
        own = [each for each in self._sweeps if each[0].models == tile.models]
        self._sweeps = [each for each in self._sweeps if each[0].models != tile.models]
        for part, sweep in own:
            trusted = ~sweep.untrusted()
            if trusted.any():
                record = sweep.record if trusted.all() else sweep.record.take(trusted)
                places = samples[part.samples][trusted]
                found.append((np.searchsorted(samples[tile.samples], places), record))
        return sorted(found, key=lambda each: (each[0][0], each[1].p.itemsize))


def recording_solver(problem: BarycenterProblem, arrays: BarycenterProblem) -> Solver:
    """The solver of ``arrays``, the problem in NumPy: one that keeps its sweeps, if it may.

    Towards a tolerance one sweep from the fixed point tells all, and that one is done again.
    """
    usual = select_solver(arrays)
    is_fixed = problem.tolerance is None and isinstance(usual, NarrowSolver)
    if not is_fixed or not requires_gradient(problem):
        return usual
    plain = usual if isinstance(usual, PlainSolver) else select_plain(arrays)
    if not isinstance(plain, PlainSolver):
        return usual
    n_labels = max(max(kernel.shape) for kernel in arrays.voting_kernels)
    numbers = 4 * arrays.n_models * arrays.n_samples * n_labels * arrays.rule.max_sweeps
    if numbers * np.dtype(plain.types[0]).itemsize > _KEPT:
        return usual
    return RecordingSolver(arrays, usual, plain.types)


def as_tensors(
    problem: BarycenterProblem,
    result: BarycenterResult,
    *,
    keep_scalings: bool,
    n_threads: int | None,
) -> BarycenterResult:
    """The result for ``problem`` of what was found for the same in NumPy, with gradients.

    Where sweeps went to a tolerance, gradients need the scalings that were found.
    """
    problem.are_histograms = result.problem.are_histograms
    p = convert_like(result.barycenters, problem.like)
    log_v = convert_like(result.log_v, problem.like) if keep_scalings else None
    if requires_gradient(problem):
        for tile in problem.tile(0, problem.n_samples, known=True).split_by_vote():
            way_back = _WayBack(problem, tile, result, n_threads)
            p, log_v = _graft(way_back, tile, p, log_v)
    return replace(result, problem=problem, barycenters=p, log_v=log_v)


def _graft(
    way_back: _WayBack, tile: Tile, p: Array, log_v: Array | None
) -> tuple[Array, Array | None]:
    """``p`` and ``log_v``, with the samples of ``tile`` as functions of its tensors."""
    rows = np.arange(len(p))[tile.samples]
    kept = way_back.hand_over()
    if log_v is None:
        (found,) = _function().apply(way_back, [p[rows]], kept, *_inputs(tile))
        return _put(p, (rows,), found), None
    places = np.ix_(np.array(tile.models), rows)
    own, own_v = _function().apply(way_back, [p[rows], log_v[places]], kept, *_inputs(tile))
    return _put(p, (rows,), own), _put(log_v, places, own_v)


def _put(whole: Array, places: tuple[np.ndarray, ...], part: Array) -> Array:
    """``whole`` with ``part`` at its places; ``part``, if that is all of it."""
    if all(
        np.array_equal(each.ravel(), np.arange(n))
        for each, n in zip(places, whole.shape, strict=False)
    ):
        return part
    return whole.index_put([convert_like(each, whole) for each in places], part)


def _storage(kernel: Kernel) -> Array:
    """The tensor that the kernel's entries, or their logarithms, are in."""
    return kernel.to_log_dense() if kernel.keeps_logs else kernel.to_dense()


def _inputs(tile: Tile) -> list[Array]:
    """The tensors that a tile depends on: per group histograms, then kernels; weights; start."""
    start = [] if tile.log_v is None else [tile.log_v]
    kernels = [_storage(group.kernel) for group in tile.groups]
    return [*(group.histograms for group in tile.groups), *kernels, tile.weights, *start]


@cache
def _function() -> Any:
    """What torch's graph holds."""
    import torch

    class Consensus(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, way_back: _WayBack, outputs: list[Array], kept: list[Array], *inputs: Array
        ) -> Any:
            ctx.way_back, ctx.n_inputs = way_back, len(inputs)
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*inputs, *kept)
            return tuple(outputs)

        @staticmethod
        def backward(ctx: Any, *grads: Array | None) -> Any:
            saved = ctx.saved_tensors
            inputs, kept = saved[: ctx.n_inputs], saved[ctx.n_inputs :]
            asked = _Asked(inputs, ctx.needs_input_grad[3:], *grads)
            graph = torch.is_grad_enabled()  # somebody wants gradients of gradients
            found = ctx.way_back.in_logs(asked) if graph else ctx.way_back.in_numpy(asked, kept)
            return None, None, None, *found

    return Consensus


@dataclass
class _Asked:
    """Gradients that came in, and the inputs of which gradients are wanted."""

    inputs: Sequence[Array]  # as `_inputs` gives them
    wanted: Sequence[bool]
    grad_p: Array | None
    grad_log_v: Array | None = None


class _WayBack:
    """From gradients of a tile's consensus and scalings to those of its inputs."""

    def __init__(
        self,
        problem: BarycenterProblem,
        tile: Tile,
        result: BarycenterResult,
        n_threads: int | None,
    ) -> None:
        self._problem, self._arrays, self._n_threads = problem, result.problem, n_threads
        self._firsts = [tile.models[group.models.start] for group in tile.groups]
        self._places = [group.models for group in tile.groups]
        self._outline = replace(tile, groups=[], weights=None, log_v=None)  # torch keeps tensors
        self._rows = np.arange(tile.n_rows)
        self._solver = result.solver if isinstance(result.solver, RecordingSolver) else None
        self._recorded: list[np.ndarray] = []  # rows of each record; torch keeps the records
        self._at_rest = self._rows[:0]
        if problem.tolerance is not None and problem.has_one_fixed_point:
            assert result.log_v is not None  # they were asked for
            self._at_rest = np.flatnonzero(result.statuses[tile.samples] == Status.CONVERGED)
            self._log_v = result.log_v[tile.models][:, tile.samples]

    def hand_over(self) -> list[Array]:
        """What was kept, as tensors that torch lets go of as of its own."""
        if self._solver is None:
            return []
        found = self._solver.hand_over(self._outline)
        self._recorded = [rows for rows, _ in found]
        return [
            convert_like(each, self._problem.like)
            for _, record in found
            for each in record.arrays()
        ]

    def _tile(self, inputs: Sequence[Array], kernels: list[Kernel]) -> Tile:
        """The tile of other tensors, or of arrays."""
        groups = list(map(Group, kernels, inputs, self._places))
        weights, *start = inputs[2 * len(groups) :]
        log_v = start[0] if start else None
        return replace(self._outline, groups=groups, weights=weights, log_v=log_v)

    def in_numpy(self, asked: _Asked, kept: Sequence[Array]) -> list[Array | None]:
        """Gradients by the adjoint of the sweeps, of rows that it does not serve on logarithms."""
        solver, rows = self._solver or select_plain(self._arrays), self._rows
        if self._problem.tolerance is not None:
            # Balanced scalings come to rest anywhere along a line: their start decides.
            rows = self._at_rest if asked.grad_log_v is None else rows[:0]
        if not isinstance(solver, PlainSolver) or not len(rows):
            return self.in_logs(asked)
        kernels = [self._arrays.kernels[first] for first in self._firsts]
        tile = self._tile([detached(each) for each in asked.inputs], kernels)
        if self._problem.tolerance is not None:
            tile = replace(tile, log_v=self._log_v)
        adjoints = _Adjoints(self._problem, solver, tile, rows, asked)
        if self._solver is None:
            adjoints.sweep_and_go_back(self._n_threads)
        else:
            arrays = list(map(detached, kept))
            size = len(arrays) // max(1, len(self._recorded))
            records = [
                Record.of_arrays(arrays[place * size : (place + 1) * size])
                for place in range(len(self._recorded))
            ]
            adjoints.go_back(self._recorded, records, self._n_threads)
        found = adjoints.found()
        left = np.flatnonzero(~adjoints.done)
        if not len(left):
            return found
        pairs = zip(found, self.in_logs(asked, left), strict=True)
        return [b if a is None else a if b is None else a + b for a, b in pairs]

    def in_logs(self, asked: _Asked, rows: Any = slice(None)) -> list[Array | None]:
        """Gradients of ``rows`` as torch finds them, through sweeps on logarithms."""
        import torch

        graph = torch.is_grad_enabled()
        inputs = asked.inputs
        found: list[Array | None] = [None] * len(inputs)
        wanted = [place for place, is_wanted in enumerate(asked.wanted) if is_wanted]
        with torch.enable_grad():
            if not graph:
                inputs = [
                    each.detach().requires_grad_(w)
                    for each, w in zip(inputs, asked.wanted, strict=True)
                ]
            outputs, grads = self._sweep_in_logs(inputs, asked, rows)
            leaves = [inputs[place] for place in wanted]
            gradients = torch.autograd.grad(
                outputs, leaves, grads, create_graph=graph, allow_unused=True
            )
        for place, gradient in zip(wanted, gradients, strict=True):
            found[place] = gradient
        return found

    def _sweep_in_logs(
        self, inputs: Sequence[Array], asked: _Asked, rows: Any
    ) -> tuple[list[Array], list[Array]]:
        """What the sweeps of ``rows`` give, and the gradients that came in for it."""
        firsts = [self._problem.kernels[first] for first in self._firsts]
        stored = inputs[len(firsts) :]
        kernels = [kernel.with_storage(each) for kernel, each in zip(firsts, stored, strict=False)]
        outputs: list[Array] = []
        grads: list[Array] = []

        def finish(ending: Ending, tile: Tile) -> None:
            index = self._rows[rows][ending.index]
            values = ending.rows.barycenter, ending.rows.log_v
            for value, grad in zip(values, (asked.grad_p, asked.grad_log_v), strict=True):
                if value is not None and grad is not None:
                    outputs.append(value)
                    grads.append(grad[..., index, :].to(value.dtype))

        solver = LogSolver(self._problem, "torch finds the gradients of logarithms")
        tile = self._tile(inputs, kernels).take(rows)
        solver.solve(tile, finish, keep_scalings=asked.grad_log_v is not None)
        return outputs, grads


class _Adjoints:
    """The way back of some rows of a tile, in smaller ones, and where those put what they find."""

    def __init__(
        self,
        problem: BarycenterProblem,
        solver: PlainSolver,
        tile: Tile,
        rows: np.ndarray,
        asked: _Asked,
    ) -> None:
        self._problem, self._solver, self._tile, self._rows = problem, solver, tile, rows
        self._grad_p = None if asked.grad_p is None else detached(asked.grad_p)
        self._grad_log_v = None if asked.grad_log_v is None else detached(asked.grad_log_v)
        # At a fixed point one sweep tells of all.
        self._n_sweeps = problem.rule.max_sweeps if problem.tolerance is None else 1
        self._total = self._room(asked)
        #: Rows of the tile, by mask, of which gradients were found.
        self.done = np.zeros(tile.n_rows, dtype=bool)
        self._waiting: dict[int, tuple[int, list[Gradients]]] = {}
        self._n_added = 0
        self._lock = Lock()
        self._n_inputs = len(asked.inputs)

    def _room(self, asked: _Asked) -> Gradients:
        """Zeros where gradients are wanted; a fixed point does not depend on the start."""
        dtype, n_groups = self._tile.groups[0].histograms.dtype, len(self._tile.groups)
        pairs = zip(asked.inputs, asked.wanted, strict=True)
        room = [np.zeros(each.shape, dtype) if wanted else None for each, wanted in pairs]
        weights, *start = room[2 * n_groups :]
        log_v = start[0] if start and self._problem.tolerance is None else None
        return Gradients(room[:n_groups], room[n_groups : 2 * n_groups], weights, log_v)

    def go_back(
        self, rows: Sequence[np.ndarray], records: Sequence[Record], n_threads: int | None
    ) -> None:
        """Go back through sweeps that were kept, of the rows of each record."""

        def go(start: int, stop: int) -> None:
            self._add(start, stop, [self._pull(_span(rows[start]), records[start])])

        run_tiles(go, len(records), 1, n_threads)

    def sweep_and_go_back(self, n_threads: int | None) -> None:
        """Do the sweeps again, by the tile, and go back."""
        n_labels = max(max(group.kernel.shape) for group in self._tile.groups)
        n_rows = rows_per_tile(self._tile.n_models, n_labels, min(_TILE, _RECORD // self._n_sweeps))
        run_tiles(self._go, len(self._rows), n_rows, n_threads)

    def found(self) -> list[Array | None]:
        """Gradients as tensors, in the order of `_inputs`."""
        total = self._total
        kernels = [
            grad * group.kernel.to_dense() if grad is not None and group.kernel.keeps_logs else grad
            for grad, group in zip(total.kernels, self._tile.groups, strict=True)
        ]
        found = [*total.histograms, *kernels, total.weights, total.log_v][: self._n_inputs]
        return [None if each is None else convert_like(each, self._problem.like) for each in found]

    def _go(self, start: int, stop: int) -> None:
        left, shared = self._rows[start:stop], []
        with np.errstate(all="ignore"):  # rows that leave the safe range are handed over
            for dtype in self._solver.types:
                unsafe = self._solver.unsafe(self._tile.take(_span(left)), dtype)
                rows = left if unsafe is None else left[~unsafe]
                if not len(rows):
                    continue
                tile = self._solver.convert(self._tile.take(_span(rows)), dtype)
                sweep = RecordedSweep(tile, self._problem.mass, None, self._n_sweeps)
                sweep.step(self._n_sweeps, watch=False)
                trusted = ~sweep.untrusted()
                if trusted.any():
                    record = sweep.record if trusted.all() else sweep.record.take(trusted)
                    shared.append(self._pull(_span(rows[trusted]), record))
                left = left[~self.done[left]]
                if not len(left):
                    break
        self._add(start, stop, shared)

    def _pull(self, rows: slice | np.ndarray, record: Record) -> Gradients:
        """Write down what ``rows`` have of their own, return what they share."""
        dtype = record.p.dtype
        tile = self._solver.convert(self._tile.take(rows), dtype)
        adjoint = Adjoint(tile, self._problem.mass, record)
        found = self._total.of_rows(rows, dtype)
        grad_p = None if self._grad_p is None else self._grad_p[rows]
        grad_log_v = None if self._grad_log_v is None else self._grad_log_v[:, rows]
        tolerance, max_sweeps = self._problem.tolerance, self._problem.rule.max_sweeps
        with np.errstate(all="ignore"):  # numbers too small for their type add nothing
            if tolerance is None:
                adjoint.unroll(grad_p, grad_log_v, found)
            elif grad_p is not None:
                adjoint.settle(grad_p, found, tolerance=tolerance, max_sweeps=max_sweeps)
        self._total.put_rows(rows, found)
        self.done[rows] = True
        return found

    def _add(self, start: int, stop: int, shared: list[Gradients]) -> None:
        """Add what rows share in the order of tiles: sums do not depend on threads."""
        with self._lock:
            self._waiting[start] = stop, shared
            while self._n_added in self._waiting:
                self._n_added, ready = self._waiting.pop(self._n_added)
                for each in ready:
                    self._total.add_shared(each)


def _span(rows: np.ndarray) -> slice | np.ndarray:
    """Rows, in ascending order, as a slice if none is missing: a slice takes no copies."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first == len(rows) - 1 else rows
