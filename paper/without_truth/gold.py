"""A few true labels: what they add to a consensus without truth, and which ones to ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from paper.without_truth.sets import read_task
from wassemble import LearnedEnsemble, Predictions, learn_ensemble, rank_models
from wassemble.ensemble.without_truth import Ranking
from wassemble.ensemble.without_truth.rank import count_earlier

SETS = ("languages", "encodings")
_N_GOLD = (10, 50, 200)
_N_ASKED = 100
_SEEDS = (0, 1, 2)


def try_gold(name: str) -> dict[str, Any]:
    """Accuracies by number of gold samples, and by the way of asking for them; for JSON."""
    trial = _Trial(*read_task(name))
    halves = [trial.halve(seed) for seed in _SEEDS]
    lines = [_line(0, halves[0].score(learn_ensemble(trial.models, **trial.meanings)), None)]
    for n_gold in _N_GOLD:
        rows = _ask_any(halves[0], n_gold)
        given = {trial.samples[row]: trial.truth[row] for row in rows.tolist()}
        ours = learn_ensemble(trial.models, gold=given, **trial.meanings)
        lines.append(_line(n_gold, halves[0].score(ours), halves[0].score(trial.teach(rows))))
    asked = {
        word: [half.score(trial.teach(ask(half, _N_ASKED))) for half in halves]
        for word, ask in WAYS.items()
    }
    n_tested = len(halves[0].tested)
    return {"n_tested": n_tested, "gold": lines, "n_asked": _N_ASKED, "asked": asked}


def _line(n_gold: int, ours: float, taught: float | None) -> dict[str, Any]:
    return {"n_gold": n_gold, "ours": ours, "with_truth": taught}


@dataclass(frozen=True, eq=False)
class _Trial:
    """A task, its truth included."""

    models: list[Predictions]
    truth: list[str]
    meanings: dict[str, Any]

    @property
    def samples(self) -> list[Any]:
        return self.models[0].samples.tolist()

    @cached_property
    def ranking(self) -> Ranking:
        return rank_models(self.models, **self.meanings)

    def halve(self, seed: int) -> _Half:
        """Samples to ask about, and the others, to test on."""
        order = np.random.default_rng(seed).permutation(len(self.truth))
        middle = len(order) // 2
        return _Half(self, order[:middle], np.sort(order[middle:]))

    def teach(self, rows: np.ndarray) -> LearnedEnsemble:
        """What is learned from some samples and their truth alone."""
        part, true = [model.take(rows) for model in self.models], [self.truth[row] for row in rows]
        return learn_ensemble(part, true, **self.meanings)


@dataclass(frozen=True, eq=False)
class _Half:
    """Samples to ask about, in no order, and samples to test on.

    Who asks about the hardest samples must not be tested on the easiest.
    """

    trial: _Trial
    askable: np.ndarray
    tested: np.ndarray

    def score(self, learned: LearnedEnsemble) -> float:
        """Accuracy on the samples that nobody was asked about."""
        top = learned.predict([model.take(self.tested) for model in self.trial.models]).top()
        pairs = zip(top, self.tested.tolist(), strict=True)
        return float(np.mean([each.label == self.trial.truth[row] for each, row in pairs]))


def _ask_any(half: _Half, n_samples: int) -> np.ndarray:
    return np.sort(half.askable[:n_samples])


def _ask_disputed(half: _Half, n_samples: int) -> np.ndarray:
    """Those that models are least of one mind about."""
    quality = half.trial.ranking.quality[half.askable]
    return np.sort(half.askable[np.argsort(quality, kind="stable")[:n_samples]])


def _ask_spread(half: _Half, n_samples: int) -> np.ndarray:
    """One of each label that the consensus gives, then another of each, and so on."""
    believed = half.trial.ranking.consensus.scores[half.askable].argmax(axis=1)
    turn = count_earlier(believed)
    return np.sort(half.askable[np.argsort(turn, kind="stable")[:n_samples]])


WAYS: dict[str, Callable[[_Half, int], np.ndarray]] = {
    "at random": _ask_any,
    "the most disputed": _ask_disputed,
    "each label in turn": _ask_spread,
}
