"""Products in logarithms, and their gradients through every kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose
from scipy.special import logsumexp

import wassemble as ws
from wassemble.kernels import dense
from wassemble.kernels.dense import log_product, log_sum_exp

LOGS = st.floats(-2000, 2000, width=32) | st.just(-np.inf)


@pytest.mark.parametrize("make", [np.asarray, torch.tensor])
@given(logs=arrays(np.float64, array_shapes(max_dims=3), elements=LOGS))
def test_log_sum_exp_equals_scipy(make, logs):
    assert_allclose(np.asarray(log_sum_exp(make(logs))), logsumexp(logs, axis=-1), atol=1e-12)


def test_log_sum_exp_of_no_terms_is_minus_infinity():
    assert (log_sum_exp(np.ones((3, 0))) == -np.inf).all()


@pytest.mark.parametrize("make", [np.asarray, torch.tensor])
def test_mending_many_entries_in_blocks_equals_mending_them_at_once(make, rng, monkeypatch):
    log_columns = make(rng.uniform(-3000, -1000, (20, 7)))
    logs = make(rng.uniform(-2000, 2000, (9, 7)))
    matrix = make(np.zeros((7, 20)))  # nothing is sure: every entry is mended
    at_once = log_product(logs, matrix, lambda index: log_columns[index])
    monkeypatch.setattr(dense, "_BLOCK", 40)
    in_blocks = log_product(logs, matrix, lambda index: log_columns[index])
    expected = logsumexp(np.asarray(logs)[:, None, :] + np.asarray(log_columns), axis=-1)
    assert_allclose(np.asarray(in_blocks), np.asarray(at_once), rtol=1e-14)
    assert_allclose(np.asarray(in_blocks), expected)


def test_only_what_is_not_sure_is_mended(rng):
    asked = []

    def log_columns(index):
        asked.extend(index.tolist())
        return np.log(np.full((len(index), 3), 1e-300))

    matrix = np.array([[0.5, 1e-300], [0.25, 1e-300], [1.0, 1e-300]])
    log_product(np.zeros((2, 3)), matrix, log_columns)
    assert asked == [1, 1]


# -- gradients -----------------------------------------------------------------------


def tensor(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


KERNELS_OF_ENTRIES = {
    "dense": (ws.kernels.DenseKernel, [[1.0, 0.5, 0.2], [0.3, 2.0, 0.1]]),
    "from-log": (ws.kernels.DenseKernel.from_log, [[0.0, -1.0, -900.0], [-800.0, -900.0, -850.0]]),
    "from-cost": (lambda cost: ws.kernels.from_cost(cost, 0.5), [[0.1, 1.0, 2.0], [1.0, 0.5, 0.2]]),
    "diagonal": (ws.kernels.DiagonalKernel, [1.0, 0.5, 0.2]),
    "diagonal-per-sample": (ws.kernels.DiagonalKernel, [[1.0, 0.5, 0.2], [0.3, 2.0, 0.1]]),
    "low-rank": (ws.kernels.LowRankKernel, [[1.0, 0.5], [0.3, 2.0], [0.4, 0.1]]),
    "low-rank-right": (
        lambda right: ws.kernels.LowRankKernel(torch.ones(2, 2, dtype=torch.float64), right),
        [[1.0, 0.5], [0.3, 2.0], [0.4, 0.1]],
    ),
}


@pytest.mark.parametrize("name", KERNELS_OF_ENTRIES)
@pytest.mark.parametrize("method", ["apply", "log_apply"])
def test_gradients_of_entries_and_vectors_are_right(name, method, rng):
    build, entries = KERNELS_OF_ENTRIES[name]
    x = tensor(rng.uniform(0.2, 2, (2, 3)))
    assert torch.autograd.gradcheck(
        lambda entries, x: getattr(build(entries), method)(x), (tensor(entries), x)
    )


@pytest.mark.parametrize("name", [name for name in KERNELS_OF_ENTRIES if "from" not in name])
def test_gradients_of_transposed_products_are_right(name, rng):
    build, entries = KERNELS_OF_ENTRIES[name]
    n_source = build(tensor(entries)).shape[0]
    u = tensor(rng.uniform(0.2, 2, (2, n_source)))
    assert torch.autograd.gradcheck(
        lambda entries, u: build(entries).log_apply_transpose(u), (tensor(entries), u)
    )


@pytest.mark.parametrize("method", ["apply", "log_apply"])
@pytest.mark.parametrize(
    "kernel",
    [
        ws.kernels.SparseKernel(sp.csr_array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0]])),
        ws.kernels.IdentityKernel(3),
    ],
)
def test_gradients_of_vectors_are_right_through_kernels_without_tensors(kernel, method, rng):
    x = tensor(rng.uniform(-2, 2, (2, 3)))
    assert torch.autograd.gradcheck(getattr(kernel, method), (x,))


def test_gradients_reach_both_scalings_and_the_entries_of_a_coupling():
    entries = tensor([[1.0, 0.5], [0.3, 2.0]])
    u, v = tensor([0.1, -0.2]), tensor([0.3, 0.4])
    for build in (ws.kernels.DenseKernel, ws.kernels.LowRankKernel):
        assert torch.autograd.gradcheck(
            lambda entries, u, v, build=build: build(entries).scaled(u, v).to_dense(),
            (entries, u, v),
        )
    assert torch.autograd.gradcheck(
        lambda d, u, v: ws.kernels.DiagonalKernel(d).scaled(u, v).to_dense(),
        (tensor([1.0, 0.5]), u, v),
    )
    assert torch.autograd.gradcheck(
        lambda u, v: ws.kernels.IdentityKernel(2).scaled(u, v).to_dense(), (u, v)
    )


WITH_ZEROS = [[1.0, 0.0, 0.5], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]]


@pytest.mark.parametrize(
    ("build", "entries"),
    [
        (ws.kernels.DenseKernel, WITH_ZEROS),
        (
            ws.kernels.DenseKernel.from_log,
            [[0.0, -np.inf, -900.0], [-np.inf] * 3, [-2000.0, -1.0, 0.0]],
        ),
        (ws.kernels.DiagonalKernel, [1.0, 0.0, 0.5]),
        (ws.kernels.LowRankKernel, WITH_ZEROS),
        (lambda entries: ws.kernels.from_cost(entries, 0.01), [[0.0, np.inf, 9.0]] * 3),
    ],
)
def test_gradients_stay_finite_beside_zeros(build, entries):
    entries = tensor(entries)
    log_x = tensor([[0.5, -np.inf, 1000.0], [-np.inf] * 3, [-1000.0, 0.0, -np.inf]])
    for method in ("log_apply", "log_apply_transpose"):
        log_image = getattr(build(entries), method)(log_x)
        reached = log_image.isfinite()
        assert reached.any()
        gradients = torch.autograd.grad(log_image[reached].sum(), (entries, log_x))
        for gradient in gradients:
            assert gradient.isfinite().all()
        assert gradients[1].any()


def test_gradients_stay_finite_beside_zeros_of_a_sparse_kernel():
    log_x = tensor([[0.5, -np.inf, 1000.0], [-np.inf] * 3])
    log_image = ws.kernels.SparseKernel(sp.csr_array(WITH_ZEROS)).log_apply(log_x)
    (gradient,) = torch.autograd.grad(log_image[log_image.isfinite()].sum(), log_x)
    assert gradient.isfinite().all()
    assert_allclose(gradient.numpy(), [[0, 0, 1], [0, 0, 0]])


@pytest.mark.parametrize(
    "form", [ws.kernels.DenseKernel, lambda k: ws.kernels.SparseKernel(sp.csr_array(k))]
)
def test_terms_that_meet_a_huge_entry_are_not_lost(form):
    kernel = np.array([[1e-20, 1e25], [1.0, 1.0]], dtype=np.float32)
    log_v = np.array([0.0, -100.0])  # e^-100 is beyond float32, 1e25 e^-100 is above 1e-20
    exact = np.logaddexp(np.log(1e-20), np.log(1e25) - 100)
    np.testing.assert_allclose(form(kernel).log_apply(log_v)[0], exact, rtol=1e-6)
    wide = np.array([[1e-50, 1e300], [1.0, 1.0]])
    log_v = np.array([0.0, -800.0])
    exact = np.logaddexp(np.log(1e-50), np.log(1e300) - 800)
    np.testing.assert_allclose(form(wide).log_apply(log_v)[0], exact, rtol=1e-9)


@pytest.mark.parametrize("form", [ws.kernels.DenseKernel, ws.kernels.LowRankKernel])
def test_logs_of_a_narrower_type_lose_no_term(form):
    row = np.exp([[-22.0, -572.0]])
    kernel = form(row) if form is ws.kernels.DenseKernel else form([[1.0]], row.T)
    logs = np.array([-155.0, 212.0])
    found = kernel.log_apply(logs.astype(np.float32))
    np.testing.assert_allclose(found, kernel.log_apply(logs), rtol=1e-6)


def test_an_identity_among_more_target_labels_is_not_square():
    nothing = np.array([], dtype=int)
    embedded = ws.kernels.IdentityKernel(2).embed(
        (2, 3), np.arange(2), np.arange(2), (nothing, nothing)
    )
    np.testing.assert_array_equal(embedded.to_dense(), np.eye(2, 3))
