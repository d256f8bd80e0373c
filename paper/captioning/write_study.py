"""Write the example study of the web app anew: `python -m paper.captioning.write_study`.

Captions of four rules for those of the first 20 test pictures that are drawn (`drawings`; the
pictures themselves may not be shipped), by the five shipped captioners, and two attention checks.
Takes about a minute.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from paper.captioning.drawings import DRAWINGS, FOLDER
from paper.commands import main as paper
from wassemble.cli import main as wassemble
from wassemble.web.study.items import read_lines

OUT = FOLDER / "items.jsonl"
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
        whole = Path(scratch, "whole.jsonl")
        check(wassemble([*words, "--out", str(whole)]))
        OUT.write_text(illustrate(whole.read_text(encoding="utf-8")), encoding="utf-8")


def illustrate(text: str) -> str:
    """The lines of a study whose pictures are drawn, with drawings in place of references."""
    lines = []
    for _, record in read_lines(text, "the study"):
        name = record["id"].replace(" ", "-")
        if name in DRAWINGS:
            shown = {"id": record.pop("id"), "image": f"{name}.svg"}
            record.pop("text")
            lines.append(json.dumps(shown | record, ensure_ascii=False) + "\n")
    return "".join(lines)


def check(code: int) -> None:
    """Stop here if a command failed."""
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
