"""Write the example study of the web app anew: `python -m paper.captioning.write_study`.

Captions of four rules for the first 20 test pictures, by the five shipped captioners, with
reference captions in place of the pictures, which are not shipped, and two attention checks.
Takes about a minute.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from paper.commands import main as paper
from wassemble.cli import main as wassemble
from wassemble.web import study

OUT = Path(study.__file__).with_name("example.jsonl")
# Randomised beam search, as in the paper's study.
SEARCH = ["--first", "20", "--randomised", "5", "--seed", "0"]
RULES = {
    "arithmetic mean": ["--rule", "arithmetic"],
    "geometric mean": ["--rule", "geometric"],
    "barycenter, GloVe": ["--kernel", "glove"],
    "barycenter, synonyms": ["--kernel", "synonyms"],
}


def main() -> None:
    """Generate, and join."""
    with TemporaryDirectory() as scratch:
        files = {name: f"{scratch}/{place}.jsonl" for place, name in enumerate(RULES)}
        for name, options in RULES.items():
            check(paper(["generate", *SEARCH, *options, "--out", files[name]]))
        references = f"{scratch}/references.jsonl"
        check(paper(["references", "test", "--out", references]))
        pairs = [f"{name}={path}" for name, path in files.items()]
        words = ["study", "items", *pairs, "--references", references, "--checks", "2"]
        check(wassemble([*words, "--out", str(OUT)]))


def check(code: int) -> None:
    """Stop here if a command failed."""
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
