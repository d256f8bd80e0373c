"""Kernels from tables of attributes."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import wassemble as ws
from wassemble.inputs import load_animals
from wassemble.kernels import from_attributes


def test_each_column_is_divided_by_its_sum():
    table = [[1, 0, 2], [1, 1, 0], [2, 0, 2]]
    kernel = from_attributes(table, ["fur", "fins", "legs"], ["dog", "shark", "cat"])
    assert_allclose(kernel.to_dense(), [[0.25, 0, 0.5], [0.25, 1, 0], [0.5, 0, 0.5]])
    assert kernel.notes == ()


def test_it_is_the_kernel_of_the_papers_animals():
    data = load_animals()
    kernel = from_attributes(data.has_attribute, data.attributes, data.animals)
    expected = data.has_attribute / data.has_attribute.sum(axis=0)
    assert_allclose(kernel.to_dense(), expected)
    assert_allclose(kernel.to_dense().sum(axis=0), 1)


def test_empty_rows_and_columns_stay_and_are_told():
    kernel = from_attributes([[1, 0], [0, 0]], ["fur", "wings"], ["dog", "stone"])
    assert_allclose(kernel.to_dense(), [[1, 0], [0, 0]])
    assert kernel.notes == (
        "1 label without any attribute: 'stone'",
        "1 label that no target label has: 'wings'",
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            [[1, -1]],
            "`table` must not be negative; got -1 at source label 'fur', target label 'cat'",
        ),
        (
            [[1, np.inf]],
            "`table` must be finite; got inf at source label 'fur', target label 'cat'",
        ),
        ([[1], [2]], r"`table` must have shape \(1, 2\), one row for each source label"),
        ([["a", "b"]], "`table` must hold real numbers"),
    ],
)
def test_a_wrong_table_is_refused_by_name(table, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_attributes(table, ["fur"], ["dog", "cat"])


def test_a_data_frame_is_read_by_name():
    frame = pd.DataFrame([[1, 1], [0, 1]], index=["hooves", "stripes"], columns=["horse", "zebra"])
    kernel = from_attributes(frame, ["stripes", "hooves"], ["zebra", "horse"])
    assert_allclose(kernel.to_dense(), [[0.5, 0], [0.5, 1]])
    assert from_attributes(frame).source.names == ("hooves", "stripes")
    with pytest.raises(ws.InvalidInputError, match=r"`table` must have a row.*none for 'wings'"):
        from_attributes(frame, ["stripes", "wings"], ["zebra", "horse"])
    with pytest.raises(ws.InvalidInputError, match="`targets` must name the columns"):
        from_attributes([[1, 1], [0, 1]], ["hooves", "stripes"])
