"""Learning an ensemble on validation data: weights, rules, kernels, and the safe choice."""

from wassemble.ensemble.learning.choice import Choice, Control, Standing
from wassemble.ensemble.learning.evaluation import evaluate_ensemble
from wassemble.ensemble.learning.learn import LearnedEnsemble, learn_ensemble
from wassemble.ensemble.learning.outcomes import Evaluation, Outcome
from wassemble.ensemble.learning.recipes import FittedRecipe, Recipe, shuffle_labels
from wassemble.ensemble.learning.saved import load_ensemble, save_ensemble
from wassemble.ensemble.learning.trial import Trial, read_trial

__all__ = [
    "Choice",
    "Control",
    "Evaluation",
    "FittedRecipe",
    "LearnedEnsemble",
    "Outcome",
    "Recipe",
    "Standing",
    "Trial",
    "evaluate_ensemble",
    "learn_ensemble",
    "load_ensemble",
    "read_trial",
    "save_ensemble",
    "shuffle_labels",
]
