"""What every section of the report looks at: rules, held-out samples, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from wassemble.ensemble.learning import Evaluation, FittedRecipe, LearnedEnsemble, Recipe, Standing
from wassemble.ensemble.learning.evaluation import evaluate_on, measure_of, read_held_out
from wassemble.ensemble.learning.trial import Trial
from wassemble.inputs import Predictions
from wassemble.metrics import Measure
from wassemble.solvers import PowerMean

# Samples that sections which fuse again and again look at.
_N_FEW = 2000


@dataclass(frozen=True, eq=False)
class Evidence:
    """A learned ensemble on held-out samples.

    Attributes
    ----------
    trial : Trial
        All held-out samples.
    few : Trial
        At most 2,000 of them, drawn by ``seed``.
    """

    learned: LearnedEnsemble
    trial: Trial
    few: Trial
    measure: Measure
    evaluation: Evaluation
    seed: int
    _scores: dict[Recipe, np.ndarray] = field(default_factory=dict)

    @cached_property
    def rules(self) -> list[FittedRecipe]:
        """The chosen rule, then its rivals; of one sort, the best on validation comes first."""
        return [self.learned.fitted, *self.learned.rivals]

    @property
    def chosen(self) -> FittedRecipe:
        """The rule that was learned."""
        return self.learned.fitted

    def find(self, wanted: Callable[[FittedRecipe], bool]) -> FittedRecipe | None:
        """The first rule that is wanted."""
        return next((rule for rule in self.rules if wanted(rule)), None)

    def plain_mean(self, order: float) -> FittedRecipe | None:
        """The mean of an order with equal weights: 1 arithmetic, 0 geometric.

        By name, or through a kernel if no mean goes by name.
        """
        by_name = Recipe(PowerMean(order))
        return self.find(lambda rule: rule.recipe == by_name) or self.find(
            lambda rule: rule.recipe.is_plain and rule.recipe.rule == by_name.rule
        )

    @cached_property
    def through_kernel(self) -> FittedRecipe | None:
        """The barycenter through a kernel that is looked into: the chosen one if it is such."""
        return self.find(lambda rule: rule.recipe.transports)

    def rule_of(self, outcome: Standing) -> FittedRecipe:
        """The rule that an outcome is of."""
        return next(rule for rule in self.rules if rule.recipe == outcome.recipe)

    def scores(self, rule: FittedRecipe) -> np.ndarray:
        """Consensus of a rule on all held-out samples."""
        if rule.recipe not in self._scores:
            self._scores[rule.recipe] = rule.fuse(self.trial.models)
        return self._scores[rule.recipe]

    def score_few(self, scores: np.ndarray) -> float:
        """The user's metric on the few samples."""
        return float(self.measure.score(scores, self.few.truth, self.few.sample_weight))


def gather_evidence(
    learned: LearnedEnsemble,
    models: Sequence[Predictions] | Mapping[str, Predictions],
    truth: Any,
    *,
    metric: Any,
    sample_weight: Any,
    groups: Any = None,
    fold: bool = False,
    seed: int,
) -> Evidence:
    """Held-out samples, and every rule judged on them."""
    trial = read_held_out(
        learned, models, truth, sample_weight=sample_weight, groups=groups, fold=fold
    )
    measure = measure_of(learned, metric)
    few = trial
    if trial.n_samples > _N_FEW:
        rng = np.random.default_rng(seed)
        few = trial.take(np.sort(rng.choice(trial.n_samples, _N_FEW, replace=False)))
    evaluation = evaluate_on(learned, trial, measure, seed)
    return Evidence(learned, trial, few, measure, evaluation, seed)
