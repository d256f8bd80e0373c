"""What a study found: mean opinion scores, best choices, agreement; also as CSV and JSON.

A mean opinion score is the mean of all scores that a system's captions got on a scale. Where
several systems said the same, their one caption's score counts for each of them, and its
being chosen as best is shared equally between them.

Intervals are bootstrap intervals over raters and items both (`Resamples`): they say what
other raters and other items would have given. Where all answers are the same, they are Wilson's,
of as many answers as there are raters or items, whichever are fewer. Agreement is Krippendorff's
alpha (Krippendorff 2011). No file holds the secrets of raters' links.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from wassemble.metrics import Resamples, krippendorff_alpha, student_interval
from wassemble.metrics.resamples import wilson_interval
from wassemble.web.pages import write_csv
from wassemble.web.study.answers import Answer, Participant, Snapshot, fails_check, letter
from wassemble.web.study.items import SCORES, Item, system_names

MIN_RATERS, MIN_ITEMS = 3, 5
_FEW_RATERS = 10
# What is averaged, and what it can be.
_LIMITS = {"score": (1, 5), "best": (0, 1)}


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; without one where there are too few answers."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Difference:
    """By how much one system's mean opinion score is above another's."""

    scale: str
    first: str
    second: str
    estimate: Estimate


@dataclass(frozen=True)
class Agreement:
    """Alpha of the scores (ordinal) and of the best choices (nominal) on one scale.

    1 is full agreement, 0 that of chance; None where no two raters answered for the same
    item, or all said the same throughout, so that agreement cannot be told from habit.
    """

    scores: float | None
    best: float | None


@dataclass(frozen=True)
class Results:
    """Figures of a study; attention checks are not counted."""

    systems: tuple[str, ...]
    scales: tuple[str, ...]
    n_raters: int  # with an answer
    n_items: int  # with an answer
    n_answers: int
    opinion: dict[str, dict[str, Estimate]]  # mean scores by scale and system; empty: no answers
    best: dict[str, dict[str, Estimate]]  # shares of best choices, likewise
    differences: tuple[Difference, ...]  # by scale and pair of systems, on the same resamples
    agreement: dict[str, Agreement]  # by scale
    n_failed: dict[int, int]  # how many raters failed how many checks, of those who answered one
    note: str  # what must be known before the figures are believed; may be empty
    has_intervals: bool  # whether there are answers enough to draw conclusions from


def compute_results(
    snapshot: Snapshot, *, only_attentive: bool = False, n_resamples: int = 1000, seed: int = 0
) -> Results:
    """Figures of all complete answers, those of raters with closed links included.

    With ``only_attentive``, raters who failed an attention check are left out.
    """
    systems, scales = system_names(snapshot.items), snapshot.design.scales
    failed = failed_checks(snapshot)
    kept = [
        (rater.number, place, answer)
        for rater in snapshot.raters
        if not (only_attentive and failed.get(rater.number))
        for place, answer in rater.complete.items()
        if snapshot.items[place].check is None
    ]
    numbers, raters = np.unique([number for number, _, _ in kept], return_inverse=True)
    places, items = np.unique([place for _, place, _ in kept], return_inverse=True)
    is_enough = len(numbers) >= MIN_RATERS and len(places) >= MIN_ITEMS
    keys = [(scale, what, system) for scale in scales for what in _LIMITS for system in systems]
    column = {key: at for at, key in enumerate(keys)}
    table = np.array(
        [_row(snapshot.items[place], answer, systems, scales) for _, place, answer in kept]
    )
    draws = None
    if is_enough:
        resamples = Resamples.draw(len(kept), raters, items, n_resamples=n_resamples, seed=seed)
        draws = resamples.means(table)

    def estimate(scale: str, what: str, system: str, other: str = "") -> Estimate:
        """Of one system, or by how much it is above another, on the same resamples."""
        first, second = column[scale, what, system], column.get((scale, what, other))
        value = float(table[:, first].mean())
        if second is not None:
            value -= float(table[:, second].mean())
        if draws is None:
            return Estimate(value)
        drawn = draws[:, first] if second is None else draws[:, first] - draws[:, second]
        low, high = _LIMITS[what]
        limits = (low, high) if second is None else (low - high, high - low)
        return Estimate(value, *_interval(value, drawn, min(len(numbers), len(places)), limits))

    opinion, best = (
        {scale: {each: estimate(scale, what, each) for each in systems} for scale in scales}
        if kept
        else {}
        for what in _LIMITS
    )
    return Results(
        systems=systems,
        scales=scales,
        n_raters=len(numbers),
        n_items=len(places),
        n_answers=len(kept),
        opinion=opinion,
        best=best,
        differences=tuple(
            Difference(scale, *pair, estimate(scale, "score", *pair))
            for scale in opinion
            for pair in combinations(systems, 2)
        ),
        agreement={scale: measure_agreement(kept, snapshot.items, scale) for scale in scales},
        n_failed=dict(sorted(Counter(failed.values()).items())),
        note=_note(len(numbers), len(places)),
        has_intervals=is_enough,
    )


def _interval(
    value: float, drawn: np.ndarray, n_groups: int, limits: tuple[float, float]
) -> tuple[float, float]:
    """A 95 % interval; where all answers agree, resamples do too, and know nothing of others."""
    if np.nanstd(drawn) > 1e-9:
        return student_interval(value, drawn, n_groups=n_groups, limits=limits)
    start, width = limits[0], limits[1] - limits[0]
    low, high = wilson_interval((value - start) / width, n_groups)
    return start + width * float(low), start + width * float(high)


def failed_checks(snapshot: Snapshot) -> dict[int, int]:
    """How many attention checks each rater failed, of those who answered one."""
    failed = {}
    for rater in snapshot.raters:
        checks = [
            fails_check(snapshot.items[place], answer)
            for place, answer in rater.complete.items()
            if snapshot.items[place].check is not None
        ]
        if checks:
            failed[rater.number] = sum(checks)
    return failed


def best_shares(item: Item, answer: Answer, scale: str) -> dict[str, float]:
    """How much of a best choice goes to each system: shared where they said the same."""
    chosen = [system for system in item.captions if item.choice_of(system) == answer.best[scale]]
    return {system: (system in chosen) / len(chosen) for system in item.captions}


def _row(
    item: Item, answer: Answer, systems: tuple[str, ...], scales: tuple[str, ...]
) -> list[float]:
    """Scores and best shares by system, scale after scale."""
    row: list[float] = []
    for scale in scales:
        scores = [answer.scores[scale][item.choice_of(system)] for system in systems]
        shares = best_shares(item, answer, scale)
        row += [float(score) for score in scores if score is not None]
        row += [shares[system] for system in systems]
    return row


def _note(n_raters: int, n_items: int) -> str:
    if n_raters == 0:
        return "No answers yet."
    if n_raters < MIN_RATERS or n_items < MIN_ITEMS:
        return (
            f"Too few answers to conclude anything: intervals and charts need answers of at least"
            f" {MIN_RATERS} raters and to {MIN_ITEMS} items; there are {n_raters} and {n_items}."
        )
    if n_raters < _FEW_RATERS:
        return f"With {n_raters} raters only, the intervals are rough."
    return ""


def measure_agreement(
    answers: Sequence[tuple[int, int, Answer]], items: Sequence[Item], scale: str
) -> Agreement:
    """Agreement of answers, given as (rater, item's place, answer).

    A unit of the scores is a caption of an item, one of the best choices an item with
    captions that differ. A best choice is named by the first system that said the caption.
    """
    systems = system_names(items)
    scores: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(SCORES))
    best: defaultdict[int, list[int]] = defaultdict(lambda: [0] * len(systems))
    for _, place, answer in answers:
        for choice, score in enumerate(answer.scores[scale]):
            if score is not None:
                scores[place, choice][score - 1] += 1
        if len(items[place].choices) > 1:  # else nobody was asked
            chosen = answer.best[scale]
            first = next(i for i, s in enumerate(systems) if items[place].choice_of(s) == chosen)
            best[place][first] += 1
    return Agreement(
        _alpha(list(scores.values()), is_ordered=True),
        _alpha(list(best.values()), is_ordered=False),
    )


def _alpha(value_counts: Sequence[Sequence[int]], *, is_ordered: bool) -> float | None:
    """Krippendorff's alpha of units, each with how often it was given each value."""
    alpha = krippendorff_alpha(value_counts, is_ordered=is_ordered) if value_counts else math.nan
    return None if math.isnan(alpha) else alpha


def to_csv(snapshot: Snapshot) -> str:
    """One row for each rater, item and system that is answered in full.

    Texts that a spreadsheet would take for a formula get an apostrophe in front. ``letter`` is
    what the rater saw the caption under; ``best_*`` is 1 for the chosen caption, divided by the
    number of systems that said it; ``check`` is passed or failed for attention checks.
    """
    scales = snapshot.design.scales
    head = ["rater", "item", "system", "caption", "letter", *scales]
    head += [*(f"best_{scale}" for scale in scales), "check", "answered_at"]
    rows = (row for rater in snapshot.raters for row in _rows(snapshot, rater))
    return write_csv([head, *rows], line_end="\r\n")


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
                + [check, answer.answered_at]
            )
    return rows
