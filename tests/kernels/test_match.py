"""Kernels that say which label is which: what building one checks, and what it is for."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import wassemble as ws
from wassemble.kernels import MatchKernel, SparseKernel


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([0, 2], "`places` must be from 0 to 1, or -1; got 2"),
        ([0, -2], "`places` must be from 0 to 1, or -1; got -2"),
        ([1, 0, 1], "must have each target label once; got 1 more often.\nhint: a `SparseKernel`"),
        ([0.0, 1.0], r"must be whole numbers, .*; got float64 of shape \(2,\)"),
        ([[0, 1]], r"must be whole numbers, .*; got int64 of shape \(1, 2\)"),
        ([], "must be whole numbers, one for each source label; got"),
        ([True, False], "must be whole numbers, one for each source label; got bool"),
    ],
)
def test_wrong_places_are_refused(places, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        MatchKernel(places, 2)


def test_the_number_of_target_labels_is_a_count():
    with pytest.raises(ws.InvalidInputError, match="`n_target` must be at least 1; got 0"):
        MatchKernel([-1], 0)


def test_places_cannot_be_changed_later():
    given = np.array([1, 0])
    kernel = MatchKernel(given, 2)
    given[:] = 0
    assert_array_equal(kernel.places, [1, 0])
    with pytest.raises(ValueError, match="read-only"):
        kernel.places[0] = 0


def test_gradients_go_to_the_labels_that_were_picked():
    v = torch.tensor([0.2, 0.3, 0.5], requires_grad=True)
    MatchKernel([2, -1, 0], 3).apply(v).square().sum().backward()
    assert torch.allclose(v.grad, torch.tensor([0.4, 0.0, 1.0]))


def test_what_is_picked_twice_is_sparse():
    kernel = MatchKernel([1, 0], 2).select([0, 0, 1])
    assert isinstance(kernel, SparseKernel)
    assert_array_equal(kernel.to_dense(), [[0, 1], [0, 1], [1, 0]])


def test_labels_that_lead_nowhere_are_told_apart_from_the_last_one():
    kernel = MatchKernel([-1, 2, 0], 3).select(None, [0, 1])
    assert isinstance(kernel, MatchKernel)
    assert_array_equal(kernel.places, [-1, -1, 0])
