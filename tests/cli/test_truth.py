"""Commands that read true labels: what they take, refuse and warn of."""

import json

import numpy as np
import pytest

from wassemble import Predictions, write_predictions
from wassemble.cli import main

LEARN = ["--n-folds", "2", "--time-budget", "0", "--out", "e"]


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """Files of scores a and b over the digits 0 to 2, and the truth of their 24 samples."""
    monkeypatch.chdir(tmp_path)
    truth = np.arange(24) % 3
    ids = [f"s{i}" for i in range(24)]
    for name in "ab":
        scores = np.exp(rng.normal(size=(24, 3)) + 2 * np.eye(3)[truth])
        scores /= scores.sum(axis=1, keepdims=True)
        write_predictions(f"{name}.csv", Predictions(name, ids, ["0", "1", "2"], scores))
    for name, names in (("digit", "012"), ("label", "012"), ("words", ["zero", "one", "two"])):
        column = "digit" if name == "digit" else "label"
        lines = "".join(f"{sample},{names[i]}\n" for sample, i in zip(ids, truth, strict=True))
        (tmp_path / f"{name}.csv").write_text(f"id,{column}\n{lines}")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["score", "a.csv", "--truth", "digit.csv"],
        ["fit", "a.csv", "b.csv", "--truth", "digit.csv", *LEARN],
        ["fuse", "a.csv", "b.csv", "--confusion", "digit.csv", "--out", "f.csv"],
    ],
)
def test_a_truth_column_that_nobody_named_is_refused_with_its_flag(folder, capsys, command):
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "got 2 in the column 'digit'" in said
    assert "--truth-column digit" in said
    assert main([*command, "--truth-column", "digit"]) == 0


def test_evaluate_refuses_a_truth_column_that_nobody_named(folder, capsys):
    assert main(["fit", "a.csv", "b.csv", "--truth", "label.csv", *LEARN]) == 0
    capsys.readouterr()
    judge = ["evaluate", "e", "a.csv", "b.csv", "--truth", "digit.csv"]
    assert main(judge) == 2
    assert "--truth-column digit" in capsys.readouterr().err
    assert main([*judge, "--truth-column", "digit"]) == 0


def test_a_multi_class_table_of_0_and_1_must_have_one_label_in_each_row(folder, capsys):
    lines = "".join(f"s{i},{int(i % 3 > 0)}\n" for i in range(24))
    (folder / "flag.csv").write_text(f"id,digit\n{lines}")
    assert main(["score", "a.csv", "--truth", "flag.csv"]) == 2
    said = capsys.readouterr().err
    assert "must have one true label for each sample; got none for 's0'" in said
    assert "--truth-column digit" in said


def test_a_truth_without_ids_goes_along_with_rows_without_ids(folder, capsys):
    for name in ("a", "b", "label"):
        lines = (folder / f"{name}.csv").read_text().splitlines()
        rows = "".join(line.split(",", 1)[1] + "\n" for line in lines)
        (folder / f"{name}_rows.csv").write_text(rows)
    assert main(["score", "a.csv", "--truth", "label.csv", "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    by_row = ["--truth", "label_rows.csv", "--by-row"]
    assert main(["score", "a_rows.csv", *by_row, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["value"] for each in found] == [each["value"] for each in expected]
    assert main(["fit", "a_rows.csv", "b_rows.csv", *by_row, *LEARN]) == 0
    assert main(["evaluate", "e", "a_rows.csv", "b_rows.csv", *by_row]) == 0
    kernel = ["--confusion", "label_rows.csv", "--by-row", "--out", "f.csv"]
    assert main(["fuse", "a_rows.csv", "b_rows.csv", *kernel]) == 0
