"""Kernels from a model's own mistakes."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import wassemble as ws
from wassemble.inputs.predictions.value import Predictions
from wassemble.kernels import from_confusion

TARGET = ["sr", "hr", "sl"]


@pytest.fixture
def said():
    scores = [[0.9, 0.1], [0.6, 0.4], [np.nan, 1.0], [np.nan, np.nan]]
    return Predictions("m", ["a", "b", "c", "d"], ["sr", "other"], scores)


def test_scores_are_added_up_by_truth(said):
    truth = ["sr", "hr", "hr", "sl"]
    kernel = from_confusion(said, truth, target=TARGET, prior=0.0, floor=0.0)
    # Label "sr": .9 on sr and .6 on hr; "other": .1 on sr and 1.4 on hr.
    assert_allclose(kernel.to_dense(), [[0.9 / 1.5, 0.6 / 1.5, 0], [0.1 / 1.5, 1.4 / 1.5, 0]])
    assert kernel.source.names == ("sr", "other")
    assert kernel.origin == "mistakes of 'm' on 3 samples, prior 0, floor 0"
    assert kernel.notes == ()


def test_prior_joins_equal_names_and_floor_joins_all(said):
    truth = ["sr", "hr", "hr", "sl"]
    kernel = from_confusion(said, truth, target=TARGET, prior=0.5, floor=0.01)
    expected = np.array([[1.4 / 2, 0.6 / 2, 0], [0.1 / 1.5, 1.4 / 1.5, 0]]) + 0.01
    assert_allclose(kernel.to_dense(), expected)


def test_the_prior_goes_by_aliases_and_folded_names(said):
    options = {"target": ["SR", "hr", "sl", "rest"], "prior": 1.0, "floor": 0.0}
    kernel = from_confusion(said, {"a": "hr"}, **options, aliases={"other": "rest"}, fold=True)
    assert_allclose(kernel.to_dense(), [[1 / 1.9, 0.9 / 1.9, 0, 0], [0, 0.1 / 1.1, 0, 1 / 1.1]])


def test_samples_without_truth_are_left_out_and_noted(said):
    by_sample = from_confusion(said, {"a": "sr", "c": "hr", "z": "sl"}, target=TARGET)
    in_order = from_confusion(said, ["sr", None, "hr", None], target=TARGET)
    assert_allclose(by_sample.to_dense(), in_order.to_dense())
    assert by_sample.notes == (
        "2 of 4 samples without truth left out",
        "truth of 1 samples not used: 'm' lacks them",
    )
    assert in_order.notes == by_sample.notes[:1]


def test_ids_as_numbers_and_as_text_are_the_same():
    said = Predictions("m", [1, 2], ["x", "y"], [[1, 0], [0, 1]])
    expected = from_confusion(said, ["y", "x"], target=["x", "y"]).to_dense()
    for truth in ({1: "y", 2: "x"}, {"1": "y", "2": "x"}, np.array(["y", "x"])):
        assert_allclose(from_confusion(said, truth, target=["x", "y"]).to_dense(), expected)


def test_a_label_that_was_never_scored_keeps_the_floor():
    said = Predictions("m", ["a"], ["x", "y"], [[1.0, 0.0]])
    kernel = from_confusion(said, ["x"], target=["x", "z"], floor=0.1)
    assert_allclose(kernel.to_dense(), [[1.1, 0.1], [0.1, 0.1]])
    assert kernel.notes == ("1 label never scored and without a target label of that name: 'y'",)


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        (["sr", "hr", "xx", "yy"], "among the 3 target labels; got 'xx', 'yy'"),
        (["sr"], "must have one name for each of the 4 samples of 'm'; got 1.\nhint: a mapping"),
        (
            {"z": "sr"},
            "must have the label of some sample of 'm'; got none.\nhint: .*'a', 'b', 'c'",
        ),
        ("sr", "`truth` must be a list of label names, or a dict.*; got 'sr'"),
        (7, "`truth` must be a list of label names, or a dict.*; got 7"),
        (np.eye(4), "`truth` must be a mapping or a list of names; got ndarray"),
        (pd.DataFrame({"label": ["sr"]}), "a mapping or a list of names; got DataFrame"),
        ([["sr", "hr"], ["sr"], [], []], "one name for each sample; got 'sr', 'hr' for one"),
    ],
)
def test_truth_is_checked(said, truth, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_confusion(said, truth, target=TARGET)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prior": -1}, "`prior` must be finite and at least 0; got -1"),
        ({"floor": np.nan}, "`floor` must be finite and at least 0; got nan"),
        ({"fold": 1}, "`fold` must be True or False; got 1"),
    ],
)
def test_options_are_checked(said, options, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_confusion(said, {"a": "sr"}, target=TARGET, **options)


def test_predictions_have_names():
    with pytest.raises(ws.InvalidInputError, match="`predictions` must be Predictions; got list"):
        from_confusion([[1.0]], ["sr"], target=TARGET)


def test_truth_goes_by_name_and_may_be_whole_numbers():
    said = Predictions("m", ["a", "b"], [3, 7], [[0.9, 0.1], [0.2, 0.8]])
    expected = from_confusion(said, ["3", "7"], target=["3", "7"]).to_dense()
    for truth in (
        [3, 7],
        np.array([3.0, 7.0]),
        {"b": 7, "a": 3},
        pd.Series([7, 3], index=["b", "a"]),
    ):
        found = from_confusion(said, truth, target=[3, 7]).to_dense()
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ws.InvalidInputError, match="only counts: 0, 1, and the samples are 'a'"):
        from_confusion(said, pd.Series([3, 7]), target=[3, 7])
