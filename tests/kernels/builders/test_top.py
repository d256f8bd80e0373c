"""The diagonal kernel of each sample that favours top labels."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.kernels import DiagonalKernel, top_labels

SCORES = np.array(
    [
        [[0.9, 0.2, 0.1, 0.0], [0.1, 0.2, 0.3, 0.4]],
        [[0.3, 0.7, 0.1, 0.0], [0.4, 0.3, 0.2, 0.1]],
    ]
)


def test_labels_in_the_top_of_any_model_get_one_and_others_the_floor():
    kernel = top_labels(SCORES, n_top=1, floor=0.25)
    assert isinstance(kernel, DiagonalKernel)
    assert_array_equal(kernel.diagonal, [[1, 1, 0.25, 0.25], [1, 0.25, 0.25, 1]])


def test_the_paper_gives_them_the_mean_score():
    kernel = top_labels(list(SCORES), n_top=1, floor=0.05, mean_scores=True)
    assert_allclose(kernel.diagonal, [[0.6, 0.45, 0.05, 0.05], [0.25, 0.05, 0.05, 0.25]])


def test_ties_count_and_scores_of_0_do_not():
    kernel = top_labels([[[0.5, 0.5, 0.1], [0, 0, 0]]], n_top=1, floor=0.0)
    assert_array_equal(kernel.diagonal, [[1, 1, 0], [0, 0, 0]])


def test_a_score_that_is_not_known_is_no_top_score():
    kernel = top_labels([[[np.nan, 0.5, 0.1]]], n_top=1, floor=0.0)
    assert_array_equal(kernel.diagonal, [[0, 1, 0]])


def test_all_labels_may_be_top():
    assert_array_equal(top_labels(SCORES + 0.1, n_top=4, floor=0.5).diagonal, 1)


def test_float32_stays_and_tensors_are_taken():
    kernel = top_labels(SCORES.astype(np.float32), n_top=2, floor=0.5)
    assert kernel.dtype == np.float32
    tensors = [torch.tensor(scores) for scores in SCORES]
    assert_array_equal(top_labels(tensors, n_top=2, floor=0.5).diagonal, kernel.diagonal)


def test_it_gates_a_consensus():
    kernel = top_labels(SCORES, n_top=1, floor=0.01)
    gated = ws.fuse(SCORES, kernel=kernel, kind="multilabel")
    plain = ws.fuse(SCORES, kernel=ws.kernels.IdentityKernel(4), kind="multilabel")
    assert_allclose(gated[0, :2], plain[0, :2])
    assert gated[0, 2] < plain[0, 2]


@pytest.mark.parametrize(
    ("scores", "options", "words"),
    [
        (SCORES, {"n_top": 5}, "`n_top` must be at most the number of labels, 4; got 5"),
        (SCORES, {"n_top": 0}, "`n_top` must be at least 1; got 0"),
        (SCORES, {"floor": -1}, "`floor` must be finite and at least 0; got -1"),
        (SCORES[0], {}, r"must have shape \(n_models, n_samples, n_labels\).*got \(2, 4\)"),
        ([], {}, r"must have shape \(n_models, n_samples, n_labels\)"),
        ([SCORES[0], SCORES[1, :1]], {}, r"must have one shape; got \(2, 4\) and \(1, 4\)"),
        (
            -SCORES,
            {},
            "`scores_per_model` must not be negative; got -0.9 at model 0, sample 0, label 0",
        ),
        (
            np.where(SCORES > 0, np.inf, 0),
            {},
            "`scores_per_model` must be finite; got inf at model 0, sample 0, label 0",
        ),
    ],
)
def test_what_cannot_be_built_is_refused(scores, options, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        top_labels(scores, **{"n_top": 1, "floor": 0.5} | options)
