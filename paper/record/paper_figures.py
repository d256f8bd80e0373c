"""Figures of the paper, kept as data with the place that each was read at."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class PaperFigures:
    """What the paper reports for one experiment.

    Attributes
    ----------
    source : str
        Table or section.
    lines : str
        Lines of the paper's LaTeX source.
    figures : dict
        By row, then by column.
    """

    source: str
    lines: str
    figures: dict[str, dict[str, Any]]

    def get(self, row: str, column: str) -> float | None:
        """A figure, or None where the paper has none."""
        found = self.figures.get(row, {}).get(column)
        return None if found is None else float(found)


def paper_figures(name: str) -> PaperFigures:
    """The paper's figures for an experiment, from ``expected/NAME.json``."""
    path = files("paper.record") / "expected" / f"{name}.json"
    return PaperFigures(**json.loads(path.read_text(encoding="utf-8")))
