"""torch tensors in, torch tensors out, with gradients."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from problems import MASSES, make_case, solve_with
from torch.autograd import gradcheck

import wassemble as ws

FIXED = {"max_sweeps": 4, "tolerance": None}


def tensors(arrays, *, grad=False):
    return [torch.tensor(np.asarray(a), requires_grad=grad) for a in arrays]


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_torch_gives_the_answer_of_numpy_in_its_own_type(mass, dtype):
    case = make_case(1, n_source=(3, 4, 5), mass=mass, dtype=dtype)
    result = case.but(histograms=tensors(case.histograms)).solve(**FIXED)
    expected = case.solve(**FIXED)
    assert isinstance(result.barycenter, torch.Tensor)
    assert result.barycenter.dtype == (torch.float32 if dtype == np.float32 else torch.float64)
    assert result.barycenter.device.type == "cpu"
    slack = 1e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(result.barycenter.numpy(), expected.barycenter, rtol=slack)
    np.testing.assert_allclose(result.residual, expected.residual, rtol=10 * slack, atol=slack)
    assert isinstance(result.coupling(0, 0), torch.Tensor)
    np.testing.assert_allclose(
        result.coupling(1, 2).numpy(), expected.coupling(1, 2), rtol=10 * slack
    )
    np.testing.assert_allclose(
        result.contributions(1, 2)[0].numpy(), expected.contributions(1, 2)[0], rtol=10 * slack
    )


@pytest.mark.parametrize("part", ["histograms", "kernels", "weights"])
def test_one_tensor_among_arrays_makes_the_consensus_a_tensor(part):
    case = make_case(2)
    value = getattr(case, part)
    changed = torch.tensor(value) if part == "weights" else tensors(value)
    result = case.but(**{part: changed}).solve(**FIXED)
    assert isinstance(result.barycenter, torch.Tensor)
    np.testing.assert_allclose(result.barycenter, case.solve(**FIXED).barycenter, rtol=1e-9)


def test_a_kernel_of_tensors_among_arrays_makes_the_consensus_a_tensor():
    case = make_case(2)
    kernel = ws.kernels.DenseKernel(torch.tensor(case.kernels[0]))
    assert isinstance(case.but(kernels=kernel).solve(**FIXED).barycenter, torch.Tensor)


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("per_label", [False, True])
def test_gradients_of_histograms_weights_and_kernels_are_right(mass, per_label):
    case = make_case(
        3, n_models=2, n_samples=2, n_source=(3, 2), n_target=3, mass=mass, per_label=per_label
    )

    def consensus(first, second, raw_weights, kernel_1, kernel_2):
        return solve_with(
            [first, second],
            [kernel_1, kernel_2],
            weights=raw_weights.softmax(0),
            mass=mass,
            normalize=isinstance(mass, ws.Balanced),
            **FIXED,
        ).barycenter

    weights = torch.tensor(np.log(case.weights), requires_grad=True)
    inputs = (*tensors(case.histograms, grad=True), weights, *tensors(case.kernels, grad=True))
    assert gradcheck(consensus, inputs)


@pytest.mark.parametrize("mass", MASSES)
def test_gradients_of_diagonals_are_right_in_closed_form_and_in_sweeps(mass):
    case = make_case(4, n_models=2, n_samples=2, n_source=3, n_target=3, mass=mass)
    diagonal = torch.rand((2, 3), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    diagonal = (diagonal + 0.2).requires_grad_()
    for options in (FIXED, {}):

        def consensus(first, second, diagonal, options=options):
            return solve_with(
                [first, second],
                ws.kernels.DiagonalKernel(diagonal),
                mass=mass,
                normalize=isinstance(mass, ws.Balanced),
                **options,
            ).barycenter

        assert gradcheck(consensus, (*tensors(case.histograms, grad=True), diagonal))


def test_gradients_of_low_rank_factors_and_through_sparse_kernels_are_right():
    case = make_case(5, n_models=2, n_samples=2, n_source=3, n_target=3)
    left, right = tensors(np.random.default_rng(0).uniform(0.2, 1, size=(2, 3, 2)), grad=True)
    sparse = sp.csr_array(case.kernels[0] * (np.eye(3) + np.eye(3, k=1)))

    def consensus(first, second, left, right):
        kernels = [ws.kernels.LowRankKernel(left, right), sparse]
        return solve_with([first, second], kernels, normalize=True, **FIXED).barycenter

    assert gradcheck(consensus, (*tensors(case.histograms, grad=True), left, right))


def test_gradients_of_the_debiased_consensus_are_right():
    case = make_case(6, n_models=2, n_samples=1, n_source=3, n_target=3)
    half = torch.tensor(case.kernels[0], requires_grad=True)

    def consensus(first, second, half):
        kernel = ws.kernels.DenseKernel((half + half.T) / 2, symmetric=True)
        return solve_with([first, second], kernel, normalize=True, debias=True, **FIXED).barycenter

    assert gradcheck(consensus, (*tensors(case.histograms, grad=True), half))


def test_gradients_stay_finite_where_histograms_and_kernels_have_zeros():
    histograms = torch.tensor([[[0.5, 0.5, 0.0]], [[0.2, 0.0, 0.8]]], requires_grad=True)
    kernel = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.5, 1.0]], requires_grad=True)
    for mass in MASSES:
        result = solve_with(histograms, kernel, mass=mass, **FIXED)
        (result.barycenter**2).sum().backward()
        assert torch.isfinite(histograms.grad).all()
        assert torch.isfinite(kernel.grad).all()
        assert kernel.grad.abs().sum() > 0


def test_the_gradient_at_convergence_is_that_of_the_fixed_point():
    case = make_case(7, n_models=2, n_samples=1, n_source=3, n_target=3)
    kernel = torch.tensor(case.kernels[0], requires_grad=True)
    result = ws.solve_barycenter(
        case.histograms, kernel, ws.Barycenter(max_sweeps=5000, tolerance=1e-12)
    )
    result.barycenter[0, 0].backward()
    step = 1e-6
    for i in range(3):
        for j in range(3):
            moved = case.kernels[0].copy()
            moved[i, j] += step
            up = ws.solve_barycenter(
                case.histograms, moved, ws.Barycenter(max_sweeps=5000, tolerance=1e-14)
            )
            moved[i, j] -= 2 * step
            low = ws.solve_barycenter(
                case.histograms, moved, ws.Barycenter(max_sweeps=5000, tolerance=1e-14)
            )
            slope = (up.barycenter[0, 0] - low.barycenter[0, 0]) / (2 * step)
            assert kernel.grad[i, j].item() == pytest.approx(slope, abs=1e-5)


def test_rows_that_finish_at_different_times_keep_their_gradients():
    case = make_case(8, kernel_spread=5.0)
    histograms = torch.tensor(np.stack(case.histograms), requires_grad=True)
    result = ws.solve_barycenter(histograms, case.kernels[0], ws.Barycenter(tolerance=1e-6))
    assert len(set(result.n_sweeps)) > 1
    result.barycenter.square().sum().backward()
    assert (histograms.grad.abs().sum(dim=(0, 2)) > 0).all()


def test_means_of_tensors_are_tensors_with_gradients():
    first = torch.tensor([0.2, 0.8], requires_grad=True)
    for mean in (ws.ARITHMETIC, ws.GEOMETRIC, ws.HELLINGER):
        value = mean.fuse([first, np.array([0.5, 0.5])], weights=[0.25, 0.75]).consensus
        assert isinstance(value, torch.Tensor)
        (gradient,) = torch.autograd.grad(value.sum(), first)
        assert torch.isfinite(gradient).all()


def test_warm_start_from_a_torch_result():
    case = make_case(9, kernel_spread=6.0)
    case = case.but(histograms=tensors(case.histograms))
    cold = case.solve()
    warm = case.solve(initial=cold)
    assert (warm.n_sweeps < cold.n_sweeps).all()
