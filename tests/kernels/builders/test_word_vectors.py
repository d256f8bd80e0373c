"""Kernels from the word vectors of label names."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.inputs.embeddings import Embeddings
from wassemble.kernels import DenseKernel, SparseKernel, from_word_vectors

WORDS = Embeddings(
    ["polar", "bear", "cat", "teddy_bear", "Paris", "nothing"],
    [[2, 0], [0, 2], [1, 1], [0, 1], [3, 4], [0, 0]],
    origin="tiny.txt",
)


def build(source, target=None, **options):
    return from_word_vectors(source, target, embeddings=WORDS, **options)


def test_entries_are_the_exponentials_of_cosine_costs():
    kernel = build(["polar", "cat"], ["bear", "cat"], epsilon=0.5)
    cosine = 1 / math.sqrt(2)
    expected = np.exp(-(1 - np.array([[0, cosine], [cosine, 1]])) / 0.5)
    assert_allclose(kernel.to_dense(), expected, rtol=1e-6)
    assert kernel.origin == "word vectors of tiny.txt, cosine, epsilon 0.5"


@pytest.mark.parametrize("label", ["polar bear", "polar_bear", "polar-bear", "polar+bear"])
def test_a_label_of_several_words_is_their_mean(label):
    kernel = build([label], ["cat"], epsilon=1.0, metric="euclidean")
    assert_allclose(kernel.to_dense(), [[1]])  # the mean of polar and bear is (1, 1)
    assert kernel.notes == (f"1 label averaged over words: {label!r}",)


def test_a_phrase_goes_before_its_words():
    kernel = build(["teddy bear"], ["polar", "bear"], epsilon=1.0, metric="euclidean")
    assert_allclose(-np.log(kernel.to_dense()), [[math.sqrt(5), 1]], rtol=1e-6)
    assert kernel.notes == ()


@pytest.mark.parametrize("label", ["CAT", "Cat"])
def test_other_letter_case_is_found_and_told(label):
    kernel = build([label], ["paris"], epsilon=1.0)
    assert_allclose(kernel.to_dense(), [[math.exp(-(1 - 7 / (5 * math.sqrt(2))))]], rtol=1e-6)
    assert kernel.notes == (
        f"1 label found in other letter case: {label!r}",
        "1 label found in other letter case: 'paris'",
    )


def test_some_unknown_words_are_told():
    kernel = build(["brown bear"], ["bear"], epsilon=1.0)
    assert_allclose(kernel.to_dense(), [[1]])
    assert kernel.notes == ("1 label averaged over words, some of them unknown: 'brown bear'",)


@pytest.mark.parametrize("options", [{}, {"n_neighbors": 2}])
def test_labels_without_a_vector_go_to_their_own_name_alone(options):
    kernel = build(["cat", "okapi", "zebra"], ["zebra", "cat", "bear"], epsilon=1.0, **options)
    dense = kernel.to_dense()
    assert_array_equal(dense[1], [0, 0, 0])
    assert_array_equal(dense[2], [1, 0, 0])
    assert_array_equal(dense[:, 0], [0, 0, 1])
    assert "2 labels without a word vector: 'okapi', 'zebra'" in kernel.notes


def test_a_vector_of_zeros_is_none():
    kernel = build(["nothing", "cat"], epsilon=1.0)
    assert_array_equal(kernel.to_dense(), np.eye(2))
    assert kernel.notes == ("1 label without a word vector: 'nothing'",)


def test_without_a_target_the_kernel_is_symmetric():
    labels = ["polar", "bear", "cat", "okapi"]
    assert build(labels, epsilon=1.0).kernel.is_symmetric
    sparse = build(labels, labels, epsilon=1.0, n_neighbors=2)
    assert sparse.kernel.is_symmetric
    assert isinstance(sparse.kernel, SparseKernel)


def test_tiny_epsilons_are_kept_in_logs_with_labels_left_out():
    kernel = build(["polar", "bear", "okapi"], epsilon=1e-3)
    assert isinstance(kernel.kernel, DenseKernel)
    log_image = kernel.kernel.log_apply([-np.inf, 0.0, -np.inf])
    assert_allclose(log_image, [-1000, 0, -np.inf])


def test_the_papers_kernel_has_euclidean_costs_of_unit_vectors():
    kernel = build(["polar", "bear", "cat"], metric="euclidean", unit_norm=True)
    value = float(kernel.origin.split("epsilon ")[1].split()[0])
    cost = math.sqrt(2 - math.sqrt(2))
    assert_allclose(kernel.to_dense()[0, 2], math.exp(-cost / value), rtol=1e-5)
    assert_allclose(kernel.account().n_effective[1], 2, rtol=1e-2)  # of three labels


def test_auto_epsilon_sees_the_kept_neighbours_only(rng):
    words = [f"w{k}" for k in range(60)]
    embeddings = Embeddings(words, rng.normal(size=(60, 4)))
    kernel = from_word_vectors(words, words[::-1], embeddings=embeddings, n_neighbors=8)
    assert_allclose(kernel.account().n_effective[1], 3, rtol=1e-2)
    assert "8 nearest" in kernel.origin


def test_an_entry_that_vanishes_is_named():
    words = r"exp\(-1 / 0.001\) = 0 at source label 'bear'"
    with pytest.raises(ws.InvalidInputError, match=words):
        build(["okapi", "bear"], ["okapi", "polar"], epsilon=1e-3, n_neighbors=1)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((["okapi"],), {}, "tiny.txt must know the words of some source label; it knows none of"),
        ((["cat"], ["okapi"]), {}, "of some target label; it knows none of 'okapi'"),
        ((["cat"],), {"metric": "taxi"}, "`metric` must be one of .*; got 'taxi'"),
        ((["cat"],), {"n_neighbors": 0}, "`n_neighbors` must be at least 1; got 0"),
        ((["cat"],), {"unit_norm": 1}, "`unit_norm` must be True or False; got 1"),
    ],
)
def test_what_cannot_be_built_is_refused(arguments, options, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        build(*arguments, **options)


def test_word_vectors_come_as_embeddings():
    words = "`embeddings` must be Embeddings; got dict.\nhint: `read_embeddings"
    with pytest.raises(ws.InvalidInputError, match=words):
        from_word_vectors(["cat"], embeddings={"cat": [1.0]})
