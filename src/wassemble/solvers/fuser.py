"""A rule made ready: every check and choice once, then sweeps alone."""

import math
from threading import Lock
from typing import Any, final

import numpy as np

from wassemble._arrays import Array
from wassemble._checks import check_count, fail
from wassemble.kernels import Kernel, as_kernel
from wassemble.solvers.arithmetics import NarrowSolver, select_solver
from wassemble.solvers.loop import Ending, run
from wassemble.solvers.problem import (
    BarycenterProblem,
    FusionProblem,
    convert_each,
    is_list_of_kernels,
)
from wassemble.solvers.rules import Fused, Rule


@final
class Fuser:
    """A rule with its kernels and weights, ready to fuse any samples; `Rule.prepare` makes one.

    It may be called from several threads. One sample of a barycenter in native or plain arithmetic
    needs no more than its sweeps.
    """

    def __init__(self, rule: Rule, problem: FusionProblem) -> None:
        self.rule, self.problem = rule, problem
        self._options: dict[str, Any] = {}
        self._one = None
        if isinstance(problem, BarycenterProblem):
            solver = select_solver(problem)
            self._options["solver"] = solver
            if isinstance(solver, NarrowSolver) and problem.n_top is None:
                self._one = _OneSample(problem, solver)

    def run(self, histograms: Any) -> Fused:
        """The consensus with its statuses, as `Rule.fuse` gives it."""
        return self.rule._solve(self.problem.with_histograms(histograms), **self._options)

    def __call__(self, histograms: Any) -> Array:
        """The consensus of one sample or of many, as `Rule.fuse` gives it.

        Parameters
        ----------
        histograms : array of shape (n_models, n_samples, n_labels), or one array per model
            Non-negative; histograms for a balanced barycenter. A single sample may drop the
            sample axis, and so does the consensus.
        """
        if self._one is not None:
            consensus = self._one.fuse(histograms)
            if consensus is not None:
                return consensus
        return self.run(histograms).consensus

    def __repr__(self) -> str:
        kernels = self.problem.kernels
        return f"<fuser of {len(kernels)} models: {self.rule}, {kernels[0].shape[1]} target labels>"


class _OneSample:
    """Room for the sweeps of one sample, used again and again."""

    def __init__(self, problem: BarycenterProblem, solver: NarrowSolver) -> None:
        self._problem = problem
        self._solver = solver
        self._shapes = [(kernel.shape[0],) for kernel in problem.kernels]
        self._shape = (problem.n_models, *self._shapes[0]) if len(set(self._shapes)) == 1 else ()
        self._type = solver.types[0]
        self._tile = solver.convert(problem.tile(0, 1), self._type)
        for group in self._tile.groups:  # where sweeps read them, also when they change
            group.histograms = np.array(group.histograms)
        order = np.array(self._tile.models)
        self._members: list[Any] = [order[group.models] for group in self._tile.groups]
        if np.array_equal(self._members[0], np.arange(problem.n_models)):
            self._members = [slice(None)]  # all of them at once, without a copy
        self._stopping = solver.stopping(measured=False)
        is_watched = self._stopping.tolerance is not None
        components = problem.components(self._tile.models) if is_watched else None
        start = solver.start_in(self._type, keep_scalings=False)
        self._sweep = start(self._tile, components)
        self._lock = Lock()

    def fuse(self, histograms: Any) -> np.ndarray | None:
        """The consensus, ``(n_target,)``; None where it must be found the ordinary way."""
        if not self._is_plain(histograms) or not self._lock.acquire(blocking=False):
            return None  # or another thread sweeps here
        try:
            return self._fuse(histograms)
        finally:
            self._lock.release()

    def _is_plain(self, histograms: Any) -> bool:
        """Whether they are one sample in NumPy's own arrays, of the shapes and type expected."""
        dtype = self._problem.dtype
        if type(histograms) is np.ndarray:
            return histograms.shape == self._shape and histograms.dtype == dtype
        return (
            isinstance(histograms, list | tuple)
            and len(histograms) == len(self._shapes)
            and all(
                type(each) is np.ndarray and each.shape == shape and each.dtype == dtype
                for each, shape in zip(histograms, self._shapes, strict=True)
            )
        )

    def _fuse(self, histograms: Any) -> np.ndarray | None:
        self._write(histograms)
        if not self._may_sweep():
            return None
        if self._stopping.tolerance is None:
            p = self._sweep.consensus_after(self._stopping.max_sweeps)
        else:
            p = self._converge()
        if p is None or not self._problem.accepts(self._tile):
            return None  # the ordinary way says what is wrong
        return p[0].astype(self._problem.dtype, copy=False)

    def _write(self, histograms: Any) -> None:
        """Put them where the sweeps read them."""
        for group, members in zip(self._tile.groups, self._members, strict=True):
            if isinstance(histograms, np.ndarray):
                group.histograms[:, 0] = histograms[members]
            else:
                models = self._tile.models[group.models]
                for row, model in zip(group.histograms, models, strict=True):
                    row[0] = histograms[model]

    def _may_sweep(self) -> bool:
        """Whether they are numbers that the sweeps know what to do with."""
        are_numbers = self._sweep.checks_numbers or all(
            _are_numbers(group.histograms) for group in self._tile.groups
        )
        return are_numbers and self._solver.unsafe(self._tile, self._type) is None

    def _converge(self) -> np.ndarray | None:
        """The consensus at the tolerance, ``(1, n_target)``; None if it is not trusted."""
        endings: list[Ending] = []
        if self._solver.approaches(self._tile):
            left = self._solver.try_type(
                self._tile, self._type, lambda end, _: endings.append(end), keep_scalings=False
            )
            return None if len(left) else endings[0].rows.barycenter
        self._sweep.restart()
        with np.errstate(all="ignore"):  # what leaves the safe range is not trusted
            run(self._sweep, 1, self._stopping, endings.append, keep_scalings=False)
        return endings[0].rows.barycenter if endings else None


def _are_numbers(histograms: np.ndarray) -> bool:
    """Whether all are finite and none is negative; nan fails every comparison."""
    lowest = np.minimum.reduce(histograms, axis=None)
    return bool(lowest >= 0 and np.maximum.reduce(histograms, axis=None) < math.inf)


def draft_histograms(
    kernels: Any, weights: Any, *, n_models: int | None, dtype: Any
) -> tuple[list[np.ndarray], list[Kernel]]:
    """A sample that stands for those to come, and one kernel per model."""
    if np.dtype(dtype) not in (np.float32, np.float64):
        fail(f"`dtype` must be float32 or float64; got {dtype!r}.")
    if is_list_of_kernels(kernels):
        each = convert_each(kernels, as_kernel)
        if n_models is not None and check_count(n_models, "n_models") != len(each):
            fail(f"there must be one kernel per model; got {len(each)} and n_models={n_models}.")
    else:
        if n_models is None:
            if weights is None:
                fail(
                    "`n_models` must be given where neither kernels nor weights tell; got one"
                    " kernel for all models and no weights."
                )
            n_models = len(weights)
        each = [as_kernel(kernels)] * check_count(n_models, "n_models")
    if any(kernel.n_samples is not None or kernel.tensor is not None for kernel in each):
        fail(
            "kernels that are prepared must be NumPy's, and the same for all samples; got"
            f" {', '.join(str(kernel) for kernel in dict.fromkeys(each))}.",
            hint="`rule.fuse` takes the others",
        )
    if weights is not None and np.ndim(weights) == 3:
        fail(
            "weights that are prepared must be the same for all samples; got three axes.",
            hint="`rule.fuse` takes weights per sample",
        )
    sizes = [kernel.shape[0] for kernel in each]
    rows = {size: np.full((1, size), 1 / size, dtype=dtype) for size in set(sizes)}
    return [rows[size] for size in sizes], each
