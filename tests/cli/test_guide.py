"""The real cases of the guide to learning: each line as it stands there, in less time."""

import glob
import re
import shlex
from pathlib import Path

import pytest

from wassemble.cli import main

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "learn.md").read_text(encoding="utf-8")
# What the best single model has there, or a little less.
LEAST = {"languages": 0.76, "encodings": 0.94, "part_of_speech": 0.71}


def lines_of(name):
    """The block that learns the ensemble of this name."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.DOTALL | re.M)
    block = next(block for block in blocks if f"--out {name}" in block)
    return block.replace("\\\n", " ").strip().splitlines()


def words_of(line):
    words = shlex.split(line)[1:]
    return [each for word in words for each in (sorted(glob.glob(word)) or [word])]


@pytest.mark.parametrize("name", LEAST)
def test_a_case_of_the_guide_is_learned_and_tested_by_its_own_lines(
    name, tmp_path, monkeypatch, capsys
):
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.chdir(tmp_path)
    for line in lines_of(name):
        words = words_of(line)
        if words[0] == "fit":
            words += ["--time-budget", "0", "--n-folds", "2"]
        capsys.readouterr()
        assert main(words) == 0
    chosen = next(row for row in capsys.readouterr().out.splitlines() if row.startswith("* "))
    assert float(chosen.split("\t")[1]) > LEAST[name]
