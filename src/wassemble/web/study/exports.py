"""A study's answers as files: a CSV table for analysis, JSON with everything.

Neither holds the secrets of raters' links.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import Any

from wassemble.web.cells import safe_cell
from wassemble.web.study.answers import fails_check, letter
from wassemble.web.study.results import best_shares, compute_results
from wassemble.web.study.snapshot import Participant, Snapshot

__all__ = ["to_csv", "to_json"]


def to_csv(snapshot: Snapshot) -> str:
    """One row for each rater, item and system that is answered in full.

    Texts that a spreadsheet would take for a formula get an apostrophe in front. ``letter`` is
    what the rater saw the caption under; ``best_*`` is 1 for the chosen caption, divided by the
    number of systems that said it; ``check`` is passed or failed for attention checks.
    """
    scales = snapshot.design.scales
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(
        ["rater", "item", "system", "caption", "letter", *scales]
        + [f"best_{scale}" for scale in scales]
        + ["check", "answered_at"]
    )
    for rater in snapshot.raters:
        for row in _rows(snapshot, rater):
            writer.writerow([safe_cell(cell) for cell in row])
    return out.getvalue()


def to_json(snapshot: Snapshot) -> str:
    """Everything, and the results with and without raters who failed a check."""
    record = snapshot.record() | {
        "results": asdict(compute_results(snapshot)),
        "results_of_attentive_raters": asdict(compute_results(snapshot, only_attentive=True)),
    }
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _rows(snapshot: Snapshot, rater: Participant) -> list[list[Any]]:
    rows = []
    complete = rater.complete
    for shown in rater.shown:
        answer = complete.get(shown.item)
        if answer is None:
            continue
        item = snapshot.items[shown.item]
        check = "" if item.check is None else "failed" if fails_check(item, answer) else "passed"
        shares = [best_shares(item, answer, scale) for scale in snapshot.design.scales]
        for system, caption in item.captions.items():
            choice = item.choice_of(system)
            rows.append(
                [rater.number, item.id, system, caption, letter(shown.order.index(choice))]
                + [answer.scores[scale][choice] for scale in snapshot.design.scales]
                + [round(share[system], 4) for share in shares]
                + [check, rater.given[shown.item].answered_at]
            )
    return rows
