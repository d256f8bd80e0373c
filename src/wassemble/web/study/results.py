"""What a study found: mean opinion scores, best choices, and how far to trust them.

A mean opinion score is the mean of all scores that a system's captions got on a scale. Where
several systems said the same, their one caption's score counts for each of them, and its
being chosen as best is shared equally between them.

Intervals are bootstrap intervals over raters and items both (`Resamples`): they say what
other raters and other items would have given.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from wassemble.metrics import Resamples, student_interval
from wassemble.web.study.agreement import Agreement, measure_agreement
from wassemble.web.study.answers import Answer, fails_check
from wassemble.web.study.items import Item, system_names
from wassemble.web.study.snapshot import Snapshot

__all__ = [
    "Difference",
    "Estimate",
    "Results",
    "best_shares",
    "compute_results",
    "failed_checks",
]

MIN_RATERS, MIN_ITEMS = 3, 5
_FEW_RATERS = 10


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
class Results:
    """Figures of a study.

    Attributes
    ----------
    systems, scales : tuple of str
        What was compared, on what.
    n_raters, n_items, n_answers : int
        Raters with an answer, items with one, and answers: attention checks not counted.
    opinion, best : dict
        Mean opinion scores, and shares of best choices, by scale and system; empty without
        answers.
    differences : tuple of Difference
        For each scale and pair of systems, on the same resamples.
    agreement : dict
        By scale.
    n_failed : dict
        How many raters failed how many attention checks, of those who answered one.
    note : str
        What must be known before the figures are believed; may be empty.
    has_intervals : bool
        Whether there are answers enough to draw conclusions from.
    """

    systems: tuple[str, ...]
    scales: tuple[str, ...]
    n_raters: int
    n_items: int
    n_answers: int
    opinion: dict[str, dict[str, Estimate]]
    best: dict[str, dict[str, Estimate]]
    differences: tuple[Difference, ...]
    agreement: dict[str, Agreement]
    n_failed: dict[int, int]
    note: str
    has_intervals: bool


def compute_results(
    snapshot: Snapshot,
    *,
    only_attentive: bool = False,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Results:
    """Figures of all complete answers, those of raters with closed links included.

    Parameters
    ----------
    snapshot : Snapshot
        The study.
    only_attentive : bool
        Whether raters who failed an attention check are left out.
    n_resamples, seed : int
        Of the bootstrap.
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
    table = np.array(
        [_row(snapshot.items[place], answer, systems, scales) for _, place, answer in kept]
    )
    draws = None
    if is_enough:
        resamples = Resamples.draw(len(kept), raters, items, n_resamples=n_resamples, seed=seed)
        draws = resamples.means(table)
    columns = _Columns(table, draws, min(len(numbers), len(places)), systems)
    asked = list(enumerate(scales)) if kept else []
    return Results(
        systems=systems,
        scales=scales,
        n_raters=len(numbers),
        n_items=len(places),
        n_answers=len(kept),
        opinion={scale: columns.estimates(2 * k, (1, 5)) for k, scale in asked},
        best={scale: columns.estimates(2 * k + 1, (0, 1)) for k, scale in asked},
        differences=tuple(
            Difference(scale, first, second, columns.difference(2 * k, first, second))
            for k, scale in asked
            for first, second in combinations(systems, 2)
        ),
        agreement={scale: measure_agreement(kept, snapshot.items, scale) for scale in scales},
        n_failed=dict(sorted(Counter(failed.values()).items())),
        note=_note(len(numbers), len(places)),
        has_intervals=is_enough,
    )


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


class _Columns:
    """Means of a table's columns: for each scale a block of scores, then one of best shares."""

    def __init__(
        self,
        table: np.ndarray,
        draws: np.ndarray | None,
        n_groups: int,
        systems: tuple[str, ...],
    ) -> None:
        self._table, self._draws, self._n_groups = table, draws, n_groups
        self._systems = systems

    def estimates(self, block: int, limits: tuple[float, float]) -> dict[str, Estimate]:
        """The mean of each system in a block."""
        return {
            system: self._estimate({self._at(block, system): 1}, limits=limits)
            for system in self._systems
        }

    def difference(self, block: int, first: str, second: str) -> Estimate:
        """The mean of one system less that of another, on the same resamples."""
        return self._estimate({self._at(block, first): 1, self._at(block, second): -1})

    def _at(self, block: int, system: str) -> int:
        return block * len(self._systems) + self._systems.index(system)

    def _estimate(self, signs: dict[int, int], **options: Any) -> Estimate:
        """The sum of some columns' means, each with its sign."""
        value = sum(sign * float(self._table[:, at].mean()) for at, sign in signs.items())
        if self._draws is None:
            return Estimate(value)
        drawn = np.sum([sign * self._draws[:, at] for at, sign in signs.items()], axis=0)
        return Estimate(value, *student_interval(value, drawn, n_groups=self._n_groups, **options))


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
