"""All samples at once: what each rule answers, how right it is, and which samples are listed.

The consensus comes from few sweeps here, enough for the first label; where there are more samples
than a slider can wait for, some of them are judged, spread over the file.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.labels import enumerate_names
from wassemble.metrics import (
    CalibrationBins,
    accuracy,
    calibration_bins,
    expected_calibration_error,
    log_loss,
    mean_average_precision,
)
from wassemble.metrics.arguments import divide_rows
from wassemble.solvers import ARITHMETIC
from wassemble.web.explorer.answers import MEANS, Role, fuse_sample, get_ranking, plan_view
from wassemble.web.explorer.cases import Case, Cut
from wassemble.web.explorer.similarity import NAMES
from wassemble.web.explorer.view import View

N_SWEEPS = 10
_TOLERANCE = 1e-3
# Products of a sweep over all judged samples, their scores, and samples that are cut one by one.
_WORK = 3e8
_N_SCORES = 1e7
_N_CUT = 24
_N_BINS = 10
KEPT = "consensus as kept"


@dataclass(frozen=True, eq=False)
class Judged:
    """What one rule answers to the samples that are judged."""

    name: str
    role: Role
    answers: np.ndarray  # (n_judged,) places in the target; -1 without an answer
    shares: np.ndarray  # (n_judged,) of the answer, from 0 to 1
    right: np.ndarray  # (n_judged,) whether the answer is true; False where nobody knows
    figures: dict[str, float]  # by name; empty without truth
    bins: CalibrationBins | None  # how right by how sure, where samples have one true label


@dataclass(frozen=True, eq=False)
class Truth:
    """True labels of the samples that are judged."""

    is_true: np.ndarray  # (n_judged, n_target + 1); the last: a label that is not in the target
    is_known: np.ndarray  # (n_judged,)

    @property
    def is_single(self) -> bool:
        """Whether every sample has one true label."""
        return bool((self.is_true[self.is_known].sum(axis=1) == 1).all())

    def judge(self, name: str, role: Role, scores: np.ndarray) -> Judged:
        """A rule, by its scores of the judged samples, (n_judged, n_target)."""
        table = divide_rows(np.nan_to_num(scores).astype(np.float64))
        best = table.argmax(axis=1)
        shares = table[np.arange(len(best)), best]
        answers = np.where(shares > 0, best, -1)
        right = self.is_known & (answers >= 0) & self.is_true[np.arange(len(best)), best]
        judged = Judged(name, role, answers, shares, right, {}, None)
        known = self.is_known
        if not known.any():
            return judged
        padded = np.pad(np.nan_to_num(scores[known]).astype(np.float64), ((0, 0), (0, 1)))
        if not self.is_single:
            return replace(judged, figures=self._measure_several(padded, right[known]))
        true = self.is_true[known].argmax(axis=1)
        bins = calibration_bins(padded, true, n_bins=_N_BINS)
        return replace(judged, figures=_measure_one(padded, true), bins=bins)

    def _measure_several(self, scores: np.ndarray, right: np.ndarray) -> dict[str, float]:
        true = self.is_true[self.is_known].astype(np.float64)
        average = mean_average_precision(scores, true)
        return {"first label right": float(right.mean()), "mAP": average}


def _measure_one(scores: np.ndarray, true: np.ndarray) -> dict[str, float]:
    return {
        "accuracy": accuracy(scores, true),
        "log-loss": log_loss(scores, true),
        "calibration error": expected_calibration_error(scores, true),
    }


@dataclass(frozen=True, eq=False)
class Judgement:
    """Every rule on the same samples."""

    rows: np.ndarray  # (n_judged,) places of the samples
    truth: Truth
    rules: list[Judged]  # consensus, the one that was kept if any, means, models

    @property
    def best_model(self) -> Judged | None:
        """The model that is right most often; None where nobody knows."""
        models = [rule for rule in self.rules if rule.role == "model"]
        return max(models, key=lambda each: each.right.sum()) if self.truth.is_known.any() else None

    def rule(self, name: str) -> Judged:
        """The rule of that name."""
        named = {rule.name: rule for rule in self.rules}
        if name not in named:
            fail(f"a rule must be one of {enumerate_names(named)}; got {name!r}.")
        return named[name]


def judge(case: Case, view: View) -> Judgement:
    """Every rule, as the sliders stand; what was judged before is kept."""
    rules = [*_judge_consensus(case, view)]
    if (kept := view.kept) is not None:
        [before] = _judge_consensus(case, kept)
        rules.append(replace(before, name=KEPT))
    rules += [*_judge_means(case, view), *judge_models(case)]
    return Judgement(_rows(case), _truth(case), rules)


def find_best_model(case: Case) -> str:
    """The model that is right most often; empty where nobody knows."""
    if not case.table.truth:
        return ""
    best = Judgement(_rows(case), _truth(case), judge_models(case)).best_model
    return "" if best is None else best.name


def judge_models(case: Case) -> list[Judged]:
    """Each model on its own."""

    def make() -> list[Judged]:
        cut = _simple_cut(case)
        plan = case.plan(cut, ARITHMETIC, case.epsilon)
        ready = plan.prepare(cut.members)
        return [
            _truth(case).judge(member.model, "model", plan.carry(member, ready.scores[index]))
            for index, member in enumerate(plan.members)
        ]

    return _keep(case, "models", make)


def _judge_means(case: Case, view: View) -> list[Judged]:
    def make() -> list[Judged]:
        cut = _simple_cut(case)
        weights = plan_view(case, cut, view).weights
        plans = {role: case.plan(cut, rule, case.epsilon) for role, rule in MEANS.items()}
        return [
            _truth(case).judge(role, role, plan.with_weights(weights).fuse(cut.members).scores)
            for role, plan in plans.items()
        ]

    return _keep(case, ("means", view.weight), make)


def _judge_consensus(case: Case, view: View) -> list[Judged]:
    def make() -> list[Judged]:
        scores = _cut_scores(case, view) if case.is_cut else _whole_scores(case, view)
        return [_truth(case).judge("consensus", "consensus", scores)]

    return _keep(case, view.settings, make)


def _keep(case: Case, key: Any, make: Callable[[], Any]) -> Any:
    return case.judgements.get(key, make)


def _simple_cut(case: Case) -> Cut:
    """The judged samples, for rules that transport nothing."""
    if case.is_cut and not case.means_by_name:
        fail("all samples at once must have labels that models name, or fewer; got too many.")
    return case.take(_rows(case), by_name=case.means_by_name)


def _whole_scores(case: Case, view: View) -> np.ndarray:
    cut = case.take(_rows(case))
    plan = plan_view(case, cut, view, max_sweeps=N_SWEEPS, tolerance=_TOLERANCE)
    scores: np.ndarray = plan.fuse(cut.members).scores
    return scores


def _cut_scores(case: Case, view: View) -> np.ndarray:
    """Scores over all labels, of samples that are cut to some of them each."""
    rows = _rows(case)
    scores = np.zeros((len(rows), len(case.target)))
    for place, row in enumerate(rows.tolist()):
        consensus = fuse_sample(case, row, view).consensus
        scores[place, case.target.places(list(consensus.labels))] = consensus.scores
    return scores


def _rows(case: Case) -> np.ndarray:
    """The samples that are judged: all, or as many as a slider can wait for."""
    n_samples, n_target = len(case.table.samples), len(case.target)
    n_labels = sum(len(model.labels) for model in case.table.models)
    products = n_labels if case.similarity is NAMES else n_labels * n_target
    most = min(_WORK / products, _N_SCORES / max(n_target, n_labels), n_samples)
    n_judged = max(1, int(min(most, _N_CUT) if case.is_cut else most))
    return np.unique(np.linspace(0, n_samples - 1, n_judged).astype(np.int64))


def _truth(case: Case) -> Truth:
    def make() -> Truth:
        table, rows = case.table, _rows(case)
        is_true = np.zeros((len(rows), len(case.target) + 1), dtype=bool)
        for place, row in enumerate(rows.tolist()):
            for label in table.truth.get(table.samples[row], ()):
                at = case.target.place(label) if label in case.target else -1
                is_true[place, at] = True
        known = [table.samples[row] in table.truth for row in rows.tolist()]
        return Truth(is_true, np.array(known, dtype=bool))

    found: Truth = _keep(case, "truth", make)
    return found


# -- lists -----------------------------------------------------------------------------------------


def list_rows(case: Case, view: View) -> list[int]:
    """Samples that a view lists, in its order."""
    ranking = get_ranking(case)
    rows: list[int] = ranking.order.tolist()
    if view.dispute:
        rows = [row for row in rows if ranking.disagreement[row] >= view.dispute]
    if view.search:
        wanted, table = view.search.casefold(), case.table
        rows = [
            row
            for row in rows
            if wanted in table.samples[row].casefold()
            or wanted in table.texts.get(table.samples[row], "").casefold()
        ]
    if not (view.show or view.about or view.sort):
        return rows
    judgement = judge(case, view)
    place = {row: at for at, row in enumerate(judgement.rows.tolist())}
    is_listed = _choose(case, judgement, view)
    rows = [row for row in rows if row in place and is_listed[place[row]]]
    key = _sort_key(case, judgement, view)
    return sorted(rows, key=lambda row: key(row, place[row])) if key else rows


def _choose(case: Case, judgement: Judgement, view: View) -> np.ndarray:
    """Whether each of the judged samples is listed."""
    consensus, mean = judgement.rule("consensus"), judgement.rule("arithmetic mean")
    known = judgement.truth.is_known
    chosen: np.ndarray = {
        "": np.ones(len(judgement.rows), dtype=bool),
        "gained": consensus.right & ~mean.right,
        "lost": ~consensus.right & mean.right,
        "right": consensus.right,
        "wrong": known & ~consensus.right,
        "missed": known & ~mean.right,
        "apart": consensus.answers != mean.answers,
    }[view.show]
    if not view.about:
        return chosen
    place = case.target.place(view.about)
    is_true = judgement.truth.is_true[:, place]
    return chosen & np.where(known, is_true, consensus.answers == place)


def _sort_key(case: Case, judgement: Judgement, view: View) -> Callable[[int, int], Any] | None:
    table = case.table

    def answer_of(rule: Judged) -> Callable[[int, int], Any]:
        return lambda row, at: table.name(label_at(case, int(rule.answers[at])))

    consensus = judgement.rule("consensus")
    keys: dict[str, Callable[[int, int], Any]] = {
        "sample": lambda row, at: row,
        "truth": lambda row, at: [table.name(x) for x in table.truth.get(table.samples[row], ())],
        "consensus": answer_of(consensus),
        "mean": answer_of(judgement.rule("arithmetic mean")),
        "sure": lambda row, at: -consensus.shares[at],
        "unsure": lambda row, at: consensus.shares[at],
    }
    return keys.get(view.sort)


def label_at(case: Case, place: int) -> str:
    """The label at a place of the target; empty for no answer."""
    return "" if place < 0 else case.target[place]


# -- two rules -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Confusion:
    """Two rules on the same samples: how often each is right, and where they differ."""

    first: str
    second: str
    both: int
    first_alone: int
    second_alone: int
    neither: int
    n_same: int
    pairs: list[tuple[str, str, int]]  # labels that differ, the most frequent first


def confuse(case: Case, judgement: Judgement, first: str, second: str, n_pairs: int) -> Confusion:
    """How two rules differ, over the samples whose truth is known, and over all."""
    one, two, known = judgement.rule(first), judgement.rule(second), judgement.truth.is_known
    differ = np.flatnonzero(one.answers != two.answers)
    counts = Counter(zip(one.answers[differ].tolist(), two.answers[differ].tolist(), strict=True))
    return Confusion(
        first=first,
        second=second,
        both=int((one.right & two.right).sum()),
        first_alone=int((one.right & ~two.right).sum()),
        second_alone=int((~one.right & two.right).sum()),
        neither=int((known & ~one.right & ~two.right).sum()),
        n_same=len(judgement.rows) - len(differ),
        pairs=[
            (label_at(case, a), label_at(case, b), n) for (a, b), n in counts.most_common(n_pairs)
        ],
    )
