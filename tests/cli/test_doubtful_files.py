"""Files that do not belong together, or that are not what they look like: one clear word each."""

import json
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from wassemble import InputWarning, InvalidInputError, fuse, read_predictions
from wassemble.cli import main


@pytest.fixture
def put(tmp_path, monkeypatch):
    """A function that writes files, into the folder that commands run in."""
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")

    return write


def fused(*arguments):
    return main(["fuse", *arguments, "--out", "fused.csv"])


A = "sample,cat,dog\nimg1.jpg,.7,.3\nimg2.jpg,.2,.8\n"
B = "sample,cat,dog\nimg1,.6,.4\nimg2,.1,.9\n"


def test_files_without_a_sample_in_common_are_refused(put, tmp_path, capsys):
    put(a=A, b=B)
    assert fused("a.csv", "b.csv") == 2
    said = capsys.readouterr().err
    assert "'img1.jpg' and 'img1'; 'img2.jpg' and 'img2'" in said
    assert "--allow-disjoint" in said
    assert not (tmp_path / "fused.csv").exists()
    for command in ("explain",):
        assert main([command, "a.csv", "b.csv"]) == 2
    assert fused("a.csv", "b.csv", "--allow-disjoint") == 0
    assert read_predictions("fused.csv").n_samples == 4


def test_a_small_overlap_is_a_warning_in_the_account(put, capsys):
    put(a=A + "x,.5,.5\n", b=B + "x,.5,.5\n")
    assert fused("a.csv", "b.csv", "--json") == 0
    printed = capsys.readouterr()
    assert printed.err.count("warning: 'a' shares 1 of 3 samples") == 1
    assert "shares 1 of 3" in json.loads(printed.out)["warnings"][0]
    assert fused("a.csv", "b.csv", "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_labels_that_differ_only_in_how_they_are_written_are_a_warning(put, capsys):
    put(a="sample,Polar_Bear,dog\nx,.7,.3\n", b="sample,polar bear,dog\nx,.6,.4\n")
    assert fused("a.csv", "b.csv") == 0
    said = capsys.readouterr().err
    assert "warning: labels that differ only in case" in said
    assert "'Polar_Bear' and 'polar bear'" in said
    assert "--fold" in said
    assert fused("a.csv", "b.csv", "--fold") == 0
    assert "warning" not in capsys.readouterr().err


def test_unicode_forms_of_a_label_are_a_warning(put, capsys):
    put(a="sample,cafe\u0301,tea\nx,.7,.3\n", b="sample,caf\u00e9,tea\nx,.6,.4\n")
    assert fused("a.csv", "b.csv") == 0
    assert "Unicode form are different labels" in capsys.readouterr().err


WHOLE = "sample,cat,1,2\nx,.2,.5,.3\n"


@pytest.mark.parametrize("header", ["1.0,2.0", "01,02", "+1,2.", "1.00,02.0"])
def test_a_number_that_is_written_in_two_ways_is_a_warning(put, capsys, header):
    put(a=WHOLE, b=WHOLE.replace("1,2", header))
    one, two = header.split(",")
    assert fused("a.csv", "b.csv") == 0
    said = capsys.readouterr().err
    assert "the way a number is written (1, 1.0, 01)" in said
    assert f"'1' and '{one}'; '2' and '{two}'. --fold takes them for the same label" in said
    assert fused("a.csv", "b.csv", "--fold") == 0
    assert "warning" not in capsys.readouterr().err
    folded = read_predictions("fused.csv")
    assert folded.labels.names == ("cat", "1", "2")
    np.testing.assert_allclose(folded.scores, [[0.2, 0.5, 0.3]], atol=1e-6)


def test_a_number_is_matched_between_a_long_and_a_wide_table_and_json(put, tmp_path, capsys):
    put(a="sample,label,score\nx,1,.5\nx,2,.5\n", b=WHOLE.replace("1,2", "1.0,2.0"))
    (tmp_path / "c.jsonl").write_text('{"sample": "x", "scores": {"1.0": 0.4, "2.0": 0.6}}\n')
    for other in ("b.csv", "c.jsonl"):
        assert fused("a.csv", other) == 0
        assert "'1' and '1.0'; '2' and '2.0'" in capsys.readouterr().err.replace("\n", " ")
        assert fused("a.csv", other, "--fold") == 0
        assert "warning" not in capsys.readouterr().err


def test_versions_beside_names_keep_their_names(put, tmp_path, capsys):
    put(a="sample,app,2.0\nx,.6,.4\n", b="sample,app,2.0\nx,.7,.3\n")
    assert fused("a.csv", "b.csv") == 0
    assert "warning" not in capsys.readouterr().err
    assert (tmp_path / "fused.csv").read_text().startswith("sample,app,2.0\n")


def test_grades_of_one_number_are_told_apart_from_a_line(put, capsys):
    put(a="sample,1,2\nx,.7,.3\n", b="sample,1.0,2.0\nx,.6,.4\n")
    assert fused("a.csv", "b.csv", "--ordered") == 2
    assert "hint: --fold takes them for one label" in capsys.readouterr().err
    assert fused("a.csv", "b.csv", "--ordered", "--fold") == 0


def test_models_without_a_label_in_common_are_a_warning(put, capsys):
    put(a="sample,cat,dog\nx,.7,.3\n", b="sample,Katze,Hund\nx,.6,.4\n")
    assert fused("a.csv", "b.csv") == 0
    said = capsys.readouterr().err
    assert "warning: 'a' and 'b' have no label in common: 'cat', 'dog', and 'Katze', 'Hund'" in said
    put(k="source,target,similarity\ncat,cat,1\ndog,dog,1\nKatze,cat,1\nHund,dog,1\n")
    assert fused("a.csv", "b.csv", "--kernel", "k.csv") == 0
    assert "warning" not in capsys.readouterr().err


def test_a_target_that_matches_nothing_is_refused(put, tmp_path, capsys):
    put(a=A, b=A)
    (tmp_path / "target.txt").write_text("Cats\nDogs\n")
    assert fused("a.csv", "b.csv", "--target", "target.txt") == 2
    said = capsys.readouterr().err
    assert "none is: got 'Cats', 'Dogs', and the models have 'cat', 'dog'" in said
    assert "Nearest names: 'Cats' (target) and 'cat'" in said
    (tmp_path / "target.txt").write_text("Cat\nDog\n")
    assert fused("a.csv", "b.csv", "--target", "target.txt") == 2
    assert "hint: --fold" in capsys.readouterr().err


def test_percentages_are_refused(put, capsys):
    put(a="sample,cat,dog\nx,70,30\ny,20,80\n")
    assert fused("a.csv") == 2
    said = capsys.readouterr().err
    assert "every row sums to 100, or nearly so, as percentages do" in said
    assert "divide the scores by 100" in said
    assert "multilabel" not in said
    assert fused("a.csv", "--kind", "multilabel") == 0


def test_percentages_with_an_empty_cell_are_refused(put, capsys):
    put(a="sample,cat,dog,eel\nx,70,20,10\ny,20,70,\nz,,,\n")
    assert fused("a.csv") == 2
    said = capsys.readouterr().err
    assert "every row without an empty cell sums to 100, or nearly so, as percentages do" in said
    assert "--normalize" in said
    assert fused("a.csv", "--normalize") == 0


def test_counts_with_an_empty_cell_are_no_percentages(put, capsys):
    put(a="sample,cat,dog,eel\nx,70,20,10\ny,90,70,\n")
    assert fused("a.csv") == 0
    assert "scores go up to 90" in capsys.readouterr().err


def test_logits_are_refused_or_doubted(put, capsys):
    put(a="sample,cat,dog\nx,-1.5,2.5\n", b="sample,cat,dog\nx,11.5,2.5\n")
    assert fused("a.csv") == 2
    assert "softmax" in capsys.readouterr().err
    assert fused("b.csv") == 0
    assert "warning: b: scores go up to 11.5: if they are logits" in capsys.readouterr().err
    assert fused("b.csv", "--kind", "multilabel") == 0
    assert "warning" not in capsys.readouterr().err


def test_a_transposed_table_is_named(put, capsys):
    put(a="sample,cat,dog\nx,.7,.3\ny,.2,.8\n", b="sample,x,y\ncat,.7,.2\ndog,.3,.8\n")
    assert fused("a.csv", "b.csv") == 2
    assert "'a' or 'b' looks transposed" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["confidence", "split", "fold", "target", "prediction", "n"])
def test_a_stray_column_beside_histograms_is_named(put, tmp_path, capsys, name):
    put(a=f"sample,cat,dog,{name}\nx,.7,.3,2\ny,.2,.8,1\n")
    assert fused("a.csv") == 2
    assert f"got '{name}', without which every row sums to 1" in capsys.readouterr().err
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    assert fused("a.csv", "--labels", "labels.txt") == 0
    assert fused("a.csv", "--kind", "multilabel") == 0


def test_scores_on_several_scales_are_a_warning(put, tmp_path, capsys):
    put(a="sample,cat,dog\nx,80,20\ny,30,70\n", b="sample,cat,dog\nx,.1,.9\ny,.3,.6\n")
    said = "scores go up to 80 ('a'), but to 0.9 ('b')"
    assert fused("a.csv", "b.csv", "--kind", "multilabel") == 0
    assert said in capsys.readouterr().err
    assert fused("a.csv", "c=a.csv", "--kind", "multilabel") == 0
    assert "scores go up" not in capsys.readouterr().err
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "part-0.csv").write_bytes((tmp_path / f"{name}.csv").read_bytes())
    assert main(["fuse", "a", "b", "--kind", "multilabel", "--out", "parts"]) == 0
    assert said in capsys.readouterr().err
    tables = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in "ab"}
    with pytest.warns(InputWarning, match=re.escape(said)):
        fuse(tables, kind="multilabel")


def test_a_column_without_any_score_is_a_warning(put, tmp_path, capsys):
    empty = "sample,cat,dog,eel\nx,.7,.3,\ny,.2,.8,\n"
    put(a=empty, b="sample,cat,dog,eel\nx,.6,.2,.2\ny,.1,.1,.8\n")
    said = "a: the column 'eel' never has a score"
    assert fused("a.csv", "b.csv") == 0
    printed = capsys.readouterr().err
    assert said in printed
    assert "leave the column out, or --labels lists the others" in printed
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "part-0.csv").write_bytes((tmp_path / f"{name}.csv").read_bytes())
    assert main(["fuse", "a", "b", "--out", "parts"]) == 0
    assert said in capsys.readouterr().err
    tables = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in "ab"}
    with pytest.warns(InputWarning, match=said):
        fuse(tables)


def test_lists_of_best_answers_may_lack_any_label(put, capsys):
    wide = "sample,cat,dog,eel,fox\nx,.7,.2,,\ny,,.2,.7,\nz,.2,,.6,\n"
    put(a=wide, b="sample,cat,dog,eel,fox\nx,.6,.2,.1,.1\ny,.1,.1,.7,.1\nz,.1,.1,.7,.1\n")
    put(c="sample,label,score\nx,cat,.9\ny,dog,.8\n", d="sample,cat,dog\nx,.7,\n")
    assert fused("a.csv", "b.csv", "c.csv", "d.csv") == 0
    assert "never" not in capsys.readouterr().err


def test_a_target_label_that_nothing_reaches_is_a_warning(put, tmp_path, capsys):
    put(a="sample,car,dog\nx,.7,.3\n", b="sample,car,dog\nx,.6,.4\n")
    (tmp_path / "words.txt").write_text("car 1 0 0\ndog 0 1 0\nbus .9 .1 0\n")
    (tmp_path / "target.txt").write_text("car\nbus\ntrain\n")
    said = "the target label 'train' cannot be reached from any label of any model"
    way = ("a.csv", "b.csv", "--embeddings", "words.txt", "--target", "target.txt")
    assert fused(*way) == 0
    assert said in capsys.readouterr().err
    (tmp_path / "target.txt").write_text("car\nbus\n")
    assert fused(*way) == 0
    assert "cannot be reached" not in capsys.readouterr().err
    with pytest.warns(InputWarning, match="labels 'bus', 'train' cannot be reached"):
        fuse([read_predictions("a.csv")], target=["car", "bus", "train"])


def test_agreeing_scores_of_labels_are_told_to_be_raised_to_a_power(put, capsys):
    put(a="sample,cat,dog\nx,.9,.5\n")
    assert fused("a.csv", "b=a.csv") == 0
    assert "models agree are raised to the power 0.87" in capsys.readouterr().err
    agreed = read_predictions("fused.csv").scores
    np.testing.assert_allclose(agreed, [[0.9 ** (2 / 2.3), 0.5 ** (2 / 2.3)]], rtol=1e-3)
    assert fused("a.csv", "b=a.csv", "--rule", "arithmetic") == 0
    assert "raised" not in capsys.readouterr().err
    np.testing.assert_allclose(read_predictions("fused.csv").scores, [[0.9, 0.5]])


SMALL = ["sample,cat,dog\nx,.55,.4\ny,.2,.75\n", "sample,cat,dog\nx,.9,.3\n"]
SMALL += [f"sample,label,score\nx,cat,.{one}\nx,dog,.{two}\n" for one, two in (("55", "4"), "93")]


@pytest.mark.parametrize("text", SMALL)
def test_rows_that_nearly_sum_to_1_are_a_warning_in_a_table_of_any_size(
    put, tmp_path, capsys, text
):
    put(a=text)
    assert fused("a.csv", "x=a.csv") == 0
    said = capsys.readouterr().err
    assert "warning: a: rows sum to" in said
    assert "--normalize divides each row by its sum" in said
    assert fused("a.csv", "x=a.csv", "--kind", "multilabel") == 0
    assert "rows sum" not in capsys.readouterr().err
    table = pd.read_csv(tmp_path / "a.csv")
    with pytest.warns(InputWarning, match="rows sum to"):
        fuse({"a": table, "x": table})
    with pytest.warns(InputWarning, match="rows sum to"):
        fuse([read_predictions(tmp_path / "a.csv")])


@pytest.mark.parametrize(
    ("text", "why", "first"),
    [
        ("sample,cat,dog\nx,.7,.3\ny,.58,.4\n", "sample 'y' sums to 0.98", "--normalize"),
        ("sample,cat,dog\nx,.55,.4\ny,.2,.75\n", "sample 'x' sums to 0.95", "--normalize"),
        ("sample,cat,dog\nx,.9,.8\ny,.58,.4\n", "sample 'x' sums to 1.7", "--kind multilabel"),
        ("sample,label\nx,cat\ny,cat\ny,dog\n", "sample 'y' has 2 labels", "--kind multilabel"),
    ],
)
def test_mixed_kinds_are_told_with_the_sample_that_makes_one_of_them(
    put, tmp_path, capsys, text, why, first
):
    put(a="sample,cat,dog\nx,.7,.3\ny,.6,.4\n", b=text)
    assert fused("a.csv", "b.csv") == 2
    said = capsys.readouterr().err
    assert f"got a multiclass, b multilabel ({why})" in said
    assert f"hint: {first}" in said
    assert "--normalize divides each row by its sum" in said
    models = [read_predictions(tmp_path / f"{name}.csv") for name in "ab"]
    with pytest.raises(InvalidInputError, match=re.escape(why)):
        fuse(models)


def test_labels_that_leave_no_histogram_are_told_with_what_they_leave_out(put, tmp_path, capsys):
    put(a="sample,cat,dog,eel\nx,.5,.3,.2\ny,.1,.8,.1\n")
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    assert fused("a.csv", "--labels", "labels.txt") == 0
    said = capsys.readouterr().err
    assert "warning: a: --labels lists not all columns: 'eel' is left out" in said
    assert "--kind multilabel" in said
    assert fused("a.csv", "--labels", "labels.txt", "--kind", "multilabel") == 0
    assert "left out" not in capsys.readouterr().err


def test_two_stray_columns_are_named(put, capsys):
    put(a="sample,cat,dog,confidence,fold\nx,.7,.3,.7,4\ny,.2,.8,.8,3\n")
    assert fused("a.csv") == 2
    assert "got 'confidence', 'fold', without which" in capsys.readouterr().err


def test_a_stray_column_beside_scores_is_doubted(put, capsys):
    put(a="sample,cat,dog,fold\nx,.7,.7,4\ny,.2,.9,3\n")
    assert fused("a.csv") == 0
    assert "warning: a: 'fold' may be no label" in capsys.readouterr().err


@pytest.mark.parametrize("header", ["", "Unnamed: 0"])
def test_an_index_that_pandas_wrote_is_never_a_label(put, capsys, header):
    put(
        a=f"{header},cat,dog\n0,.7,.3\n1,.2,.8\n",
        b=f"{header},sample,cat,dog\n5,0,.7,.3\n6,1,.2,.8\n",
    )
    assert fused("a.csv", "b.csv", "--json") == 0
    printed = capsys.readouterr()
    account = json.loads(printed.out)
    assert account["n_target_labels"] == 2
    assert "without a name; 2 labels: cat, dog" in printed.err
    assert [model["id_column"] for model in account["models"]] == [None, "sample"]


def test_the_account_says_which_columns_were_ids_and_labels(put, capsys):
    header = "image," + ",".join("0123456789")
    put(a=f"{header}\nx" + ",.1" * 10 + "\n")
    assert fused("a.csv", "--json") == 0
    printed = capsys.readouterr()
    assert "a.csv: ids in 'image'; 10 labels: 0, 1, 2, 3, 4, ..." in printed.err
    (model,) = json.loads(printed.out)["models"]
    assert (model["file"], model["id_column"]) == ("a.csv", "image")
    assert main(["describe", "a.csv"]) == 0
    assert "read from\ta.csv; ids in 'image'" in capsys.readouterr().out
    assert main(["describe", "a.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["id_column"] == "image"


@pytest.mark.parametrize(
    "out", ["f.csv", "f.tsv", "f.parquet", "f.arrow", "f.jsonl", "f.npz", None]
)
def test_ids_keep_their_name(put, tmp_path, capsys, out):
    put(a="image,cat,dog\nx,.7,.3\n", b="sample,cat,dog\nx,.6,.4\n")
    assert main(["fuse", "a.csv", "b.csv", *(["--out", out] if out else [])]) == 0
    if out is None:
        out = "f.csv"
        (tmp_path / out).write_text(capsys.readouterr().out)
    choice = {} if out.endswith("npz") else {"id_column": "image"}
    read = read_predictions(out, **choice)
    assert read.samples.tolist() == ["x"]
    assert read.origin.id_column == "image"


def test_rows_without_ids_are_matched_by_their_order(put, capsys):
    put(
        a="cat,dog\n.7,.3\n.2,.8\n", b="cat,dog\n.6,.4\n.1,.9\n", c="id,cat,dog\nx,.5,.5\ny,.5,.5\n"
    )
    assert fused("a.csv", "b.csv") == 2
    assert "--by-row" in capsys.readouterr().err
    assert fused("a.csv", "b.csv", "--by-row") == 0
    assert "a.csv: no ids, rows counted from 0; 2 labels" in capsys.readouterr().err
    assert read_predictions("fused.csv").samples.tolist() == [0, 1]
    assert fused("a.csv", "c.csv", "--by-row") == 0
    assert read_predictions("fused.csv").samples.tolist() == ["x", "y"]
    put(b="cat,dog\n.6,.4\n", d="id,cat,dog\ny,.5,.5\nx,.5,.5\n")
    assert fused("a.csv", "b.csv", "--by-row") == 2
    assert "got 2 of 'a' and 1 of 'b'" in capsys.readouterr().err
    assert fused("c.csv", "d.csv", "--by-row") == 2
    assert "got 'x' of 'c' and 'y' of 'd' at row 0" in capsys.readouterr().err


def digits(n, seed):
    """Two models of ten digits, and the truth among other columns."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    tables = []
    for _ in range(2):
        scores = rng.dirichlet(np.ones(3), n) + 2 * np.eye(3)[truth]
        tables.append(scores / scores.sum(axis=1, keepdims=True))
    return truth, tables


@pytest.mark.parametrize("number", ["{}", "{}.0"])
def test_truth_comes_from_any_column_and_numbers_are_labels(put, capsys, number):
    truth, tables = digits(30, 0)
    for name, table in zip("ab", tables, strict=True):
        rows = [f"i{i}," + ",".join(map(str, row)) for i, row in enumerate(table.tolist())]
        put(**{name: "image,0,1,2\n" + "\n".join(rows) + "\n"})
    known = [f"i{i},28,{number.format(label)},train" for i, label in enumerate(truth)]
    put(t="image,width,digit,split\n" + "\n".join(known) + "\n")
    options = ["a.csv", "b.csv", "--truth", "t.csv", "--truth-column", "digit"]
    options += ["--id-column", "image"]
    assert main(["fit", *options, "--out", "e", "--quiet"]) == 0
    assert main(["evaluate", "e", *options, "--json"]) == 0
    board = json.loads(capsys.readouterr().out.partition("{")[2].join(["{", ""]))
    assert board["n_samples"] == 30
    assert main(["score", *options, "--json"]) == 0
    assert {each["n_scored"] for each in json.loads(capsys.readouterr().out)} == {30}
    assert main(["fit", *options[:4], "--out", "e"]) == 2
    confusion = ["--confusion", "t.csv", "--truth-column", "digit"]
    put(t="image,width,digit\n" + "\n".join(",".join(row.split(",")[:3]) for row in known) + "\n")
    assert fused("a.csv", "b.csv", *confusion) == 0


def test_rows_and_truth_without_ids_are_matched_by_their_order(put):
    truth, tables = digits(30, 0)
    for name, table in zip("ab", tables, strict=True):
        rows = [",".join(map(str, row)) for row in table.tolist()]
        put(**{name: "0,1,2\n" + "\n".join(rows) + "\n"})
    put(t="digit\n" + "\n".join(map(str, truth)) + "\n")
    options = ["a.csv", "b.csv", "--truth", "t.csv", "--truth-column", "digit", "--by-row"]
    assert main(["fit", *options, "--out", "e", "--quiet"]) == 0


def test_a_truth_with_other_ids_is_one_clear_error(put, capsys):
    put(a=A, b=A, t="sample,label\nimg1,cat\nimg2,dog\n")
    assert main(["fit", "a.csv", "b.csv", "--truth", "t.csv", "--out", "e"]) == 2
    said = capsys.readouterr().err
    assert "the truth must know some sample of the models; it knows none" in said
    assert "'img1.jpg' and 'img1'" in said
    assert fused("a.csv", "--confusion", "t.csv") == 2
    assert "'img1.jpg' and 'img1'" in capsys.readouterr().err


def test_labels_of_the_truth_that_are_all_written_otherwise_are_refused(put, capsys):
    rows = [f"s{i},.{6 + i % 3},.{4 - i % 3}" for i in range(10)]
    put(
        a="sample,cat,dog\n" + "\n".join(rows) + "\n", b="sample,cat,dog\n" + "\n".join(rows) + "\n"
    )
    put(t="sample,label\n" + "\n".join(f"s{i},{'Cat' if i % 2 else 'Dog'}" for i in range(10)))
    assert main(["fit", "a.csv", "b.csv", "--truth", "t.csv", "--out", "e"]) == 2
    assert "hint: --fold takes them for the same label" in capsys.readouterr().err


def test_new_files_without_a_sample_in_common_are_refused(put, capsys):
    rows = [f"s{i},.{6 + i % 3},.{4 - i % 3}" for i in range(10)]
    put(a="sample,cat,dog\n" + "\n".join(rows) + "\n")
    put(b="sample,cat,dog\n" + "\n".join(rows) + "\n")
    put(t="sample,label\n" + "\n".join(f"s{i},{'cat' if i % 2 else 'dog'}" for i in range(10)))
    assert main(["fit", "a.csv", "b.csv", "--truth", "t.csv", "--out", "e", "--quiet"]) == 0
    put(a=A, b=B)
    assert main(["predict", "e", "a.csv", "b.csv", "--out", "f.csv"]) == 2
    assert "must have samples in common" in capsys.readouterr().err


def test_names_beyond_ascii_on_an_ascii_terminal(put):
    put(a="sample,猫,chien\nx,.7,.3\n", b="sample,猫,Chien\nx,.6,.4\n")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for command in ("describe", "fuse"):
        done = subprocess.run(
            [sys.executable, "-m", "wassemble", command, "a.csv", "b.csv"],
            env=environment,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "猫" in done.stdout.decode()


def test_a_pipe_is_one_clear_error(put, tmp_path, capsys):
    os.mkfifo(tmp_path / "a.csv")
    found = []
    thread = threading.Thread(target=lambda: found.append(fused("a.csv")), daemon=True)
    thread.start()
    thread.join(60)
    assert found == [2]
    assert "must be a file, which is read more than once; got a pipe" in capsys.readouterr().err


def test_process_substitution_is_one_clear_error(put, capsys):
    read, write = os.pipe()
    try:
        assert main(["describe", f"/dev/fd/{read}"]) == 2
    finally:
        os.close(read)
        os.close(write)
    assert "got a pipe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the first line must name the columns; got an empty file"),
        ("sample;cat;dog\nx;.7;.3\n", "it looks as if they were separated by ';'"),
        ("sample\tcat\nx\t.7\n", "separated by '\\t'"),
        ("sample\nx\n", "must have a column of scores for each label; got none"),
    ],
)
def test_files_that_are_no_tables_are_one_clear_error(put, capsys, text, words):
    put(a=text, b=B)
    assert fused("a.csv", "b.csv") == 2
    assert words in capsys.readouterr().err


def test_a_byte_order_mark_is_no_part_of_a_name(put):
    put(a="\ufeff" + B, b=B)
    assert fused("a.csv", "b.csv") == 0
    assert read_predictions("fused.csv").labels.names == ("cat", "dog")


def test_a_header_without_rows_is_a_model_without_answers(put, capsys):
    put(a="sample,cat,dog\n", b=B)
    assert fused("a.csv", "b.csv") == 0
    said = capsys.readouterr().err
    assert "warning: 'a' answered none of 2 samples and has no say" in said
    assert "a: no answer for" not in said


def test_headers_without_rows_are_no_samples_to_fuse(put, tmp_path, capsys):
    put(a="sample,cat,dog\n", b="sample,cat,dog\n")
    assert fused("a.csv", "b.csv") == 2
    assert "some file must have samples; got no rows in a.csv, b.csv" in capsys.readouterr().err
    assert not (tmp_path / "fused.csv").exists()


def test_a_header_without_rows_does_not_tell_its_ids(put, capsys):
    put(a="image,cat,dog\n", b=B)
    assert fused("a.csv", "b.csv") == 2
    said = capsys.readouterr().err
    assert "the table must have rows, which tell the column of sample ids; got none" in said
    assert "--id-column" in said


def test_one_is_counted_as_one(put, capsys):
    put(a="sample,cat,dog\nx,.7,.3\n")
    assert fused("a.csv") == 0
    assert "1 sample x 2 labels from 1 model in" in capsys.readouterr().err
    put(a="sample,cat,dog\nx,.7,\n", b="sample,cat,dog\nx,.7,\ny,.4,\n")
    assert fused("a.csv", "b.csv") == 0
    said = capsys.readouterr().err
    assert "a: 1 answer was partial" in said
    assert "b: 2 answers were partial" in said


def test_a_folder_in_place_of_a_file_is_one_clear_error(put, tmp_path, capsys):
    put(a=A, b=A)
    (tmp_path / "t").mkdir()
    assert main(["fit", "a.csv", "b.csv", "--truth", "t", "--out", "e"]) == 2
    assert fused("a.csv", "t") == 2
    for line in capsys.readouterr().err.splitlines():
        assert "should not happen" not in line


PARTS = ["image,cat,dog,cow\n" + "".join(f"i{k},{k},3,2\n" for k in range(1, 9))] * 2


def test_counts_and_percentages_are_divided_by_their_sums_if_asked(put, capsys):
    put(a=PARTS[0], b="image,cat,dog,cow\n" + "".join(f"i{k},70,20,10\n" for k in range(1, 9)))
    assert fused("a.csv", "b.csv", "--normalize", "--rule", "arithmetic") == 0
    assert "a.csv: ids in 'image', each row divided by its sum" in capsys.readouterr().err
    found = read_predictions("fused.csv")
    expected = (np.array([1, 3, 2]) / 6 + [0.7, 0.2, 0.1]) / 2
    np.testing.assert_allclose(found.scores[0], expected)
    assert fused("a.csv", "--normalize", "--kind", "multilabel") == 2
    assert "--normalize makes histograms; got --kind multilabel" in capsys.readouterr().err


def test_folders_of_counts_are_divided_by_their_sums_if_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in zip("ab", PARTS, strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.csv").write_text(text)
    assert main(["fuse", "a", "b", "--normalize", "--out", "fused"]) == 0
    found = read_predictions("fused/part.csv")
    np.testing.assert_allclose(found.scores[0], np.array([1, 3, 2]) / 6, rtol=1e-5)


def test_other_commands_divide_rows_by_their_sums_too(put, capsys):
    truth = "image,label\n" + "".join(f"i{k},{'cat' if k > 3 else 'dog'}\n" for k in range(1, 9))
    put(a=PARTS[0], truth=truth)
    assert main(["score", "a.csv", "--truth", "truth.csv", "--normalize"]) == 0
    assert main(["explain", "a.csv", "--sample", "i1", "--normalize"]) == 0
    capsys.readouterr()
