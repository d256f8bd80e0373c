"""Barycenters of tensors that NumPy can read: solved as arrays, with gradients for torch.

What is solved is the same problem in NumPy. The gradient is computed when it is asked for, by
the `adjoint` of the sweeps, tile by tile. Rows that plain arithmetic cannot hold, rows that did
not converge and gradients of gradients are torch's own, through sweeps on logarithms.
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
from wassemble.solvers.adjoint import Adjoint, Gradients
from wassemble.solvers.arithmetics import LogSolver, NarrowSolver, select_plain
from wassemble.solvers.loop import Ending, Status
from wassemble.solvers.problem import BarycenterProblem
from wassemble.solvers.result import BarycenterResult
from wassemble.solvers.tiles import Group, Tile, rows_per_tile, run_tiles

# Numbers in one array of a tile, and in those of all its sweeps together, which are kept.
_TILE = 2**17
_RECORD = 2**22


def solve_tensors(
    problem: BarycenterProblem,
    solve: Callable[[bool], BarycenterResult],
    *,
    keep_scalings: bool,
) -> BarycenterResult:
    """The result of a ``problem`` of tensors; ``solve`` does it in NumPy, with scalings or not."""
    wants_gradient = _requires_gradient(problem)
    # The gradient at a fixed point starts from its scalings.
    result = solve(keep_scalings or (wants_gradient and problem.tolerance is not None))
    arrays, problem.are_histograms = result.problem, result.problem.are_histograms
    p, log_v = convert_like(result.barycenters, problem.like), None
    if keep_scalings:
        log_v = convert_like(result.log_v, problem.like)
    if wants_gradient:
        p, log_v = _graft(problem, arrays, result, p, log_v)
    return replace(result, problem=problem, barycenters=p, log_v=log_v)


def _requires_gradient(problem: BarycenterProblem) -> bool:
    import torch

    inputs = [*problem.tensors(), *(_storage(kernel) for kernel in problem.voting_kernels)]
    return torch.is_grad_enabled() and any(each.requires_grad for each in inputs)


def _storage(kernel: Kernel) -> Array:
    """The tensor that the kernel's entries, or their logarithms, are in."""
    return kernel.to_log_dense() if kernel.keeps_logs else kernel.to_dense()


def _graft(
    problem: BarycenterProblem,
    arrays: BarycenterProblem,
    result: BarycenterResult,
    p: Array,
    log_v: Array | None,
) -> tuple[Array, Array | None]:
    """``p`` and ``log_v`` as functions of the tensors of ``problem``."""
    parts = problem.tile(0, problem.n_samples).split_by_vote()
    for tile in parts:
        way_back = _WayBack(problem, arrays, tile, result)
        samples, models = tile.samples, tile.models
        outputs = [p[samples]] if log_v is None else [p[samples], log_v[models][:, samples]]
        found = _function().apply(way_back, outputs, *_inputs(tile))
        if len(parts) == 1:
            p = found[0]
        else:
            p = p.index_put((convert_like(samples, p),), found[0])
        if log_v is not None:
            whole = len(parts) == 1 and models == list(range(problem.n_models))
            rows = np.arange(problem.n_samples)[samples]
            places = [convert_like(np.array(models)[:, None], p), convert_like(rows[None], p)]
            log_v = found[1] if whole else log_v.index_put(places, found[1])
    return p, log_v


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
        def forward(ctx: Any, way_back: _WayBack, outputs: list[Array], *inputs: Array) -> Any:
            ctx.way_back = way_back
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*inputs)
            return tuple(outputs)

        @staticmethod
        def backward(ctx: Any, *grads: Array | None) -> Any:
            asked = _Asked(ctx.saved_tensors, ctx.needs_input_grad[2:], *grads)
            graph = torch.is_grad_enabled()  # somebody wants gradients of gradients
            found = ctx.way_back.in_logs(asked) if graph else ctx.way_back.in_numpy(asked)
            return None, None, *found

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
        arrays: BarycenterProblem,
        tile: Tile,
        result: BarycenterResult,
    ) -> None:
        self._problem, self._arrays = problem, arrays
        self._firsts = [tile.models[group.models.start] for group in tile.groups]
        self._places = [group.models for group in tile.groups]
        # The tensors are torch's to keep.
        self._outline = replace(tile, groups=[], weights=None, log_v=None)
        self._rows = np.arange(tile.n_rows)
        self._at_rest: np.ndarray | None = None
        if problem.tolerance is not None and problem.has_one_fixed_point:
            assert result.log_v is not None  # they were asked for
            self._at_rest = np.flatnonzero(result.statuses[tile.samples] == Status.CONVERGED)
            self._log_v = result.log_v[tile.models][:, tile.samples]

    def _tile(self, inputs: Sequence[Array], kernels: list[Kernel]) -> Tile:
        parts = zip(kernels, inputs, self._places, strict=False)
        weights, *start = inputs[2 * len(kernels) :]
        groups = [Group(*part) for part in parts]
        return replace(
            self._outline, groups=groups, weights=weights, log_v=start[0] if start else None
        )

    def in_numpy(self, asked: _Asked) -> list[Array | None]:
        """Gradients by the adjoint of the sweeps, of the other rows on logarithms."""
        solver = select_plain(self._arrays)
        rows = self._adjoint_rows(asked)
        if not isinstance(solver, NarrowSolver) or not len(rows):
            return self.in_logs(asked)
        kernels = [self._arrays.kernels[first] for first in self._firsts]
        tile = self._tile([detached(each) for each in asked.inputs], kernels)
        n_sweeps = self._problem.rule.max_sweeps
        if self._problem.tolerance is not None:
            tile = replace(tile, log_v=self._log_v)
        adjoints = _Adjoints(solver, tile, asked, self._problem)
        adjoints.run(rows)
        found = adjoints.found()
        left = np.flatnonzero(~adjoints.done)
        if not len(left):
            return found
        rest = self.in_logs(asked, left)
        pairs = zip(found, rest, strict=True)
        return [b if a is None else a if b is None else a + b for a, b in pairs]

    def _adjoint_rows(self, asked: _Asked) -> np.ndarray:
        """Rows that did all sweeps, or came to rest; of rows at rest the start decides on v."""
        if self._problem.tolerance is None:
            return self._rows
        if self._at_rest is None or asked.grad_log_v is not None:
            return self._rows[:0]
        return self._at_rest

    def in_logs(self, asked: _Asked, rows: np.ndarray | None = None) -> list[Array | None]:
        """Gradients of ``rows`` (None: all) as torch finds them, through sweeps on logarithms."""
        import torch

        graph = torch.is_grad_enabled()
        with torch.enable_grad():
            inputs = list(asked.inputs)
            if not graph:
                pairs = zip(inputs, asked.wanted, strict=True)
                inputs = [each.detach().requires_grad_(wanted) for each, wanted in pairs]
            tile = self._tile(inputs, self._torch_kernels(inputs))
            outputs, grads = self._sweep(tile, asked, rows)
            wanted = [each for each, is_wanted in zip(inputs, asked.wanted, strict=True) if is_wanted]
            found = iter(
                torch.autograd.grad(outputs, wanted, grads, create_graph=graph, allow_unused=True)
            )
        return [next(found) if is_wanted else None for is_wanted in asked.wanted]

    def _torch_kernels(self, inputs: Sequence[Array]) -> list[Kernel]:
        firsts = [self._problem.kernels[first] for first in self._firsts]
        stored = inputs[len(firsts) : 2 * len(firsts)]
        return [kernel.with_storage(each) for kernel, each in zip(firsts, stored, strict=True)]

    def _sweep(
        self, tile: Tile, asked: _Asked, rows: np.ndarray | None
    ) -> tuple[list[Array], list[Array]]:
        """What the sweeps of some rows give, and the gradients that came in for it."""
        some = self._rows if rows is None else rows
        outputs, grads = [], []

        def finish(ending: Ending, tile: Tile) -> None:
            index = some[ending.index]
            for value, grad in ((ending.rows.barycenter, asked.grad_p), (ending.rows.log_v, asked.grad_log_v)):
                if grad is not None:
                    outputs.append(value)
                    grads.append(grad[..., index, :].to(value.dtype))

        solver = LogSolver(self._problem, "torch's own gradients")
        keep = asked.grad_log_v is not None
        solver.solve(tile if rows is None else tile.take(rows), finish, keep_scalings=keep)
        return outputs, grads


class _Adjoints:
    """The way back of many rows, tile by tile, and where tiles put what they find."""

    def __init__(
        self, solver: NarrowSolver, tile: Tile, asked: _Asked, problem: BarycenterProblem
    ) -> None:
        self._solver, self._tile, self._problem = solver, tile, problem
        self._grad_p = None if asked.grad_p is None else detached(asked.grad_p)
        self._grad_log_v = None if asked.grad_log_v is None else detached(asked.grad_log_v)
        self._n_inputs = len(asked.inputs)
        wanted = iter(asked.wanted)
        room = [np.zeros(each.shape, tile.groups[0].histograms.dtype) if next(wanted) else None for each in asked.inputs]
        n = len(tile.groups)
        start = room[2 * n + 1] if self._n_inputs > 2 * n + 1 and problem.tolerance is None else None
        self._total = Gradients(room[:n], room[n : 2 * n], room[2 * n], start)
        #: Rows, by mask, of which gradients were found.
        self.done = np.zeros(tile.n_rows, dtype=bool)
        self._waiting: dict[int, tuple[int, list[Gradients]]] = {}
        self._next = 0
        self._lock = Lock()

    def run(self, rows: np.ndarray) -> None:
        """Go back with ``rows``."""
        self._given = rows
        n_labels = max(max(group.kernel.shape) for group in self._tile.groups)
        size = _TILE if self._problem.tolerance is not None else min(_TILE, _RECORD // self._problem.rule.max_sweeps)
        run_tiles(self._go, len(rows), rows_per_tile(self._tile.n_models, n_labels, size), None)

    def _go(self, start: int, stop: int) -> None:
        left, shared = self._given[start:stop], []
        with np.errstate(all="ignore"):  # rows that leave the safe range are handed over
            for dtype in self._solver.types:
                rows, adjoint = self._record(left, dtype)
                if adjoint is None:
                    continue
                shared.append(self._pull(adjoint, _span(rows), dtype))
                self.done[rows] = True
                left = left[~self.done[left]]
                if not len(left):
                    break
        self._add(start, stop, shared)

    def _record(self, rows: np.ndarray, dtype: Any) -> tuple[np.ndarray, Adjoint | None]:
        """Those of ``rows`` that ``dtype`` can hold, and their sweeps."""
        problem = self._problem
        n_sweeps = problem.rule.max_sweeps if problem.tolerance is None else 1
        unsafe = self._solver.unsafe(self._tile.take(_span(rows)), dtype)
        rows = rows if unsafe is None else rows[~unsafe]
        while len(rows):
            tile = self._solver.convert(self._tile.take(_span(rows)), dtype)
            adjoint = Adjoint(tile, problem.mass, n_sweeps)
            if adjoint.trusted.all():
                return rows, adjoint
            rows = rows[adjoint.trusted]
        return rows, None

    def _pull(self, adjoint: Adjoint, rows: Any, dtype: Any) -> Gradients:
        """Write down what ``rows`` have of their own, return what they share."""
        found = self._total.of_rows(rows, dtype)
        grad_p = None if self._grad_p is None else self._grad_p[rows]
        grad_log_v = None if self._grad_log_v is None else self._grad_log_v[:, rows]
        tolerance, max_sweeps = self._problem.tolerance, self._problem.rule.max_sweeps
        if tolerance is None:
            adjoint.unroll(grad_p, grad_log_v, found)
        elif grad_p is not None:
            adjoint.settle(grad_p, found, tolerance=tolerance, max_sweeps=max_sweeps)
        self._total.put_rows(rows, found)
        return found

    def _add(self, start: int, stop: int, shared: list[Gradients]) -> None:
        """Add what rows share in the order of tiles: sums do not depend on threads."""
        with self._lock:
            self._waiting[start] = stop, shared
            while self._next in self._waiting:
                self._next, ready = self._waiting.pop(self._next)
                for each in ready:
                    self._total.add_shared(each)

    def found(self) -> list[Array | None]:
        """Gradients as torch's tensors, in the order of `_inputs`."""
        import torch

        total = self._total
        kernels = [
            grad if grad is None or not group.kernel.keeps_logs else grad * group.kernel.to_dense()
            for grad, group in zip(total.kernels, self._tile.groups, strict=True)
        ]
        found = [*total.histograms, *kernels, total.weights, total.log_v][: self._n_inputs]
        return [None if each is None else torch.from_numpy(each) for each in found]


def _span(rows: np.ndarray) -> slice | np.ndarray:
    """Rows, in ascending order, as a slice if none is missing: a slice takes no copies."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first == len(rows) - 1 else rows
