"""Kernels that join names which are spelt nearly alike."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.kernels import SparseKernel, from_spelling


def test_costs_are_the_share_of_letters_put_in_or_taken_out():
    kernel = from_spelling(["color", "cat"], ["colour", "cats"], epsilon=0.1)
    expected = np.exp(-np.array([[1 / 11, np.inf], [np.inf, 1 / 7]]) / 0.1)
    assert_allclose(kernel.to_dense(), expected)
    assert isinstance(kernel.kernel, SparseKernel)
    assert kernel.origin == "spelling, cutoff 0.85, epsilon 0.1"


def test_names_are_folded_first():
    kernel = from_spelling(["Polar_Bear"], ["polar bear"])
    assert_array_equal(kernel.to_dense(), [[1]])


def test_names_of_which_folding_leaves_nothing_stay_apart():
    assert_array_equal(from_spelling(["-", "_", "__"], cutoff=0.9).to_dense(), np.eye(3))


def test_different_words_are_not_joined():
    kernel = from_spelling(["house", "car"], ["mouse", "cat", "horse"])
    assert not kernel.to_dense().any()
    assert kernel.notes == (
        "2 labels spelt like no target label: 'house', 'car'",
        "it joins no two labels of different names",
    )


def test_the_cutoff_decides_and_gets_a_tenth_by_default():
    kernel = from_spelling(["house"], ["mouse"], cutoff=0.8)  # two of ten letters
    assert_allclose(kernel.to_dense(), [[0.1]], rtol=1e-3)
    epsilon = 0.2 / math.log(10)
    assert kernel.origin == f"spelling, cutoff 0.8, epsilon {epsilon:.4g}"


def test_without_a_target_the_kernel_is_symmetric():
    kernel = from_spelling(["color", "colour", "colours", "cat"])
    assert kernel.kernel.is_symmetric
    assert_array_equal(np.diag(kernel.to_dense()), 1)


def test_many_names_are_compared_in_blocks(monkeypatch, rng):
    names = ["".join(rng.choice(list("abc"), 6)) for _ in range(40)]
    names = list(dict.fromkeys(names))
    whole = from_spelling(names, cutoff=0.6).to_dense()
    monkeypatch.setattr("wassemble.kernels.builders.spelling._BLOCK", 1)
    assert_array_equal(from_spelling(names, cutoff=0.6).to_dense(), whole)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cutoff": 1.0}, "`cutoff` must be above 0 and below 1; got 1"),
        ({"cutoff": 0}, "`cutoff` must be above 0 and below 1; got 0"),
        ({"epsilon": "small"}, "`epsilon` must be a number above 0 or \"auto\"; got 'small'"),
        ({"epsilon": -1}, "`epsilon` must be finite and above 0; got -1"),
    ],
)
def test_options_are_checked(options, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_spelling(["a"], **options)
