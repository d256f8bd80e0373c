"""Kernels from tables of ratings and of costs."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.kernels import (
    DenseKernel,
    SparseKernel,
    from_cost_table,
    from_ratings,
)

SOURCE, TARGET = ["sedan", "coupe"], ["car", "sports", "bus"]
RATED = {("sedan", "car"): 5, ("coupe", "car"): 4, ("coupe", "sports"): 2.5}


def test_ratings_are_divided_by_the_largest():
    kernel = from_ratings([[5, 0, 1], [4, 2.5, 0]], SOURCE, TARGET)
    assert_allclose(kernel.to_dense(), [[1, 0, 0.2], [0.8, 0.5, 0]])
    assert isinstance(kernel.kernel, DenseKernel)
    assert kernel.origin == "ratings, divided by 5"


def test_ratings_of_pairs_are_sparse():
    kernel = from_ratings(RATED, SOURCE, TARGET)
    assert_allclose(kernel.to_dense(), [[1, 0, 0], [0.8, 0.5, 0]])
    assert isinstance(kernel.kernel, SparseKernel)


@pytest.mark.parametrize(
    "ratings", [[[2, 1], [1, 2]], {("a", "a"): 2, ("a", "b"): 1, ("b", "a"): 1}]
)
def test_symmetric_is_declared_and_checked(ratings):
    assert from_ratings(ratings, ["a", "b"], symmetric=True).kernel.is_symmetric
    assert not from_ratings(ratings, ["a", "b"]).kernel.is_symmetric
    costs = from_cost_table(ratings, ["a", "b"], epsilon=1.0, symmetric=True)
    assert costs.kernel.is_symmetric


@pytest.mark.parametrize("builder", [from_ratings, from_cost_table])
@pytest.mark.parametrize("values", [[[1, 2], [3, 1]], {("x", "y"): 2, ("y", "x"): 3}])
def test_ratings_that_are_not_symmetric_are_named(builder, values):
    with pytest.raises(ws.InvalidInputError, match=r"at row 'x', column 'y' and \S+ at row 'y'"):
        builder(values, ["x", "y"], symmetric=True)


def test_costs_become_similarities():
    inf = np.inf
    kernel = from_cost_table([[0, 1, inf], [2, 0, 1]], SOURCE, TARGET, epsilon=2.0)
    half, one = math.exp(-0.5), math.exp(-1)
    assert_allclose(kernel.to_dense(), [[1, half, 0], [one, 1, half]])


def test_costs_of_pairs_are_sparse_and_keep_a_cost_of_0():
    costs = {("sedan", "car"): 0, ("coupe", "bus"): 3.0, ("coupe", "car"): np.inf}
    kernel = from_cost_table(costs, SOURCE, TARGET, epsilon=1.0)
    assert_allclose(kernel.to_dense(), [[1, 0, 0], [0, 0, math.exp(-3)]])
    assert isinstance(kernel.kernel, SparseKernel)
    assert kernel.kernel.n_stored == 2


def test_pairs_and_arrays_find_the_same_epsilon(rng):
    names = [f"n{k}" for k in range(12)]
    cost = rng.random((12, 12))
    pairs = {(a, b): cost[i, j] for i, a in enumerate(names) for j, b in enumerate(names)}
    dense, sparse = from_cost_table(cost, names), from_cost_table(pairs, names)
    assert dense.origin == sparse.origin
    assert_allclose(dense.to_dense(), sparse.to_dense())


def test_float32_stays():
    table = np.array([[5, 0, 1], [4, 2, 0]], dtype=np.float16)
    assert from_ratings(table, SOURCE, TARGET).kernel.dtype == np.float32
    table = table.astype(np.float32)
    assert from_cost_table(table, SOURCE, TARGET).kernel.dtype == np.float32


def test_the_table_that_was_given_stays_as_it_is():
    table = np.array([[5.0, 0, 1], [4, 2, 0]])
    before = table.copy()
    from_ratings(table, SOURCE, TARGET)
    from_cost_table(table, SOURCE, TARGET)
    assert_array_equal(table, before)


@pytest.mark.parametrize(
    ("ratings", "words"),
    [
        ([[0, 0, 0]] * 2, "some pair of labels must have a rating above 0; got none"),
        ({}, "`ratings` must have at least one pair of labels; got none"),
        ({"car": 1}, r"keys of `ratings` must be pairs \(source, target\) of names; got 'car'"),
        ({("van", "car"): 1, ("x", "car"): 2}, "known labels; got the source labels 'van', 'x'"),
        ({("sedan", "van"): 1}, "known labels; got the target labels 'van'"),
        (
            {("sedan", "car"): -1},
            "finite number of at least 0; got -1 at source label 'sedan', tar",
        ),
        ({("sedan", "car"): "5"}, "finite number of at least 0; got '5'"),
        ({("sedan", "car"): np.inf}, "must be a finite number of at least 0; got inf"),
        ({("sedan", "car"): np.nan}, "must be a finite number of at least 0; got nan"),
        ([[1, 2, 3]], r"`ratings` must have shape \(2, 3\)"),
        (
            [[1, np.nan, 3]] * 2,
            "must not be nan; got nan at source label 'sedan', target label 'sp",
        ),
    ],
)
def test_wrong_ratings_are_refused(ratings, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_ratings(ratings, SOURCE, TARGET)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ([[0, -2, 1]] * 2, "`cost` must not be negative; got -2 at source label 'sedan', target"),
        ([[0, np.nan, 1]] * 2, "`cost` must not be nan; got nan at source label 'sedan', target"),
        ({("sedan", "car"): -1}, "`cost` must be a number of at least 0; got -1"),
        ({("sedan", "car"): 1e9}, "above 0 in float64; got exp.* at source label 'sedan'"),
    ],
)
def test_wrong_costs_are_refused(cost, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_cost_table(cost, SOURCE, TARGET, epsilon=1.0)


@pytest.mark.parametrize("build", [ws.kernels.from_ratings, ws.kernels.from_cost_table])
def test_a_data_frame_of_shuffled_rows_is_read_by_name(build):
    names = ["cat", "dog", "cow"]
    table = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
    frame = pd.DataFrame(table, index=names, columns=names)
    expected = build(table, names)
    for shuffled in (
        frame.loc[["cow", "cat", "dog"], ["dog", "cow", "cat"]],
        pl.from_pandas(frame.loc[["cow", "cat", "dog"]], include_index=True),
        pa.Table.from_pandas(frame.loc[["dog", "cow", "cat"]].reset_index()),
    ):
        assert_array_equal(build(shuffled, names).to_dense(), expected.to_dense())
        own = build(shuffled)
        assert_array_equal(own.align(names, names).to_dense(), expected.to_dense())
    with pytest.raises(ws.InvalidInputError, match="none for 'okapi' and 'cow' besides"):
        build(frame, ["cat", "dog", "okapi"])
    with pytest.raises(ws.InvalidInputError, match="and no names"):
        build(table)


@pytest.mark.parametrize("build", [ws.kernels.from_ratings, ws.kernels.from_cost_table])
def test_labels_of_a_table_may_be_whole_numbers(build):
    pairs = {(0, 1): 1.0, (1, 0): 2.0, (2, 2): 3.0}
    kernel = build(pairs, [0, 1, 2])
    assert kernel.source.names == ("0", "1", "2")
    named = {(str(a), str(b)): number for (a, b), number in pairs.items()}
    assert_array_equal(kernel.to_dense(), build(named, ["0", "1", "2"]).to_dense())
    frame = pd.DataFrame([[0.0, 1.0], [2.0, 3.0]], index=[7, 3], columns=[3, 7])
    assert_array_equal(build(frame, [3, 7]).to_dense(), build([[2, 3], [0, 1]], [3, 7]).to_dense())
