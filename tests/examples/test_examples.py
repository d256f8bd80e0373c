"""The scripts in examples/ run."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_imagenet_top5_prints_a_table_of_rules(capsys):
    assert load("imagenet_top5").main(["--images", "200"]) == 0
    lines = capsys.readouterr().out.splitlines()
    accuracy = {line[:32].strip(): float(line[32:42]) for line in lines[1:]}
    best = next(found for rule, found in accuracy.items() if rule.startswith("best network"))
    assert accuracy["barycenter, WordNet tree"] > best - 0.05
    assert len(accuracy) == 4


def test_digits_with_different_labels_prints_a_table_in_which_the_consensus_beats_a_mean(capsys):
    assert load("digits_with_different_labels").main([]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    accuracy = {line[:32].strip(): float(line[32:]) for line in lines[1:]}
    assert lines[0].split() == ["rule", "accuracy"]
    assert len(accuracy) == 4
    best = next(found for rule, found in accuracy.items() if rule.startswith("best single"))
    assert best < 1
    assert accuracy["consensus"] > accuracy["plain mean over names"]
    assert "arithmetic mean gives the same label on" in printed.err


def test_gpu_says_that_there_is_none_and_checks_the_processor(capsys, monkeypatch):
    script = load("gpu")
    monkeypatch.setattr(script, "find_gpu", lambda: None)
    assert script.main([]) == 0
    first, heading, *rows = capsys.readouterr().out.splitlines()
    assert first.startswith("no GPU")
    assert heading.split() == ["problem", "precision", "gap", "sweeps", "in", "half"]
    assert len(rows) == 12
    assert rows[-1].split()[0] == "head"


@pytest.fixture
def gpu(monkeypatch):
    script = load("gpu")
    one = script.problems()[:1]
    monkeypatch.setattr(script, "problems", lambda: one)
    return script


def test_gpu_fails_when_answers_are_off(gpu, capsys, monkeypatch):
    monkeypatch.setattr(gpu, "LARGEST_GAP", 1e-12)
    assert gpu.main(["--device", "cpu"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_gpu_times_the_device_it_is_given(gpu, capsys):
    assert gpu.main(["--device", "cpu", "--n-labels", "40", "--samples", "3"]) == 0
    *_, title, heading, row, _, head, its_row = capsys.readouterr().out.splitlines()
    assert title.startswith("40 labels, 5 models: milliseconds")
    assert heading.split() == ["samples", "NumPy", "float32", "cpu", "float32", "mixed"]
    assert row.split()[0] == its_row.split()[0] == "3"
    assert head == "head of 5 models: milliseconds"
