"""How good trained captioners are alone, on pictures that they have not learned from.

`python -m paper score-captioners` writes what is found here, and the guide to captioners shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from paper.captioners.captioner import read_captioner
from paper.data.captions import load_captions
from paper.record.findings import Figure
from paper.record.judging import Judge
from wassemble.metrics import MEAN

_SPLITS = {"val": "validation CIDEr", "test": "test CIDEr"}


def score_captioner(path: Path) -> dict[str, Any]:
    """Number of words of a captioner, and its CIDEr on validation and test pictures."""
    from paper.captioners.training import score_likeliest

    captioner = read_captioner(path)
    figures = {}
    for split in _SPLITS:
        data = load_captions(split, with_concepts=captioner.network.n_concepts > 0)
        cider = score_likeliest(captioner.network, captioner.vocabulary, data)
        figures[split] = asdict(Judge(MEAN, np.zeros(len(data))).figure(cider))
    return {"n_words": len(captioner.vocabulary), **figures}


def list_rows(found: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table of captioners by name, the best first."""
    rows = [
        [name, f"{each['n_words']:,}", *(Figure(**each[split]).words() for split in _SPLITS)]
        for name, each in sorted(found.items(), key=lambda each: -each[1]["test"]["value"])
    ]
    return ["captioner", "words", *_SPLITS.values()], rows
