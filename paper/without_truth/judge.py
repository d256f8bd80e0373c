"""Every rung, what was chosen, and rivals, on one set of votes, tested with its truth."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from paper.without_truth.rivals import RIVALS, aggregate, can_run
from paper.without_truth.sets import JUDGES, VoteSet
from wassemble.ensemble.without_truth import RUNGS, Fitted, Known, find_relatives
from wassemble.ensemble.without_truth.choice import choose_rung
from wassemble.ensemble.without_truth.rank import judge_answers
from wassemble.ensemble.without_truth.relatives import mark_answers
from wassemble.metrics import quadratic_kappa
from wassemble.solvers.stacked import mark_best

CAUTION = 0.5
# Answers with truth that a model must have to be ranked.
_ENOUGH = 30


def judge_set(name: str, given: VoteSet) -> dict[str, Any]:
    """Accuracies and what else the page shows, ready for JSON."""
    votes, start = given.votes, time.process_time()
    relatives = find_relatives(votes, Known(np.ones(votes.n_models)))
    known = Known(relatives.shares)
    choice = choose_rung(votes, known, relatives, caution=CAUTION)
    chosen = choice.rung.fit(votes, known)
    seconds = time.process_time() - start
    # A plain vote: every model counts as much, whatever it declares.
    hits = {"majority": _hits(given, np.asarray(votes.given @ votes.images))}
    for rung in filter(lambda rung: rung.suits(votes), RUNGS):
        hits[str(rung)] = _hits(given, rung.fit(votes, known).consensus)
    for rival in RIVALS:
        if can_run(rival, votes):
            hits[rival] = _hits(given, aggregate(rival, votes))
    own = hits[str(choice.rung)]
    simple = max((hits["majority"], hits[str(RUNGS[0])]), key=np.mean)
    found = {
        "n_samples": votes.n_samples,
        "n_models": votes.n_models,
        "n_votes": int(votes.n_answers.sum()),
        "n_tested": len(given.tested),
        "chosen": str(choice.rung),
        "n_effective": relatives.n_effective,
        "accuracy": {each: float(np.mean(hit)) for each, hit in hits.items()},
        "standard_error": _error(given, own),
        "gain": float(np.mean(own - simple)),
        "gain_error": _error(given, own - simple),
        "seconds": seconds,
        "ranks": _judge_ranks(given, chosen),
    }
    return found | (_kappas(given, chosen) if name == JUDGES else {})


def _hits(given: VoteSet, consensus: np.ndarray) -> np.ndarray:
    """1 where the best label is the true one; equally good labels share."""
    rows = given.tested
    # Sums in another order differ in the last bits, and ties must stay ties.
    best = mark_best(np.round(consensus[rows], 9))
    return np.asarray(best[np.arange(len(rows)), given.truth[rows]])


def _error(given: VoteSet, values: np.ndarray) -> float:
    """Standard error of a mean over samples of which whole groups are drawn."""
    groups = given.groups[given.tested]
    sums = np.bincount(groups, values - values.mean())
    return float(np.sqrt((sums**2).sum()) / len(values))


def _judge_ranks(given: VoteSet, chosen: Fitted) -> dict[str, float] | None:
    """How accuracies that were estimated without truth compare with true ones."""
    right, judged = judge_answers(chosen)
    rows = np.flatnonzero(given.truth >= 0)
    marked = mark_answers(given.votes.on(rows))
    n_right = sum(
        np.asarray(answers[given.truth[rows] == label].sum(axis=0)).ravel()
        for label, answers in enumerate(marked)
    )
    n_told = np.asarray(given.votes.on(rows).answers.sum(axis=0)).ravel()
    enough = (n_told >= _ENOUGH) & (judged >= _ENOUGH)
    if enough.sum() < 3:
        return None
    estimated, true = (
        (right / np.maximum(judged, 1))[enough],
        (n_right / np.maximum(n_told, 1))[enough],
    )
    return {
        "n_models": int(enough.sum()),
        "correlation": float(spearmanr(estimated, true)[0]),
        "mean_gap": float(np.mean(estimated - true)),
        "largest_gap": float(np.abs(estimated - true).max()),
    }


def _kappas(given: VoteSet, chosen: Fitted) -> dict[str, float]:
    """Cohen's kappa, plain and with quadratic weights, of the consensus and the true grades."""
    rows, n_target = given.tested, len(given.votes.target)
    answers, truth = chosen.consensus[rows].argmax(axis=1), given.truth[rows]
    counts = [np.bincount(each, minlength=n_target) / len(rows) for each in (answers, truth)]
    chance = counts[0] @ counts[1]
    return {
        "kappa": float((np.mean(answers == truth) - chance) / (1 - chance)),
        "quadratic_kappa": quadratic_kappa(chosen.consensus[rows], truth),
    }
