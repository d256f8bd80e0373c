"""Random problems of every kind against a slow reference that shares no code with the solvers.

Some thousand rows by default; `WASSEMBLE_LONG=1` (`make test-long`) makes it 200,000. A problem
that fails is made again from its seed: `check(SEED)`.

A row that is called converged must be within `_LIMITS` of what the paper's sweeps tend to, or
within what the last step leaves to go where they creep; a row after a fixed number of sweeps
must be what they give. Any other row must say in its status what became of it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from problems import SWEEPS, solve_with
from solvers.reference import NOTHING, Reference, log_of

import wassemble as ws
from wassemble.solvers.native_sweep import find_native

N_ROWS = 100
N_PROBLEMS = 2_000 if os.environ.get("WASSEMBLE_LONG") else 40
N_BATCHES = 20
# How far from the reference a row may be, L1, as a share of its mass: after fixed sweeps, and
# at a fixed point.
_LIMITS = {np.float64: (1e-9, 1e-5), np.float32: (2e-4, 5e-3), np.float16: (2e-4, 5e-3)}
_TOLERANCE = {np.float64: 1e-9, np.float32: 1e-6, np.float16: 1e-6}
_N_SWEEPS = 600  # of the reference towards a fixed point, at most
_N_MORE_SWEEPS = 60_000  # of a row that is not there yet: some rest for 20,000 and go on

EXPONENTS = (0.02, 0.3, 0.5, 0.69, 0.75, 0.87, 0.98, 0.999)
KINDS = (
    "dense",
    "cost",
    "zeros",
    "far apart",
    "sparse",
    "one-to-one",
    "low rank",
    "diagonal",
    "diagonal per row",
    "identity",
    "mixed",
)


@dataclass
class Problem:
    """One problem in the words of the library and of the reference."""

    histograms: list[np.ndarray]
    kernels: list[Any]
    matrices: list[np.ndarray]  # logs
    weights: Any
    mass: Any
    dtype: Any
    debias: bool

    @property
    def n_rows(self) -> int:
        return len(self.histograms[0])

    @property
    def row_weights(self) -> np.ndarray:
        n_models, n_target = len(self.histograms), self.matrices[0].shape[-1]
        weights = np.full(n_models, 1 / n_models) if self.weights is None else self.weights
        if weights.ndim < 3:
            weights = weights.reshape(n_models, 1, -1)
        return np.broadcast_to(weights, (n_models, self.n_rows, n_target))

    def reference(self) -> Reference:
        return Reference(
            [log_of(h) for h in self.histograms],
            self.matrices,
            self.row_weights,
            self.mass.order,
            self.debias,
        )

    def solve(self, **options: Any) -> ws.BarycenterResult:
        return solve_with(
            self.histograms,
            self.kernels,
            weights=self.weights,
            mass=self.mass,
            debias=self.debias,
            **options,
        )

    def alone(self, row: int, **options: Any) -> ws.BarycenterResult:
        weights = self.weights
        if weights is not None and weights.ndim == 3:
            weights = weights[:, row, 0] if weights.shape[2] == 1 else weights[:, row]
        return solve_with(
            [h[row] for h in self.histograms],
            [k.take(slice(row, row + 1)) if isinstance(k, ws.Kernel) else k for k in self.kernels],
            weights=weights,
            mass=self.mass,
            debias=self.debias,
            **options,
        )


class Course:
    """The reference after any number of sweeps, which are done once for all who ask."""

    def __init__(self, reference: Reference) -> None:
        self._known = {0: reference}

    def after(self, n_sweeps: int) -> Reference:
        if n_sweeps not in self._known:
            n_done = max(n for n in self._known if n < n_sweeps)
            self._known[n_sweeps] = copy(self._known[n_done])  # a sweep puts nothing into arrays
            self._known[n_sweeps].run(n_sweeps - n_done)
        return self._known[n_sweeps]


# -- problems ------------------------------------------------------------------------


def make_problem(rng: np.random.Generator) -> Problem:
    dtype = rng.choice([np.float64, np.float32, np.float16], p=[0.5, 0.45, 0.05])
    n_models, n_target = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    balanced = rng.random() < 0.5
    mass: Any = ws.Balanced()
    if not balanced:
        exponent = rng.choice(EXPONENTS)
        mass = ws.Unbalanced(0.7 * exponent / (1 - exponent), epsilon=0.7)
    debias = balanced and rng.random() < 0.08
    kind = "symmetric" if debias else rng.choice(KINDS)
    square = kind in ("diagonal", "diagonal per row", "identity", "mixed", "symmetric")
    shared = square or rng.random() < 0.5
    sizes = [n_target if square else int(rng.integers(1, 7))] * n_models
    if not shared:
        sizes = [int(rng.integers(1, 7)) for _ in range(n_models)]
    own = 1 if shared and kind != "mixed" else n_models
    made = [make_kernel(rng, kind, size, n_target, dtype) for size in sizes[:own]]
    made = made * n_models if own == 1 else made
    histograms = [make_histograms(rng, size, dtype, balanced=balanced) for size in sizes]
    weights = make_weights(rng, n_models, n_target)
    kernels, matrices = [kernel for kernel, _ in made], [matrix for _, matrix in made]
    return Problem(histograms, kernels, matrices, weights, mass, dtype, debias)


def make_kernel(
    rng: np.random.Generator, kind: str, n_source: int, n_target: int, dtype: Any
) -> tuple[Any, np.ndarray]:
    """A kernel, and the logarithms of its entries."""
    own = np.float64 if dtype == np.float16 else dtype
    shape = (n_source, n_target)
    if kind == "mixed":
        kind = rng.choice(["dense", "sparse", "low rank", "diagonal", "identity"])
    spread = rng.choice([0.3, 2.0, 6.0])
    entries = np.exp(-spread * rng.random(shape))
    if rng.random() < 0.2:
        entries *= 10.0 ** rng.choice([-8, -3, 3, 8])
    entries = entries.astype(own)
    if kind == "cost":
        cost = rng.random(shape)
        epsilon = float(rng.choice([0.003, 0.03, 0.3, 30.0]))
        return ws.kernels.from_cost(cost, epsilon=epsilon), (-cost / epsilon)
    if kind == "symmetric":
        cost = rng.random(shape)
        cost = cost + cost.T
        np.fill_diagonal(cost, 0)
        kernel = ws.kernels.from_cost(cost, epsilon=0.8, symmetric=True)
        return kernel, (-cost / 0.8)
    if kind == "identity":
        return ws.kernels.IdentityKernel(n_target), log_of(np.eye(n_target))
    if kind in ("diagonal", "diagonal per row"):
        size = (n_target,) if kind == "diagonal" else (N_ROWS, n_target)
        diagonal = rng.random(size).astype(own)
        if rng.random() < 0.5:
            diagonal[rng.random(size) < 0.2] = 0
        if rng.random() < 0.2:
            diagonal[rng.random(size) < 0.3] = np.finfo(own).smallest_subnormal * 5
        return ws.kernels.DiagonalKernel(diagonal), log_of(diagonal[..., None] * np.eye(n_target))
    if kind == "far apart":
        entries = (10.0 ** rng.uniform(-35, 30, shape)).astype(own)
    if kind == "zeros" or (kind == "sparse" and rng.random() < 0.8):
        entries[rng.random(shape) < rng.choice([0.2, 0.6])] = 0
    if kind == "one-to-one":
        kept = np.zeros(shape)
        n_joined = int(rng.integers(0, min(shape) + 1))
        kept[rng.permutation(n_source)[:n_joined], rng.permutation(n_target)[:n_joined]] = 1
        entries = (entries * kept).astype(own)
    if kind in ("sparse", "one-to-one"):
        return ws.kernels.SparseKernel(sp.csr_array(entries)), log_of(entries)
    if kind == "low rank":
        left, right = rng.random((n_source, 3)), rng.random((n_target, 3))
        left[rng.random(left.shape) < 0.2] = 0
        left, right = left.astype(own), right.astype(own)
        product = left.astype(np.float64) @ right.astype(np.float64).T
        return ws.kernels.LowRankKernel(left, right), log_of(product)
    return entries, log_of(entries)


def make_histograms(
    rng: np.random.Generator, n_source: int, dtype: Any, *, balanced: bool
) -> np.ndarray:
    shape = (N_ROWS, n_source)
    values = rng.dirichlet(np.full(n_source, rng.choice([0.1, 1.0, 10.0])), N_ROWS)
    if not balanced:
        values = rng.random(shape)
    values = np.maximum(values, 1e-300)
    kind = rng.choice(["plain", "zeros", "tiny", "one-hot", "scaled"])
    if kind == "zeros":
        values[rng.random(shape) < 0.4] = 0
    elif kind == "tiny":
        digits = {np.float64: 320, np.float32: 45, np.float16: 7}[dtype]
        values *= 10.0 ** -(rng.random(shape) * digits * (rng.random(shape) < 0.5))
    elif kind == "one-hot":
        values = np.eye(n_source)[rng.integers(n_source, size=N_ROWS)]
    elif kind == "scaled" and not balanced and dtype != np.float16:
        values *= 10.0 ** rng.choice([-30, -12, -5, 5, 12, 20], size=(N_ROWS, 1))
    if balanced:
        empty = values.sum(axis=1) == 0
        values[empty, rng.integers(n_source, size=int(empty.sum()))] = 1
        values /= values.sum(axis=1, keepdims=True)
        if rng.random() < 0.3 and dtype != np.float16:  # as others' rounding leaves them
            off = 5e-7 if dtype == np.float64 else 5e-5
            values *= 1 + rng.uniform(-off, off, size=(N_ROWS, 1))
    elif rng.random() < 0.2:
        values[rng.random(N_ROWS) < 0.3] = 0
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(dtype)


def make_weights(rng: np.random.Generator, n_models: int, n_target: int) -> np.ndarray | None:
    shapes = (None, (n_models,), (n_models, n_target), (n_models, N_ROWS, 1))
    shape = [*shapes, (n_models, N_ROWS, n_target)][rng.integers(5)]
    if shape is None:
        return None
    weights = rng.random(shape) + 0.02
    if rng.random() < 0.4:
        weights[rng.random(shape) < 0.3] = 0
    weights[0] += weights.sum(axis=0) == 0
    if rng.random() < 0.1:
        weights[0] += 1e6
    return weights / weights.sum(axis=0)


# -- judgement -----------------------------------------------------------------------


def check(seed: Any) -> None:
    """Make the problem of a seed and hold every answer against the reference.

    Those of native sweeps, where they are installed, and those of NumPy: here and not in a test
    of each, for the reference takes as long as all that it is compared with.
    """
    rng = np.random.default_rng(seed)
    problem = make_problem(rng)
    course = Course(problem.reference())
    for sweeps in SWEEPS if find_native() else SWEEPS[1:]:
        drawn = deepcopy(rng)
        with pytest.MonkeyPatch.context() as patch:
            if sweeps == "NumPy":
                patch.setenv("WASSEMBLE_NATIVE", "0")
            check_fixed_sweeps(problem, course, drawn)
            check_fixed_point(problem, course, drawn)
            check_fuse(problem, drawn)


def check_fixed_sweeps(problem: Problem, course: Course, rng: np.random.Generator) -> None:
    n_sweeps = int(rng.choice([1, 2, 5, 12]))
    options = {"max_sweeps": n_sweeps, "tolerance": None}
    reference = course.after(n_sweeps)
    expected = np.exp(reference.log_p)
    result = problem.solve(**options)
    in_closed_form = result.solver.name == "closed form"
    fine = ws.Status.CONVERGED if in_closed_form else ws.Status.MAX_SWEEPS
    check_rows(problem, result, expected, reference, fine, _LIMITS[problem.dtype][0])
    row = int(rng.integers(problem.n_rows))
    compare(problem.alone(row, **options).barycenter, result.barycenter[row], problem, 0)
    if not in_closed_form:
        model = int(rng.integers(len(problem.histograms)))
        if problem.row_weights[model, row].any() and result.status[row] == fine:
            check_coupling(problem, result, reference, model, row)


def check_rows(
    problem: Problem,
    result: ws.BarycenterResult,
    expected: np.ndarray,
    reference: Reference,
    fine: ws.Status,
    limit: Any,
) -> None:
    """Each row is what it should be, or its status says why not."""
    info = np.finfo(result.barycenter.dtype)
    nowhere = (reference.log_p == NOTHING).all(axis=1) & reference.has_mass()
    stuck = reference.stuck()
    limit = np.broadcast_to(limit, problem.n_rows)
    for row in range(problem.n_rows):
        status = ws.Status(int(result.status[row]))
        total, p = expected[row].sum(), result.barycenter[row]
        where = _told(row, status, p, expected)
        if expected[row].max(initial=0) > float(info.max) / 2:
            assert status == ws.Status.DIVERGED, where()
            continue
        if nowhere[row]:
            assert status == ws.Status.NO_MASS, where()
            assert not p.any(), where()
            continue
        seen = (reference.log_p[row] > NOTHING).any()
        if seen and total < float(info.smallest_normal) * len(p):
            assert status == ws.Status.DIVERGED or p.any(), where()
            continue
        assert np.isfinite(p).all(), where()
        assert np.isfinite(result.residual[row]), where()
        assert status == (ws.Status.UNREACHABLE_MASS if stuck[row] else fine), where()
        off = np.abs(p - expected[row]).sum()
        assert off <= limit[row] * total, f"{where()}: off by {off / (total or 1)}"


def _told(row: int, status: ws.Status, p: np.ndarray, expected: np.ndarray) -> Callable[[], str]:
    """What is wrong with a row; put into words only if something is, for thousands are fine."""
    return lambda: f"row {row}, {status.name}: {p} and not {expected[row]}"


def check_coupling(
    problem: Problem, result: ws.BarycenterResult, reference: Reference, model: int, row: int
) -> None:
    expected = reference.coupling(model, row)
    got = result.coupling(model, row)
    slack = {np.float64: 1e-7}.get(problem.dtype, 2e-3)
    assert np.abs(got - expected).sum() <= slack * expected.sum(), f"coupling {model}, {row}"


def check_fixed_point(problem: Problem, course: Course, rng: np.random.Generator) -> None:
    tolerance = _TOLERANCE[problem.dtype]
    options = {"max_sweeps": 300, "tolerance": tolerance}
    result = problem.solve(**options)
    done = result.status == ws.Status.CONVERGED
    in_closed_form = result.solver.name == "closed form"
    steps = []
    for n_sweeps in range(20, _N_SWEEPS + 1, 20):
        reference = course.after(n_sweeps)
        steps.append(reference.step())
        if (steps[-1][done] < 1e-12).all():
            break
    expected = np.exp(reference.log_p)
    before, last = steps[-2:] if len(steps) > 1 else (steps[0], steps[0])
    with np.errstate(all="ignore"):
        rate = np.where(last < 1e-12, 0, np.clip((last / before) ** (1 / 20), 0, 1))
    # The way that is left: for the solver after its last step, for the reference after its own.
    left = np.where(rate < 1, 3 * (20 * tolerance + last) / np.maximum(1 - rate, 1e-9), np.inf)
    ended = result.status == np.where(reference.stuck(), ws.Status.UNREACHABLE_MASS, done * 0)
    limit = np.where(
        ended & (result.residual <= tolerance), _LIMITS[problem.dtype][1] + left, np.inf
    )
    _check_ends(problem, result, expected, reference, limit)
    row = int(rng.integers(problem.n_rows))
    one = problem.alone(row, **options)
    if done[row] and one.status == ws.Status.CONVERGED and not in_closed_form:
        compare(one.barycenter, result.barycenter[row], problem, 2 * left[row])


def _check_ends(
    problem: Problem,
    result: ws.BarycenterResult,
    expected: np.ndarray,
    reference: Reference,
    limit: np.ndarray,
) -> None:
    info = np.finfo(result.barycenter.dtype)
    nowhere = (reference.log_p == NOTHING).all(axis=1) & reference.has_mass()
    doubtful = []
    for row in range(problem.n_rows):
        status = ws.Status(int(result.status[row]))
        total, p = expected[row].sum(), result.barycenter[row]
        where = _told(row, status, p, expected)
        if status == ws.Status.DIVERGED:
            outside = expected[row].max() > float(info.max) / 2
            hidden = total < float(info.smallest_normal) * len(p)
            assert outside or hidden, where()
            continue
        assert np.isfinite(p).all(), where()
        assert nowhere[row] == (status == ws.Status.NO_MASS), where()
        if nowhere[row]:
            assert not p.any(), where()
            continue
        small = float(info.smallest_normal) * len(p)
        if np.abs(p - expected[row]).sum() > limit[row] * total + small:
            doubtful.append(row)
    if doubtful:  # the reference may creep as well
        _check_much_later(result.barycenter[doubtful], reference.of_rows(doubtful), limit[doubtful])


def _check_much_later(found: np.ndarray, reference: Reference, limit: np.ndarray) -> None:
    """The paper's sweeps come to what was found, if they are given the time."""
    for _ in range(0, _N_MORE_SWEEPS, _N_SWEEPS):
        expected = reference.run(_N_SWEEPS)
        off = np.abs(found - expected).sum(axis=1)
        wrong = off > limit * expected.sum(axis=1) + np.finfo(found.dtype).smallest_normal
        if not wrong.any():
            return
    row = int(np.argmax(wrong))
    raise AssertionError(f"{found[row]} and not {expected[row]}: {off[row]}, limit {limit[row]}")


def check_fuse(problem: Problem, rng: np.random.Generator) -> None:
    """`fuse` has the shares of `solve_barycenter`, into an array of one's own too."""
    options = {"max_sweeps": 4, "tolerance": None}
    one = problem.solve(**options).barycenter
    arguments = {
        "kernel": problem.kernels,
        "weights": problem.weights,
        "rule": ws.Barycenter(problem.mass, debias=problem.debias, **options),
        "kind": "multiclass" if problem.mass.order == 0 else "multilabel",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ws.ConvergenceWarning)
        fused = ws.fuse(problem.histograms, **arguments)
        out = np.full(one.shape, np.nan, one.dtype)
        same = {h.shape[1] for h in problem.histograms} == {one.shape[1]}
        given = problem.histograms
        if same and problem.dtype != np.float16:  # backwards over its own input
            given = [np.array(h) for h in problem.histograms]
            out = given[int(rng.integers(len(given)))][::-1]
        ws.fuse(given, out=out, **arguments)
    # Loops over another layout may round otherwise.
    small = float(np.finfo(out.dtype).smallest_normal)
    np.testing.assert_allclose(out, fused, rtol=1e-5, atol=small)
    for row in range(problem.n_rows):
        compare(_shares(fused[row]), _shares(one[row]), problem, 0)


def _shares(p: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        total = p.sum(dtype=np.float64)
        return np.where(np.isfinite(total) & (total > 0), p / total, 0)


def compare(one: np.ndarray, other: np.ndarray, problem: Problem, more: float) -> None:
    """Two answers of the library to the same question."""
    small = float(np.finfo(one.dtype).smallest_normal) * len(one)
    with np.errstate(all="ignore"):
        off = np.abs(one - other).sum()
        limit = (_LIMITS[problem.dtype][0] + more) * np.abs(other).sum() + small
    assert off <= limit or not np.isfinite(limit), f"{one} and not {other}"


@pytest.mark.parametrize("batch", range(N_BATCHES))
def test_random_problems_have_the_answers_of_the_reference(batch):
    n_problems = N_PROBLEMS // N_BATCHES
    for number in range(batch * n_problems, (batch + 1) * n_problems):
        try:
            check(number)
        except Exception as error:
            error.add_note(f"problem {number}: {make_problem(np.random.default_rng(number))}")
            raise
