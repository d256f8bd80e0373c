"""True labels in tables: names in one column, or 0 and 1 in a column for each label."""

import pandas as pd
import pyarrow.parquet
import pytest

import wassemble as ws
from wassemble import Predictions
from wassemble.errors import InvalidInputError
from wassemble.inputs import read_truth


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_of_labels_that_nobody_named_is_not_read_as_scores(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    frame = pd.DataFrame({"id": list("xyzu"), "digit": [1, 2, 0, 1]})
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pandas(frame), path)
    with pytest.raises(
        InvalidInputError, match=r"got 2 in the column 'digit'.*sample 'y'"
    ) as caught:
        read_truth(path)
    assert 'column="digit"' in str(caught.value)
    assert read_truth(path, column="digit").labels.names == ("1", "2", "0")


def test_a_frame_of_labels_that_nobody_named_is_refused_with_the_way_out():
    model = Predictions("a", list("xyzu"), ["1", "2", "3"], [[0.8, 0.1, 0.1]] * 4)
    truth = pd.DataFrame({"id": list("xyzu"), "digit": [1, 2, 3, 1]})
    with pytest.raises(InvalidInputError, match="'digit'") as caught:
        ws.learn_ensemble([model], truth, n_folds=2)
    assert "call the column 'label'" in str(caught.value)
    named = truth.rename(columns={"digit": "label"})
    assert ws.learn_ensemble([model], named, n_folds=2).n_samples == 4


def test_a_table_of_0_and_1_is_one_of_labels_whatever_their_number(tmp_path):
    path = write(tmp_path / "t.csv", "id,cat,dog\nx,1,0\ny,,1\n")
    assert not read_truth(path).is_hard
    assert read_truth(path).labels.names == ("cat", "dog")


def test_label_is_taken_among_any_other_columns(tmp_path):
    path = write(tmp_path / "t.csv", "id,text,label\nx,good day,pos\ny,bad day,neg\n")
    truth = read_truth(path)
    assert truth.is_hard
    assert truth.labels.names == ("pos", "neg")
    model = Predictions("a", ["x", "y"], ["pos", "neg"], [[0.8, 0.2]] * 2)
    learned = ws.learn_ensemble([model], pd.read_csv(path), n_folds=2)
    assert learned.target.names == ("pos", "neg")


def test_the_only_column_beside_the_ids_holds_labels_if_it_is_text(tmp_path):
    path = write(tmp_path / "t.csv", "id,mood\nx,pos\ny,neg\n")
    assert read_truth(path).labels.names == ("pos", "neg")


def test_several_columns_of_text_are_refused_with_the_way_to_name_one(tmp_path):
    path = write(tmp_path / "t.csv", "id,mood,text\nx,pos,hello\ny,neg,bye\n")
    with pytest.raises(InvalidInputError, match="'mood', 'text'") as caught:
        read_truth(path)
    assert 'column="mood"' in str(caught.value)


def test_a_truth_without_ids_goes_by_row(tmp_path):
    for text in ("label\npos\nneg\n", "mood\npos\nneg\n", "text,label\nhello,pos\nhello,neg\n"):
        truth = read_truth(write(tmp_path / "t.csv", text), by_row=True)
        assert truth.samples.tolist() == [0, 1]
        assert truth.labels.names == ("pos", "neg")
