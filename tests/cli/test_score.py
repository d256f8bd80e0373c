"""Answers and how right they are: --top and `wassemble score`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.feather
import pyarrow.parquet
import pytest

from wassemble import Predictions, read_predictions, write_predictions
from wassemble.cli import main
from wassemble.ensemble.learning.evaluation import score_predictions
from wassemble.metrics import accuracy, log_loss

LABELS = ["cat", "dog", "cow"]


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    truth = rng.integers(3, size=50)
    for name, strength in (("a", 1.0), ("b", 2.0)):
        scores = np.exp(rng.normal(size=(50, 3)) + strength * np.eye(3)[truth])
        scores /= scores.sum(axis=1, keepdims=True)
        write_predictions(f"{name}.csv", Predictions(name, range(50), LABELS, scores))
    # Ten samples without truth, and two that no file has.
    lines = "".join(f"{i},{LABELS[truth[i]]}\n" for i in range(40))
    (tmp_path / "truth.csv").write_text(f"sample,label\n{lines}x,cat\ny,dog\n")
    np.save("truth.npy", truth)
    return tmp_path


def test_a_file_is_scored_against_the_truth(folder, capsys):
    assert main(["score", "a.csv", "b.csv", "--truth", "truth.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["model"], each["metric"]) for each in found] == [
        (model, metric) for model in "ab" for metric in ("accuracy", "log_loss", "brier_score")
    ]
    known, truth = read_predictions("a.csv").scores[:40], np.load("truth.npy")[:40]
    assert found[0]["value"] == pytest.approx(accuracy(known, truth))
    assert found[1]["value"] == pytest.approx(log_loss(known, truth))
    for each in found:
        assert each["low"] <= each["value"] <= each["high"]
        assert each["n_scored"] == 40
        assert each["n_without_truth"] == 10
        assert each["n_missing"] == 2
        assert each["n_without_answer"] == 0
    assert main(["score", "a.csv", "--truth", "truth.csv", "--metric", "accuracy"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].split("\t") == ["model", "metric", "score", "from", "to"]
    assert len(printed.out.splitlines()) == 2
    said = "a: 40 samples scored; 10 without a true label are left out; 2 of the truth are not"
    assert said in printed.err


def test_the_truth_may_be_in_any_column_and_rows_without_ids(folder, capsys):
    lines = (folder / "truth.csv").read_text().splitlines()[1:41]
    rows = "".join(f"{line},note\n" for line in lines)
    (folder / "known.csv").write_text(f"sample,animal,remark\n{rows}")
    plain = ["score", "a.csv", "--truth", "truth.csv", "--json"]
    assert main(plain) == 0
    expected = json.loads(capsys.readouterr().out)
    named = ["score", "a.csv", "--truth", "known.csv", "--truth-column", "animal", "--json"]
    assert main(named) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["value"] for each in found] == [each["value"] for each in expected]
    for name, rows in (("a", 41), ("known", 41)):
        kept = (folder / f"{name}.csv").read_text().splitlines()[:rows]
        without = "".join(line.split(",", 1)[1] + "\n" for line in kept)
        (folder / f"{name}_rows.csv").write_text(without)
    options = ["--truth-column", "animal", "--by-row", "--json"]
    for truth in ("known_rows.csv", "known.csv"):  # rows, whether or not one of them has ids
        assert main(["score", "a_rows.csv", "--truth", truth, *options]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [each["value"] for each in found] == [each["value"] for each in expected]
    learn = ["--n-folds", "2", "--time-budget", "0", "--out", "e", *options]
    assert main(["fit", "a_rows.csv", "b=a_rows.csv", "--truth", "known.csv", *learn]) == 0


def test_a_sample_without_an_answer_counts_as_wrong(folder, capsys):
    (folder / "empty.csv").write_text("sample,cat,dog,cow\n0,0,0,0\n1,0,0,0\n")
    command = ["score", "empty.csv", "--truth", "truth.csv", "--kind", "multiclass"]
    assert main([*command, "--metric", "accuracy"]) == 0
    printed = capsys.readouterr()
    assert "0.0000" in printed.out
    assert "2 without an answer count as wrong" in printed.err


def test_several_labels_are_scored_by_mean_average_precision(folder, capsys):
    scores = [[0.9, 0.1, 0.8], [0.2, 0.7, 0.6]]
    write_predictions("m.csv", Predictions("m", ["p", "q"], LABELS, scores, kind="multilabel"))
    (folder / "t.csv").write_text("sample,cat,dog,cow\np,1,0,1\nq,0,1,1\n")
    assert main(["score", "m.csv", "--truth", "t.csv", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["metric"], found["value"]) == ("mAP", 1.0)


def test_a_label_that_only_the_truth_has_can_still_be_missed():
    fused = Predictions("fused", ["p", "q"], ["cat", "dog"], [[0.9, 0.1], [0.2, 0.8]])
    [found] = score_predictions(fused, {"p": "cat", "q": "cow"}, metrics=["accuracy"])
    assert found.value == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.csv", "--truth", "truth.csv", "--metric", "best"], "got 'best'"),
        (["a.csv", "--truth", "truth.csv", "--metric", "mAP"], "not for multiclass"),
        (["a.csv"], "--truth"),
        (["a.csv", "--truth", "none.csv"], "none.csv"),
    ],
)
def test_a_wrong_call_is_one_clear_error(folder, capsys, arguments, message):
    assert main(["score", *arguments]) == 2
    assert message in capsys.readouterr().err


# -- the best labels -------------------------------------------------------------------


def test_top_1_gives_the_answer_of_each_sample(folder, capsys):
    assert main(["fuse", "a.csv", "b.csv", "--out", "all.csv", "--quiet"]) == 0
    assert main(["fuse", "a.csv", "b.csv", "--top", "1", "--out", "top.csv", "--quiet"]) == 0
    lines = (folder / "top.csv").read_text().splitlines()
    assert lines[0] == "sample,label,confidence"
    whole = read_predictions("all.csv")
    best = whole.scores.argmax(axis=1)
    rows = [line.split(",") for line in lines[1:]]
    assert [row[0] for row in rows] == [str(sample) for sample in whole.samples]
    assert [row[1] for row in rows] == [LABELS[i] for i in best]
    np.testing.assert_allclose([float(row[2]) for row in rows], whole.scores.max(axis=1))
    capsys.readouterr()
    assert main(["fuse", "a.csv", "b.csv", "--top", "1", "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == lines
    # What is written can be read and scored.
    scored = ["--truth", "truth.csv", "--metric", "accuracy", "--json"]
    assert main(["score", "all.csv", "top.csv", *scored]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["value"] == second["value"]


@pytest.mark.parametrize("out", ["t.csv", "t.parquet"])
def test_the_column_of_ids_keeps_its_name(folder, out):
    for name in "ab":
        text = (folder / f"{name}.csv").read_text()
        (folder / f"{name}2.csv").write_text(text.replace("sample,", "image,", 1))
    options = ["--id-column", "image", "--top", "1", "--out", out, "--quiet"]
    assert main(["fuse", "a2.csv", "b2.csv", *options]) == 0
    if out == "t.csv":
        header = (folder / out).read_text().splitlines()[0].split(",")
    else:
        header = pyarrow.parquet.read_table(out).column_names
    assert header == ["image", "label", "confidence"]


def test_more_than_one_label_comes_best_first(folder):
    assert main(["fuse", "a.csv", "b.csv", "--top", "2", "--out", "t.parquet", "--quiet"]) == 0
    table = pyarrow.parquet.read_table("t.parquet").to_pydict()
    assert list(table) == ["sample", "label", "confidence"]
    assert len(table["sample"]) == 100
    pairs = np.array(table["confidence"]).reshape(50, 2)
    assert (pairs[:, 0] >= pairs[:, 1]).all()
    assert main(["fuse", "a.csv", "b.csv", "--top", "2", "--out", "t.feather", "--quiet"]) == 0
    assert pyarrow.feather.read_table("t.feather").to_pydict() == table


def test_a_learned_ensemble_gives_answers_too(folder, capsys):
    options = ["--truth", "truth.csv", "--n-folds", "2", "--time-budget", "0", "--quiet"]
    assert main(["fit", "a.csv", "b.csv", *options, "--out", "e"]) == 0
    assert main(["predict", "e", "a.csv", "b.csv", "--top", "1", "--out", "t.tsv", "--quiet"]) == 0
    lines = (folder / "t.tsv").read_text().splitlines()
    assert lines[0] == "sample\tlabel\tconfidence"
    assert len(lines) == 51
    capsys.readouterr()
    assert main(["predict", "e", "a.csv", "b.csv", "--top", "1", "--quiet"]) == 0
    assert capsys.readouterr().out.replace(",", "\t").splitlines() == lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--top", "0"], "'--top'"),
        (["--top", "1", "--out", "t.npz"], "must end in .csv, .tsv, .parquet, .arrow, .feather"),
    ],
)
def test_a_wrong_top_is_one_clear_error(folder, capsys, arguments, message):
    assert main(["fuse", "a.csv", "b.csv", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "t.npz").exists()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_the_ids_keep_the_name_of_their_column(folder, ending):
    for name in ("a", "b"):
        text = (folder / f"{name}.csv").read_text().replace("sample,", "image,", 1)
        (folder / f"{name}.csv").write_text(text)
    out = f"top{ending}"
    arguments = ["--id-column", "image", "--top", "1", "--out", out, "--quiet"]
    assert main(["fuse", "a.csv", "b.csv", *arguments]) == 0
    read = pd.read_csv if ending == ".csv" else pd.read_parquet
    assert list(read(folder / out).columns) == ["image", "label", "confidence"]
    assert read_predictions(out, id_column="image").n_samples > 0


def test_files_are_scored_on_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("long.csv").write_text("sample,label\na,1\nb,1\nc,5\n")
    Path("wide.csv").write_text("sample,1,2,3,4,5\na,1,0,0,0,0\nb,1,0,0,0,0\nc,0,0,0,0,1\n")
    Path("truth.csv").write_text("sample,label\na,1\nb,5\nc,5\n")
    assert (
        main(["score", "--truth", "truth.csv", "long.csv", "wide.csv", "--metric", "rps", "--json"])
        == 0
    )
    one, other = (each["value"] for each in json.loads(capsys.readouterr().out))
    assert one == pytest.approx(other) == pytest.approx(4 / 3)


def test_files_with_other_orders_of_words_are_not_scored_on_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("sample,good,bad,fair\na,1,0,0\nb,0,0,1\n")
    Path("two.csv").write_text("sample,bad,fair,good\na,0,0,1\nb,0,1,0\n")
    Path("truth.csv").write_text("sample,label\na,good\nb,bad\n")
    given = ["score", "--truth", "truth.csv", "--metric", "rps", "one.csv", "two.csv"]
    assert main(given) == 2
    assert "--target FILE names all labels" in capsys.readouterr().err
    Path("order.txt").write_text("bad\nfair\ngood\n")
    given = [
        "score",
        "--truth",
        "truth.csv",
        "one.csv",
        "two.csv",
        "--metric",
        "rps",
        "--target",
        "order.txt",
        "--json",
    ]
    assert main(given) == 0
    one, other = (each["value"] for each in json.loads(capsys.readouterr().out))
    assert one == pytest.approx(other)
