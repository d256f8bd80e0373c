"""Low-rank kernels: what building one checks, and what the factors do."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws

GOOD = [[1.0, 0.5], [0.0, 2.0]]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("ab", "must hold real numbers; got an array of dtype <U2"),
        (object(), "must hold real numbers; got an object of type object"),
        ([[1j, 1.0]], "must hold real numbers; got an array of dtype complex128"),
        ([[1.0, 2.0], [1.0]], "must be a rectangular array of numbers; got rows of different"),
        (1.0, r"must have two axes, rows by columns; got shape \(\)"),
        ([1.0, 2.0], r"must have two axes, rows by columns; got shape \(2,\)"),
        (np.ones((2, 2, 2)), r"must have two axes, rows by columns; got shape \(2, 2, 2\)"),
        (np.ones((0, 2)), r"must have at least one row and one column; got shape \(0, 2\)"),
        (np.ones((2, 0)), r"must have at least one row and one column; got shape \(2, 0\)"),
        ([[1.0, 0.5], [-0.5, 1.0]], "must not be negative; got -0.5 at row 1, column 0"),
        ([[1.0, np.nan]], "must not be nan; got nan at row 0, column 1"),
        ([[np.inf, 1.0]], "must be finite; got inf at row 0, column 0"),
    ],
)
def test_a_wrong_factor_is_refused(wrong, words):
    with pytest.raises(ws.InvalidInputError, match=f"`left` {words}"):
        ws.kernels.LowRankKernel(wrong)
    with pytest.raises(ws.InvalidInputError, match=f"`right` {words}"):
        ws.kernels.LowRankKernel(GOOD, wrong)


def test_a_missing_left_factor_is_refused():
    with pytest.raises(ws.InvalidInputError, match="must hold real numbers; got an object of type"):
        ws.kernels.LowRankKernel(None)


def test_factors_of_different_rank_are_refused():
    with pytest.raises(ws.InvalidInputError, match="the same number of columns; got 2 and 3"):
        ws.kernels.LowRankKernel(GOOD, np.ones((4, 3)))


def test_factors_of_two_array_libraries_are_refused():
    words = "both factors of a low-rank kernel must be of one array library; got a NumPy array and"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.LowRankKernel(GOOD, torch.ones(2, 2))
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.LowRankKernel(torch.ones(2, 2), GOOD)


@pytest.mark.parametrize("wrong", ["0.1", True, [0.1], 1j, object()])
def test_the_measured_error_is_a_number(wrong):
    with pytest.raises(ws.InvalidInputError, match="`measured_error` must be a number of at least"):
        ws.kernels.LowRankKernel(GOOD, measured_error=wrong)


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_the_measured_error_is_finite_and_not_negative(wrong):
    words = "`measured_error` must be finite and at least 0; got"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.LowRankKernel(GOOD, measured_error=wrong)


def test_the_measured_error_travels_with_the_kernel():
    kernel = ws.kernels.LowRankKernel(GOOD, np.ones((3, 2)), measured_error=np.float32(0.25))
    assert kernel.measured_error == 0.25
    assert kernel.T.measured_error == 0.25
    assert kernel.convert(None, np.float32).measured_error == 0.25
    assert kernel.scaled(np.zeros(2), np.zeros(3)).measured_error is None


def test_one_factor_makes_a_symmetric_kernel():
    assert ws.kernels.LowRankKernel(GOOD).is_symmetric
    assert ws.kernels.LowRankKernel(GOOD).rank == 2
    assert not ws.kernels.LowRankKernel(GOOD, GOOD).is_symmetric  # by declaration, never by looking


@pytest.mark.parametrize("in_torch", [False, True])
def test_factors_of_two_floating_types_take_the_wider(in_torch):
    left, right = np.ones((2, 1), dtype=np.float32), np.array([[0.1], [0.2]])
    if in_torch:
        left, right = torch.tensor(left), torch.tensor(right)
    for kernel in (ws.kernels.LowRankKernel(left, right), ws.kernels.LowRankKernel(right, left).T):
        assert str(kernel.dtype).removeprefix("torch.") == "float64"
        assert_allclose(np.asarray(kernel.to_dense()), [[0.1, 0.2], [0.1, 0.2]], rtol=1e-15)


@pytest.mark.parametrize("in_torch", [False, True])
def test_both_factors_stay_wide_if_one_does_not_fit(in_torch):
    like = torch.zeros(()) if in_torch else None
    dtype = torch.float32 if in_torch else np.float32
    for kernel in (
        ws.kernels.LowRankKernel([[1.0]], [[1e-60]]),
        ws.kernels.LowRankKernel([[1e-60]], [[1.0]]),
    ):
        converted = kernel.convert(like, dtype)
        assert str(converted.dtype).removeprefix("torch.") == "float64"
        assert_allclose(np.asarray(converted.to_dense()), [[1e-60]])


def test_log_form_is_exact_where_the_product_of_the_factors_underflows():
    kernel = ws.kernels.LowRankKernel(
        np.full((1, 1), 1e-30, np.float32), np.full((1, 1), 1e-30, np.float32)
    )
    log_kv = kernel.log_apply(np.zeros(1, np.float32))
    assert_allclose(log_kv, [np.log(1e-60)], rtol=1e-6)
    assert_array_equal(kernel.links().toarray(), [[True]])


def test_bounds_beyond_the_floating_range_are_infinite():
    entries = ws.kernels.LowRankKernel([[1e200]]).entries
    assert entries.largest == np.inf
    assert not entries.fit(np.finfo(np.float64))


def test_scalings_that_cancel_leave_the_entries():
    kernel = ws.kernels.LowRankKernel([[1.0, 0.0], [2.0, 0.0]], [[1.0, 3.0], [0.5, 0.0]])
    log_u, log_v = np.array([1500.0, 1400.0]), np.array([-1500.0, -1400.0])
    coupling = kernel.scaled(log_u, log_v).to_dense()
    expected = kernel.to_dense() * np.exp(log_u[:, None] + log_v)
    assert_allclose(coupling, expected, rtol=1e-11)
