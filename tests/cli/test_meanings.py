"""--aliases and --other, in every command that reads predictions."""

import json
from pathlib import Path

import numpy as np
import pytest

import wassemble as ws
from wassemble import Predictions, read_predictions, write_predictions
from wassemble.cli import main

DIGITS = list("0123")
QUICK = ["--n-folds", "2", "--time-budget", "0"]
ALIASES = (
    "model,source,target,weight\nparity,odd,1,\nparity,odd,3,\nparity,even,0,\nparity,even,2,\n"
)


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


@pytest.fixture
def folder(tmp_path, rng):
    """Three models of digits: all, odd or even, and one that knows two of them."""
    truth = rng.integers(4, size=80)
    samples = [f"image {i}" for i in range(80)]

    def noisy(one_hot):
        scores = one_hot + rng.uniform(0, 0.9, size=one_hot.shape)
        return scores / scores.sum(axis=1, keepdims=True)

    parity = noisy(np.stack([truth % 2 == 1, truth % 2 == 0], axis=1) * 1.0)
    few = noisy(np.stack([truth == 2, truth == 3, truth < 2], axis=1) * 1.0)
    for name, labels, scores in (
        ("digits", DIGITS, noisy(np.eye(4)[truth])),
        ("parity", ["odd", "even"], parity),
        ("few", ["2", "3", "other"], few),
    ):
        write_predictions(tmp_path / f"{name}.csv", Predictions(name, samples, labels, scores))
    lines = [f"{sample},{label}" for sample, label in zip(samples, truth, strict=True)]
    (tmp_path / "truth.csv").write_text("\n".join(["sample,label", *lines]))
    (tmp_path / "aliases.csv").write_text(ALIASES)
    return tmp_path


def files(folder):
    return [folder / f"{name}.csv" for name in ("digits", "parity", "few")]


def meaning(folder):
    return ["--aliases", folder / "aliases.csv", "--other", "few=other"]


def test_fuse_and_explain(folder, capsys):
    out = folder / "fused.csv"
    code, _, err = run(capsys, "fuse", *files(folder), *meaning(folder), "--out", out)
    assert code == 0
    assert list(read_predictions(out).labels) == list("0123")
    assert "few: 'other' stands for every label that it does not declare" in err
    arguments = ["--sample", "image 3", "--json"]
    code, found, _ = run(capsys, "explain", *files(folder), *meaning(folder), *arguments)
    assert code == 0
    sources = {(c["model"], c["label"]) for c in json.loads(found)["contributions"]}
    assert {label for model, label in sources if model == "parity"} <= {"odd", "even"}


def test_fuse_says_how_often_a_mean_gives_the_same_label(folder, capsys, rng):
    out = folder / "f.csv"
    for path in files(folder):  # surer than they were, of different labels
        given = read_predictions(path)
        sure = rng.dirichlet([0.2] * len(given.labels), size=80)
        write_predictions(path, Predictions(given.model, given.samples, given.labels, sure))
    code, told, said = run(capsys, "fuse", *files(folder), *meaning(folder), "--out", out, "--json")
    assert code == 0
    account = json.loads(told)
    mean = folder / "mean.csv"
    plain = ["--rule", "arithmetic", "--out", mean, "--json"]
    code, told, aside = run(capsys, "fuse", *files(folder), *meaning(folder), *plain)
    assert code == 0
    best = [read_predictions(path).scores.argmax(axis=1) for path in (out, mean)]
    n_same = int((best[0] == best[1]).sum())
    assert 0 < n_same < 80
    assert (account["n_same_as_mean"], account["n_compared_with_mean"]) == (n_same, 80)
    assert (
        f"the arithmetic mean gives the same label on {n_same} of 80 samples; only the"
        f" truth can tell which is better on the other {80 - n_same} (wassemble score, wassemble"
        " fit)"
    ) in said
    assert json.loads(told)["n_same_as_mean"] is None
    assert "same label" not in aside
    for path in files(folder):
        part = folder / "parts" / path.stem / "part.csv"
        part.parent.mkdir(parents=True)
        part.write_bytes(path.read_bytes())
    folders = [folder / "parts" / path.stem for path in files(folder)]
    some = [*meaning(folder), "--out", folder / "fused", "--json"]
    code, told, _ = run(capsys, "fuse", *folders, *some)
    assert code == 0
    assert json.loads(told)["n_same_as_mean"] == n_same


def test_a_label_like_other_is_pointed_out(folder, capsys):
    models, out = [folder / "digits.csv", folder / "few.csv"], folder / "fused.csv"
    code, _, err = run(capsys, "fuse", *models, "--out", out)
    assert code == 0
    assert "say so: --other few=other" in err


def test_fit_remembers_what_labels_stand_for(folder, capsys):
    ensemble, out = folder / "ensemble", folder / "fused.csv"
    given = [*files(folder), "--truth", folder / "truth.csv"]
    code, _, err = run(capsys, "fit", *given, *meaning(folder), *QUICK, "--out", ensemble)
    assert code == 0, err
    record = json.loads((ensemble / "ensemble.json").read_text())["fusion"]
    assert record["target"] == DIGITS
    assert record["other"] == {"few": "other"}
    assert ["parity", "odd", "1", 1.0] in record["aliases"]
    code, _, err = run(capsys, "predict", ensemble, *files(folder), "--out", out)
    assert code == 0, err
    assert read_predictions(out).scores.shape == (80, 4)
    code, found, err = run(capsys, "evaluate", ensemble, *given, "--json")
    assert code == 0, err
    assert json.loads(found)


def test_predict_evaluate_and_report_take_other_names_for_learned_labels(folder, capsys):
    ensemble = folder / "ensemble"
    given = [*files(folder), "--truth", folder / "truth.csv"]
    assert run(capsys, "fit", *given, *meaning(folder), *QUICK, "--out", ensemble)[0] == 0
    before = folder / "before.csv"
    assert run(capsys, "predict", ensemble, *files(folder), "--out", before)[0] == 0
    parity = folder / "parity.csv"
    parity.write_text(parity.read_text().replace("odd", "impair").replace("even", "pair"))
    new = folder / "new.csv"
    new.write_text("model,source,target\nparity,impair,odd\nparity,pair,even\n")
    aliased = ["--aliases", new]
    after = folder / "after.csv"
    assert run(capsys, "predict", ensemble, *files(folder), "--out", after)[0] == 2
    code, _, err = run(capsys, "predict", ensemble, *files(folder), *aliased, "--out", after)
    assert code == 0, err
    assert after.read_text() == before.read_text()
    assert run(capsys, "evaluate", ensemble, *given, *aliased)[0] == 0
    page = folder / "report.html"
    code, _, err = run(capsys, "report", ensemble, *given, *aliased, "--out", page)
    assert code == 0, err


def test_an_alias_at_prediction_must_name_a_learned_label(folder, capsys):
    ensemble = folder / "ensemble"
    given = [folder / "digits.csv", folder / "few.csv", "--truth", folder / "truth.csv"]
    assert run(capsys, "fit", *given, "--other", "other", *QUICK, "--out", ensemble)[0] == 0
    few = folder / "few.csv"
    few.write_text(few.read_text().replace("other", "rest"))
    aliases = folder / "wrong.csv"
    aliases.write_text("rest,nothing\n")
    arguments = [ensemble, *given[:2], "--aliases", aliases, "--out", folder / "fused.csv"]
    code, _, err = run(capsys, "predict", *arguments)
    assert code == 2
    assert "must name one label that was learned from; got 'rest' -> 'nothing'" in err


def test_kernel_shows_what_aliases_join(folder, capsys):
    (folder / "digits.txt").write_text("\n".join(DIGITS))
    arguments = ["--target", folder / "digits.txt", "--aliases", folder / "aliases.csv", "--json"]
    code, found, err = run(capsys, "kernel", "--source", folder / "parity.csv", *arguments)
    assert code == 0, err
    account = json.loads(found)
    assert account["n_entries"] == 4
    assert account["n_effective"]["median"] == pytest.approx(2)


def test_a_kernel_of_aliases_is_from_the_models_own_labels(folder, capsys):
    (folder / "parities.txt").write_text("even\nodd\n")
    (folder / "names.csv").write_text("source,target\n0,even\n1,odd\n2,even\n3,odd\n")
    saved, digits = folder / "k.npz", folder / "digits.csv"
    arguments = ["--target", folder / "parities.txt", "--aliases", folder / "names.csv"]
    code, _, err = run(capsys, "kernel", "--source", digits, *arguments, "--out", saved)
    assert code == 0, err
    kernel = ws.kernels.load(saved)
    assert (list(kernel.source), list(kernel.target)) == (DIGITS, ["even", "odd"])
    np.testing.assert_array_equal(kernel.to_dense(), [[1, 0], [0, 1], [1, 0], [0, 1]])
    given = [digits, folder / "parity.csv", "--kernel", saved, "--out", folder / "fused.csv"]
    code, _, err = run(capsys, "fuse", *given)
    assert code == 0, err


def test_a_confusion_kernel_knows_the_complement(folder, capsys):
    out = folder / "fused.csv"
    arguments = [*files(folder), *meaning(folder), "--confusion", folder / "truth.csv"]
    code, _, err = run(capsys, "fuse", *arguments, "--out", out)
    assert code == 0, err
    assert list(read_predictions(out).labels) == DIGITS


def test_an_alias_in_another_spelling_is_used_where_names_are_folded(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("sample,sedan,bike\nx,0.7,0.3\n")
    Path("b.csv").write_text("sample,car,bike\nx,0.6,0.4\n")
    Path("aliases.csv").write_text("source,target\nSedan,car\n")
    command = ["fuse", "a.csv", "b.csv", "--aliases", "aliases.csv"]
    assert main(command) == 2
    assert "some alias must be of a label that some model has" in capsys.readouterr().err
    assert main([*command, "--fold"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("sample,car,bike")
    assert "that no model has" not in printed.err
