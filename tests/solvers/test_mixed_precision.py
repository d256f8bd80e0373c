"""Half precision: as an input it is read exactly, as an arithmetic it never has the last word."""

import numpy as np
import pytest
import torch
from problems import MASSES, make_case

import wassemble as ws
from wassemble.solvers.problem import BarycenterProblem

HALF = [torch.float16, torch.bfloat16]
# Many labels: rounding of products in bfloat16 shows.
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 3))
COST = np.square(POINTS[:, None] - POINTS).sum(axis=-1)
DENSE = np.exp(-COST / 2)


def wide_case(mass, kernel=DENSE, **changes):
    case = make_case(1, n_source=60, n_target=60, mass=mass)
    return case.but(kernels=kernel, **changes)


def single(case):
    """The case in float32 tensors."""
    kernel = case.kernels
    if isinstance(kernel, np.ndarray):
        kernel = torch.tensor(kernel, dtype=torch.float32)
    histograms = [torch.tensor(h, dtype=torch.float32) for h in case.histograms]
    return case.but(histograms=histograms, kernels=kernel)


def gap(result, expected):
    """Largest L1 distance between rows, relative to the row."""
    exact = expected.barycenter
    return (np.abs(result.barycenter.numpy() - exact).sum(-1) / exact.sum(-1)).max()


# -- inputs --------------------------------------------------------------------------


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_inputs_are_read_exactly_and_solved_in_float32(dtype, mass):
    case = wide_case(mass, weights=[0.25, 0.25, 0.5])
    histograms = [torch.tensor(h).to(dtype) for h in case.histograms]
    kernel, weights = torch.tensor(DENSE).to(dtype), torch.tensor(case.weights).to(dtype)
    result = ws.solve_barycenter(histograms, kernel, weights=weights, mass=mass)
    wide = [h.double().numpy() for h in histograms]
    if isinstance(mass, ws.Balanced):  # rounding changed the sums, not the barycenter's shape
        sums = np.prod([h.sum(-1) ** w for h, w in zip(wide, case.weights, strict=True)], axis=0)
        wide = [h / h.sum(-1, keepdims=True) for h in wide]
    expected = case.but(histograms=wide, kernels=kernel.double().numpy()).solve(tolerance=1e-10)
    scale = sums[:, None] if isinstance(mass, ws.Balanced) else 1
    assert result.barycenter.dtype == torch.float32
    np.testing.assert_allclose(result.barycenter, expected.barycenter * scale, rtol=1e-4)


@pytest.mark.parametrize("dtype", HALF)
def test_equal_weights_are_not_rounded_to_half_precision(dtype):
    histograms = torch.full((3, 1, 2), 0.5, dtype=dtype)
    problem = BarycenterProblem(histograms, ws.kernels.IdentityKernel(2))
    assert problem.weights.sum().item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("dtype", HALF)
def test_histograms_in_half_precision_may_be_off_by_its_rounding_and_no_more(dtype):
    flat = torch.full((3, 10_000), 1e-4, dtype=dtype)
    assert ws.fuse(flat).sum().item() == pytest.approx(1, abs=0.005)
    with pytest.raises(ValueError, match="`histograms` must sum to 1"):
        ws.fuse(0.95 * flat)


@pytest.mark.parametrize("dtype", HALF)
def test_weights_that_half_precision_rounded_are_refused(dtype):
    third = torch.full((3,), 1 / 3, dtype=dtype)
    with pytest.raises(ValueError, match="`weights` must sum to 1 over the models"):
        ws.fuse(torch.full((3, 2), 0.5), weights=third)


@pytest.mark.parametrize("dtype", HALF)
def test_bad_entries_in_half_precision_are_named(dtype):
    with pytest.raises(ValueError, match="must not be negative; got -1 at model 1, sample 0"):
        ws.fuse(torch.tensor([[0.5, 0.5], [2.0, -1.0]], dtype=dtype))
    with pytest.raises(ValueError, match="`kernel` must be finite"):
        ws.kernels.DenseKernel(torch.tensor([[1.0, np.inf]], dtype=dtype))


# -- arithmetic ----------------------------------------------------------------------

LOW_RANK = ws.kernels.LowRankKernel(*RNG.uniform(0.1, 1, size=(2, 60, 4)))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("kernel", [DENSE, LOW_RANK], ids=["dense", "low rank"])
def test_mixed_precision_is_as_near_to_float64_as_float32_is(kernel, mass, tolerance):
    case = wide_case(mass, kernel)
    expected = case.solve(tolerance=1e-12, max_iterations=10_000)
    options = {"tolerance": tolerance, "max_iterations": 2000}
    options["normalize"] = isinstance(mass, ws.Balanced)
    full = single(case).solve(**options)
    mixed = single(case).solve(mixed_precision=True, **options)
    assert full.n_half_sweeps == 0 < mixed.n_half_sweeps < mixed.n_iterations.min()
    assert mixed.converged.all()
    assert gap(mixed, expected) <= max(2 * gap(full, expected), 2 * tolerance)


@pytest.mark.parametrize("mass", MASSES)
def test_the_residual_is_that_of_a_full_sweep(mass):
    case = single(wide_case(mass))
    options = {"normalize": isinstance(mass, ws.Balanced), "max_iterations": 40}
    mixed = case.solve(mixed_precision=True, tolerance=1e-4, **options)
    again = case.solve(initial=mixed, tolerance=1e-4, **options)  # one more sweep, in float32
    assert (mixed.residual <= 1e-4).all()
    assert (again.n_iterations == 1).all()
    assert (again.residual <= 1.01 * mixed.residual + 1e-6).all()


def test_the_last_sweep_is_full_whatever_max_iterations_allows():
    case = single(wide_case(ws.Balanced()))
    for max_iterations in (1, 2, 5):
        options = {"max_iterations": max_iterations, "normalize": True, "tolerance": 1e-6}
        result = case.solve(mixed_precision=True, **options)
        assert result.n_half_sweeps == max_iterations - 1
        assert (result.n_iterations == max_iterations).all()
        assert (result.status == ws.Status.MAX_ITERATIONS).all()


def test_nothing_vanishes_that_float16_could_not_hold():
    cost = np.abs(np.arange(12.0)[:, None] - np.arange(12))
    for scale in (7.0, 40.0):  # entries down to 1e-33, and to 1e-191, beyond any float32
        kernel = ws.kernels.DenseKernel.from_log(-scale * cost)
        histograms = np.zeros((2, 1, 12))
        histograms[0, 0, 0] = histograms[1, 0, 11] = 1.0
        expected = ws.solve_barycenter(histograms, kernel, max_iterations=500, tolerance=1e-5)
        inputs = torch.tensor(histograms, dtype=torch.float32)
        mixed = ws.solve_barycenter(
            inputs, kernel, max_iterations=500, tolerance=1e-5, mixed_precision=True
        )
        assert mixed.n_half_sweeps > 0
        assert (mixed.status == expected.status).all()
        np.testing.assert_allclose(expected.barycenter, 1 / 12, rtol=1e-3)
        np.testing.assert_allclose(mixed.barycenter, expected.barycenter, rtol=1e-3)


def test_a_kernel_beyond_the_range_of_bfloat16_is_solved_in_full_precision():
    case = wide_case(ws.Balanced(), np.maximum(DENSE**20, 1e-60))
    tensors = [torch.tensor(h) for h in case.histograms]
    result = case.but(histograms=tensors).solve(mixed_precision=True, max_iterations=5000)
    assert result.n_half_sweeps == 0
    assert "half" not in repr(result)


def test_gradients_flow_through_half_precision():
    case = wide_case(ws.Balanced())
    gradients = []
    for mixed_precision in (False, True):
        kernel = torch.tensor(DENSE, dtype=torch.float32, requires_grad=True)
        inputs = single(case).but(kernels=kernel)
        result = inputs.solve(mixed_precision=mixed_precision, normalize=True, tolerance=1e-5)
        result.barycenter[:, 0].sum().backward()
        gradients.append(kernel.grad)
    scale = gradients[0].abs().max()
    assert (gradients[1] - gradients[0]).abs().max() < 0.02 * scale


def test_fuse_takes_mixed_precision_and_the_result_speaks_of_it():
    case = single(wide_case(ws.Balanced()))
    options = {"tolerance": 1e-4, "normalize": True, "mixed_precision": True}
    fused = ws.fuse(
        case.histograms, kernel=case.kernels, weights=case.weights, mass=case.mass, **options
    )
    result = case.solve(**options)
    total = result.barycenter.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(fused, result.barycenter / total, rtol=1e-5)
    assert f"{result.n_half_sweeps} sweeps in half precision" in repr(result)
    assert "half precision" in result.solver.reason


def test_mixed_precision_on_a_device_of_its_own():
    case = single(wide_case(ws.Balanced()))
    with torch.device("meta"):
        result = case.solve(tolerance=1e-4, normalize=True, mixed_precision=True)
    assert result.barycenter.device.type == "cpu"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tolerance": None}, "must go with a tolerance.*got tolerance=None"),
        ({"debias": True}, "without debias; got debias=True"),
        (
            {"kernels": ws.kernels.DiagonalKernel(np.ones(60))},
            "a dense or low-rank kernel; got Diagonal",
        ),
        ({"mixed_precision": 1}, "`mixed_precision` must be True or False; got 1"),
    ],
)
def test_what_cannot_be_mixed_is_refused(changes, words):
    case = single(wide_case(ws.Balanced(), ws.kernels.DenseKernel(DENSE, symmetric=True)))
    case = case.but(kernels=changes.pop("kernels", case.kernels))
    with pytest.raises(ValueError, match=words):
        case.solve(**{"mixed_precision": True, "normalize": True} | changes)


def test_mixed_precision_is_refused_for_numpy_arrays_and_tables():
    with pytest.raises(ValueError, match="must go with torch tensors; got NumPy arrays"):
        wide_case(ws.Balanced()).solve(mixed_precision=True)
    table = ws.Predictions("one", ["a"], ["cat", "dog"], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="`mixed_precision` must go with arrays"):
        ws.fuse([table], mixed_precision=True)
