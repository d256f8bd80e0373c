"""The identity and the diagonal kernels: what building one checks."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import wassemble as ws


@pytest.mark.parametrize("wrong", ["3", None, 3.0, True, [3], object(), 3j, np.nan])
def test_the_identity_needs_a_whole_number_of_labels(wrong):
    with pytest.raises(ws.InvalidInputError, match="`n_labels` must be a whole number; got"):
        ws.kernels.IdentityKernel(wrong)


@pytest.mark.parametrize("wrong", [0, -2])
def test_the_identity_needs_a_label(wrong):
    with pytest.raises(ws.InvalidInputError, match=f"`n_labels` must be at least 1; got {wrong}"):
        ws.kernels.IdentityKernel(wrong)


def test_the_identity_takes_numpy_integers():
    assert ws.kernels.IdentityKernel(np.int64(3)).shape == (3, 3)


@pytest.mark.parametrize(
    ("wrong", "got"),
    [
        ("ab", "an array of dtype <U2"),
        (None, "an object of type NoneType"),
        (object(), "an object of type object"),
        ([1j], "an array of dtype complex128"),
        (torch.ones(2, dtype=torch.cdouble), "a tensor of torch.complex128"),
    ],
)
def test_what_holds_no_real_numbers_is_refused(wrong, got):
    with pytest.raises(ws.InvalidInputError, match=f"`diagonal` must hold real numbers; got {got}"):
        ws.kernels.DiagonalKernel(wrong)


def test_ragged_rows_are_refused():
    with pytest.raises(ws.InvalidInputError, match=r"`diagonal` .* rows of different lengths"):
        ws.kernels.DiagonalKernel([[1.0, 0.5], [1.0]])


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (2, 2, 2)])
def test_another_shape_is_refused(shape):
    for ones in (np.ones(shape), torch.ones(shape)):
        with pytest.raises(
            ws.InvalidInputError, match=r"must have shape \(n_labels,\) or \(n_samples, n_labels\)"
        ) as caught:
            ws.kernels.DiagonalKernel(ones)
        assert f"got shape {shape}" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "must not be nan; got nan"),
        (np.inf, "must be finite; got inf"),
        (-0.25, "must not be negative; got -0.25"),
    ],
)
def test_a_wrong_entry_is_named_with_its_place(value, words):
    with pytest.raises(ws.InvalidInputError, match=f"`diagonal` {words} at label 1"):
        ws.kernels.DiagonalKernel([1.0, value])
    with pytest.raises(ws.InvalidInputError, match=f"`diagonal` {words} at sample 1, label 0"):
        ws.kernels.DiagonalKernel(torch.tensor([[1.0, 1.0], [value, 1.0]]))


@pytest.mark.parametrize(
    ("given", "kept"),
    [(np.float16, np.float32), (np.int8, np.float64), (torch.bfloat16, torch.float32)],
)
def test_numbers_of_other_types_are_widened(given, kept):
    is_tensor = isinstance(given, torch.dtype)
    ones = torch.ones(2, dtype=given) if is_tensor else np.ones(2, dtype=given)
    assert ws.kernels.DiagonalKernel(ones).dtype == kept


def test_each_sample_has_its_own_kernel():
    kernel = ws.kernels.DiagonalKernel([[1.0, 0.5], [0.0, 2.0]])
    assert kernel.n_samples == 2
    assert_allclose(kernel.apply([[1.0, 1.0], [1.0, 1.0]]), [[1.0, 0.5], [0.0, 2.0]])
    assert_allclose(kernel.apply([1.0, 2.0]), [[1.0, 1.0], [0.0, 4.0]])
    one = kernel.take(slice(1, 2))
    assert_allclose(one.apply(np.ones((3, 2))), [[0.0, 2.0]] * 3)


@pytest.mark.parametrize("method", ["apply", "log_apply", "apply_transpose"])
def test_another_number_of_samples_is_refused(method):
    kernel = ws.kernels.DiagonalKernel(np.ones((2, 3)))
    words = r"a kernel of 2 samples applies to arrays with 2 samples; got shape \(4, 3\)"
    with pytest.raises(ws.InvalidInputError, match=words):
        getattr(kernel, method)(np.ones((4, 3)))


def test_a_coupling_of_several_samples_is_refused():
    kernel = ws.kernels.DiagonalKernel(np.ones((2, 3)))
    words = r"a coupling is of one sample; got a kernel of 2 samples.\nhint: `kernel.take\("
    with pytest.raises(ws.InvalidInputError, match=words):
        kernel.scaled(np.zeros(3), np.zeros(3))


def test_bounds_of_a_diagonal_of_zeros():
    entries = ws.kernels.DiagonalKernel([0.0, 0.0]).entries
    assert (entries.smallest, entries.largest, entries.has_zeros) == (0.0, 0.0, True)
