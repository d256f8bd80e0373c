"""Nine language detectors: the figures, and that they come from the right ingredients."""

import json

import pytest

from wassemble.experiments import languages


@pytest.fixture(scope="module")
def record():
    quick = languages.Config(priors=(0.1, 0.2), exponents=(0.5, 0.7), sweeps=(3,))
    return languages.run(quick)


def test_transport_through_mistakes_beats_every_mean(record):
    test = {rule: figures["test"] for rule, figures in record["accuracy"].items()}
    assert test["best single detector (heliport)"] == pytest.approx(0.767, abs=0.002)
    assert test["plain mean"] == pytest.approx(0.575, abs=0.005)
    assert test["plain barycenter"] < 0.6
    assert test["label-aware mean"] == pytest.approx(0.886, abs=0.005)
    assert test["label-aware mean through kernels"] >= 0.905
    assert test["barycenter through kernels"] >= 0.92
    assert test["any detector right"] == pytest.approx(0.947, abs=0.002)


def test_the_command_writes_a_report(tmp_path, capsys, monkeypatch, record):
    monkeypatch.setattr(languages, "run", lambda _: record)
    assert languages.main(["--out", str(tmp_path)]) == 0
    assert "barycenter through kernels" in capsys.readouterr().out
    assert json.loads((tmp_path / "languages.json").read_text())["n_test"] == 844
