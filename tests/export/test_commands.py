"""`wassemble export` and `verify`: what they say, and what they refuse."""

import json

import numpy as np
import pytest
from export.small import write_head

import wassemble as ws
from wassemble.cli import main
from wassemble.inputs import Predictions, write_predictions

pytest.importorskip("onnxruntime", reason="heads need the extra onnx")


@pytest.fixture
def files(tmp_path):
    """Two models of three labels, one of which left scores out, and an ensemble of them."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=60)
    names = np.array(["cat", "dog", "cow"])
    models = []
    for name in "ab":
        scores = rng.dirichlet(np.ones(3), size=60) / 2 + np.eye(3)[truth] / 2
        if name == "b":
            scores[scores < scores.max(axis=1, keepdims=True)] = np.nan
        models.append(Predictions(name, range(60), names.tolist(), scores, kind="multiclass"))
        write_predictions(tmp_path / f"{name}.csv", models[-1])
    learned = ws.learn_ensemble(models, names[truth].tolist(), n_folds=2, time_budget=0)
    learned.save(tmp_path / "ensemble")
    return tmp_path


def test_export_and_verify_tell_the_gap(files, capsys):
    head = str(files / "head.onnx")
    given = [str(files / "a.csv"), str(files / "b.csv")]
    assert main(["export", str(files / "ensemble"), *given, "--onnx", head, "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["gaps"] == ("b" in about["models"])
    assert main(["verify", head]) == 0
    assert "16 samples; largest gap" in capsys.readouterr().err


def test_files_are_read_as_fit_was_told(tmp_path, capsys):
    scores = np.random.default_rng(0).dirichlet(np.ones(3), size=30)
    truth = [["cat", "dog", "cow"][place] for place in scores.argmax(axis=1)]
    percent = Predictions("a", range(30), ["cat", "dog", "cow"], 100 * scores, kind="multilabel")
    write_predictions(tmp_path / "a.csv", percent)
    learned = ws.learn_ensemble([percent], truth, normalize=True, kind="multiclass", n_folds=2)
    learned.save(tmp_path / "ensemble")
    given = [str(tmp_path / each) for each in ("ensemble", "a.csv")]
    assert main(["export", *given, "--onnx", str(tmp_path / "head.onnx")]) == 0, capsys.readouterr()


def test_verify_fails_where_answers_differ(tmp_path, capsys):
    write_head(tmp_path / "head.onnx")
    golden = tmp_path / "head.golden.json"
    record = json.loads(golden.read_text())
    record["outputs"]["scores"][0][0] += 0.1
    golden.write_text(json.dumps(record))
    assert main(["verify", str(tmp_path / "head.onnx")]) == 1
    assert "does not answer as the library did" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("none.onnx", None, "must be a file; there is none"),
        ("head.txt", "x", "must end in .onnx"),
        ("text.onnx", "x", "must be an ONNX file"),
    ],
)
def test_what_is_no_head_is_refused(tmp_path, capsys, name, text, words):
    if text is not None:
        (tmp_path / name).write_text(text)
    assert main(["verify", str(tmp_path / name)]) == 2
    assert words in capsys.readouterr().err


def test_golden_vectors_of_another_head_are_refused(tmp_path, capsys):
    write_head(tmp_path / "head.onnx")
    golden = tmp_path / "head.golden.json"
    golden.write_text(golden.read_text().replace('"ensemble": "', '"ensemble": "0'))
    assert main(["verify", str(tmp_path / "head.onnx")]) == 2
    assert "of another ensemble" in capsys.readouterr().err
    golden.unlink()
    assert main(["verify", str(tmp_path / "head.onnx")]) == 2
    assert "must have its golden vectors beside it" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["--max-samples", "--max-bytes", "--max-seconds"])
def test_a_server_must_allow_something(tmp_path, capsys, limit):
    write_head(tmp_path / "head.onnx")
    assert main(["serve-head", str(tmp_path / "head.onnx"), limit, "0"]) == 2
    assert f"Invalid value for '{limit}'" in capsys.readouterr().err
