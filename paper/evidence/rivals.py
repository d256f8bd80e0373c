"""What a user would try instead: fitted on the samples of a case that are known, and no others.

Each rival returns scores of the test samples and what was picked, in words. Scikit-learn's
learners see every score of every model, and whether it answered; means and weights go through
the same aliases and kernels as ours.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from paper.evidence.cases import Case
from wassemble._extras import load_extra
from wassemble.ensemble import Fusion
from wassemble.ensemble.plan import FusionPlan
from wassemble.metrics.multi_class import are_right
from wassemble.solvers import ARITHMETIC, PowerMean, Rule, Single

_PURPOSE = "rivals of learning"
_ORDERS = (1.0, 0.5, 0.0, 2.0)
_LEFTOVERS = (0.05, 1.0)  # label-aware, and "no" to every label that a model lacks
_N_GREEDY = 20
_STRENGTHS = (0.1, 1.0, 10.0, 100.0)
_N_FOLDS = 3
# Boosting grows a tree for each label and round: so many trees at most, and 10 to 100 rounds. Its
# small and shrunken trees were picked by cross-validation on known samples of three tasks.
_N_TREES = 4000
_STOPPED_ON = 10  # every so-many-th sample of a label is kept aside to stop by


class Answer(NamedTuple):
    """Scores of the test samples, ``(n_test, n_target)``, and what was picked."""

    scores: np.ndarray
    picked: str


Rival = Callable[[Case], Answer]
Predict = Callable[[np.ndarray], np.ndarray]
"""From features to scores over the target labels."""


def best_single(case: Case) -> Answer:
    """The model that is best on the known samples."""
    plans = {model.model: _plan(case, Single(model.model)) for model in case.task.models}
    best = max(plans, key=lambda name: case.score(_fuse(case, plans[name], case.known), case.known))
    return Answer(_fuse(case, plans[best], case.test), best)


def best_simple(case: Case) -> Answer:
    """The single model or power mean that is best on the known samples."""
    tried = list(_simple(case))
    scores = [case.score(_fuse(case, plan, case.known), case.known) for _, plan in tried]
    name, plan = tried[int(np.argmax(scores))]
    return Answer(_fuse(case, plan, case.test), name)


def greedy(case: Case) -> Answer:
    """Models added one by one, each time the one that makes the mean best (Caruana et al. 2004)."""
    found = [_add_models(case, _plan(case, ARITHMETIC, leftover=each)) for each in _leftovers(case)]
    _, plan, counts = max(found, key=lambda each: each[0])
    names = [model.model for model in case.task.models]
    shares = [f"{name} {n:.0f}" for name, n in zip(names, counts, strict=True) if n]
    return Answer(_fuse(case, plan, case.test), ", ".join(shares))


def logistic(case: Case, *, strength: float = 10.0) -> Answer:
    """Logistic regression on all scores."""
    predict = _fit(case, case.known, partial(_logistic, strength))
    return Answer(predict(_features(case, case.test)), f"C = {strength:g}")


def tuned_logistic(case: Case) -> Answer:
    """The same; C is the best by cross-validation."""
    scores = {each: _cross_validate(case, partial(_logistic, each)) for each in _STRENGTHS}
    return logistic(case, strength=max(scores, key=lambda each: scores[each]))


def boosted(case: Case) -> Answer:
    """Gradient-boosted trees on all scores, stopped by samples kept aside."""
    rounds: list[int] = []
    predict = _fit(case, case.known, partial(_boosted, rounds))
    most = max(rounds, default=0)
    return Answer(predict(_features(case, case.test)), f"at most {most} rounds")


def oracle(case: Case) -> Answer:
    """Right where any model is: no rule, and no bound for rules that learn what labels mean."""
    images = np.stack(
        [_fuse(case, _plan(case, Single(model.model)), case.test) for model in case.task.models]
    )
    truth = case.places[case.test]
    if case.is_multilabel:
        return Answer(np.where(truth == 1, images.max(axis=0), images.min(axis=0)), "")
    right = np.any([are_right(image, truth) for image in images], axis=0)
    return Answer(right[:, None] * np.eye(len(case.task.target))[truth], "")


RIVALS: dict[str, Rival] = {
    "best single model": best_single,
    "best simple rule": best_simple,
    "greedy weights": greedy,
    "logistic regression, C = 10": logistic,
    "logistic regression, C tuned": tuned_logistic,
    "gradient boosting": boosted,
}
ORACLE = "any model right"


def _plan(case: Case, rule: Rule, **options: Any) -> FusionPlan:
    """A rule for the models of a case; through the first kernel where names lead nowhere."""
    task = case.task
    fusion = Fusion(rule, **task.meanings, **options)
    if not any(member.declared.any() for member in fusion.plan(task.models).members):
        fusion = fusion.replace(kernel=next(iter(task.kernels.values())))
    return fusion.plan(task.models)


def _fuse(case: Case, plan: FusionPlan, rows: np.ndarray) -> np.ndarray:
    return np.nan_to_num(plan.fuse(case.models(rows)).scores)


def _leftovers(case: Case) -> tuple[float, ...]:
    """One where all models have the same labels, for then it makes no difference."""
    same = len({model.labels for model in case.task.models}) == 1
    return _LEFTOVERS[:1] if same else _LEFTOVERS


def _simple(case: Case) -> Iterator[tuple[str, FusionPlan]]:
    """Single models; power means, with equal weights and in proportion to each model's score."""
    alone = {model.model: _plan(case, Single(model.model)) for model in case.task.models}
    yield from ((f"{name} alone", plan) for name, plan in alone.items())
    own = np.array([case.score(_fuse(case, p, case.known), case.known) for p in alone.values()])
    weights = {"": None, ", weighted by score": own / own.sum() if own.any() else None}
    for order, (words, weight), leftover in product(_ORDERS, weights.items(), _leftovers(case)):
        rule = PowerMean(order)
        said = f", leftover {leftover:g}" if leftover == 1 else ""
        yield f"{rule}{words}{said}", _plan(case, rule, weights=weight, leftover=leftover)


def _add_models(case: Case, plan: FusionPlan) -> tuple[float, FusionPlan, np.ndarray]:
    """The best mean on the way: its score, its plan and how often each model was added."""
    counts, models = np.zeros(len(case.task.models)), case.models(case.known)
    best: list[tuple[float, FusionPlan, np.ndarray]] = []
    for _ in range(_N_GREEDY):
        tried = []
        for added in np.eye(len(counts)):
            mean = plan.with_weights((counts + added) / (counts + added).sum())
            scores = np.nan_to_num(mean.fuse(models).scores)
            tried.append((case.score(scores, case.known), mean, counts + added))
        best.append(max(tried, key=lambda each: each[0]))
        counts = best[-1][2]
    return max(best, key=lambda each: each[0])


def _features(case: Case, rows: np.ndarray) -> np.ndarray:
    """All scores of all models, and whether each answered."""
    models = case.models(rows)
    scores = [np.nan_to_num(model.scores) for model in models]
    answered = np.stack([model.answered for model in models], axis=1)
    return np.hstack([*scores, answered], dtype=np.float64)


def _fit(case: Case, rows: np.ndarray, fit: Callable[..., Predict]) -> Predict:
    """A learner of scikit-learn, one for each label if samples may have several."""
    features, truth = _features(case, rows), case.places[rows]
    n_target = len(case.task.target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge costs it, nobody else
        if not case.is_multilabel:
            return _over_target(fit(features, truth), n_target)
        each = [_fit_label(features, truth[:, label], fit) for label in range(n_target)]
    return lambda new: np.stack([predict(new) for predict in each], axis=1)


def _over_target(model: Any, n_target: int) -> Predict:
    """Scores over all target labels; 0 where a label was never seen."""

    def predict(features: np.ndarray) -> np.ndarray:
        scores = np.zeros((len(features), n_target))
        scores[:, model.classes_] = model.predict_proba(features)
        return scores

    return predict


def _fit_label(features: np.ndarray, truth: np.ndarray, fit: Callable[..., Any]) -> Predict:
    """The score of one label; a label of which all or none are true gets the same everywhere."""
    known = ~np.isnan(truth)
    there = truth[known].astype(int)
    if len(np.unique(there)) < 2:
        return lambda new: np.full(len(new), float(there.any()))
    model = fit(features[known], there)
    return lambda new: np.asarray(model.predict_proba(new)[:, 1])


def _logistic(strength: float, features: np.ndarray, truth: np.ndarray) -> Any:
    linear = load_extra("sklearn.linear_model", "learn", purpose=_PURPOSE)
    return linear.LogisticRegression(C=strength, max_iter=500).fit(features, truth)


def _boosted(rounds: list[int], features: np.ndarray, truth: np.ndarray) -> Any:
    """Trees; how many rounds were needed goes into ``rounds``."""
    trees = load_extra("sklearn.ensemble", "learn", purpose=_PURPOSE)
    counts = np.bincount(truth)
    aside = _number_in_label(truth) % _STOPPED_ON == _STOPPED_ON - 1
    n_labels = int((counts > 0).sum())
    model = trees.HistGradientBoostingClassifier(
        max_iter=int(np.clip(_N_TREES // n_labels, 10, 100)),
        max_bins=31,
        max_leaf_nodes=8,
        l2_regularization=1.0,
        min_samples_leaf=int(np.clip(np.median(counts[counts > 0]) // 4, 1, 20)),
        early_stopping=bool(aside.any()),
        random_state=0,
    )
    stop = {"X_val": features[aside], "y_val": truth[aside]} if aside.any() else {}
    model.fit(features[~aside], truth[~aside], **stop)
    rounds.append(model.n_iter_)
    return model


def _number_in_label(truth: np.ndarray) -> np.ndarray:
    """How many samples of the same label come before each."""
    order = np.argsort(truth, kind="stable")
    starts = np.searchsorted(truth[order], truth[order])
    number = np.empty(len(truth), dtype=int)
    number[order] = np.arange(len(truth)) - starts
    return number


def _cross_validate(case: Case, fit: Callable[..., Any]) -> float:
    """The measure on known samples that were not fitted on."""
    strata = case.places[case.known] if not case.is_multilabel else np.zeros(len(case.known), int)
    # Samples of a label are dealt out in turn, so that other folds have seen it.
    order = np.argsort(strata, kind="stable")
    folds = np.empty(len(order), dtype=int)
    folds[order] = np.arange(len(order)) % _N_FOLDS
    scores = np.zeros((len(case.known), len(case.task.target)))
    for fold in range(_N_FOLDS):
        inside = folds == fold
        predict = _fit(case, case.known[~inside], fit)
        scores[inside] = predict(_features(case, case.known[inside]))
    return case.score(scores, case.known)
