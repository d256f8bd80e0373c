"""Gradients by the adjoint of the sweeps are those that torch finds itself."""

import numpy as np
import pytest
import torch
from problems import MASSES, make_case, solve_with
from torch.autograd import forward_ad, gradgradcheck

import wassemble as ws
from wassemble import _arrays
from wassemble.solvers import gradients

FIXED = {"max_sweeps": 4, "tolerance": None}
RESTING = {"max_sweeps": 5000, "tolerance": 1e-12}


@pytest.fixture
def by_torch(monkeypatch):
    """A call made in torch alone, as on a device that NumPy does not read."""

    def call(function, *arguments, **options):
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(_arrays, "_HOST_DEVICES", frozenset())
            return function(*arguments, **options)

    return call


@pytest.fixture
def served(monkeypatch):
    """Rows that the adjoint served, by floating type; the others go through logarithms."""
    counts = {np.float32: 0, np.float64: 0}
    pull = gradients._Adjoints._pull

    def counting(self, rows, record):
        counts[record.p.dtype.type] += record.p.shape[1]
        return pull(self, rows, record)

    monkeypatch.setattr(gradients._Adjoints, "_pull", counting)
    return counts


def leaves(*arrays):
    return [torch.tensor(np.asarray(each), requires_grad=True) for each in arrays]


def gradients_of(case, options, read=lambda result: result.barycenter):
    """Gradients of a sum over what ``read`` finds in the result: each model, kernel, weights."""
    histograms, kernels = leaves(*case.histograms), {id(k): leaves(k)[0] for k in case.kernels}
    (weights,) = leaves(case.weights)
    each = [kernels[id(kernel)] for kernel in case.kernels]
    found = read(solve_with(histograms, each, weights=weights, mass=case.mass, **options))
    inputs = [*histograms, *kernels.values(), weights]
    factors = torch.linspace(-1, 2, found.numel(), dtype=found.dtype).reshape(found.shape)
    return torch.autograd.grad(
        (found * factors).sum(), inputs, allow_unused=True, materialize_grads=True
    )


def assert_same(found, expected, slack):
    for one, other in zip(found, expected, strict=True):
        assert torch.isfinite(one).all()
        scale = float(other.abs().max())
        np.testing.assert_allclose(one, other, rtol=slack, atol=slack * scale)


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("n_source", [5, (3, 4, 5)])
@pytest.mark.parametrize("per_label", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fixed_number_of_sweeps(mass, n_source, per_label, dtype, by_torch, served):
    case = make_case(1, n_source=n_source, mass=mass, per_label=per_label, dtype=dtype)
    expected = by_torch(gradients_of, case, FIXED)
    assert not any(served.values())
    assert_same(gradients_of(case, FIXED), expected, 3e-5 if dtype == np.float32 else 1e-11)
    assert served[dtype] == 4


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("n_source", [5, (3, 4, 5)])
def test_a_fixed_point(mass, n_source, by_torch, served):
    case = make_case(2, n_source=n_source, mass=mass)
    expected = by_torch(gradients_of, case, RESTING)
    assert_same(gradients_of(case, RESTING), expected, 1e-8)
    assert served[np.float64] == 4


def test_rows_that_did_not_converge_have_the_gradient_of_the_sweeps_they_had(by_torch, served):
    case = make_case(3, kernel_spread=6.0)
    enough = case.solve(max_sweeps=1000, tolerance=1e-9).n_sweeps
    options = {"max_sweeps": int(enough.max()) - 3, "tolerance": 1e-9}
    status = case.solve(**options).status
    assert {ws.Status.CONVERGED, ws.Status.MAX_SWEEPS} == set(status)
    assert_same(gradients_of(case, options), by_torch(gradients_of, case, options), 1e-4)
    assert served[np.float64] == (status == ws.Status.CONVERGED).sum()


@pytest.mark.parametrize("options", [FIXED, RESTING])
@pytest.mark.parametrize("mass", MASSES)
def test_couplings_have_gradients(mass, options, by_torch):
    case = make_case(4, n_source=(3, 4, 5), mass=mass)

    def coupling(result):
        return result.coupling(1, 2)

    expected = by_torch(gradients_of, case, options, coupling)
    assert_same(gradients_of(case, options, coupling), expected, 1e-6)


@pytest.mark.parametrize("mass", MASSES)
def test_zeros_have_no_gradient_and_harm_none(mass, by_torch, served):
    case = make_case(5, mass=mass)
    histograms = np.stack(case.histograms)
    histograms[..., 0] = 0
    histograms /= histograms.sum(axis=-1, keepdims=True)
    case = case.but(histograms=list(histograms), weights=np.array([0.3, 0.7, 0.0]))
    found = gradients_of(case, FIXED)
    assert_same(found, by_torch(gradients_of, case, FIXED), 1e-11)
    assert served[np.float64] == 4
    assert (found[0][:, 0] == 0).all()
    assert (found[2] == 0).all()


def test_rows_that_plain_numbers_cannot_hold_go_through_logarithms(by_torch, served):
    case = make_case(6, mass=MASSES[1])
    case.histograms[0][1] *= 1e-200
    assert_same(gradients_of(case, FIXED), by_torch(gradients_of, case, FIXED), 1e-8)
    assert served[np.float64] == 3


def test_rows_that_float32_cannot_hold_are_done_in_float64(by_torch, served):
    case = make_case(7, n_source=6, dtype=np.float32)
    # Scalings are powers of quotients of histograms, one more with each sweep.
    case = case.but(kernels=[np.float32(np.eye(6) + 1e-37)] * 3)
    options = {"max_sweeps": 200, "tolerance": None}
    found = gradients_of(case, options)
    assert served[np.float64] > 0
    assert_same(found[:3], by_torch(gradients_of, case, options)[:3], 1e-4)


def test_kernels_in_logarithms_have_gradients(by_torch):
    case = make_case(8, n_source=5, n_target=5)
    histograms = torch.tensor(np.stack(case.histograms))

    def gradient():
        (logs,) = leaves(np.log(case.kernels[0]))
        kernel = ws.kernels.DenseKernel.from_log(logs)
        found = solve_with(histograms, kernel, **FIXED).barycenter
        return torch.autograd.grad(found[:, 0].sum(), logs)

    assert_same(gradient(), by_torch(gradient), 1e-11)


def test_weights_per_sample_and_models_that_do_not_vote(by_torch):
    case = make_case(9, n_samples=4, mass=MASSES[1])
    weights = np.full((3, 4, 1), 1 / 3)
    weights[:, 1, 0] = [0.5, 0.0, 0.5]
    case = case.but(weights=weights)
    assert_same(gradients_of(case, FIXED), by_torch(gradients_of, case, FIXED), 1e-11)


def test_models_out_of_the_order_of_their_kernels(by_torch):
    case = make_case(10, n_source=5)
    first, second = case.kernels[0], case.kernels[0] ** 2
    case = case.but(kernels=[first, second, first])

    def scalings(result):
        return result.log_scalings()

    for read in (scalings, lambda result: result.barycenter):
        expected = by_torch(gradients_of, case, FIXED, read)
        assert_same(gradients_of(case, FIXED, read), expected, 1e-10)


def test_a_warm_start_hands_its_gradient_on(by_torch):
    case = make_case(11, mass=MASSES[1])

    def gradient():
        (histograms,) = leaves(np.stack(case.histograms))
        start = solve_with(histograms, case.kernels[0], mass=case.mass, **FIXED)
        again = histograms.detach()
        result = solve_with(again, case.kernels[0], mass=case.mass, initial=start, **FIXED)
        return torch.autograd.grad(result.barycenter.square().sum(), histograms)

    assert_same(gradient(), by_torch(gradient), 1e-10)


def test_gradients_of_gradients_are_right():
    case = make_case(12, n_models=2, n_samples=2, n_source=3, n_target=3, mass=MASSES[1])

    def consensus(first, second, kernel):
        return solve_with([first, second], kernel, mass=case.mass, **FIXED).barycenter

    assert gradgradcheck(consensus, leaves(*case.histograms, case.kernels[0]))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch uses it itself
def test_derivatives_in_forward_mode_are_those_of_the_gradient():
    case = make_case(13, mass=MASSES[1])
    (histograms,) = leaves(np.stack(case.histograms))
    direction = torch.ones_like(histograms)

    def consensus(values):
        return solve_with(values, case.kernels[0], mass=case.mass, **FIXED).barycenter

    (gradient,) = torch.autograd.grad(consensus(histograms).sum(), histograms)
    with forward_ad.dual_level():
        dual = consensus(forward_ad.make_dual(histograms.detach(), direction))
        tangent = forward_ad.unpack_dual(dual).tangent
    assert float(tangent.sum()) == pytest.approx(float((gradient * direction).sum()), rel=1e-9)


@pytest.mark.parametrize("options", [FIXED, {"max_sweeps": 400, "tolerance": 1e-6}])
def test_threads_change_no_bit(options, monkeypatch):
    monkeypatch.setattr(gradients, "_TILE", 2**8)
    case = make_case(14, n_samples=300, mass=MASSES[1])

    def gradient(n_threads):
        return gradients_of(case, options | {"n_threads": n_threads})

    for one, other in zip(gradient(1), gradient(3), strict=True):
        assert (one == other).all()


def bytes_kept(call):
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        call()
    return sum(each.nbytes for each in kept)


def test_what_is_kept_for_the_gradient_has_a_bound(monkeypatch):
    (histograms,) = leaves(np.stack(make_case(15).histograms))
    kernel = torch.tensor(make_case(15).kernels[0])

    def size_of(n_sweeps):
        return bytes_kept(
            lambda: solve_with(histograms, kernel, max_sweeps=n_sweeps, tolerance=None)
        )

    inputs = size_of(10) - 10 * (size_of(11) - size_of(10))
    bound = size_of(10) - inputs
    assert bound > 0
    monkeypatch.setattr(gradients, "_KEPT", bound)
    assert max(size_of(n_sweeps) for n_sweeps in range(1, 12)) <= inputs + bound
    assert size_of(50) == size_of(5000) <= inputs


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweeps_that_are_kept_and_those_done_again_give_the_same(mass, dtype, monkeypatch):
    case = make_case(17, n_source=(3, 4, 5), n_samples=9, mass=mass, dtype=dtype)
    case.histograms[1][:, 0] = 0
    case.histograms[1] /= case.histograms[1].sum(axis=-1, keepdims=True)
    kept = gradients_of(case, FIXED)
    monkeypatch.setattr(gradients, "_KEPT", 0)
    assert_same(kept, gradients_of(case, FIXED), 1e-6 if dtype == np.float32 else 1e-14)


def test_a_second_backward_finds_what_was_kept():
    case = make_case(18, mass=MASSES[1])
    (histograms,) = leaves(np.stack(case.histograms))
    total = solve_with(histograms, case.kernels[0], mass=case.mass, **FIXED).barycenter.sum()
    (first,) = torch.autograd.grad(total, histograms, retain_graph=True)
    (second,) = torch.autograd.grad(total, histograms)
    assert (first == second).all()
    with pytest.raises(RuntimeError, match="second time"):  # torch let go of it
        torch.autograd.grad(total, histograms)


def test_rows_of_several_types_are_kept(by_torch, served):
    case = make_case(19, n_samples=6, n_source=5, dtype=np.float32)
    case.histograms[0][2] = [1, 1e-37, 1e-36, 1e-37, 1e-37]  # its u are too small for float32
    case = case.but(kernels=[1e3 * case.kernels[0]] * 3)
    found = gradients_of(case, FIXED)
    assert served == {np.float32: 5, np.float64: 1}
    assert_same(found[3:], by_torch(gradients_of, case, FIXED)[3:], 1e-4)


@pytest.mark.parametrize("mass_penalty", [10.0, 300.0, 1e4])
def test_small_orders_are_exact_in_float32(mass_penalty, by_torch, served):
    mass = ws.Unbalanced(mass_penalty, epsilon=0.1)
    case = make_case(20, n_source=6, mass=mass)
    narrow = case.but(
        histograms=[np.float32(each) for each in case.histograms],
        kernels=[np.float32(case.kernels[0])] * 3,
    )
    found = gradients_of(narrow, FIXED)
    assert served[np.float32] == 4
    assert_same(
        [each.double() for each in found[:4]], by_torch(gradients_of, case, FIXED)[:4], 2e-5
    )


def test_nothing_is_kept_where_no_gradient_is_asked_for():
    (histograms,) = leaves(np.stack(make_case(16).histograms))
    kernel = make_case(16).kernels[0]

    with torch.no_grad():
        assert not solve_with(histograms, kernel).barycenter.requires_grad
        assert bytes_kept(lambda: solve_with(histograms, kernel, **FIXED)) == 0
