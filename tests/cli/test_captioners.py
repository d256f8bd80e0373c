"""`wassemble train-captioners`; that it trains is tested in tests/text."""

import json

import pytest

from wassemble.cli import main
from wassemble.inputs.datasets import data_folder

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
