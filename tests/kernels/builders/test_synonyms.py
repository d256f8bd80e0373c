"""Kernels from synonyms and the votes for them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.inputs.words.graphs import Edges
from wassemble.kernels import SparseKernel, from_synonyms

VOTES = [
    ("car", "auto", 12),
    ("car", "machine", 3),
    ("car", "wagon", 24),  # not among the labels, and yet the most votes
    ("auto", "car", 7),
    ("bus", "auto", 0),
    ("bus", "bus", 9),
]
LABELS = ["car", "auto", "machine", "bus"]


def test_votes_count_by_their_share_of_the_most_of_the_same_word():
    kernel = from_synonyms(LABELS, synonyms=VOTES)
    assert_allclose(
        kernel.to_dense(),
        [[1, 12 / 24, 3 / 24, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    )
    assert isinstance(kernel.kernel, SparseKernel)
    assert kernel.origin == "synonyms of synonyms, votes, strength 1, epsilon 1"
    assert kernel.notes == ("2 labels without a synonym among the target labels: 'machine', 'bus'",)


def test_without_votes_synonyms_are_the_binary_matrix_of_the_paper():
    pairs = [("car", "auto"), ("car", "auto"), ("auto", "machine")]
    kernel = from_synonyms(LABELS, synonyms=pairs)
    assert_array_equal(kernel.to_dense(), [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def test_strength_and_epsilon_scale_synonyms_and_not_the_word_itself():
    kernel = from_synonyms(LABELS, synonyms=VOTES, strength=0.5, epsilon=0.5)
    assert_allclose(kernel.to_dense()[0], [1, (0.5 * 0.5) ** 2, (0.5 / 8) ** 2, 0])


def test_a_small_epsilon_tends_to_the_identity():
    kernel = from_synonyms(LABELS, synonyms=VOTES, strength=0.5, epsilon=0.02)
    assert_allclose(kernel.to_dense(), np.eye(4), atol=1e-12)


def test_symmetric_takes_the_larger_of_both_ways():
    kernel = from_synonyms(LABELS, synonyms=VOTES, symmetric=True)
    dense = kernel.to_dense()
    assert kernel.kernel.is_symmetric
    assert_allclose(dense, dense.T)
    assert dense[0, 1] == 1
    assert_allclose(dense[2, 0], 3 / 24)


def test_words_of_one_space_lead_to_another():
    kernel = from_synonyms(["car", "bus"], ["auto", "car"], synonyms=VOTES)
    assert_allclose(kernel.to_dense(), [[0.5, 1], [0, 0]])


def test_folded_names_are_found_and_their_votes_added():
    votes = [("Motor_Car", "AUTO", 1), ("motor car", "auto", 1), ("motor-car", "van", 4)]
    kernel = from_synonyms(["MOTOR CAR"], ["Auto", "Van"], synonyms=votes, fold=True)
    assert_allclose(kernel.to_dense(), [[0.5, 1]])
    exact = from_synonyms(["MOTOR CAR"], ["Auto", "Van"], synonyms=votes)
    assert not exact.to_dense().any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strength": 1.5}, "`strength` must be above 0 and at most 1; got 1.5"),
        ({"strength": 0}, "`strength` must be above 0 and at most 1; got 0"),
        ({"epsilon": 0}, "`epsilon` must be finite and above 0; got 0"),
        ({"epsilon": 1e-4}, "got one that vanishes at epsilon 0.0001.\nhint: take a larger"),
        ({"target": ["car"], "symmetric": True}, "must have the same source and target labels"),
    ],
)
def test_what_cannot_be_built_is_refused(options, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_synonyms(LABELS, synonyms=VOTES, **options)


def test_negative_votes_are_named():
    words = "votes must not be negative; got -2 for 'auto' as a synonym of 'car'"
    with pytest.raises(ws.InvalidInputError, match=words):
        from_synonyms(LABELS, synonyms=Edges([("car", "auto", -2)]))


def test_a_path_is_no_list_of_synonyms():
    with pytest.raises(ws.InvalidInputError, match=r"must be pairs of names; got .synonyms.txt"):
        from_synonyms(LABELS, synonyms="synonyms.txt")
