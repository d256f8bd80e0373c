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

SETS = ("languages", "encodings")
_N_GOLD = (10, 50, 200)
_N_ASKED = 100
_SEEDS = (0, 1)


def try_gold(name: str) -> dict[str, Any]:
    """Accuracies by number of gold samples, and by the way of asking for them; for JSON."""
    trial = _Trial(*read_task(name))
    lines = [_line(0, trial.score(learn_ensemble(trial.models, **trial.meanings)), None)]
    for n_gold in _N_GOLD:
        rows = _ask_any(trial, n_gold, 0)
        given = {trial.samples[row]: trial.truth[row] for row in rows.tolist()}
        ours = learn_ensemble(trial.models, gold=given, **trial.meanings)
        lines.append(_line(n_gold, trial.score(ours), trial.score(trial.teach(rows))))
    asked = {
        word: [trial.score(trial.teach(ask(trial, _N_ASKED, seed))) for seed in _SEEDS]
        for word, ask in WAYS.items()
    }
    return {"n_tested": len(trial.tested), "gold": lines, "n_asked": _N_ASKED, "asked": asked}


def _line(n_gold: int, ours: float, taught: float | None) -> dict[str, Any]:
    return {"n_gold": n_gold, "ours": ours, "with_truth": taught}


@dataclass(frozen=True, eq=False)
class _Trial:
    """Half of the samples to ask about, and half to test on.

    Who asks about the hardest samples must not be tested on the easiest.
    """

    models: list[Predictions]
    truth: list[str]
    meanings: dict[str, Any]

    @property
    def samples(self) -> list[Any]:
        return self.models[0].samples.tolist()

    @property
    def askable(self) -> np.ndarray:
        return np.arange(0, len(self.truth), 2)

    @property
    def tested(self) -> np.ndarray:
        return np.arange(1, len(self.truth), 2)

    @cached_property
    def ranking(self) -> Ranking:
        return rank_models(self.models, **self.meanings)

    def teach(self, rows: np.ndarray) -> LearnedEnsemble:
        """What is learned from some samples and their truth alone."""
        part, true = [model.take(rows) for model in self.models], [self.truth[row] for row in rows]
        return learn_ensemble(part, true, **self.meanings)

    def score(self, learned: LearnedEnsemble) -> float:
        """Accuracy on the samples that nobody was asked about."""
        top = learned.predict([model.take(self.tested) for model in self.models]).top()
        pairs = zip(top, self.tested.tolist(), strict=True)
        return float(np.mean([each.label == self.truth[row] for each, row in pairs]))


def _ask_any(trial: _Trial, n_samples: int, seed: int) -> np.ndarray:
    """Any samples."""
    drawn = np.random.default_rng(seed).choice(trial.askable, n_samples, replace=False)
    return np.sort(drawn)


def _ask_disputed(trial: _Trial, n_samples: int, seed: int) -> np.ndarray:
    """Those that models are least of one mind about."""
    quality = trial.ranking.quality[trial.askable]
    return np.sort(trial.askable[np.argsort(quality, kind="stable")[:n_samples]])


def _ask_spread(trial: _Trial, n_samples: int, seed: int) -> np.ndarray:
    """One of each label that the consensus gives, then another of each, and so on."""
    order = np.random.default_rng(seed).permutation(trial.askable)
    believed = trial.ranking.consensus.scores[order].argmax(axis=1)
    earlier = np.tril(believed[:, None] == believed, -1).sum(axis=1)
    return np.sort(order[np.argsort(earlier, kind="stable")[:n_samples]])


WAYS: dict[str, Callable[[_Trial, int, int], np.ndarray]] = {
    "at random": _ask_any,
    "the most disputed": _ask_disputed,
    "each label in turn": _ask_spread,
}
