"""One kernel for every place of a slider."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from web.explorer.small import LABELS, VECTORS, from_vectors

from wassemble import InvalidInputError, LabelledKernel, LabelSpace
from wassemble.kernels import DenseKernel, from_word_vectors
from wassemble.web.explorer.similarity import (
    NAMES,
    OWN_EPSILON,
    given_kernel,
    kernel_at,
    read_similarity,
)

SPACE = LabelSpace(LABELS)


@given(st.floats(0.02, 20))
def test_a_moved_slider_makes_the_kernel_that_the_library_makes(epsilon):
    costs = from_vectors().costs("any", SPACE, SPACE)
    wanted = from_word_vectors(SPACE, embeddings=VECTORS, epsilon=epsilon).to_dense()
    np.testing.assert_allclose(kernel_at(costs, epsilon).to_dense(), wanted, rtol=2e-4, atol=1e-12)


def test_the_suggested_epsilon_is_the_librarys_own():
    wanted = from_word_vectors(SPACE, embeddings=VECTORS, epsilon="auto")
    found = from_vectors().suggest_epsilon("any", SPACE, SPACE)
    assert f"epsilon {found:.2g}" in wanted.origin


def test_a_kernel_without_cost_is_as_it_was_given_at_its_own_epsilon():
    table = [[2.0, 0.5], [0.0, 1.0]]
    kernel = LabelledKernel(DenseKernel(table), ["a", "b"], ["a", "c"], "by hand")
    similarity = given_kernel(kernel)
    costs = similarity.costs("any", kernel.source, kernel.target)
    np.testing.assert_allclose(kernel_at(costs, OWN_EPSILON).to_dense(), table, rtol=1e-6)
    half = kernel_at(costs, OWN_EPSILON / 2).to_dense()
    np.testing.assert_allclose(half, np.square(table), rtol=1e-6)
    assert similarity.target == kernel.target


def test_a_tiny_epsilon_keeps_labels_joined():
    costs = np.array([[0.0, 1.0], [1.0, 0.0]], dtype=np.float32)
    kernel = kernel_at(costs, 1e-6)
    assert np.isfinite(kernel.log_apply(np.array([-np.inf, 0.0]))).all()


def test_names_join_equal_names_alone():
    costs = NAMES.costs("any", LabelSpace(["a", "b"]), LabelSpace(["b", "c"]))
    assert (np.exp(-costs) == [[0, 0], [1, 0]]).all()


def test_a_kernel_from_a_file_needs_the_file():
    with pytest.raises(InvalidInputError, match="from tree needs a file"):
        read_similarity("tree", None)
    with pytest.raises(InvalidInputError, match="got 'magic'"):
        read_similarity("magic", None)
