"""Sparse kernels: what building one checks, and what it stores."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws


@pytest.mark.parametrize("wrong", ["kernel", None, object(), [[1.0]], np.eye(2), torch.eye(2)])
def test_only_scipy_sparse_matrices_are_taken(wrong):
    words = (
        rf"`SparseKernel` takes a SciPy sparse matrix; got {type(wrong).__name__}.\nhint: `Dense"
    )
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.SparseKernel(wrong)


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2)])
def test_another_number_of_axes_is_refused(shape):
    with pytest.raises(ws.InvalidInputError, match="`kernel` must have two axes, source") as caught:
        ws.kernels.SparseKernel(sp.coo_array(np.ones(shape)))
    assert f"got shape {shape}" in str(caught.value)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_a_kernel_without_labels_is_refused(shape):
    words = r"`kernel` must have at least one source label and one target label; got shape \("
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.SparseKernel(sp.csr_array(shape))


def test_complex_entries_are_refused():
    words = "`kernel` must hold real numbers; got a sparse matrix of dtype complex128"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.SparseKernel(sp.csr_array([[1j]]))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "must not be nan; got nan"),
        (np.inf, "must be finite; got inf"),
        (-0.25, "must not be negative; got -0.25"),
    ],
)
def test_a_wrong_entry_is_named_with_its_place(value, words):
    matrix = np.zeros((4, 3))
    matrix[0, 1], matrix[2, 0], matrix[2, 2] = 0.5, 0.5, value
    with pytest.raises(
        ws.InvalidInputError, match=f"`kernel` {words} at source label 2, target label 2"
    ):
        ws.kernels.SparseKernel(sp.csc_array(matrix))


def test_a_kernel_declared_symmetric_must_be():
    words = "declared symmetric must equal its transpose; got 0.5 at row 0, column 1 and 0 at row 1"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.SparseKernel(sp.csr_array([[1.0, 0.5], [0.0, 1.0]]), symmetric=True)
    with pytest.raises(ws.InvalidInputError, match=r"must be square; got shape \(2, 3\)"):
        ws.kernels.SparseKernel(sp.csr_array((2, 3)), symmetric=True)
    with pytest.raises(ws.InvalidInputError, match="`symmetric` must be True or False; got 'no'"):
        ws.kernels.SparseKernel(sp.eye_array(2), symmetric="no")
    assert ws.kernels.SparseKernel(sp.csr_array((2, 2)), symmetric=True).is_symmetric


def test_symmetric_up_to_rounding_is_symmetric():
    matrix = sp.csr_array([[1.0, 0.1 + 0.2], [0.3, 1.0]])
    assert ws.kernels.SparseKernel(matrix, symmetric=True).is_symmetric


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array])
def test_every_format_gives_the_same_kernel(kind, rng):
    matrix = np.where(rng.uniform(size=(4, 5)) < 0.5, rng.uniform(size=(4, 5)), 0)
    kernel = ws.kernels.SparseKernel(kind(matrix))
    assert_array_equal(kernel.to_dense(), matrix)
    assert kernel.n_stored == (matrix > 0).sum()


def test_duplicates_add_up_and_stored_zeros_go():
    entries = ([0.5, 0.25, 0.0], ([0, 0, 1], [1, 1, 0]))
    kernel = ws.kernels.SparseKernel(sp.coo_array(entries, shape=(2, 2)))
    assert_array_equal(kernel.to_dense(), [[0, 0.75], [0, 0]])
    assert kernel.n_stored == 1


@pytest.mark.parametrize(
    ("given", "kept"),
    [(np.int32, np.float64), (np.bool_, np.float64), (np.longdouble, np.float64)],
)
def test_numbers_of_other_types_are_widened(given, kept):
    assert ws.kernels.SparseKernel(sp.csr_array(np.eye(2), dtype=given)).dtype == kept


def test_the_matrix_is_copied():
    matrix = sp.csr_array([[1.0, 0.5]])
    kernel = ws.kernels.SparseKernel(matrix)
    matrix.data[:] = 9
    assert_array_equal(kernel.to_dense(), [[1.0, 0.5]])


def test_bounds_see_a_full_pattern():
    assert not ws.kernels.SparseKernel(sp.csr_array([[1.0, 0.5]])).entries.has_zeros
    assert ws.kernels.SparseKernel(sp.csr_array([[1.0, 0.0]])).entries.has_zeros


def test_sums_beyond_the_floating_range_have_a_log():
    kernel = ws.kernels.SparseKernel(sp.csr_array([[1e308, 1e308, 0.0], [0.0, 0.0, 1.0]]))
    assert_allclose(kernel.log_apply([0.0, 0.0, 0.0]), [np.log(2) + np.log(1e308), 0.0])


def test_scaling_to_nothing_leaves_the_kernel_alone():
    kernel = ws.kernels.SparseKernel(sp.csr_array([[1.0, 0.5], [0.0, 0.25]]))
    coupling = kernel.scaled(np.array([-2000.0, 0.0]), np.zeros(2))
    assert_array_equal(coupling.to_dense(), [[0, 0], [0, 0.25]])
    assert_array_equal(coupling.links().toarray(), [[False, False], [False, True]])
    assert_allclose(coupling.log_apply([-3000.0, 0.0]), [-np.inf, np.log(0.25)])
    assert_allclose(coupling.scaled(np.zeros(2), np.zeros(2)).to_dense(), [[0, 0], [0, 0.25]])
    assert_array_equal(kernel.to_dense(), [[1.0, 0.5], [0.0, 0.25]])
