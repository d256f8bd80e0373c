"""The scripts in examples/ run."""

import importlib.util
from pathlib import Path

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
