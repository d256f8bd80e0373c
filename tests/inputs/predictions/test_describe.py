"""What is in predictions, said in numbers."""

import numpy as np
import pytest

from wassemble import Predictions, write_predictions
from wassemble.inputs import describe_predictions, open_predictions

nan = np.nan
SCORES = [[0.6, 0.4, nan], [0.2, 0.8, 0.0], [nan, nan, nan]]


def test_describe_says_what_is_in_it():
    found = describe_predictions(Predictions("m", [1, 2, 3], ["cat", "dog", "cow"], SCORES))
    assert found["n_abstentions"] == 1
    assert found["most_often_first"] == {"cat": 1, "dog": 1}
    assert found["unobserved_scores"] == pytest.approx(4 / 9)
    assert found["row_sums"] == [1.0, 1.0]
    assert found["first_samples"] == ["1", "2", "3"]


def test_a_file_is_described_as_what_is_in_it(tmp_path):
    given = Predictions("m", [1, 2, 3], ["cat", "dog", "cow"], SCORES)
    write_predictions(tmp_path / "m.parquet", given)
    with open_predictions(tmp_path / "m.parquet") as file:
        found, origin = describe_predictions(file), {"file": "m.parquet", "id_column": "sample"}
    origin["ids"] = "ids in 'sample'"
    assert found == describe_predictions(given) | origin


def test_nothing_is_described_too():
    found = describe_predictions(Predictions("m", [], ["cat"], np.empty((0, 1))))
    assert found["n_samples"] == 0
    assert found["row_sums"] == []
