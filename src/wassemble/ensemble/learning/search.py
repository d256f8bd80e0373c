"""Trying recipes by cross-validation: within a time budget, with a log that resumes."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._files import write_whole
from wassemble.ensemble.learning.clock import Clock
from wassemble.ensemble.learning.fitting import FittedRecipe, Fitter
from wassemble.ensemble.learning.recipes import Kernels, Recipe
from wassemble.ensemble.learning.stacks import Stacker
from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.plan import Ready
from wassemble.metrics import Measure, PairedBootstrap
from wassemble.solvers.stacked import StackedRule

# Share of the time that is for trying; the rest is for judging, and for fitting what was chosen.
_FOR_TRYING = 0.6
# Share of the time after which a recipe that takes longer than there was time for is given up.
_FOR_LAST = 0.75
# Share of the time that resamples may take, and how many rules are judged on them in any case.
_FOR_RESAMPLES, _N_JUDGED = 0.25, 9
# Resamples where time is short: a standard error of so few is off by a fifth.
_FEWEST_RESAMPLES = 10
# Samples on which rules through a kernel are tried first, and the share of rules that is tried on
# all samples then: fewer of both where kernels have more entries than this.
_N_SCREENED, _FEWEST_SCREENED = 250, 60
_SHARE_KEPT, _SMALLEST_SHARE = 1 / 3, 1 / 8
_FEWEST_KEPT = 8
_MANY_ENTRIES = 1_000_000
# Share of the time budget after which nothing more is judged.
FOR_ALL = 0.9
# Bytes of scores that are kept, so that they need not be made again.
_MOST_KEPT = 1_000_000_000


class _TimeOverError(Exception):
    """Nothing came of a recipe in time."""


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
    clock : Clock
    """

    trial: Trial
    measure: Measure
    offered: Kernels
    n_folds: int = 5
    seed: int = 0
    log: Path | None = None
    clock: Clock = field(default_factory=Clock)
    folds: np.ndarray = field(init=False)
    n_screened: int = field(init=False, default=0)
    stopped: str | None = field(init=False, default=None)  # why not all were tried
    _is_trying: bool = field(init=False, default=False)
    _known: dict[Recipe, Tried] = field(init=False, default_factory=dict)
    _held: dict[Recipe, np.ndarray] = field(init=False, default_factory=dict)
    _readies: dict[Any, Ready] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.folds = self.trial.folds(self.n_folds, self.seed)
        self._data = self._fingerprint()
        self.stacker = Stacker(self.trial, self.folds, self.offered, clock=self.clock)
        self.fitter = Fitter(self.trial, self.offered, self.measure, self.stacker)
        if self.log is not None and self.log.exists():
            self._read_log()

    @cached_property
    def bootstrap(self) -> PairedBootstrap:
        """The same resamples of the trial for every rule; fewer where the measure is slow."""
        n_usual, seconds = self.measure.n_resamples, self._seconds_of_resample
        n_resamples = None
        if n_usual * seconds * _N_JUDGED > _FOR_RESAMPLES * self.clock.budget:
            afforded = _FOR_RESAMPLES * self.clock.budget / (_N_JUDGED * seconds)
            n_resamples = max(_FEWEST_RESAMPLES, int(afforded))
        return self.trial.bootstrap(self.measure, self.seed, n_resamples)

    @cached_property
    def _seconds_of_resample(self) -> float:
        """What a slow measure takes for one resample, tried on a few; 0 for others."""
        if self.clock.budget == math.inf or not self.measure.resamples_one_by_one:
            return 0.0
        few = self.trial.bootstrap(self.measure, self.seed, _FEWEST_RESAMPLES)
        scores, started = self.predict(next(iter(self._known))), self.clock.seconds
        few.estimate(scores)
        return (self.clock.seconds - started) / _FEWEST_RESAMPLES

    def judging_seconds(self, n_rules: int = 1) -> float:
        """Seconds that some rules take on the resamples, roughly."""
        return n_rules * len(self.bootstrap.resamples) * self._seconds_of_resample

    # -- trying ----------------------------------------------------------------------

    def run(
        self,
        recipes: Sequence[Recipe],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Tried]:
        """Try recipes until the time is over; single models and even means in any case.

        Stacked ones come first then, while what they were expected to take is there, and rules
        through kernels, which are many, last: those are tried on some samples first, and the
        better ones on all. An interrupt ends the search, not what was found.
        """
        certain = [recipe for recipe in recipes if recipe.is_plain]
        simple = [recipe for recipe in recipes if recipe.is_simple and not recipe.is_plain]
        stacked = [recipe for recipe in recipes if recipe.is_stacked]
        others = [recipe for recipe in recipes if recipe.tier in (2, 3)]
        n_steps, n_done = len(recipes) + len(others), 0
        tried: list[Tried] = []

        def step(times: int = 1) -> None:
            nonlocal n_done
            n_done += times
            if progress is not None:
                progress(min(n_done, n_steps), n_steps)

        for recipe in certain:
            tried.append(self.try_one(recipe))
            step()
        self._is_trying = True
        try:
            for recipe in self._while_time([*self._afford(stacked), *simple]):
                tried.append(self.try_one(recipe))
                step()
            for recipe in self._while_time(self._screen(others, step)):
                tried.append(self.try_one(recipe))
                step()
        except _TimeOverError:
            self.stopped = "the time was over"
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        self._is_trying = False
        step(n_steps)
        return tried

    def _afford(self, stacked: Sequence[Recipe]) -> list[Recipe]:
        """Stacked recipes that there is time for: all, those without regressions, or none."""
        if self._has_time(self.stacker.expected_seconds()):
            return list(stacked)
        self.stopped = "the time was over"
        self.stacker.leave_out_regressions()
        smaller = [recipe.without("stacking") for recipe in stacked]
        has_time = self._has_time(self.stacker.expected_seconds())
        return [recipe for recipe in smaller if recipe is not None and has_time]

    def _has_time(self, seconds: float = 0.0) -> bool:
        """Whether so many seconds are left for trying, and enough to judge by afterwards."""
        if self.clock.budget == math.inf:
            return True
        is_left = self.clock.has(seconds, share=_FOR_TRYING)
        return is_left and self.clock.has(seconds + self.judging_seconds(_N_JUDGED), share=FOR_ALL)

    def _while_time(self, recipes: Iterable[Recipe]) -> Iterable[Recipe]:
        for recipe in recipes:
            if not self._has_time():
                self.stopped = "the time was over"
                return
            yield recipe

    def _screen(self, recipes: Sequence[Recipe], step: Callable[[], None]) -> list[Recipe]:
        """The better recipes by their scores on some of the samples."""
        n_entries = self.trial.n_numbers / self.trial.n_samples
        haste = min(1.0, _MANY_ENTRIES / n_entries)
        n_screened = max(_FEWEST_SCREENED, int(_N_SCREENED * haste))
        share = max(_SMALLEST_SHARE, _SHARE_KEPT * haste)
        n_kept = max(_FEWEST_KEPT, int(len(recipes) * share))
        if self.trial.n_samples < 2 * n_screened or len(recipes) <= n_kept:
            return list(recipes)
        order = np.random.default_rng(self.seed).permutation(self.trial.n_samples)
        rows = np.sort(order[:n_screened])
        scores: dict[Recipe, float] = {}
        for recipe in self._while_time(recipes):
            scores[recipe] = self._score(self._predict(recipe, rows), rows)
            self.n_screened += 1
            step()
        return sorted(scores, key=lambda recipe: -scores[recipe])[:n_kept]

    def try_one(self, recipe: Recipe) -> Tried:
        """Scores of a recipe on samples that it was not fitted on."""
        if recipe not in self._known:
            started = time.perf_counter()
            scores = self.predict(recipe)
            score = self._score(scores, np.arange(len(scores)))
            without = tuple(
                self._score(scores, np.flatnonzero(self.folds != k)) for k in range(self.n_folds)
            )
            seconds = round(time.perf_counter() - started, 4)
            self._known[recipe] = Tried(recipe, score, without, seconds)
            self._write_log(self._known[recipe])
        return self._known[recipe]

    def predict(self, recipe: Recipe) -> np.ndarray:
        """Consensus of every sample, by a recipe that was fitted on the other folds."""
        if recipe in self._held:
            return self._held[recipe]
        scores = self._predict(recipe, np.arange(self.trial.n_samples))
        if sum(held.nbytes for held in self._held.values()) + scores.nbytes < _MOST_KEPT:
            self._held[recipe] = scores
        return scores

    def _predict(self, recipe: Recipe, rows: np.ndarray) -> np.ndarray:
        """The same of some samples."""
        if isinstance(recipe.rule, StackedRule):
            return self.stacker.predict(recipe.rule)[rows]
        if not recipe.needs_fit:
            return self._fuse(self.fitter.fit(recipe), rows)
        scores = np.zeros((len(rows), len(self.trial.target)), dtype=np.float32)
        for k in range(self.n_folds):
            if self._is_trying and not self.clock.has(share=_FOR_LAST):
                raise _TimeOverError
            inside = self.folds[rows] == k
            if inside.any():
                scores[inside] = self._fuse(self._outside[k].fit(recipe), rows[inside])
        return scores

    def _fuse(self, fitted: FittedRecipe, rows: np.ndarray) -> np.ndarray:
        """Consensus of some samples; what of them does not depend on weights is kept."""
        recipe, fusion = fitted.recipe, fitted.fusion
        plan = fusion.plan(self.trial.models)
        through = (recipe.kernel, recipe.mixed_with, recipe.sharpness, recipe.shuffled)
        key = (*through, fusion.unobserved)
        if key not in self._readies:
            self._readies[key] = plan.complete(self.trial.models)
        ready = plan.silence(self._readies[key].take(rows))
        return np.nan_to_num(plan.fuse_ready(ready).scores.astype(np.float32, copy=False))

    @cached_property
    def _outside(self) -> list[Fitter]:
        """Fit on all folds but one."""
        return [self.fitter.on(self.folds != k) for k in range(self.n_folds)]

    def _score(self, scores: np.ndarray, rows: np.ndarray) -> float:
        """The metric; ``scores`` are of all samples, or of ``rows``."""
        own = scores if len(scores) == len(rows) else scores[rows]
        weight = self.trial.sample_weight
        return self.measure.score(
            own, self.trial.truth[rows], None if weight is None else weight[rows]
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
