"""Data frames in, predictions out, and back, whatever the library."""

import datetime
import decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from wassemble import InvalidInputError
from wassemble.inputs import Predictions, frame_from_predictions, predictions_from_frame

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
nan = float("nan")


@pytest.fixture(params=LIBRARIES)
def make(request):
    """A function from a dict of columns to a frame."""
    return LIBRARIES[request.param]


def refused(match, frame, **options):
    with pytest.raises(InvalidInputError, match=match) as caught:
        predictions_from_frame(frame, "tiny", **options)
    return str(caught.value)


def same(predictions, samples, labels, scores):
    assert predictions.samples.tolist() == samples
    assert list(predictions.labels) == labels
    np.testing.assert_array_equal(predictions.scores, scores)


# Wide frames.


@pytest.mark.parametrize("ids", [["a", "007"], [7, -3]])
@pytest.mark.parametrize("name", ["sample", "sample_id", "id"])
def test_a_wide_frame_is_read_by_names(make, name, ids):
    frame = make({"cat": [0.9, 0.2], name: ids, "dog": [0.1, 0.8]})
    predictions = predictions_from_frame(frame, "tiny")
    same(predictions, ids, ["cat", "dog"], [[0.9, 0.1], [0.2, 0.8]])
    assert predictions.model == "tiny"
    assert predictions.kind == "multiclass"
    assert predictions.scores.dtype == np.float64


def test_missing_scores_are_unobserved(make):
    frame = make({"id": ["a", "b"], "cat": [0.5, None], "dog": [nan, 0.25]})
    same(
        predictions_from_frame(frame, "tiny"), ["a", "b"], ["cat", "dog"], [[0.5, nan], [nan, 0.25]]
    )


def test_whole_numbers_and_flags_are_scores(make):
    frame = make({"id": [1, 2], "cat": [1, 0], "dog": [False, True], "cow": [0.5, None]})
    predictions = predictions_from_frame(frame, "tiny", kind="multilabel")
    same(predictions, [1, 2], ["cat", "dog", "cow"], [[1, 0, 0.5], [0, 1, nan]])


def test_float32_stays_and_everything_else_is_float64():
    columns = {"id": ["a"], "cat": np.ones(1, "f4"), "dog": np.zeros(1, "f4")}
    for make in LIBRARIES.values():
        assert predictions_from_frame(make(columns), "tiny").scores.dtype == np.float32
        halves = ["f2"] if hasattr(nw, "Float16") else []
        for other in (*halves, "f8", "i4", "u1", "?"):
            mixed = make(columns | {"dog": np.zeros(1, other)})
            assert predictions_from_frame(mixed, "tiny").scores.dtype == np.float64


def test_columns_that_are_all_missing_are_unobserved():
    for column in ([None, None], pd.Series([None, None], dtype=object)):
        frame = pd.DataFrame({"id": [1, 2], "cat": [0.5, 1], "dog": column})
        same(predictions_from_frame(frame, "tiny"), [1, 2], ["cat", "dog"], [[0.5, nan], [1, nan]])
    frame = pa.table({"id": [1], "cat": pa.array([None], pa.null())})
    same(predictions_from_frame(frame, "tiny"), [1], ["cat"], [[nan]])


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "boolean", "float64[pyarrow]", object])
def test_pandas_columns_of_any_numeric_type(dtype):
    frame = pd.DataFrame({"id": ["a", "b"], "cat": pd.Series([1, None], dtype=dtype)})
    same(predictions_from_frame(frame, "tiny"), ["a", "b"], ["cat"], [[1], [nan]])


def test_whole_numbers_beyond_the_reach_of_floats():
    frame = pa.table({"id": ["a"], "cat": [2**60]})
    same(predictions_from_frame(frame, "tiny"), ["a"], ["cat"], [[2.0**60]])


def test_names_that_mean_something_to_a_library_are_names(make):
    names = ["*", "^c.*$", "a.b", "a", 'ä, ö\n"😀"']
    frame = make({"sample": ["x"]} | {name: [place / 10] for place, name in enumerate(names)})
    same(predictions_from_frame(frame, "tiny"), ["x"], names, [[0, 0.1, 0.2, 0.3, 0.4]])


def test_labels_pick_columns(make):
    frame = make({"id": ["a"], "cat": [0.1], "split": ["val"], "dog": [0.2]})
    predictions = predictions_from_frame(frame, "tiny", id_column="id", labels=["dog", "cat"])
    same(predictions, ["a"], ["dog", "cat"], [[0.2, 0.1]])
    text = refused("column for each of `labels`; it has none for 'cow'", frame, labels=["cow"])
    assert text.startswith("the table of 'tiny': ")


def test_the_frame_is_left_alone_and_not_shared():
    frame = pd.DataFrame({"cat": [0.9, 0.2], "dog": [0.1, 0.8]}, index=["a", "b"])
    predictions = predictions_from_frame(frame, "tiny")
    predictions.scores[:] = 0
    assert frame["cat"].tolist() == [0.9, 0.2]


def test_frames_without_rows_have_no_samples(make):
    frame = make({"sample": [], "cat": [], "dog": []})
    assert predictions_from_frame(frame, "tiny").scores.shape == (0, 2)


@pytest.mark.parametrize("ids", [[1, 2], ["a", "b"]])
def test_frames_without_rows_keep_their_types(make, ids):
    some = make({"sample": ids, "cat": [0.5, 1.0], "dog": [0.5, 0.0]})
    predictions = predictions_from_frame(some[:0], "tiny")
    assert predictions.samples.dtype == (np.int64 if ids == [1, 2] else object)
    found = nw.from_native(frame_from_predictions(predictions, some))
    full = nw.from_native(frame_from_predictions(predictions_from_frame(some, "tiny"), some))
    assert len(found) == 0
    assert found.schema == full.schema


def test_ten_thousand_columns(make, rng):
    scores = rng.random((3, 10_000))
    names = [f"label {place}" for place in range(10_000)]
    frame = make({"id": [1, 2, 3]} | dict(zip(names, scores.T, strict=True)))
    predictions = predictions_from_frame(frame, "tiny")
    same(predictions, [1, 2, 3], names, scores)
    again = predictions_from_frame(frame_from_predictions(predictions, frame), "tiny")
    same(again, [1, 2, 3], names, scores)


# Which column holds the ids.


def test_two_columns_that_could_be_ids_are_refused(make):
    frame = make({"sample": ["a"], "id": [1], "cat": [0.5]})
    assert "hint: `id_column`" in refused("got 'sample' and 'id'", frame)
    same(
        predictions_from_frame(frame, "tiny", id_column="sample"), ["a"], ["id", "cat"], [[1, 0.5]]
    )
    same(
        predictions_from_frame(frame, "tiny", labels=["id", "cat"]),
        ["a"],
        ["id", "cat"],
        [[1, 0.5]],
    )


def test_the_only_column_of_text_holds_the_ids(make):
    frame = make({"cat": [0.5], "image": ["a.png"]})
    same(predictions_from_frame(frame, "tiny"), ["a.png"], ["cat"], [[0.5]])
    frame = make({"cat": [0.5], "image": ["a.png"], "split": ["val"]})
    refused("one column must hold the sample ids.*got 'cat', 'image', 'split'", frame)
    refused("one column must hold the sample ids", make({"cat": [0.5], "dog": [7]}))


def test_a_chosen_column_of_ids(make):
    frame = make({"id": [0.5], "image": ["a.png"]})
    same(predictions_from_frame(frame, "tiny", id_column="image"), ["a.png"], ["id"], [[0.5]])
    refused("must have a column 'picture'; got 'id', 'image'", frame, id_column="picture")
    refused("`id_column` must be the name of a column", frame, id_column=3)


def test_an_index_of_pandas_in_another_library_is_no_label():
    frame = pd.DataFrame({"sample": ["a", "b"], "cat": [0.5, 1.0]}).set_axis([4, 5])
    table = pa.Table.from_pandas(frame)
    named = pa.Table.from_pandas(frame.rename_axis("fold"))
    for given in (table, named, pl.from_arrow(table)):
        found = predictions_from_frame(given, "tiny")
        assert found.labels.names == ("cat",)
        assert found.samples.tolist() == ["a", "b"]
    found = predictions_from_frame(pa.Table.from_pandas(frame[["cat"]]), "tiny")
    assert found.samples.tolist() == [4, 5]


def test_an_index_of_pandas_holds_the_ids_unless_it_counts():
    scores = {"cat": [0.9, 0.2], "dog": [0.1, 0.8]}
    same(
        predictions_from_frame(pd.DataFrame(scores, index=["a", "b"]), "tiny"),
        ["a", "b"],
        ["cat", "dog"],
        [[0.9, 0.1], [0.2, 0.8]],
    )
    named = pd.DataFrame(scores, index=pd.Index([5, 3], name="image"))
    assert predictions_from_frame(named, "tiny").samples.tolist() == [5, 3]
    assert predictions_from_frame(named, "tiny", id_column="image").samples.tolist() == [5, 3]
    # A column that is called "id" comes before an index without such a name.
    both = pd.DataFrame(scores | {"id": [7, 8]}, index=["a", "b"])
    assert predictions_from_frame(both, "tiny").samples.tolist() == [7, 8]
    refused("got 'sample' and 'the index'", named.rename_axis("id").assign(sample=["a", "b"]))
    levels = pd.MultiIndex.from_tuples([(1, 2), (3, 4)])
    refused("must have one level; got 2", pd.DataFrame(scores, index=levels))


def test_an_index_that_counts_holds_the_ids_where_no_column_could():
    scores = {"cat": [0.9, 0.2], "dog": [0.1, 0.8]}
    frame = pd.DataFrame(scores)
    same(predictions_from_frame(frame, "tiny"), [0, 1], ["cat", "dog"], [[0.9, 0.1], [0.2, 0.8]])
    assert predictions_from_frame(frame[1:], "tiny").samples.tolist() == [1]
    for name, ids in {"image": ["x", "y"], "sample": [5, 4], "id": ["u", "v"]}.items():
        given = frame.assign(**{name: ids})
        assert predictions_from_frame(given, "tiny").samples.tolist() == ids
        assert predictions_from_frame(given[1:], "tiny").samples.tolist() == ids[1:]
    # Whole numbers may be ids by another name: they are no scores, and no guess is made.
    for ids in ([7, 8], [1.0, 2.0]):
        refused("one column must hold the sample ids", frame.assign(image=ids))
    refused("one column must hold the sample ids", pl.DataFrame(scores))
    named = frame.rename_axis("picture")
    assert predictions_from_frame(named, "tiny", id_column="picture").samples.tolist() == [0, 1]


@pytest.mark.parametrize("columns", [[0, 1], np.array([0, 1]), pd.RangeIndex(2), [0.0, 1.0]])
def test_columns_of_pandas_may_be_whole_numbers(columns):
    frame = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], columns=columns, index=["a", "b"])
    predictions = predictions_from_frame(frame, "tiny")
    same(predictions, ["a", "b"], ["0", "1"], [[0.9, 0.1], [0.2, 0.8]])
    assert list(frame.columns) == [0, 1]
    chosen = predictions_from_frame(frame, "tiny", labels=[1, 0])
    same(chosen, ["a", "b"], ["1", "0"], [[0.1, 0.9], [0.8, 0.2]])
    with_ids = frame.assign(sample=[5, 6])
    assert predictions_from_frame(with_ids, "tiny").samples.tolist() == [5, 6]


def test_columns_that_are_no_names_or_one_name_twice_are_refused():
    scores = [[0.9, 0.1]]
    refused("got 0.5", pd.DataFrame(scores, columns=[0.5, 1], index=["a"]))
    refused(r"got \('x', 'y'\)", pd.DataFrame(scores, columns=[("x", "y"), "z"], index=["a"]))
    refused("must differ; got '1'", pd.DataFrame(scores, columns=[1, "1"], index=["a"]))


def test_names_of_columns_keep_their_type():
    numbers = pd.DataFrame([[0.9, 0.1]], columns=[3, 7])
    found = frame_from_predictions(predictions_from_frame(numbers, "tiny"), numbers)
    assert found.columns.tolist() == [3, 7]
    mixed = pd.DataFrame({"sample": ["a"], 3: [0.9], 7: [0.1]})
    found = frame_from_predictions(predictions_from_frame(mixed, "tiny"), mixed)
    assert found.columns.tolist() == ["sample", 3, 7]
    words = Predictions("tiny", ["a"], ["3", "cat"], [[0.9, 0.1]])
    assert frame_from_predictions(words, numbers).columns.tolist() == ["3", "cat"]
    padded = Predictions("tiny", ["a"], ["03", "7"], [[0.9, 0.1]])
    assert frame_from_predictions(padded, numbers).columns.tolist() == ["03", "7"]
    texts = numbers.rename(columns=str)
    found = frame_from_predictions(predictions_from_frame(numbers, "tiny"), texts)
    assert found.columns.tolist() == ["3", "7"]


def test_whole_numbers_that_pandas_keeps_as_floats_are_integers():
    frame = pd.DataFrame({"id": [1.0, 2.0], "cat": [0.5, 0.5]})
    assert predictions_from_frame(frame, "tiny").samples.tolist() == [1, 2]
    refused("text or whole numbers; got 2.5 at row 1", frame.assign(id=[1, 2.5]))
    refused("must have a sample id; got none at row 1", frame.assign(id=[1, None]))
    refused("text or whole numbers; got inf at row 0", frame.assign(id=[np.inf, 1]))


def test_ids_that_are_missing_or_strange_are_refused(make):
    refused("sample id; got none at row 1", make({"id": ["a", None], "cat": [0.5, 0.5]}))
    refused("got a column of True and False", make({"id": [True, False], "cat": [0.5, 0.5]}))
    refused("text or a whole number", make({"id": [datetime.date(2020, 1, 1)], "cat": [0.5]}))
    refused("more than once: 'a'", make({"id": ["a", "a"], "cat": [0.5, 0.5]}))
    refused("text or a whole number; got ''", make({"id": ["a", ""], "cat": [0.5, 0.5]}))


def test_categories_are_text():
    frame = pd.DataFrame({"image": pd.Categorical(["a", "b"]), "cat": [0.5, 0.5]})
    assert predictions_from_frame(frame, "tiny").samples.tolist() == ["a", "b"]
    frame = pl.DataFrame({"id": [1], "label": pl.Series(["cat"], dtype=pl.Categorical)})
    assert predictions_from_frame(frame, "tiny").labels.names == ("cat",)
    frame = pa.table({"id": [1], "label": pa.array(["cat"]).dictionary_encode()})
    assert predictions_from_frame(frame, "tiny").labels.names == ("cat",)


# Long frames.


def test_a_long_frame_lists_what_was_observed(make):
    frame = make(
        {
            "sample": ["a", "b", "a", "c", "d"],
            "label": ["cat", "dog", "dog", None, ""],
            "score": [0.9, 0.8, 0.0, None, None],
        }
    )
    predictions = predictions_from_frame(frame, "tiny")
    expected = [[0.9, 0], [nan, 0.8], [nan, nan], [nan, nan]]
    same(predictions, ["a", "b", "c", "d"], ["cat", "dog"], expected)
    assert not predictions.is_hard
    assert predictions.answered.tolist() == [True, True, False, False]


def test_labels_without_scores_are_hard(make):
    frame = make({"sample": [1, 2, 3], "label": ["cat", "dog", None]})
    predictions = predictions_from_frame(frame, "tiny", labels=["cow", "dog", "cat"])
    expected = [[nan, nan, 1], [nan, 1, nan], [nan, nan, nan]]
    same(predictions, [1, 2, 3], ["cow", "dog", "cat"], expected)
    assert predictions.is_hard
    assert predictions.kind == "multiclass"


def test_labels_of_a_long_frame_must_be_declared_if_any_are(make):
    frame = make({"id": [1, 2], "label": ["cat", "dog"], "score": [0.5, 0.6]})
    refused("must be in `labels`; got 'dog'", frame, labels=["cat"])
    declared = predictions_from_frame(frame, "tiny", labels=["cow", "cat", "dog"])
    same(declared, [1, 2], ["cow", "cat", "dog"], [[nan, 0.5, nan], [nan, nan, 0.6]])


def test_a_long_frame_with_other_names(make):
    frame = make({"img": ["a", "b"], "cls": [3, 7], "p": [0.5, 0.6], "rank": [1, 1]})
    options = {"id_column": "img", "label_column": "cls"}
    predictions = predictions_from_frame(frame, "tiny", score_column="p", **options)
    same(predictions, ["a", "b"], ["3", "7"], [[0.5, nan], [nan, 0.6]])
    assert "`score_column`" in refused("must have a column 'score', or nothing", frame, **options)
    refused("must have a column 'q'", frame, label_column="q")
    refused(
        "column of label names; got 'cls', 'p', 'rank'", frame, id_column="img", score_column="p"
    )
    refused("must name two columns; got 'p'", frame, label_column="p", score_column="p")


def test_a_column_score_goes_with_a_chosen_column_of_labels(make):
    frame = make({"id": [1, 2], "cls": ["a", "b"], "score": [0.5, 0.6], "rank": [1, 2]})
    predictions = predictions_from_frame(frame, "tiny", label_column="cls")
    same(predictions, [1, 2], ["a", "b"], [[0.5, nan], [nan, 0.6]])


def test_float32_stays_in_a_long_frame(make):
    frame = make({"id": [1, 2], "label": ["cat", "dog"], "score": np.ones(2, "f4")})
    assert predictions_from_frame(frame, "tiny").scores.dtype == np.float32


def test_a_pair_that_comes_twice_is_refused(make):
    frame = make({"id": [1, 2, 1], "label": ["cat", "cat", "cat"], "score": [0.5, 0.5, 0.6]})
    refused("got sample 1, label 'cat', at row 0 and row 2", frame)
    frame = make({"id": [1, 2, 1], "label": ["cat", "cat", None]})
    refused("got sample 1 without a label at row 2 and with one at row 0", frame)
    frame = make({"id": [1, 2], "label": ["cat", None], "score": [0.5, 0.5]})
    refused("score must have a label; got none at row 1, sample 2", frame)


def test_a_column_label_of_whole_numbers_holds_names(make):
    frame = make({"id": ["a", "b"], "label": [3, 7]})
    for options in ({}, {"label_column": "label"}):
        read = predictions_from_frame(frame, "tiny", **options)
        same(read, ["a", "b"], ["3", "7"], [[1, nan], [nan, 1]])
        assert read.is_hard
    wide = predictions_from_frame(frame, "tiny", labels=["label"])
    same(wide, ["a", "b"], ["label"], [[3], [7]])
    gaps = make({"id": ["a", "b", "c"], "label": [3.0, None, 7.0]})
    read = predictions_from_frame(gaps, "tiny")
    same(read, ["a", "b", "c"], ["3", "7"], [[1, nan], [nan, nan], [nan, 1]])
    scored = make({"id": ["a", "b"], "label": [3, 7], "score": [0.5, 0.25]})
    same(predictions_from_frame(scored, "tiny"), ["a", "b"], ["3", "7"], [[0.5, nan], [nan, 0.25]])


def test_a_column_label_of_other_numbers_is_not_guessed_at(make):
    frame = make({"id": ["a", "b"], "label": [0.25, 0.5]})
    assert 'labels=["label"]' in refused("names of labels, as text or whole numbers", frame)


def test_a_long_frame_without_ids_or_labels_is_refused(make):
    refused("one column must hold the sample ids", make({"label": ["cat"], "score": [0.5]}))
    frame = make({"id": ["a"], "label": [None], "score": [None]})
    refused("must name at least one label", frame)
    frame = make({"id": ["a"], "label": [0.5]})
    refused(
        "must hold the names of labels, as text or whole numbers; got 0.5 at row 0",
        frame,
        label_column="label",
    )


# What is refused.


@pytest.mark.parametrize(
    "column", [["high"], [decimal.Decimal("0.5")], [datetime.datetime(2020, 1, 1)], [b"x"]]
)
def test_columns_that_are_no_scores_are_refused_with_an_example(make, column):
    frame = make({"sample": ["a"], "cat": [0.5], "odd": column})
    text = refused("the column 'odd' must hold scores, as numbers; got", frame)
    assert "\nhint: " in text


def test_objects_of_pandas_that_are_no_numbers_are_refused():
    column = pd.Series([1, "two"], dtype=object)
    refused("'odd' must hold scores.*'two'", pd.DataFrame({"sample": ["a", "b"], "odd": column}))
    column = pd.Series([1 + 0j])
    refused("'odd' must hold scores", pd.DataFrame({"sample": ["a"], "odd": column}))


def test_columns_of_the_same_name_are_refused():
    refused("names of columns must differ; got 'cat'", pa.table([[1], [2]], names=["cat", "cat"]))
    frame = pd.DataFrame([["a", 1, 2]], columns=["sample", "cat", "cat"])
    refused("names of columns must differ; got 'cat'", frame)


def test_what_is_no_frame_is_refused():
    assert "collect" in refused("polars.LazyFrame", pl.LazyFrame({"sample": ["a"], "cat": [1]}))
    refused("must be a data frame in memory; got an object of type builtins.list", [[1, 2]])
    refused("must be a data frame in memory", pd.Series([1, 2]))
    with pytest.raises(InvalidInputError, match="must have a name"):
        predictions_from_frame(pd.DataFrame({"sample": ["a"], "cat": [1]}), "")


def test_scores_that_are_none_are_refused(make):
    refused("must not be negative.*label 'cat'", make({"sample": ["a"], "cat": [-0.5]}))
    refused("must be finite", make({"sample": ["a"], "cat": [float("inf")]}))
    refused("column of scores for each label; got none", make({"sample": ["a"]}))
    refused("must come as a list; got one int, 3", make({"sample": ["a"], "cat": [1]}), labels=3)


# Frames out.


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("ids", [["a", "b"], [4, 2]])
def test_frames_come_back_as_they_went_in(make, ids, dtype):
    scores = np.array([[0.5, 0.1], [nan, 0.9]], dtype)
    frame = make({"id": ids, "*": scores[:, 0], "ä,b": scores[:, 1]})
    predictions = predictions_from_frame(frame, "tiny")
    back = frame_from_predictions(predictions, frame)
    assert type(back) is type(frame)
    names = back.column_names if isinstance(back, pa.Table) else list(back.columns)
    assert names == ["id", "*", "ä,b"]
    again = predictions_from_frame(back, "tiny")
    same(again, ids, ["*", "ä,b"], scores)
    assert again.scores.dtype == dtype


def test_missing_scores_are_null_in_frames_that_have_null():
    predictions = Predictions("tiny", ["a", "b"], ["cat"], [[nan], [0.5]])
    frame = frame_from_predictions(predictions, pl.DataFrame({"id": ["x"], "cow": [1]}))
    assert frame["cat"].to_list() == [None, 0.5]
    frame = frame_from_predictions(predictions, pa.table({"id": ["x"], "cow": [1]}))
    assert frame["cat"].null_count == 1
    frame = frame_from_predictions(predictions, pd.DataFrame({"id": ["x"], "cow": [1]}))
    assert frame["cat"].isna().tolist() == [True, False]


@pytest.mark.parametrize("name", [None, "image"])
def test_an_index_of_pandas_stays_an_index(name):
    like = pd.DataFrame({"cow": [0.5]}, index=pd.Index(["x"], name=name))
    predictions = Predictions("tiny", ["a", "b"], ["cat"], [[1], [0.5]])
    frame = frame_from_predictions(predictions, like)
    assert frame.index.tolist() == ["a", "b"]
    assert frame.index.name == name
    assert frame.columns.tolist() == ["cat"]
    same(predictions_from_frame(frame, "tiny"), ["a", "b"], ["cat"], [[1], [0.5]])
    if name is not None:
        frame = frame_from_predictions(predictions, like, id_column=name)
        assert frame.index.name == name


def test_a_frame_like_a_long_one_is_wide(make):
    like = make({"sample_id": ["x"], "label": ["cow"], "score": [1.0]})
    predictions = Predictions("tiny", ["a"], ["cat", "dog"], [[1, 0]])
    again = predictions_from_frame(frame_from_predictions(predictions, like), "tiny")
    same(again, ["a"], ["cat", "dog"], [[1, 0]])


def test_the_column_of_ids_may_get_another_name(make):
    like = make({"id": ["x"], "cow": [1.0]})
    predictions = Predictions("tiny", ["a"], ["id", "dog"], [[1, 0]])
    with pytest.raises(InvalidInputError, match="must not be called like a label; got 'id'"):
        frame_from_predictions(predictions, like)
    frame = frame_from_predictions(predictions, like, id_column="image")
    same(predictions_from_frame(frame, "tiny", id_column="image"), ["a"], ["id", "dog"], [[1, 0]])
    with pytest.raises(InvalidInputError, match="`like`: one column must hold the sample ids"):
        frame_from_predictions(predictions, make({"cow": [7]}))


@pytest.mark.parametrize("change", ["shuffle", "filter", "concatenate"])
def test_the_only_column_of_text_holds_the_ids_whatever_rows_were_moved(change):
    frame = pd.DataFrame(
        {"image": ["w", "x", "y", "z"], "cat": [0.9, 0.5, 0.2, 0.5], "dog": [0.1, 0.5, 0.8, 0.5]}
    )
    moved = {
        "shuffle": lambda: frame.iloc[[2, 0, 1, 3]],
        "filter": lambda: frame[frame["cat"] != 0.2],
        "concatenate": lambda: pd.concat([frame.iloc[2:], frame.iloc[:1]]),
    }[change]()
    found = predictions_from_frame(moved, "a")
    assert found.samples.tolist() == moved["image"].tolist()
    assert found.labels.names == ("cat", "dog")
    back = frame_from_predictions(found, moved)
    assert list(back.columns) == ["image", "cat", "dog"]


def test_an_index_of_whole_numbers_holds_the_ids_of_a_long_frame():
    frame = pd.DataFrame({"label": ["cat", "dog"]}, index=[7, 3])
    assert predictions_from_frame(frame, "a").samples.tolist() == [7, 3]
    chosen = predictions_from_frame(
        frame.rename(columns={"label": "answer"}), "a", label_column="answer"
    )
    assert chosen.samples.tolist() == [7, 3]
