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


@pytest.mark.parametrize(
    "command",
    [
        ["score", "a.csv", "--truth", "ones.csv"],
        ["fuse", "a.csv", "b.csv", "--confusion", "ones.csv", "--out", "f.csv"],
    ],
)
def test_a_truth_of_one_class_in_a_column_that_nobody_named_is_refused(folder, capsys, command):
    lines = "".join(f"s{i},1\n" for i in range(24))
    (folder / "ones.csv").write_text(f"id,digit\n{lines}")
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "got 1 for every sample in 'digit', the only column" in said
    assert "--truth-column digit" in said
    assert main([*command, "--truth-column", "digit"]) == 0


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


def test_score_refuses_a_truth_that_shares_no_label_with_a_file(folder, capsys):
    assert main(["score", "a.csv", "--truth", "words.csv", "--metric", "accuracy"]) == 2
    printed = capsys.readouterr()
    assert "0.0000" not in printed.out
    assert "'zero', 'one', 'two'" in printed.err
    assert "--aliases" in printed.err
    aliases = folder / "aliases.csv"
    aliases.write_text("model,source,target\na,0,zero\na,1,one\na,2,two\nb,0,zero\n")
    judge = ["score", "a.csv", "b.csv", "--metric", "accuracy", "--json"]
    assert main([*judge, "--truth", "label.csv"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert main([*judge, "--truth", "words.csv", "--aliases", "aliases.csv"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0] == expected[0]
    assert found[1]["value"] < expected[1]["value"]  # two of its labels lead to no true one


def test_score_matches_labels_whatever_their_case_if_asked_to(folder, capsys):
    text = (folder / "a.csv").read_text()
    (folder / "named.csv").write_text(text.replace("0,1,2", "cat,dog,Polar_Bear", 1))
    truth = (folder / "label.csv").read_text()
    for digit, name in (("0", "CAT"), ("1", "Dog"), ("2", "polar bear")):
        truth = truth.replace(f",{digit}\n", f",{name}\n")
    (folder / "cap.csv").write_text(truth)
    assert main(["score", "named.csv", "--truth", "cap.csv"]) == 2
    assert "--fold" in capsys.readouterr().err
    assert main(["score", "a.csv", "--truth", "label.csv", "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert main(["score", "named.csv", "--truth", "cap.csv", "--fold", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["value"] for each in found] == [each["value"] for each in expected]


def test_confusion_warns_of_true_labels_in_another_case_and_folds_them(folder, capsys):
    for name in "ab":
        text = (folder / f"{name}.csv").read_text()
        (folder / f"{name}.csv").write_text(text.replace("0,1,2", "cat,dog,cow", 1))
    truth = (folder / "label.csv").read_text()
    for digit, name in (("0", "Cat"), ("1", "Dog"), ("2", "Cow")):
        truth = truth.replace(f",{digit}\n", f",{name}\n")
    (folder / "cap.csv").write_text(truth)
    fuse = ["a.csv", "b.csv", "--confusion", "cap.csv"]
    assert main(["fuse", *fuse, "--out", "f.csv"]) == 0
    said = capsys.readouterr().err
    assert "'Cat' and 'cat'" in said
    assert "--fold" in said
    assert main(["explain", *fuse]) == 0
    assert "'Cat' and 'cat'" in capsys.readouterr().err
    assert main(["fuse", *fuse, "--fold", "--weights", "accuracy", "--out", "g.csv"]) == 0
    assert "differ only in case" not in capsys.readouterr().err
    assert (folder / "g.csv").read_text().splitlines()[0] == "sample,cat,dog,cow"


def test_fit_warns_of_true_labels_that_some_model_writes_in_another_case(folder, capsys):
    (folder / "b.csv").write_text((folder / "b.csv").read_text().replace("0,1,2", "A,B,C", 1))
    (folder / "a.csv").write_text((folder / "a.csv").read_text().replace("0,1,2", "a,b,c", 1))
    truth = (folder / "label.csv").read_text()
    for digit, name in zip("012", "ABC", strict=True):
        truth = truth.replace(f",{digit}\n", f",{name}\n")
    (folder / "cap.csv").write_text(truth)
    assert main(["fit", "a.csv", "b.csv", "--truth", "cap.csv", *LEARN]) == 0
    assert "'A' and 'a'" in capsys.readouterr().err


def test_fit_refuses_a_truth_that_shares_no_label_with_the_models(folder, capsys):
    assert main(["fit", "a.csv", "b.csv", "--truth", "words.csv", *LEARN]) == 2
    said = capsys.readouterr().err
    assert "no true label is a label of the models" in said
    assert "hint: --aliases says which labels mean the same" in said
    (folder / "kernel.csv").write_text("source,target,similarity\n0,zero,1\n1,one,1\n2,two,1\n")
    (folder / "target.txt").write_text("zero\none\ntwo\n")
    joined = ["--kernel", "kernel.csv", "--target", "target.txt"]
    assert main(["fit", "a.csv", "--truth", "words.csv", *joined, *LEARN]) == 0


def test_evaluate_says_what_to_do_about_true_labels_that_were_not_learned(folder, capsys):
    assert main(["fit", "a.csv", "b.csv", "--truth", "label.csv", *LEARN]) == 0
    truth = (folder / "label.csv").read_text()
    (folder / "new.csv").write_text(truth.replace(",2\n", ",seven\n", 1))
    capsys.readouterr()
    assert main(["evaluate", LEARN[-1], "a.csv", "b.csv", "--truth", "new.csv"]) == 2
    said = capsys.readouterr().err
    assert "got 'seven'" in said
    assert "hint: leave the samples of these labels out of the truth, or learn with" in said


def test_several_true_labels_of_a_sample_are_what_multilabel_is_for(folder, capsys):
    (folder / "table.csv").write_text("sample,0,1,2\ns0,1,1,0\ns1,1,0,0\n")
    assert main(["fit", "a.csv", "b.csv", "--truth", "table.csv", *LEARN]) == 2
    assert "hint: --kind multilabel takes any number of true labels" in capsys.readouterr().err
