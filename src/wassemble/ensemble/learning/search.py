"""Trying recipes by cross-validation: within a time budget, with a log that resumes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._files import write_whole
from wassemble.ensemble.learning.fitting import Fitter
from wassemble.ensemble.learning.recipes import Kernels, Recipe
from wassemble.ensemble.learning.trial import Trial
from wassemble.metrics import Measure, PairedBootstrap

# Beside simple recipes, so that a slow machine still sees what is on offer.
_N_IN_ANY_CASE = 12


@dataclass(frozen=True)
class Tried:
    """A recipe and its scores on samples that it was not fitted on.

    Attributes
    ----------
    score : float
        On all samples, each predicted by what was fitted on the other folds. Not a mean over
        folds: precision among few samples is noise.
    scores_without : tuple of float
        The same on the samples outside of each fold, to choose for that fold by.
    """

    recipe: Recipe
    score: float
    scores_without: tuple[float, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self) | {"recipe": self.recipe.to_dict()}

    @staticmethod
    def from_dict(entries: Mapping[str, Any]) -> Tried:
        """What `to_dict` wrote down."""
        without = tuple(float(score) for score in entries["scores_without"])
        recipe = Recipe.from_dict(entries["recipe"])
        return Tried(recipe, float(entries["score"]), without, float(entries["seconds"]))


@dataclass
class Search:
    """Cross-validation of recipes on one trial.

    Parameters
    ----------
    trial : Trial
    measure : Measure
    offered : dict of name to kernels
    n_folds, seed : int
    log : path, optional
        A file of JSON lines: what was tried is not tried again.
    """

    trial: Trial
    measure: Measure
    offered: Kernels
    n_folds: int = 5
    seed: int = 0
    log: Path | None = None
    folds: np.ndarray = field(init=False)
    _known: dict[Recipe, Tried] = field(init=False, default_factory=dict)
    _held: dict[Recipe, np.ndarray] = field(init=False, default_factory=dict)
    _outer: list[Fitter] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.folds = self.trial.folds(self.n_folds, self.seed)
        self._data = self._fingerprint()
        self.fitter = Fitter(self.trial, self.offered, self.measure)
        if self.log is not None and self.log.exists():
            self._read_log()

    @cached_property
    def bootstrap(self) -> PairedBootstrap:
        """The same resamples of the trial for every rule."""
        return self.trial.bootstrap(self.measure, self.seed)

    def run(
        self,
        recipes: Sequence[Recipe],
        *,
        time_budget: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Tried]:
        """Try recipes in order, until the time is over; the first of each kind in any case."""
        started = time.monotonic()
        tried: list[Tried] = []
        n_others = 0
        for number, recipe in enumerate(recipes, start=1):
            late = time_budget is not None and time.monotonic() - started > time_budget
            if late and not recipe.is_simple and n_others >= _N_IN_ANY_CASE:
                continue
            n_others += not recipe.is_simple
            tried.append(self.try_one(recipe))
            if progress is not None:
                progress(number, len(recipes))
        return tried

    def try_one(self, recipe: Recipe) -> Tried:
        """Scores of a recipe on samples that it was not fitted on."""
        if recipe not in self._known:
            started = time.perf_counter()
            scores = self.predict(recipe, keep=False)
            score = self._score(scores, np.ones(len(scores), dtype=bool))
            without = tuple(self._score(scores, self.folds != k) for k in range(self.n_folds))
            seconds = round(time.perf_counter() - started, 4)
            self._known[recipe] = Tried(recipe, score, without, seconds)
            self._write_log(self._known[recipe])
        return self._known[recipe]

    def predict(self, recipe: Recipe, *, keep: bool = True) -> np.ndarray:
        """Consensus of every sample, by a recipe that was fitted on the other folds."""
        if recipe in self._held:
            return self._held[recipe]
        trial = self.trial
        if not recipe.needs_fit:
            scores = self.fitter.fit(recipe).fuse(trial.models)
        else:
            scores = np.zeros((trial.n_samples, len(trial.target)))
            for k in range(self.n_folds):
                inside = self.folds == k
                fitted = self._outside(k).fit(recipe)
                scores[inside] = fitted.fuse([model.take(inside) for model in trial.models])
        if keep:
            self._held[recipe] = scores
        return scores

    def _outside(self, k: int) -> Fitter:
        """Fits on all folds but one."""
        if not self._outer:
            self._outer = [self.fitter.on(self.folds != k) for k in range(self.n_folds)]
        return self._outer[k]

    def _score(self, scores: np.ndarray, rows: np.ndarray) -> float:
        weight = self.trial.sample_weight
        return self.measure.score(
            scores[rows], self.trial.truth[rows], None if weight is None else weight[rows]
        )

    # -- log -------------------------------------------------------------------------

    def _fingerprint(self) -> str:
        """Of everything that scores depend on beside the recipe."""
        digest = hashlib.sha256()
        for part in (self.measure.name, self.n_folds, self.seed, *self.trial.target):
            digest.update(repr(part).encode())
        for model in self.trial.models:
            digest.update(repr((model.model, model.labels.names)).encode())
            digest.update(np.ascontiguousarray(model.scores).tobytes())
        digest.update(np.ascontiguousarray(self.trial.truth).tobytes())
        if self.trial.sample_weight is not None:
            digest.update(np.ascontiguousarray(self.trial.sample_weight).tobytes())
        for name, kernels in sorted(self.offered.items()):
            for model_name, kernel in kernels.items():
                entries = np.ascontiguousarray(np.asarray(kernel.kernel.to_dense()))
                digest.update(repr((name, model_name)).encode() + entries.tobytes())
        return digest.hexdigest()[:16]

    def _read_log(self) -> None:
        assert self.log is not None
        lines = self.log.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                if entry["data"] == self._data:
                    tried = Tried.from_dict(entry)
                    self._known[tried.recipe] = tried
            except (ValueError, KeyError, TypeError):
                if number < len(lines):
                    fail(
                        f"{self.log}, line {number}: must be a line of an earlier search.",
                        hint="another file name starts a new log",
                    )
                # The last run was cut off in the middle of a line.
                write_whole(self.log, "".join(f"{kept}\n" for kept in lines[:-1]))

    def _write_log(self, tried: Tried) -> None:
        if self.log is None:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        entry = {"data": self._data, "name": tried.recipe.name, **tried.to_dict()}
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
