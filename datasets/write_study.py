"""Write study/captions.jsonl anew, the example study: `python datasets/write_study.py`.

Captions of four rules for the first 20 test pictures, by the five shipped captioners, with
reference captions in place of the pictures, which are not shipped, and two attention checks.
Takes about a minute; run write_manifest.py afterwards.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from wassemble.cli import main as wassemble

FOLDER = Path(__file__).parent
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
        files = {name: Path(scratch) / f"{place}.jsonl" for place, name in enumerate(RULES)}
        for name, options in RULES.items():
            run(["generate", *SEARCH, *options, "--out", str(files[name])])
        pairs = [f"{name}={path}" for name, path in files.items()]
        out = str(FOLDER / "study" / "captions.jsonl")
        run(["study", "items", *pairs, "--references", "test", "--checks", "2", "--out", out])


def run(arguments: list[str]) -> None:
    """Run the command, and stop here if it fails."""
    if code := wassemble(arguments):
        sys.exit(code)


if __name__ == "__main__":
    main()
