"""What a study found: means of grades, best choices, labels, agreement, times.

A mean is that of all grades that a system's captions got. Where several systems said the same,
their one caption's grade counts for each of them, and its being chosen as best is shared equally
between them; in pairs, each of them has won.

Intervals are bootstrap intervals over raters and items both (`Resamples`): they say what
other raters and other items would have given. Where all answers are the same, they are Wilson's,
of as many answers as there are raters or items, whichever are fewer. Differences are told from
chance by Holm's correction for all pairs of a question (Holm 1979). Agreement is Krippendorff's
alpha (Krippendorff 2011), with an interval over items.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np
from scipy.special import stdtr

from wassemble.metrics import Resamples, student_interval
from wassemble.metrics.raters import alpha_on_resamples
from wassemble.metrics.resamples import percentile_interval, wilson_interval
from wassemble.web.study.answers import TIE, Given, Snapshot, fails_check
from wassemble.web.study.items import Item, system_names
from wassemble.web.study.questions import Question

MIN_RATERS, MIN_ITEMS = 3, 5
_FEW_RATERS = 10
_LEVEL = 0.05


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; without one where there are too few answers."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Difference:
    """By how much one system's figure is above another's."""

    question: str
    first: str
    second: str
    estimate: Estimate
    p_value: float  # of no difference, corrected for all pairs of the question

    @property
    def is_told(self) -> bool:
        """Whether the difference is told from chance."""
        return self.p_value < _LEVEL


@dataclass(frozen=True)
class Agreement:
    """Krippendorff's alpha, ordinal for grades and nominal otherwise.

    1 is full agreement, 0 that of chance; None where no two raters answered for the same
    item, or all said the same throughout, so that agreement cannot be told from habit.
    """

    alpha: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Results:
    """Figures of a study; attention checks are not counted."""

    systems: tuple[str, ...]  # none where no question is about captions
    questions: tuple[Question, ...]
    n_raters: int  # with an answer
    n_items: int  # with an answer
    n_answers: int
    # By question: mean grades and shares of best choices by system, shares of labels by label.
    figures: dict[str, dict[str, Estimate]]
    counts: dict[str, dict[str, list[int]]]  # of each grade, by question and system
    differences: tuple[Difference, ...]
    agreement: dict[str, Agreement]
    n_failed: dict[int, int]  # raters by the number of attention checks that they failed
    seconds: float | None  # on an item, the median
    raters: tuple[dict[str, Any], ...]
    items: tuple[dict[str, Any], ...]
    note: str  # what keeps the figures from being conclusive; may be empty
    has_intervals: bool  # whether there are answers enough to draw conclusions from


@dataclass(frozen=True)
class _Kept:
    """An answer that counts."""

    rater: int  # number
    place: int  # of the item
    item: Item
    order: tuple[int, ...]  # choices that were shown
    answer: Given


def compute_results(
    snapshot: Snapshot, *, only_attentive: bool = False, n_resamples: int = 1000, seed: int = 0
) -> Results:
    """Figures of all complete answers, those of raters with closed links included.

    With ``only_attentive``, raters who failed an attention check are left out.
    """
    failed = failed_checks(snapshot)
    kept = [
        _Kept(rater.number, shown.item, snapshot.items[shown.item], shown.order, answer)
        for rater in snapshot.raters
        if not (only_attentive and failed.get(rater.number))
        for shown, answer in rater.list_complete()
        if snapshot.items[shown.item].check is None
    ]
    questions = snapshot.design.questions
    systems = system_names(snapshot.items) if snapshot.design.is_of_captions else ()
    bench = _Bench(snapshot, systems, kept, n_resamples, seed)
    asked = [question for question in questions if kept and question.kind != "words"]
    return Results(
        systems=systems,
        questions=questions,
        n_raters=bench.n_raters,
        n_items=bench.n_items,
        n_answers=len(kept),
        figures={question.name: bench.estimate_all(question) for question in asked},
        counts={
            question.name: _count_grades(kept, question, systems)
            for question in asked
            if question.kind == "grade"
        },
        differences=tuple(
            each
            for question in asked
            if question.is_of_captions and bench.draws is not None
            for each in bench.compare(question)
        ),
        agreement={
            question.name: measure_agreement(kept, question, n_resamples, seed)
            for question in asked
        },
        n_failed=dict(sorted(Counter(failed.values()).items())),
        seconds=_median_seconds(kept),
        raters=_list_raters(snapshot, kept, failed),
        items=_list_items(kept, asked, systems),
        note=_note(bench.n_raters, bench.n_items),
        has_intervals=bench.draws is not None,
    )


class _Bench:
    """A table of all figures of all answers, and its means on the same resamples."""

    def __init__(
        self,
        snapshot: Snapshot,
        systems: tuple[str, ...],
        kept: list[_Kept],
        n_resamples: int,
        seed: int,
    ) -> None:
        numbers, raters = np.unique([each.rater for each in kept], return_inverse=True)
        places, items = np.unique([each.place for each in kept], return_inverse=True)
        self.n_raters, self.n_items = len(numbers), len(places)
        self._systems, self._is_pairwise = systems, snapshot.design.is_pairwise
        self._column: dict[tuple[str, str], int] = {}
        columns: list[list[float]] = []
        for question in snapshot.design.questions:
            for name, values in self._list_columns(question, kept):
                self._column[question.name, name] = len(columns)
                columns.append(values)
        self._table = np.array(columns, dtype=float).T
        self.draws: np.ndarray | None = None
        if self.n_raters >= MIN_RATERS and self.n_items >= MIN_ITEMS:
            resamples = Resamples.draw(len(kept), raters, items, n_resamples=n_resamples, seed=seed)
            self.draws = _means(resamples, self._table)

    def estimate_all(self, question: Question) -> dict[str, Estimate]:
        """The question's figures, by system or label; in pairs, some may not have been shown."""
        names = [name for asked, name in self._column if asked == question.name]
        found = {name: self._estimate(question, name) for name in names}
        return {name: each for name, each in found.items() if not math.isnan(each.value)}

    def compare(self, question: Question) -> list[Difference]:
        """All pairs of systems, corrected for being many."""
        pairs = list(combinations(self.estimate_all(question), 2))
        values = holm([self._p_value(question, *pair) for pair in pairs])
        return [
            Difference(question.name, *pair, self._estimate(question, *pair), p_value)
            for pair, p_value in zip(pairs, values, strict=True)
        ]

    def _list_columns(self, question: Question, kept: list[_Kept]) -> list[tuple[str, list[float]]]:
        """Figures of all answers, nan where there is none, by system or label."""
        if question.kind == "label":
            return [
                (label, [float(each.answer.said[question.name] == label) for each in kept])
                for label in question.options
            ]
        if question.kind == "grade":
            return [(s, [_grade(each, question, s) for each in kept]) for s in self._systems]
        if question.kind == "best":
            shares = [
                share_best(
                    each.item, each.order, each.answer.said[question.name], self._is_pairwise
                )
                for each in kept
            ]
            return [(s, [each.get(s, math.nan) for each in shares]) for s in self._systems]
        return []

    def _estimate(self, question: Question, name: str, other: str = "") -> Estimate:
        """Of one system or label, or by how much it is above another, on the same resamples."""
        value, drawn = self._look(question, name)
        limits = (1.0, float(len(question.options))) if question.kind == "grade" else (0.0, 1.0)
        if other:
            less, drawn_less = self._look(question, other)
            value, drawn = value - less, drawn - drawn_less
            limits = (limits[0] - limits[1], limits[1] - limits[0])
        if self.draws is None or math.isnan(value):
            return Estimate(value)
        return Estimate(value, *_interval(value, drawn, self._n_groups, limits))

    def _p_value(self, question: Question, first: str, second: str) -> float:
        """Of no difference, by Student's t with the spread of the resamples."""
        (one, drawn_one), (two, drawn_two) = (self._look(question, s) for s in (first, second))
        value, spread = one - two, float(np.nanstd(drawn_one - drawn_two))
        if not spread > 1e-9:  # all answers agree, or there are none
            return 1.0
        return float(2 * stdtr(self._n_groups - 1, -abs(value) / spread))

    def _look(self, question: Question, name: str) -> tuple[float, np.ndarray]:
        at = self._column[question.name, name]
        known = self._table[:, at][~np.isnan(self._table[:, at])]
        drawn = np.zeros(0) if self.draws is None else self.draws[:, at]
        return float(known.mean()) if len(known) else math.nan, drawn

    @property
    def _n_groups(self) -> int:
        return min(self.n_raters, self.n_items)


def _means(resamples: Resamples, table: np.ndarray) -> np.ndarray:
    """Means of what is known in each column, on each resample."""
    known = ~np.isnan(table)
    if known.all():
        return resamples.means(table)
    parts = []
    for counts in resamples.blocks():
        totals = counts @ known
        totals[totals == 0] = math.nan
        parts.append(counts @ np.where(known, table, 0) / totals)
    return np.concatenate(parts)


def _interval(
    value: float, drawn: np.ndarray, n_groups: int, limits: tuple[float, float]
) -> tuple[float, float]:
    """A 95 % interval; where all answers agree, resamples do too, and know nothing of others."""
    if np.nanstd(drawn) > 1e-9:
        return student_interval(value, drawn, n_groups=n_groups, limits=limits)
    start, width = limits[0], limits[1] - limits[0]
    low, high = wilson_interval((value - start) / width, n_groups)
    return start + width * float(low), start + width * float(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value, corrected for there being several (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    corrected = np.maximum.accumulate(np.asarray(p_values)[order] * factors)
    found = np.empty(len(order))
    found[order] = np.minimum(corrected, 1)
    return [float(value) for value in found]


def failed_checks(snapshot: Snapshot) -> dict[int, int]:
    """How many attention checks each rater failed, of those who answered one."""
    failed = {}
    for rater in snapshot.raters:
        checks = [
            fails_check(snapshot.items[place], answer, snapshot.design.questions)
            for place, answer in rater.complete.items()
            if snapshot.items[place].check is not None
        ]
        if checks:
            failed[rater.number] = sum(checks)
    return failed


def share_best(
    item: Item, order: Sequence[int], chosen: Any, is_pairwise: bool
) -> dict[str, float]:
    """How much of a best choice goes to each system: shared where they said the same.

    In pairs, whoever said it has won; who was not shown is not there.
    """
    shown = [system for system in item.captions if item.choice_of(system) in order]
    winners = [s for s in shown if chosen in (TIE, item.choice_of(s))]
    share = 1 / len(winners)
    if is_pairwise:
        share = 0.5 if chosen == TIE else 1.0
    return {system: share * (system in winners) for system in shown}


def _grade(kept: _Kept, question: Question, system: str) -> float:
    """What a system's caption got; nan where it was not shown."""
    grade = kept.answer.grades(question.name)[kept.item.choice_of(system)]
    return float(grade) if grade else math.nan


def _count_grades(
    kept: list[_Kept], question: Question, systems: tuple[str, ...]
) -> dict[str, list[int]]:
    """How often each system got each grade."""
    found = {}
    for system in systems:
        counts = Counter(_grade(each, question, system) for each in kept)
        found[system] = [counts[float(grade)] for grade in range(1, len(question.options) + 1)]
    return found


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
    kept: Sequence[_Kept], question: Question, n_resamples: int, seed: int
) -> Agreement:
    """Agreement of answers to a question.

    A unit of grades is a caption of an item, one of best choices an item with captions that
    differ, one of labels an item.
    """
    units: defaultdict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for each in kept:
        for unit, value in _list_values(each, question):
            units[each.place, unit][value] += 1
    if not units:
        return Agreement(None)
    n_values = 1 + max(value for counts in units.values() for value in counts)
    table = [[counts[value] for value in range(n_values)] for counts in units.values()]
    items = np.unique([place for place, _ in units], return_inverse=True)[1]
    alpha, drawn = alpha_on_resamples(
        table, items, is_ordered=question.kind == "grade", n_resamples=n_resamples, seed=seed
    )
    if math.isnan(alpha):
        return Agreement(None)
    if items.max() + 1 < MIN_ITEMS:
        return Agreement(alpha)
    return Agreement(alpha, *percentile_interval(drawn))


def _list_values(kept: _Kept, question: Question) -> list[tuple[int, int]]:
    """What an answer says of units: their number in the item, and a value from 0 on."""
    said = kept.answer.said[question.name]
    if isinstance(said, tuple):
        return [(choice, grade - 1) for choice, grade in enumerate(said) if grade]
    if isinstance(said, str):
        return [(0, question.options.index(said))]
    if len(kept.item.choices) < 2 or said is None:  # nobody was asked
        return []
    if said == TIE:
        return [(0, 0)]
    return [(0, 1 + sorted(kept.item.captions).index(name_verdict(kept.item, said)))]


def _median_seconds(kept: Sequence[_Kept]) -> float | None:
    known = [each.answer.seconds for each in kept if each.answer.seconds]
    return round(median(known), 1) if known else None


def _list_raters(
    snapshot: Snapshot, kept: list[_Kept], failed: dict[int, int]
) -> tuple[dict[str, Any], ...]:
    """How much each rater answered, how fast, and how much like the others."""
    own: defaultdict[int, list[_Kept]] = defaultdict(list)
    for each in kept:
        own[each.rater].append(each)
    alike = _measure_likeness(kept, snapshot.design.questions)
    return tuple(
        {
            "rater": rater.number,
            "participant": rater.person.participant,
            "n_answers": len(own[rater.number]),
            "seconds": _median_seconds(own[rater.number]),
            "n_failed": failed.get(rater.number),
            "likeness": alike.get(rater.number),
        }
        for rater in snapshot.raters
        if own[rater.number]
    )


def _measure_likeness(kept: list[_Kept], questions: Sequence[Question]) -> dict[int, float]:
    """How often each rater says what another rater of the same says, over all questions.

    Of chance, raters of few grades agree often: to be compared between raters of one study.
    """
    said: defaultdict[tuple[str, int, int], Counter[int]] = defaultdict(Counter)
    values = [
        (each.rater, (question.name, each.place, unit), value)
        for each in kept
        for question in questions
        if question.kind != "words"
        for unit, value in _list_values(each, question)
    ]
    for _, unit, value in values:
        said[unit][value] += 1
    shares: defaultdict[int, list[float]] = defaultdict(list)
    for rater, unit, value in values:
        n_others = said[unit].total() - 1
        if n_others:
            shares[rater].append((said[unit][value] - 1) / n_others)
    return {rater: sum(each) / len(each) for rater, each in shares.items()}


def _list_items(
    kept: list[_Kept], asked: Sequence[Question], systems: tuple[str, ...]
) -> tuple[dict[str, Any], ...]:
    """How often each item was answered, how fast, and what was said of it."""
    own: defaultdict[int, list[_Kept]] = defaultdict(list)
    for each in kept:
        own[each.place].append(each)
    return tuple(
        {
            "place": place,
            "item": answers[0].item.id,
            "n_answers": len(answers),
            "seconds": _median_seconds(answers),
            "said": {question.name: _sum_up(answers, question, systems) for question in asked},
        }
        for place, answers in sorted(own.items())
    )


def _sum_up(answers: list[_Kept], question: Question, systems: tuple[str, ...]) -> dict[str, float]:
    """What was said of one item: mean grades by system, or how often each was chosen."""
    if question.kind == "grade":
        grades = {
            system: [_grade(each, question, system) for each in answers] for system in systems
        }
        known = {s: [g for g in each if not math.isnan(g)] for s, each in grades.items()}
        return {s: round(sum(each) / len(each), 2) for s, each in known.items() if each}
    names = [name_choice(each.item, each.answer.said[question.name]) for each in answers]
    return dict(Counter(names).most_common())


def name_verdict(item: Item, said: Any) -> str:
    """What was chosen, by the first system that said it, so that items can be compared."""
    if said == TIE:
        return "tie"
    return next(system for system in item.captions if item.choice_of(system) == said)


def name_choice(item: Item, said: Any) -> str:
    """What was chosen, by its systems; a label as it is."""
    if isinstance(said, str):
        return said
    if said == TIE:
        return "tie"
    return " = ".join(system for system in item.captions if item.choice_of(system) == said)
