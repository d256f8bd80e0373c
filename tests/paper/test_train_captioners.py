"""`python -m paper train-captioners`, whose training test_training has, and `score-captioners`."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from paper.captioners.recipes import RECIPES
from paper.commands import main
from paper.data.files import data_folder

pytest.importorskip("torch")


def test_a_captioner_that_is_there_is_read_and_told(capsys):
    path = data_folder() / "captioners" / "tiny.npz"
    before = path.read_bytes()
    assert main(["train-captioners", "tiny", "--out", str(path.parent), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["tiny"]["words"] == 302
    assert shown["tiny"]["validation_cider"] > 0.3
    assert path.read_bytes() == before
    assert main(["train-captioners", "tiny", "--out", str(path.parent)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("tiny\t302\t")


def test_an_unknown_captioner_is_refused_before_anything_is_trained(capsys, tmp_path):
    assert main(["train-captioners", "tiny", "huge", "--out", str(tmp_path)]) == 2
    assert "must be one of cross-entropy, " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_interrupt_says_what_is_kept(capsys, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("paper.captioners.training.train_captioner", interrupted)
    assert main(["train-captioners", "tiny", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "interrupted; whole epochs are kept" in said
    assert "no file was changed" not in said


DOCS = Path(__file__).parents[2] / "docs"
RECORD = json.loads((DOCS / "captioners.json").read_text())
PAGE = (DOCS / "guides" / "captioners.md").read_text()
SHIPPED = sorted(path.stem for path in (data_folder() / "captioners").glob("*.npz"))


def test_the_guide_names_each_recipe():
    named = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert set(SHIPPED) <= set(RECIPES) <= set(named)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_guide_names_the_minutes_of_each_training(name):
    [minutes] = re.findall(rf"^\| `{name}` \|.*\| ([\d.]+) \|$", PAGE, re.MULTILINE)
    with np.load(data_folder() / "captioners" / f"{name}.npz", allow_pickle=False) as arrays:
        epochs = json.loads(str(arrays["account"]))["epochs"]
    assert minutes == f"{sum(epoch['seconds'] for epoch in epochs) / 60:.1f}"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_recorded_validation_cider_is_that_of_the_best_epoch(name):
    with np.load(data_folder() / "captioners" / f"{name}.npz", allow_pickle=False) as arrays:
        epochs = json.loads(str(arrays["account"]))["epochs"]
    best = max(epoch["validation_cider"] for epoch in epochs)
    # Weights were rounded to float16 since.
    assert RECORD[name]["val"]["value"] == pytest.approx(best, abs=0.005)


def test_scores_come_out_again_and_every_shipped_captioner_has_them(capsys, tmp_path):
    assert sorted(RECORD) == SHIPPED
    assert main(["score-captioners", "tiny", "--out", str(tmp_path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads((tmp_path / "captioners.json").read_text())
    for split in ("val", "test"):
        assert shown["tiny"][split] == pytest.approx(RECORD["tiny"][split], abs=0.01)


def test_only_shipped_captioners_are_scored(capsys, tmp_path):
    assert main(["score-captioners", "huge", "--out", str(tmp_path)]) == 2
    assert "must be one of concepts-large, concepts-self-critical, " in capsys.readouterr().err
