"""`python -m paper evidence` as a user runs it."""

import json

from paper.commands import main


def test_evidence_on_a_real_task(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["evidence", "animals", "--out", "r", "--time-budget", "0", "--no-pages"]) == 0
    record = json.loads((tmp_path / "r" / "evidence.json").read_text())["animals"]
    assert record["chosen_score"] > 0.92
    assert record["best_plain_score"] < 0.89
    assert record["over_best_plain"] > 0.03
    assert record["verdict"] == "better"
    assert record["meaning_helped"] is True
    assert not record["is_worse_than_plain"]
    assert "animals" in capsys.readouterr().out


def test_an_unknown_task_is_refused(capsys):
    assert main(["evidence", "nothing"]) == 2
    assert "is not one of" in capsys.readouterr().err
