"""Learning from the command line: fit, evaluate, report, predict."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from wassemble import Predictions, learn_ensemble, read_predictions, write_predictions
from wassemble.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    labels = ["cat", "dog", "cow"]
    truth = rng.integers(3, size=120)
    for name, strength in (("a", 1.0), ("b", 2.0)):
        scores = np.exp(rng.normal(size=(120, 3)) + strength * np.eye(3)[truth])
        scores /= scores.sum(axis=1, keepdims=True)
        write_predictions(f"{name}.csv", Predictions(name, range(120), labels, scores))
    for part, rows in (("validation", range(60)), ("test", range(60, 120))):
        lines = "".join(f"{i},{labels[truth[i]]}\n" for i in rows)
        (tmp_path / f"{part}.csv").write_text(f"sample,label\n{lines}")
    return tmp_path


def test_an_ensemble_is_learned_judged_and_used(folder, capsys):
    files = ["a.csv", "b.csv"]
    options = ["--truth", "validation.csv", "--out", "e", "--n-folds", "2", "--time-budget", "0"]
    assert main(["fit", *files, *options]) == 0
    printed = capsys.readouterr()
    assert "arithmetic mean" in printed.out
    assert "chosen: " in printed.err
    assert "learned from 60 samples" in printed.err
    assert printed.err.count("temperature: ") == 1

    assert main(["evaluate", "e", *files, "--truth", "test.csv"]) == 0
    printed = capsys.readouterr()
    assert "* " in printed.out
    assert "microseconds per sample" in printed.out
    assert main(["evaluate", "e", *files, "--truth", "test.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n_samples"] == 60
    assert found["chosen"] in {outcome["name"] for outcome in found["outcomes"]}

    assert main(["report", "e", *files, "--truth", "test.csv", "--out", "r.html"]) == 0
    assert "wrote r.html and r.json" in capsys.readouterr().err
    page = (folder / "r.html").read_text()
    assert found["chosen"] in page
    assert f"best simple rule beside the chosen one: {found['best_simple']}" in printed.err
    reported = json.loads((folder / "r.json").read_text())["headline"]
    assert reported["best_simple"]["name"] == found["best_simple"]
    assert reported["verdict"] == found["verdict"]

    assert main(["predict", "e", *files, "--out", "fused.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_samples"] == 120
    fused = read_predictions("fused.csv")
    np.testing.assert_allclose(fused.scores.sum(axis=1), 1)
    assert main(["predict", "e", *files, "--quiet"]) == 0
    (folder / "piped.csv").write_text(capsys.readouterr().out)
    np.testing.assert_allclose(read_predictions("piped.csv").scores, fused.scores)


def test_when_a_richer_rule_is_taken_is_said_alike_wherever_it_is_said(capsys):
    assert main(["fit", "--help"]) == 0
    root = Path(__file__).parents[2]
    said = [
        capsys.readouterr().out,
        learn_ensemble.__doc__,
        (root / "README.md").read_text(encoding="utf-8"),
        (root / "docs/guides/learn.md").read_text(encoding="utf-8"),
    ]
    for text in said:
        words = " ".join(text.split())
        assert re.search("more than .*caution.* standard errors of the paired difference", words)
        assert "by nested choice" in words
        assert "the noise of the data" not in words


def test_new_files_are_told_by_names_or_labels_or_by_what_the_error_shows(folder, capsys):
    wide = read_predictions("b.csv")
    more = np.concatenate([wide.scores, np.zeros((120, 1))], axis=1)
    more = Predictions("c", wide.samples, [*wide.labels, "emu"], more)
    write_predictions("c.csv", more)
    for name in "abc":
        (folder / f"new_{name}.csv").write_bytes((folder / f"{name}.csv").read_bytes())
    options = ["--truth", "validation.csv", "--n-folds", "2", "--time-budget", "0", "--quiet"]
    assert main(["fit", "a.csv", "c.csv", *options, "--out", "e"]) == 0
    judge = ["--truth", "test.csv"]
    capsys.readouterr()
    for command in (
        ["predict", "e", "new_a.csv", "new_c.csv", "--out", "fused.csv"],
        ["predict", "e", "new_c.csv", "new_a.csv", "--out", "turned.csv"],
        ["evaluate", "e", "new_a.csv", "new_c.csv", *judge],
        ["report", "e", "new_a.csv", "new_c.csv", *judge, "--out", "r.html"],
    ):
        assert main(command) == 0
        assert "told apart by their labels: new_a is a, new_c is c" in capsys.readouterr().err
    assert main(["predict", "e", "a.csv", "c.csv", "--out", "known.csv"]) == 0
    assert "told apart" not in capsys.readouterr().err
    known = (folder / "known.csv").read_bytes()
    assert (folder / "fused.csv").read_bytes() == known
    assert (folder / "turned.csv").read_bytes() == known

    assert main(["fit", "a.csv", "b.csv", *options, "--out", "same"]) == 0
    capsys.readouterr()
    for command in (
        ["predict", "same", "new_a.csv", "new_b.csv"],
        ["evaluate", "same", "new_a.csv", "new_b.csv", *judge],
        ["report", "same", "new_b.csv", "new_a.csv", *judge, "--out", "r.html"],
    ):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "hint: say NAME=FILE: a=FILE b=FILE, where FILE is new_" in said
    assert said.endswith("where FILE is new_b.csv or new_a.csv\n")
    assert main(["predict", "same", "a=new_a.csv", "b=new_b.csv"]) == 0

    assert main(["fit", "a.csv", "b.csv", "c.csv", *options, "--out", "three"]) == 0
    capsys.readouterr()
    assert main(["predict", "three", "new_b.csv", "new_c.csv", "new_a.csv"]) == 2
    said = capsys.readouterr().err
    proven = "a=FILE b=FILE c=new_c.csv, where FILE is new_b.csv or new_a.csv\n"
    assert said.endswith(f"hint: say NAME=FILE: {proven}")


def test_several_true_labels_make_a_multilabel_task(folder, capsys, rng):
    truth = rng.uniform(size=(80, 3)) < 0.4
    scores = np.clip(truth * 0.5 + rng.uniform(0, 0.6, size=(80, 3)), 0, 1)
    labels = ["x", "y", "z"]
    write_predictions("m.csv", Predictions("m", range(80), labels, scores, kind="multilabel"))
    write_predictions("n.csv", Predictions("n", range(80), labels, scores**2, kind="multilabel"))
    table = Predictions("t", range(80), labels, truth.astype(float), kind="multilabel")
    write_predictions("truth.csv", table)
    options = ["--truth", "truth.csv", "--out", "e", "--n-folds", "2", "--time-budget", "0"]
    assert main(["fit", "m.csv", "n.csv", *options, "--kind", "multilabel", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["chosen"] in {line["name"] for line in found["leaderboard"]}
    assert found["choice"]["reasons"]
    assert 0 < found["choice"]["estimate"] <= 1
    assert json.loads((folder / "e" / "ensemble.json").read_text())["metric"] == "mAP"


def test_predict_reads_files_as_fit_was_told_to(folder, capsys):
    for name in "ab":
        given = read_predictions(f"{name}.csv")
        counts = given.replace(scores=np.round(1000 * given.scores), kind="multilabel")
        write_predictions(f"{name}.csv", counts)
    options = ["--truth", "validation.csv", "--n-folds", "2", "--time-budget", "0"]
    assert main(["fit", "a.csv", "b.csv", *options, "--normalize", "--out", "e"]) == 0
    for flags in ([], ["--normalize"]):
        out = f"{len(flags)}.csv"
        assert main(["predict", "e", "a.csv", "b.csv", *flags, "--out", out]) == 0
    assert (folder / "0.csv").read_text() == (folder / "1.csv").read_text()
    assert main(["evaluate", "e", "a.csv", "b.csv", "--truth", "test.csv"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "a.csv", "--truth", "validation.csv"], "--out"),
        (["fit", "a.csv", "--out", "e", "--truth", "none.csv"], "none.csv"),
        (["fit", "a.csv", "--out", "e", "--truth", "test.csv", "--metric", "best"], "got 'best'"),
        (["fit", "a.csv", "--out", "e", "--truth", "test.csv", "--confusion", "x"], "always tried"),
        (["predict", "nowhere", "a.csv"], "ensemble.json"),
        (["predict", "nowhere", "a.csv", "--json"], "got no --out"),
        (["evaluate", "nowhere", "a.csv", "--truth", "test.csv"], "ensemble.json"),
        (["report", "e", "a.csv", "--truth", "test.csv", "--out", "r.txt"], "must end in .html"),
    ],
)
def test_a_wrong_call_is_one_clear_error_and_exit_code_2(folder, capsys, arguments, message):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert "Traceback" not in printed.err


def test_samples_without_the_only_model_of_the_rule_are_called_so(folder, capsys):
    (folder / "b.csv").write_text(
        "sample,cat,dog,cow\n" + "".join(f"{i},0.4,0.3,0.3\n" for i in range(120))
    )
    truth = read_predictions("a.csv").scores.argmax(axis=1)
    lines = "".join(f"{i},{['cat', 'dog', 'cow'][k]}\n" for i, k in enumerate(truth[:60]))
    (folder / "validation.csv").write_text(f"sample,label\n{lines}")
    options = ["--truth", "validation.csv", "--out", "e", "--n-folds", "2", "--time-budget", "0"]
    assert main(["fit", "a.csv", "b.csv", *options]) == 0
    assert "chosen: a alone" in capsys.readouterr().err
    write_predictions("few.csv", read_predictions("a.csv").take(slice(0, 99)))
    assert main(["predict", "e", "a=few.csv", "b.csv", "--out", "fused.csv"]) == 0
    said = capsys.readouterr().err
    assert "'a', the only model that the chosen rule uses, did not answer 21 of 120 samples" in said
    assert "other models answered 21 of them" in said
    assert "no model answered" not in said


def test_learning_says_of_what_it_reads_what_fusing_says(folder, capsys):
    rows = (folder / "a.csv").read_text().splitlines()[1:]
    parts = [row.split(",") for row in rows]
    lines = "".join(f"{p[0]},{p[1]},{float(p[2]) + float(p[3])}\n" for p in parts)
    (folder / "c.csv").write_text(f"sample,feline,other\n{lines}")
    files = ["b.csv", "c.csv"]
    assert main(["fuse", *files, "--out", "f.csv"]) == 0
    fused = capsys.readouterr().err.splitlines()
    told = [line for line in fused if line.startswith(("multiclass", "b", "c", "warning: 'b'"))]
    assert [line.split(":")[0] for line in told] == [
        *("multiclass, detected from the row sums", "b.csv", "c.csv", "c", "warning"),
    ]
    options = ["--n-folds", "2", "--time-budget", "0", "--out", "e"]
    assert main(["fit", *files, "--truth", "validation.csv", *options]) == 0
    learned = capsys.readouterr().err.splitlines()
    assert set(told[:-1]) <= set(learned)
    assert any(line.startswith(told[-1]) for line in learned)
    assert main(["fit", *files, "--truth", "validation.csv", *options, "--quiet"]) == 0
    assert capsys.readouterr().err == ""

    test = [*files, "--truth", "test.csv"]
    for command in (
        ["predict", "e", *files, "--out", "p.csv"],
        ["evaluate", "e", *test],
        ["report", "e", *test, "--out", "r.html"],
    ):
        assert main(command) == 0
        said = capsys.readouterr().err
        assert told[1] in said
        assert told[2] in said
        assert "--other" not in said  # the ensemble is learned


def test_learning_counts_the_samples_that_a_model_does_not_answer(folder, capsys):
    lines = (folder / "b.csv").read_text().splitlines()
    (folder / "b.csv").write_text("\n".join(lines[:-30]) + "\n")
    options = ["--n-folds", "2", "--time-budget", "0", "--out", "e"]
    files = ["a.csv", "b.csv"]
    assert main(["fit", *files, "--truth", "validation.csv", *options]) == 0
    assert "b: no answer for 30 of 120 samples" in capsys.readouterr().err
    assert main(["predict", "e", *files, "--out", "p.csv"]) == 0
    assert "b: no answer for 30 of 120 samples" in capsys.readouterr().err


def test_labels_that_are_written_otherwise_are_learned_as_one_if_asked_to(folder, capsys):
    text = (folder / "b.csv").read_text()
    (folder / "b.csv").write_text(text.replace("cat,dog,cow", "CAT,Dog,cow", 1))
    files = ["a.csv", "b.csv"]
    options = ["--truth", "validation.csv", "--n-folds", "2", "--time-budget", "0", "--out", "e"]
    assert main(["fit", *files, *options]) == 0
    assert "--fold takes them for the same label" in capsys.readouterr().err
    (folder / "wanted.txt").write_text("Cat\nDOG\nCOW\n")
    for more, header in (([], "cat,dog,cow"), (["--target", "wanted.txt"], "Cat,DOG,COW")):
        assert main(["fit", *files, *options, *more, "--fold"]) == 0
        assert "--fold takes" not in capsys.readouterr().err
        assert main(["predict", "e", *files, "--out", "p.csv"]) == 0
        assert (folder / "p.csv").read_text().startswith(f"sample,{header}\n")


def test_predict_fuses_files_without_a_sample_in_common_if_asked_to(folder, capsys):
    files = ["a.csv", "b.csv"]
    options = ["--truth", "validation.csv", "--n-folds", "2", "--time-budget", "0", "--out", "e"]
    assert main(["fit", *files, *options]) == 0
    for name, rows in (("a", slice(0, 50)), ("b", slice(50, 120))):
        write_predictions(f"some_{name}.csv", read_predictions(f"{name}.csv").take(rows))
    some = ["predict", "e", "a=some_a.csv", "b=some_b.csv", "--out", "p.csv"]
    capsys.readouterr()
    assert main(some) == 2
    assert "if they are meant to differ, --allow-disjoint" in capsys.readouterr().err
    assert main([*some, "--allow-disjoint"]) == 0
    assert read_predictions("p.csv").n_samples == 120


def test_files_and_truths_that_are_written_otherwise_are_judged_if_asked_to(folder, capsys):
    files = ["a.csv", "b.csv"]
    options = ["--truth", "validation.csv", "--n-folds", "2", "--time-budget", "0", "--out", "e"]
    assert main(["fit", *files, *options]) == 0
    capsys.readouterr()
    judge = ["--truth", "test.csv"]
    assert main(["evaluate", "e", *files, *judge, "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    for name in ("test.csv", "b.csv"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("cat", "Cat").replace("cow", "COW"))
        assert main(["evaluate", "e", *files, *judge]) == 2
        assert main(["evaluate", "e", *files, *judge, "--fold", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        for one, other in zip(found["outcomes"], known["outcomes"], strict=True):
            assert (one["name"], one["score"]) == (other["name"], other["score"])
    assert main(["report", "e", *files, *judge, "--fold", "--out", "r.html"]) == 0


def test_samples_without_truth_and_without_models_are_counted(folder, capsys):
    (folder / "more.csv").write_text((folder / "validation.csv").read_text() + "900,cat\n")
    command = ["fit", "a.csv", "b.csv", "--truth", "more.csv", "--out", "e", "--time-budget", "0"]
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "truth: 1 of 61 samples are in no model" in said
    assert "truth: not known for 60 of 120 samples of the models: they are left out" in said


def test_groups_widen_the_errors_and_caution_keeps_what_is_simple(folder, capsys):
    lines = (folder / "validation.csv").read_text().splitlines()
    rows = [f"{line},{place // 20}" for place, line in enumerate(lines[1:])]
    (folder / "grouped.csv").write_text("\n".join([f"{lines[0]},group", *rows]))
    command = ["fit", "a.csv", "b.csv", "--truth", "grouped.csv", "--n-folds", "2"]
    errors = []
    for groups in ([], ["--groups", "grouped.csv"]):
        assert main([*command, *groups, "--caution", "100", "--out", "e", "--json"]) == 0
        board = json.loads(capsys.readouterr().out)["leaderboard"]
        assert next(line for line in board if line["is_chosen"])["is_simple"]
        errors.append(next(line for line in board if line["name"] == "a alone")["standard_error"])
    assert errors[0] != errors[1]
    evaluate = ["evaluate", "e", "a.csv", "b.csv", "--truth", "grouped.csv", "--quiet"]
    assert main([*evaluate, "--groups", "grouped.csv"]) == 0
    assert main([*command, "--groups", "test.csv", "--out", "e2"]) == 2
    assert "group" in capsys.readouterr().err


def test_a_folder_that_is_learned_into_again_keeps_no_kernels_of_before(folder):
    command = ["fit", "a.csv", "b.csv", "--truth", "validation.csv", "--out", "e", "--quiet"]
    assert main(command) == 0
    assert list((folder / "e").glob("kernel-*.npz"))
    (folder / "e" / "kernel-mine.npz").write_bytes(b"")
    assert main([*command, "--time-budget", "0"]) == 0
    assert [path.name for path in (folder / "e").glob("*.npz")] == ["kernel-mine.npz"]


def test_an_ensemble_is_learned_without_truth(folder, capsys, rng):
    for name in ("c", "d"):
        scores = rng.dirichlet([1, 1, 1], size=120)
        write_predictions(
            f"{name}.csv", Predictions(name, range(120), ["cat", "dog", "cow"], scores)
        )
    files = ["a.csv", "b.csv", "c.csv", "d.csv"]
    assert main(["fit", *files, "--out", "e"]) == 0
    printed = capsys.readouterr()
    assert "log likelihood of left-out answers" in printed.out
    assert "known truth: none" in printed.err
    assert main(["predict", "e", *files, "--out", "fused.csv"]) == 0
    assert main(["fit", *files, "--gold", "validation.csv", "--out", "e"]) == 0
    assert "known truth: that of 60 samples" in capsys.readouterr().err
    assert main(["evaluate", "e", *files, "--truth", "test.csv"]) == 0


def test_gold_beside_truth_is_refused(folder, capsys):
    options = ["--truth", "validation.csv", "--gold", "test.csv", "--out", "e"]
    assert main(["fit", "a.csv", "b.csv", *options]) == 2
    assert "without `truth`" in capsys.readouterr().err
