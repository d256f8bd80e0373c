"""Kernels from labels that occur together."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose

import wassemble as ws
from wassemble.kernels import DenseKernel, SparseKernel, from_cooccurrence

SEEN = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0]])
NAMES = ["person", "dog", "zebra"]


def test_entries_are_conditional_shares():
    kernel = from_cooccurrence(SEEN, NAMES, smoothing=0.0)
    assert_allclose(kernel.to_dense(), [[1, 0.5, 0], [1, 1, 0], [0, 0, 1]])
    assert kernel.notes == ("1 label never seen: 'zebra'",)
    assert kernel.origin == "co-occurrence in 4 samples, smoothing 0"


def test_smoothing_draws_towards_the_overall_shares():
    kernel = from_cooccurrence(SEEN, NAMES, smoothing=2.0)
    assert_allclose(
        kernel.to_dense(),
        [[1, (2 + 2 * 0.5) / (4 + 2), 0], [(2 + 2 * 1) / (2 + 2), 1, 0], [1, 0.5, 1]],
    )


def test_counts_weigh_the_samples_of_the_label_that_is_given():
    counts = [[3, 1], [1, 0]]  # three of four occurrences are beside the other label
    kernel = from_cooccurrence(counts, ["a", "b"], smoothing=0.0)
    assert_allclose(kernel.to_dense(), [[1, 0.75], [1, 1]])


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_sparse_and_dense_matrices_give_the_same(smoothing, rng):
    counts = rng.poisson(0.4, (50, 8))
    counts[:, 3] = 0
    names = list("abcdefgh")
    dense = from_cooccurrence(counts, names, smoothing=smoothing)
    sparse = from_cooccurrence(sp.coo_array(counts), names, smoothing=smoothing)
    assert_allclose(sparse.to_dense(), dense.to_dense())
    assert isinstance(dense.kernel, DenseKernel)
    assert isinstance(sparse.kernel, DenseKernel if smoothing else SparseKernel)


def test_tensors_and_booleans_are_taken():
    expected = from_cooccurrence(SEEN, NAMES).to_dense()
    assert_allclose(from_cooccurrence(SEEN > 0, NAMES).to_dense(), expected)
    assert_allclose(from_cooccurrence(torch.tensor(SEEN), NAMES).to_dense(), expected)
    booleans = sp.csr_array(SEEN > 0)
    assert_allclose(from_cooccurrence(booleans, NAMES).to_dense(), expected)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (SEEN[:, :2], r"must have shape \(n_samples, 3\), one column for each name; got \(4, 2\)"),
        (SEEN[:0], r"must have shape \(n_samples, 3\)"),
        (SEEN[0], r"must have shape \(n_samples, 3\)"),
        (-SEEN, "must not be negative; got -1 at sample 0, label 'person'"),
        (sp.csr_array(-SEEN), "must not be negative; got -1 at label 'person'"),
        (np.where(SEEN, np.nan, 0), "must not be nan; got nan at sample 0, label 'person'"),
        ([["a", "b", "c"]], "must hold real numbers"),
    ],
)
def test_what_is_no_table_of_occurrences_is_refused(matrix, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_cooccurrence(matrix, NAMES)


def test_smoothing_is_at_least_0():
    with pytest.raises(ws.InvalidInputError, match="`smoothing` must be finite and at least 0"):
        from_cooccurrence(SEEN, NAMES, smoothing=-1)


def test_a_data_frame_is_read_by_name():
    frame = pd.DataFrame(SEEN, columns=NAMES)
    expected = from_cooccurrence(SEEN, NAMES).to_dense()
    shuffled = frame[["zebra", "person", "dog"]]
    assert_allclose(from_cooccurrence(shuffled, NAMES).to_dense(), expected)
    assert_allclose(from_cooccurrence(frame).to_dense(), expected)
    assert_allclose(from_cooccurrence(2 * frame).to_dense(), expected, atol=0.2)
    with pytest.raises(ws.InvalidInputError, match=r"column for each label.*none for 'okapi'"):
        from_cooccurrence(frame, ["person", "dog", "okapi"])
    with pytest.raises(ws.InvalidInputError, match="`names` must name the columns"):
        from_cooccurrence(SEEN)
