"""Learning an ensemble on validation data: weights, rules, kernels, and the safe choice."""

from wassemble.ensemble.learning.choice import Choice, Control, Standing
from wassemble.ensemble.learning.evaluation import Evaluation, evaluate_ensemble
from wassemble.ensemble.learning.fitting import FittedRecipe, shuffle_labels
from wassemble.ensemble.learning.learn import LearnedEnsemble, learn_ensemble
from wassemble.ensemble.learning.recipes import Recipe
from wassemble.ensemble.learning.trial import Trial, read_trial

__all__ = [
    "Choice",
    "Control",
    "Evaluation",
    "FittedRecipe",
    "LearnedEnsemble",
    "Recipe",
    "Standing",
    "Trial",
    "evaluate_ensemble",
    "learn_ensemble",
    "read_trial",
    "shuffle_labels",
]
