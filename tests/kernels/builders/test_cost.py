"""Kernels from costs, and the distance of a kernel from the identity."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

import wassemble as ws

COSTS = st.floats(0, 1000, width=32) | st.just(np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(cost=arrays(np.float32, (3, 4), elements=COSTS), log_epsilon=st.floats(-14, 14))
def test_a_kernel_is_the_exponential_of_minus_cost_over_epsilon(dtype, cost, log_epsilon):
    epsilon = float(np.exp(log_epsilon))
    kernel = ws.kernels.from_cost(cost.astype(dtype), epsilon)
    logs = cost.astype(np.float64) / -epsilon
    assert kernel.dtype == dtype
    assert_allclose(kernel.to_dense(), np.exp(logs), rtol=1e-5, atol=1e-37)
    expected = logsumexp(logs, axis=1)
    log_row_sums = kernel.log_apply(np.zeros(4, dtype=dtype))
    assert_allclose(log_row_sums, expected, rtol=1e-6, atol=1e-5)


def test_the_log_form_is_exact_at_a_small_epsilon_in_float32(rng):
    cost = rng.uniform(0, 1, (5, 6)).astype(np.float32)
    log_v = rng.uniform(-1e4, 0, 6).astype(np.float32)
    for kernel, x in (
        (ws.kernels.from_cost(cost, 1e-4), log_v),
        (ws.kernels.from_cost(torch.tensor(cost), 1e-4), torch.tensor(log_v)),
    ):
        log_kv = kernel.log_apply(x)
        assert str(log_kv.dtype).endswith("float32")
        exact = logsumexp(cost.astype(np.float64) / -1e-4 + log_v, axis=1)
        assert_allclose(np.asarray(log_kv), exact, rtol=3e-7)


def test_an_infinite_cost_is_a_zero_entry():
    for epsilon in (1.0, 1e-5):
        kernel = ws.kernels.from_cost([[0.0, np.inf], [1.0, 0.0]], epsilon)
        assert_array_equal(kernel.links().toarray(), [[True, False], [True, True]])
        assert kernel.entries.has_zeros
        assert kernel.log_apply([-np.inf, 0.0])[0] == -np.inf
    everywhere = ws.kernels.from_cost([[np.inf]], 1.0)
    assert_array_equal(everywhere.to_dense(), [[0.0]])


@pytest.mark.parametrize("epsilon", [1e-46, 1e-30, 1e30, 1e300])
def test_an_epsilon_beyond_float32_is_exact_for_float32_costs(epsilon):
    cost = np.array([[0.0, 1.0, np.inf]], dtype=np.float32)
    kernel = ws.kernels.from_cost(cost, epsilon)
    assert kernel.dtype == np.float32
    assert_allclose(kernel.to_dense(), [[1.0, np.exp(-1 / epsilon), 0.0]])
    assert_allclose(kernel.log_apply([-np.inf, 0.0, 0.0]), [-1 / epsilon], atol=1e-7)


def test_an_epsilon_too_small_for_float64_is_refused():
    for cost in ([[0.0, 1.0]], torch.tensor([[0.0, 1.0]])):
        words = "`cost` / `epsilon` must be finite in float64 .* got 1 / 1e-310"
        with pytest.raises(ws.InvalidInputError, match=words):
            ws.kernels.from_cost(cost, 1e-310)


def test_an_array_of_integers_is_a_cost():
    assert_allclose(ws.kernels.from_cost([[0, 2]], 2).to_dense(), [[1.0, np.exp(-1)]])


@pytest.mark.parametrize("epsilon", [1.0, 1e-4])
def test_a_cost_declared_symmetric_must_be(epsilon):
    cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert ws.kernels.from_cost(cost, epsilon, symmetric=True).is_symmetric
    assert not ws.kernels.from_cost(cost, epsilon).is_symmetric
    for make in (np.asarray, torch.tensor):
        assert ws.kernels.from_cost(make(cost), epsilon, symmetric=True).is_symmetric
        with pytest.raises(ws.InvalidInputError, match="declared symmetric must equal its transp"):
            ws.kernels.from_cost(make([[0.0, 1.0], [2.0, 0.0]]), epsilon, symmetric=True)
        with pytest.raises(ws.InvalidInputError, match=r"must be square; got shape \(2, 3\)"):
            ws.kernels.from_cost(make(np.ones((2, 3))), epsilon, symmetric=True)
    with pytest.raises(ws.InvalidInputError, match="`symmetric` must be True or False; got 'yes'"):
        ws.kernels.from_cost(cost, epsilon, symmetric="yes")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gradient_flows_to_the_cost(dtype):
    cost = torch.tensor([[0.0, 1.0], [2.0, np.inf]], dtype=dtype, requires_grad=True)
    kernel = ws.kernels.from_cost(cost, 0.5)
    assert kernel.dtype == dtype
    kernel.apply(torch.ones(2, dtype=dtype)).sum().backward()
    assert cost.grad.dtype == dtype
    assert_allclose(cost.grad.numpy(), -2 * np.exp(-2 * cost.detach().numpy()), rtol=1e-6)


@pytest.mark.parametrize("wrong", ["1", b"1", None, object(), [1.0], 1j, True])
def test_epsilon_must_be_a_number(wrong):
    with pytest.raises(
        ws.InvalidInputError, match=r"`epsilon` must be (a number|finite and) above 0"
    ):
        ws.kernels.from_cost([[0.0]], wrong)


@pytest.mark.parametrize("wrong", [0, 0.0, -1.0, np.nan, np.inf, -np.inf, 10**400])
def test_epsilon_must_be_finite_and_above_0(wrong):
    with pytest.raises(ws.InvalidInputError, match="`epsilon` must be finite and above 0; got"):
        ws.kernels.from_cost([[0.0]], wrong)


def test_an_epsilon_with_a_gradient_is_refused():
    epsilon = torch.tensor(1.0, requires_grad=True)
    with pytest.raises(ws.InvalidInputError, match=r"`epsilon` must be a number .*requires_grad"):
        ws.kernels.from_cost([[0.0]], epsilon)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("cost", "must hold real numbers; got an array of dtype <U4"),
        (None, "must hold real numbers; got an object of type NoneType"),
        (object(), "must hold real numbers; got an object of type object"),
        ([[1j]], "must hold real numbers; got an array of dtype complex128"),
        ([[1.0, 2.0], [1.0]], "must be a rectangular array of numbers; got rows of different"),
        ([1.0], r"must have two axes, .* got shape \(1,\)"),
        (np.ones((2, 2, 2)), r"must have two axes, .* got shape \(2, 2, 2\)"),
        (np.ones((0, 2)), r"must have at least one .* label; got shape \(0, 2"),
        ([[0.0, np.nan]], "must not be nan; got nan at source label 0, target label 1"),
        ([[0.0], [-0.5]], "must not be negative; got -0.5 at source label 1, target label 0"),
        ([[-np.inf]], "must not be negative; got -inf at source label 0, target label 0"),
    ],
)
def test_a_wrong_cost_is_refused(wrong, words):
    with pytest.raises(ws.InvalidInputError, match=f"`cost` {words}"):
        ws.kernels.from_cost(wrong, 1.0)


def test_a_wrong_tensor_entry_is_refused():
    with pytest.raises(
        ws.InvalidInputError, match=r"`cost` must not be negative.*\nhint: a cost is"
    ):
        ws.kernels.from_cost(torch.tensor([[-1.0]]), 1.0)


# -- distance to the identity --------------------------------------------------------


def test_the_identity_is_at_distance_0():
    for kernel in (
        ws.kernels.IdentityKernel(3),
        ws.kernels.DenseKernel(np.eye(3)),
        ws.kernels.SparseKernel(sp.eye_array(3)),
        ws.kernels.DiagonalKernel(np.ones(3)),
        ws.kernels.LowRankKernel(np.eye(3)),
    ):
        distance = ws.kernels.distance_to_identity(kernel)
        assert type(distance) is float
        assert distance == 0.0


def test_a_kernel_per_sample_has_a_distance_per_sample():
    distance = ws.kernels.distance_to_identity(
        ws.kernels.DiagonalKernel([[1.0, 1.0], [0.0, 1.0], [4.0, 5.0]])
    )
    assert_allclose(distance, [0.0, 1.0, 5.0])


@pytest.mark.parametrize("wrong", ["kernel", None, np.eye(2), sp.eye_array(2), [[1.0]]])
def test_the_distance_is_of_kernels_alone(wrong):
    words = (
        rf"`kernel` must be a Kernel; got {type(wrong).__name__}.\nhint: `DenseKernel\(matrix\)`"
    )
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.distance_to_identity(wrong)


def test_a_rectangular_kernel_has_no_distance():
    words = "needs as many source as target labels; got 2 and 3"
    for kernel in (
        ws.kernels.DenseKernel(np.ones((2, 3))),
        ws.kernels.SparseKernel(sp.csr_array((2, 3))),
        ws.kernels.LowRankKernel(np.ones((2, 1)), np.ones((3, 1))),
    ):
        with pytest.raises(ws.InvalidInputError, match=words):
            ws.kernels.distance_to_identity(kernel)


def test_names_are_not_dropped_in_silence():
    cost = pd.DataFrame([[0.0, 1.0], [1.0, 0.0]], index=["b", "a"], columns=["a", "b"])
    with pytest.raises(
        ws.InvalidInputError, match=r"(?s)got a data frame.*kernels.from_cost_table"
    ):
        ws.kernels.from_cost(cost, 1.0)
