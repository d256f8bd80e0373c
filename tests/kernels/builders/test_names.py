"""Kernels that join labels of the same name."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import wassemble as ws
from wassemble.kernels import IdentityKernel, MatchKernel, SparseKernel, from_names


def test_equal_spaces_give_the_identity():
    kernel = from_names(["a", "b"], ["a", "b"])
    assert isinstance(kernel.kernel, IdentityKernel)
    assert kernel.notes == ()


def test_another_order_gives_a_match():
    kernel = from_names(["a", "b", "c"], ["c", "a", "b"])
    assert isinstance(kernel.kernel, MatchKernel)
    assert_array_equal(kernel.to_dense(), [[0, 1, 0], [0, 0, 1], [1, 0, 0]])


def test_aliases_and_folded_names_join_and_are_told():
    kernel = from_names(
        ["Polar_Bear", "auto", "x"], ["car", "polar bear"], aliases={"auto": "car"}, fold=True
    )
    assert_array_equal(kernel.to_dense(), [[0, 1], [1, 0], [0, 0]])
    assert kernel.notes == (
        "1 label matched by aliases: 'auto'",
        "1 label matched by folded names: 'Polar_Bear'",
        "1 label without a target label: 'x'",
    )


def test_disjoint_spaces_join_nothing():
    kernel = from_names(["a"], ["b", "c"])
    assert not kernel.to_dense().any()
    assert kernel.account().n_effective == (0.0, 0.0, 0.0)


def test_several_labels_may_go_to_one():
    kernel = from_names(["Dog", "dog"], ["dog"], fold=True)
    assert isinstance(kernel.kernel, SparseKernel)
    assert_array_equal(kernel.to_dense(), np.ones((2, 1)))


def test_one_text_is_no_list_of_names():
    with pytest.raises(ws.InvalidInputError, match="label names must come as a list"):
        from_names("abc", ["a"])
