"""The page of the seasons: tables and words from what was judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paper.flusight.season import CHOSEN, HASTY
from paper.record.findings import markdown_table

TITLES = {
    "categorical": "Categories: ranked probability score, the lower the better",
    "quantiles": "Quantiles: weighted interval score of log(1 + admissions), the lower the better",
}


def list_rows(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """A line for each rule with equal weights and for what was chosen, over all seasons."""
    seasons = found["seasons"]
    header = ["rule", *(cell for each in seasons for cell in (each, "gain over the official"))]
    rows = [
        [words, *(cell for each in seasons.values() for cell in (_loss(each[key]), ""))]
        for words, key in (
            ("FluSight-ensemble (official)", "official"),
            ("FluSight-baseline (official)", "baseline"),
        )
    ]
    first = next(iter(seasons.values()))["rules"]
    shown = [name for name in first if name.endswith("equal weights") or name in (HASTY, CHOSEN)]
    return header, rows + [[name, *_cells(name, seasons)] for name in shown]


def _cells(name: str, seasons: Mapping[str, Any]) -> list[str]:
    cells = []
    for season in seasons.values():
        own = season["rules"][name]
        interval = f"{own['gain']:+.4f} ({own['low']:+.4f} to {own['high']:+.4f})"
        cells += [_loss(own), f"{interval} {_verdict(own)}"]
    return cells


def _loss(own: Mapping[str, Any]) -> str:
    """The mean loss, and how often the truth is inside the 95 % interval where there is one."""
    inside = "" if own["coverage"] is None else f", {100 * own['coverage']:.0f} % inside"
    return f"{own['loss']:.4f}{inside}"


def _verdict(own: Mapping[str, float]) -> str:
    if own["low"] > 0:
        return "better"
    return "worse" if own["high"] < 0 else "tie"


def to_markdown(found: Mapping[str, Any]) -> str:
    """Tables and words, in Markdown."""
    parts = []
    for sort, title in TITLES.items():
        each = found[sort]
        parts += [f"## {title}", markdown_table(*list_rows(each)), _say_chosen(each)]
    return "\n\n".join(parts)


def _say_chosen(each: Mapping[str, Any]) -> str:
    verdicts = [
        f"{season}: {_verdict(own['rules'][CHOSEN])}" for season, own in each["seasons"].items()
    ]
    return (
        f"What was chosen from earlier weeks, beside the official ensemble: {', '.join(verdicts)}."
        f" In the last week it was the mean of: {'; '.join(each['last_kept'])}."
    )
