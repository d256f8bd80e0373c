"""Solvers and means know no names: what has them is refused, never read by position."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import wassemble as ws
from wassemble import metrics

NAMES = ["cat", "dog"]
FRAME = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], columns=NAMES)
SCORES = FRAME.to_numpy()
TRUTH = pd.Series([1, 0], index=["b", "a"])


@pytest.mark.parametrize(
    "call",
    [
        lambda: ws.solve_barycenter([FRAME, FRAME], np.eye(2)),
        lambda: ws.solve_barycenter([SCORES, pl.DataFrame(FRAME)], np.eye(2)),
        lambda: ws.solve_barycenter(FRAME, np.eye(2)),
        lambda: ws.solve_barycenter([SCORES, SCORES], FRAME),
        lambda: ws.solve_barycenter([SCORES, SCORES], [np.eye(2), FRAME]),
        lambda: ws.fuse([SCORES, SCORES], kernel=FRAME),
        lambda: ws.fuse([SCORES, SCORES], kernel=[FRAME, FRAME]),
        lambda: ws.fuse([SCORES, SCORES], weights=pd.Series([0.1, 0.9], index=["b", "a"])),
        lambda: ws.ARITHMETIC.fuse([FRAME, FRAME]),
        lambda: ws.GEOMETRIC.fuse(FRAME),
        lambda: ws.kernels.DenseKernel(FRAME),
        lambda: ws.kernels.DenseKernel.from_log(pl.DataFrame(FRAME)),
        lambda: ws.kernels.DiagonalKernel(pd.Series([0.5, 1], index=NAMES)),
        lambda: ws.fuse(pd.Series([0.5, 0.5], index=NAMES)),
        lambda: ws.fuse([pd.Series([0.5, 0.5], index=NAMES), [0.5, 0.5]]),
        lambda: ws.inputs.Embeddings(NAMES, FRAME),
        lambda: metrics.accuracy(FRAME, [0, 1]),
        lambda: metrics.accuracy(SCORES, TRUTH),
        lambda: metrics.accuracy(TRUTH, [0, 1]),
        lambda: metrics.log_loss(SCORES, [0, 1], sample_weight=TRUTH),
        lambda: metrics.mean_average_precision(SCORES, FRAME),
    ],
)
def test_what_has_names_is_refused_where_nothing_else_has(call):
    with pytest.raises(ws.InvalidInputError, match=r"must be an array here(?s:.*)`\.to_numpy\(\)`"):
        call()


def test_a_series_that_only_counts_is_an_array():
    weights = pd.Series([0.25, 0.75])
    expected = ws.fuse([SCORES, SCORES], weights=[0.25, 0.75])
    np.testing.assert_array_equal(ws.fuse([SCORES, SCORES], weights=weights), expected)
    assert metrics.accuracy(SCORES, pd.Series([0, 1])) == 1
    assert metrics.accuracy(SCORES, pl.Series([0, 1])) == 1
