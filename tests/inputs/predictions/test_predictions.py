"""Predictions with names: what is refused, what is detected, what is an answer."""

import numpy as np
import pandas as pd
import pytest

from wassemble import InvalidInputError, Predictions
from wassemble.inputs import predictions_from_frame

nan = np.nan


def make(scores, **options):
    scores = np.array(scores, dtype=float)
    samples = [f"s{i}" for i in range(len(scores))]
    labels = ["cat", "dog", "cow"][: scores.shape[1]]
    return Predictions("m", samples, labels, scores, **options)


@pytest.mark.parametrize(
    ("scores", "kind"),
    [
        ([[0.5, 0.5], [0.1, 0.9]], "multiclass"),
        ([[0.5, 0.501]], "multiclass"),  # rounded in a file
        ([[0.5, 0.7]], "multilabel"),
        ([[0.5, 0.1]], "multilabel"),
        ([[0.5, nan]], "multiclass"),
        ([[0.9, 0.8, nan]], "multilabel"),
        ([[0.0, 0.0], [0.5, 0.5]], "multiclass"),
        ([[nan, nan], [0.5, 0.5]], "multiclass"),
        ([[0.6, 0.3], [nan, 0.5]], "multiclass"),  # a list of first answers
    ],
)
def test_rows_that_could_be_histograms_are_read_as_such(scores, kind):
    assert make(scores).kind == kind
    assert make(scores).kind_is_detected


def test_a_declared_kind_stands():
    assert make([[0.5, 0.5]], kind="multilabel").kind == "multilabel"
    assert not make([[0.5, 0.5]], kind="multilabel").kind_is_detected


def test_zeros_are_an_abstention_of_a_histogram_and_an_answer_of_scores():
    rows = [[0, 0], [0.5, 0.5], [nan, nan], [nan, 0.5]]
    assert make(rows, kind="multiclass").answered.tolist() == [False, True, False, True]
    assert make(rows, kind="multilabel").answered.tolist() == [True, True, False, True]


def test_unobserved_mass_is_what_a_partial_histogram_lacks():
    found = make([[0.6, 0.3, nan], [0.5, 0.25, 0.25]]).unobserved_mass
    np.testing.assert_allclose(found, [0.1, 0])
    assert make([[0.6, nan, nan]], kind="multilabel").unobserved_mass.tolist() == [0]


def test_taking_rows_keeps_names_and_kind():
    taken = make([[0.5, 0.5], [0.1, 0.9]]).take([1])
    assert taken.samples.tolist() == ["s1"]
    assert taken.scores.tolist() == [[0.1, 0.9]]
    assert taken.kind == "multiclass"


def test_half_precision_is_widened_and_single_is_kept():
    for given, kept in ((np.float16, np.float32), (np.float32, np.float32), (int, np.float64)):
        found = Predictions("m", ["a"], ["cat", "dog"], np.array([[1, 0]], dtype=given))
        assert found.scores.dtype == kept


def test_ids_stay_whole_numbers_or_become_texts():
    assert Predictions("m", [3, 1], ["a"], [[1], [1]]).samples.tolist() == [3, 1]
    assert Predictions("m", [3, "b"], ["a"], [[1], [1]]).samples.tolist() == ["3", "b"]
    assert Predictions("m", [2**70], ["a"], [[1]]).samples.tolist() == [str(2**70)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", ["a"], ["x"], [[1]]), "must have a name"),
        (("m", "a", ["x"], [[1]]), "must come as a list"),
        (("m", ["a", "a"], ["x"], [[1], [1]]), "more than once: 'a'"),
        (("m", [None], ["x"], [[1]]), "got None at row 0 of 'm'"),
        (("m", [1.5], ["x"], [[1]]), "got 1.5 at row 0"),
        (("m", ["a"], ["x"], [[1, 2]]), r"= \(1, 1\); got \(1, 2\)"),
        (("m", ["a"], ["x", "y"], [[0.5, -1]]), "got -1 at sample 'a', label 'y'"),
        (("m", ["a"], ["x", "y"], [[np.inf, 0]]), "finite; got inf at sample 'a', label 'x'"),
        (("m", ["a"], ["x"], [["no"]]), "must hold real numbers"),
    ],
)
def test_wrong_predictions_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        Predictions(*arguments)


def test_an_unknown_kind_is_refused():
    with pytest.raises(InvalidInputError, match="got 'binary'"):
        make([[1.0, 0.0]], kind="binary")


def test_predictions_become_a_pandas_frame():
    given = Predictions("tiny", [7, 3], ["cat", "dog"], np.array([[0.9, nan], [0.2, 0.8]]))
    frame = given.to_pandas()
    assert frame.index.name == "sample"
    assert frame.index.tolist() == [7, 3]
    np.testing.assert_array_equal(frame.to_numpy(), given.scores)
    frame.iloc[0, 0] = 0
    assert given.scores[0, 0] == 0.9
    again = predictions_from_frame(given.to_pandas(), "tiny")
    assert again.samples.tolist() == [7, 3]
    assert again.labels == given.labels


def test_the_best_labels_of_each_sample_come_first():
    scores = [[0.2, 0.5, 0.3], [0.4, 0.2, 0.4], [nan, 0.7, nan], [0, 0, 0], [nan, nan, nan]]
    given = Predictions("tiny", list("abcde"), ["cat", "dog", "cow"], scores)
    assert [(row.sample, row.label, row.confidence) for row in given.top()] == [
        ("a", "dog", 0.5),
        ("b", "cat", 0.4),
        ("c", "dog", 0.7),
        ("d", None, None),
        ("e", None, None),
    ]
    assert [row.note for row in given.top()] == ["", "tied with 'cow'", "", *["no answer"] * 2]
    two = given.take([0, 1, 2, 3]).top(k=2)
    assert [(row.sample, row.label) for row in two] == [
        ("a", "dog"),
        ("a", "cow"),
        ("b", "cat"),
        ("b", "cow"),
        ("c", "dog"),
        ("d", None),
    ]
    assert [row.note for row in two[2:4]] == ["tied with 'cow'", "tied with 'cat'"]
    assert len(given.take([0]).top(k=9)) == 3
    assert pd.DataFrame(two).columns.tolist() == ["sample", "label", "confidence", "note"]
    with pytest.raises(InvalidInputError, match="`k` must be at least 1; got 0"):
        given.top(0)


def test_labels_may_be_whole_numbers():
    for labels in ([0, 1, 2], range(3), np.arange(3)):
        assert Predictions("m", ["a"], labels, [[0.2, 0.3, 0.5]]).labels.names == ("0", "1", "2")


def test_scores_in_a_data_frame_are_not_read_by_position():
    frame = pd.DataFrame([[0.9, 0.1]], index=["a"], columns=["dog", "cat"])
    with pytest.raises(InvalidInputError, match=r"must be an array(?s:.*)`\.to_numpy\(\)`"):
        Predictions("m", ["a"], ["cat", "dog"], frame)


def test_histograms_rounded_to_two_decimals_are_histograms(rng):
    scores = rng.dirichlet(np.full(10, 0.3), size=200).round(2)
    assert np.abs(scores.sum(axis=1) - 1).max() > 0.015
    read = Predictions("a", range(200), range(10), scores)
    assert read.kind == "multiclass"
    assert not read.unobserved_mass.any()
    scores[7, :3] += 0.0321  # more decimals, and no rounding that explains its sum
    assert Predictions("a", range(200), range(10), scores).kind == "multilabel"


def test_few_labels_leave_no_room_for_rounding():
    assert Predictions("a", ["x"], ["p", "q"], [[0.5, 0.53]]).kind == "multilabel"
    assert Predictions("a", ["x"], ["p", "q", "r", "s"], [[0.2, 0.2, 0.3, 0.32]]).kind == (
        "multiclass"
    )


def test_whole_percentages_are_percentages(rng):
    scores = (100 * rng.dirichlet(np.full(10, 0.3), size=50)).round()
    assert np.abs(scores.sum(axis=1) - 100).max() > 1.5
    with pytest.raises(InvalidInputError, match="sums to 100, or nearly so") as caught:
        Predictions("a", range(50), range(10), scores)
    assert "normalize=True divides each row by its sum" in str(caught.value)
