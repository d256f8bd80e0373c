"""`python -m paper train-captioners`; that it trains is tested in tests/text."""

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


PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "captioners.md").read_text()
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


@pytest.mark.parametrize("name", ["self-critical", "concepts-self-critical"])
def test_the_guide_has_the_validation_cider_of_the_best(name):
    with np.load(data_folder() / "captioners" / f"{name}.npz", allow_pickle=False) as arrays:
        epochs = json.loads(str(arrays["account"]))["epochs"]
    best = f"{max(epoch['validation_cider'] for epoch in epochs):.3f}".removeprefix("0")
    assert re.search(rf"`{name}`,? has a validation CIDEr of {re.escape(best)}", PAGE)
