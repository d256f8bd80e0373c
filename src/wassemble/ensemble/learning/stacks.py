"""Fitting stacked rules: what is known of the models is learned on other samples than it scores.

`Stacker` makes the features of every sample out of fold, once, and fits coefficients to them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, log_expit, log_softmax

from wassemble._extras import load_extra
from wassemble._threads import share
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.learning.clock import Clock
from wassemble.ensemble.learning.logit import fit_conditional_logit, fit_logistic
from wassemble.ensemble.learning.trial import Trial
from wassemble.kernels import DenseKernel, LabelledKernel
from wassemble.metrics import USUAL
from wassemble.solvers import LogisticStacking, StackedConsensus
from wassemble.solvers.stacked import (
    GROUPS,
    Feature,
    Knowledge,
    Sight,
    StackedRule,
    stacking_features,
)

# Share of a model's answers that says nothing about the true label.
_BACKGROUND = 0.02
# Keeps labels reachable that were never met together.
_FLOOR = 1e-4
# Bounds of the log of a prior count of each label.
_LOG_PRIORS = (-5.0, 10.0)
# A model that is never right still counts a little.
_LEAST_RELIABILITY = 1e-3
# Target labels of a sample that a conditional logit is fitted on: those that look best.
_N_CANDIDATES = 64
# Samples that coefficients are fitted on at most; there are only some dozens of them.
_N_FITTED = 4000
# What a stacked consensus moves mass by.
TRANSPORT = ("transport", "offered", "order")
# What it may do without: of some models only the answers tell something, of others only scores.
_HIDDEN: tuple[tuple[str, ...], ...] = (
    (),
    ("votes",),
    ("mistakes",),
    ("names", "mistakes", "rules", *TRANSPORT),
)
# How far coefficients of scaled features are held back towards 0.
_RIDGES = (0.003, 0.01, 0.03, 0.1)
# Scores times target labels above which logistic regressions are not tried: with so many
# coefficients and so few samples of each label they take longest and gain least.
_MOST_NUMBERS = 1_000_000_000
# Seconds of a core that a logistic regression takes for each score and target label.
_SECONDS_PER_NUMBER = 6e-9
# Share of the time budget that is for variants; simple rules come after them.
_FOR_VARIANTS = 0.45
# The same of coefficients for each number of the features, of the variants that are always fitted.
_SECONDS_PER_FEATURE = 2.5e-7
# Pairs of sample and target label that are looked at together.
_TILE = 200_000


def why_not_stacking(trial: Trial) -> str | None:
    """Why a logistic regression on all scores is not tried; None if it is."""
    if trial.n_numbers > _MOST_NUMBERS:
        return "there are too many scores and labels for the samples"
    if not trial.repeats_labels:
        return "most samples are the only one of their label"
    if find_spec("sklearn") is None:
        return "scikit-learn is not installed (pip install 'wassemble[learn]')"
    return None


def likelihood(counts: np.ndarray, names: np.ndarray, prior: float) -> np.ndarray:
    """How likely each label of a model is where a target label is true; columns sum to 1.

    Parameters
    ----------
    counts : array of shape (n_source, n_target)
        Scores that the model gave its labels, added up by true label.
    names : array of shape (n_source, n_target)
        Which target labels a label means by name.
    prior : float
        How much the name counts beside a score of 1.

    Examples
    --------
    >>> likelihood(np.array([[8.0, 1.0], [0.0, 3.0]]), np.eye(2), prior=1.0).round(2)
    array([[1. , 0.2],
           [0. , 0.8]])
    """
    usual = (counts.sum(axis=1, keepdims=True) + 0.5) / (counts.sum() + 0.5 * len(counts))
    shares = counts + prior * names + _BACKGROUND * usual
    return np.asarray(shares / shares.sum(axis=0))


def log_frequencies(counts: np.ndarray) -> np.ndarray:
    """The log of how often labels are true, as far apart as their counts speak for.

    Labels share a Dirichlet prior whose strength is the likeliest for the counts: if these
    differ no more than by chance, all labels are equally frequent.

    Examples
    --------
    >>> np.exp(log_frequencies(np.array([1, 0, 1, 0]))).round(2)
    array([0.25, 0.25, 0.25, 0.25])
    >>> np.exp(log_frequencies(np.array([90, 2, 5, 3]))).round(2)
    array([0.89, 0.02, 0.05, 0.03])
    """

    def loss(log_prior: float) -> float:
        prior, n_labels = np.exp(log_prior), len(counts)
        whole = gammaln(n_labels * prior) - gammaln(n_labels * prior + counts.sum())
        return -float(whole + (gammaln(prior + counts) - gammaln(prior)).sum())

    prior = np.exp(minimize_scalar(loss, bounds=_LOG_PRIORS, method="bounded").x)
    return np.asarray(np.log((counts + prior) / (counts.sum() + len(counts) * prior)))


def kernel_of(likelihoods: np.ndarray) -> np.ndarray:
    """What a label of a model means if all target labels are equally frequent.

    The frequencies of labels are a feature of their own: in a kernel they would tell, out of
    fold, which labels lie in the fold.
    """
    return np.asarray(likelihoods / likelihoods.sum(axis=1, keepdims=True) + _FLOOR)


@dataclass(frozen=True, eq=False)
class _Seen:
    """Features of every sample, on the target labels that look best there."""

    columns: list[Feature]
    values: np.ndarray  # (n_samples, n_candidates, n_columns)
    candidates: np.ndarray  # (n_samples, n_candidates), places of target labels

    def of(self, sees: Sequence[str]) -> np.ndarray:
        """The columns of some groups, as a mask."""
        return np.array([feature.group in sees for feature in self.columns])

    def places(self, truth: np.ndarray) -> np.ndarray:
        """Where the true label is among the candidates; -1 where it is not."""
        is_true = self.candidates == truth[:, None]
        return np.where(is_true.any(axis=1), is_true.argmax(axis=1), -1)


@dataclass(frozen=True, eq=False)
class _Variant:
    """Some of what there is to see, and how far coefficients are held back."""

    sees: tuple[str, ...]
    ridge: float
    on_all: np.ndarray  # coefficients of all columns
    on_others: list[np.ndarray]  # the same, fitted without each fold
    losses: np.ndarray  # log-loss of each sample, by what was fitted without its fold


class Stacker:
    """Fits stacked rules on one trial.

    Parameters
    ----------
    trial : Trial
    folds : array of shape (n_samples,)
        Number of the fold of each sample.
    offered : dict of name to kernels, one per model
    prior : float
        How much a label means the target labels of its name before anything was seen.
    clock : Clock, optional
        When time is short, fewer variants of a stacked consensus are fitted.
    """

    def __init__(
        self,
        trial: Trial,
        folds: np.ndarray,
        offered: Mapping[str, Mapping[str, LabelledKernel]],
        prior: float = 0.3,
        clock: Clock | None = None,
    ) -> None:
        self.trial, self.folds, self.prior = trial, folds, prior
        self._clock = Clock() if clock is None else clock
        self._regresses = why_not_stacking(trial) is None
        self._is_single = trial.task == "multiclass"
        weight = trial.sample_weight
        self._weight = np.ones(trial.n_samples) if weight is None else weight
        self._names = [self._match(place) for place in range(len(trial.models))]
        self._declared = np.array([(names > 0).any(axis=0) for names in self._names])
        # Every label leads everywhere here: nothing that a model says is left out.
        plan = self._fusion([np.ones_like(names) for names in self._names]).plan(trial.models)
        ready = plan.prepare(trial.models)
        self._scores = [np.asarray(each, dtype=np.float64) for each in ready.scores]
        self._votes = ready.votes
        self._offered = {name: self._to_dense(kernels) for name, kernels in offered.items()}

    def _match(self, place: int) -> np.ndarray:
        """Which target labels a model's labels mean by name; rows sum to 1, or to 0."""
        trial, model = self.trial, self.trial.models[place]
        meanings = trial.aliases.of_model(model.model)
        matching = model.labels.match(trial.target, aliases=meanings)
        if model.model in trial.other:
            matching = matching.with_complement(trial.other[model.model])
        return np.asarray(matching.to_sparse().toarray())

    def _fusion(self, kernels: Sequence[np.ndarray]) -> Fusion:
        """A fusion through kernels from the models' own labels."""
        trial, origin = self.trial, "what the model's labels meant where the truth is known"
        named = {
            model.model: LabelledKernel(
                DenseKernel(kernel), model.labels, trial.target, origin, declared=declared
            )
            for model, kernel, declared in zip(trial.models, kernels, self._declared, strict=True)
        }
        return trial.fusion(named, unobserved="drop" if trial.kind == "multiclass" else "spread")

    def _to_dense(self, kernels: Mapping[str, LabelledKernel]) -> list[np.ndarray]:
        """Kernels on offer as arrays, from the models' own labels to the target's."""
        plan = self._fusion(self._names).replace(kernel=dict(kernels)).plan(self.trial.models)
        return [np.asarray(member.kernel.to_dense()) for member in plan.members]

    def expected_seconds(self) -> float:
        """Seconds that the fewest variants may take, roughly, on a machine as busy as it was."""
        n_fits = len(np.unique(self.folds)) + 1
        numbers = self.trial.n_numbers if self._regresses else 0
        n_candidates = min(len(self.trial.target), _N_CANDIDATES)
        n_features = 5 * len(self._names) * n_candidates * min(self.trial.n_samples, _N_FITTED)
        seconds = numbers * _SECONDS_PER_NUMBER + n_features * _SECONDS_PER_FEATURE
        return n_fits * seconds * self._clock.slowness

    def leave_out_regressions(self) -> None:
        """Do without logistic regressions, which take longest; before anything is fitted."""
        self._regresses = False

    # -- rules -------------------------------------------------------------------------

    def fit(self, rule: StackedRule) -> Fusion:
        """The rule fitted on all samples, in a fusion with its kernels."""
        known, fusion = self._everything
        arrays: Mapping[str, np.ndarray] = {}
        if isinstance(rule, StackedConsensus):
            every = np.ones(self.trial.n_samples, dtype=bool)
            coefficients = self._average(rule, every, lambda variant: variant.on_all)
            arrays = known.to_arrays() | {"coefficients": coefficients}
        elif known.stacking is not None:
            return fusion.replace(rule=known.stacking)
        return fusion.replace(rule=rule.with_parameters(arrays))

    def predict(self, rule: StackedRule) -> np.ndarray:
        """Scores of every sample by what was fitted on the other folds, (n_samples, n_target).

        Coefficients are fitted on the features of the other folds, which are themselves out of
        fold.
        """
        seen = self._seen
        scores = np.zeros((self.trial.n_samples, len(self.trial.target)))
        if isinstance(rule, StackedConsensus):
            used = seen.of(rule.sees)
            margins = np.zeros(seen.candidates.shape)
            for place, fold in enumerate(np.unique(self.folds)):
                rows = self.folds == fold
                coefficients = self._average(rule, ~rows, partial(_without, place))
                margins[rows] = seen.values[rows][:, :, used] @ coefficients
        else:
            margins = seen.values[:, :, seen.of(["stacking"])][:, :, 0]
        np.put_along_axis(scores, seen.candidates, rule.to_scores(margins), axis=1)
        return scores

    def _average(
        self,
        rule: StackedConsensus,
        rows: np.ndarray,
        coefficients_of: Callable[[_Variant], np.ndarray],
    ) -> np.ndarray:
        """Coefficients of what a rule sees: the mean over what serves well on some samples.

        A variant serves well if its loss out of fold is within one standard error of the least.
        """
        variants = [each for each in self._variants if set(each.sees) <= set(rule.sees)]
        losses = np.array([each.losses[rows] for each in variants])
        weight = self._weight[rows] / self._weight[rows].sum()
        best = losses[np.argmin(losses @ weight)]
        apart = losses - best
        error = np.sqrt(((apart - (apart @ weight)[:, None]) ** 2) @ weight / len(weight))
        kept = [v for v, far in zip(variants, apart @ weight <= error, strict=True) if far]
        return np.mean([coefficients_of(each) for each in kept], axis=0)[self._seen.of(rule.sees)]

    @cached_property
    def _variants(self) -> list[_Variant]:
        """Some of what there is to see, held back more or less; the rest has coefficient 0."""
        there = tuple(dict.fromkeys(feature.group for feature in self._seen.columns))
        without = [(*hidden, *TRANSPORT) for hidden in _HIDDEN[:2]]
        sights = dict.fromkeys(
            tuple(group for group in there if group not in hidden)
            for hidden in (*_HIDDEN, *without)
        )
        variants: list[_Variant] = []
        pairs = [(sees, ridge) for sees, ridge in product(sights, _RIDGES) if sees]
        share([partial(self._fit_variant, *pair, variants) for pair in pairs])
        return sorted(variants, key=lambda variant: pairs.index((variant.sees, variant.ridge)))

    def _fit_variant(self, sees: tuple[str, ...], ridge: float, into: list[_Variant]) -> None:
        # Every rule sees these: one that moves mass need not.
        is_needed = ridge == _RIDGES[1] and set(sees).isdisjoint(TRANSPORT)
        if not (is_needed or self._clock.has(share=_FOR_VARIANTS)):
            return
        seen = self._seen
        on_all = self._coefficients(sees, ridge, np.ones(self.trial.n_samples, dtype=bool))
        on_others, losses = [], np.zeros(self.trial.n_samples)
        for fold in np.unique(self.folds):
            rows = self.folds == fold
            on_others.append(self._coefficients(sees, ridge, ~rows, start=on_all))
            losses[rows] = self._losses(seen.values[rows] @ on_others[-1], rows)
        into.append(_Variant(sees, ridge, on_all, on_others, losses))

    def _losses(self, margins: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Log-loss of each sample; mean over the labels that are known, if several may be true."""
        truth = self.trial.truth[rows]
        if self._is_single:
            places = self._seen.places(self.trial.truth)[rows]
            own = log_softmax(margins, axis=1)[np.arange(len(truth)), places]
            return np.asarray(np.where(places >= 0, -own, np.log(len(self.trial.target))))
        each = np.where(truth == 1, -log_expit(margins), -log_expit(-margins))
        known = ~np.isnan(truth)
        return np.asarray((each * known).sum(axis=1) / np.maximum(known.sum(axis=1), 1))

    def _coefficients(
        self,
        sees: Sequence[str],
        ridge: float,
        rows: np.ndarray,
        start: np.ndarray | None = None,
    ) -> np.ndarray:
        """Coefficients of all columns, 0 for those that are not seen, fitted on some samples."""
        seen, truth = self._seen, self.trial.truth
        used = seen.of(sees)
        shared = _shared([c for c, is_used in zip(seen.columns, used, strict=True) if is_used])
        near = None if start is None else np.r_[start[used], np.zeros(shared.shape[1] - used.sum())]
        if self._is_single:
            places = seen.places(truth)
            kept = _some(rows & (places >= 0))
            values = seen.values[kept][:, :, used] @ shared
            fitted = fit_conditional_logit(values, places[kept], self._weight[kept], ridge, near)
        else:
            kept = _some(rows)
            true = truth[kept]
            known = ~np.isnan(true)
            weight = np.broadcast_to(self._weight[kept][:, None], true.shape)
            values = seen.values[kept][known][:, used] @ shared
            fitted = fit_logistic(values, true[known], weight[known], ridge, near)
        coefficients = np.zeros(len(used))
        coefficients[used] = shared @ fitted
        return coefficients

    # -- what is known of the models ---------------------------------------------------

    @cached_property
    def _everything(self) -> tuple[Knowledge, Fusion]:
        """What is known from all samples, and a fusion through those kernels, labels matched."""
        known, kernels = self._know(np.arange(self.trial.n_samples))
        fusion = self._fusion(kernels)
        fusion.plan(self.trial.models)
        return known, fusion

    def _know(self, rows: np.ndarray) -> tuple[Knowledge, list[np.ndarray]]:
        """What is known from the samples ``rows``, and a kernel for each model."""
        trial, truth, weight = self.trial, self.trial.truth[rows], self._weight[rows]
        sight = self._sight(rows, [])
        of_scores: list[np.ndarray] = []
        of_answers: list[np.ndarray] = []
        if self._is_single and trial.repeats_labels:
            true = np.zeros((len(truth), len(trial.target)))
            true[np.arange(len(truth)), truth] = weight
            for place, names in enumerate(self._names):
                of_scores.append(likelihood(sight.shares[place].T @ true, names, self.prior))
                of_answers.append(likelihood(sight.answers[place].T @ true, names, self.prior))
        kernels = [kernel_of(each) for each in of_scores] or self._names
        known = Knowledge(
            trial.task,
            self._names,
            self._declared,
            trial.kind == "multilabel",
            np.ones(len(self._names)),
            self._frequencies,
            [np.log(each) for each in of_scores],
            [np.log(each) for each in of_answers],
            self._offered,
            self._fit_stacking(sight, truth, weight),
            np.array(trial.target.positions) if trial.is_ordered else None,
        )
        return replace(known, reliability=self._rely(known, sight, kernels, truth)), kernels

    def _rely(
        self, known: Knowledge, sight: Sight, kernels: Sequence[np.ndarray], truth: np.ndarray
    ) -> np.ndarray:
        """How right each model is by itself: by name if it can be."""
        measure = USUAL[self.trial.task]
        images = known.images(sight)
        for model, declared in enumerate(self._declared):
            if not declared.any():
                images[model] = sight.shares[model] @ kernels[model]
        right = [measure.score(image, truth, None) for image in images]
        return np.maximum(right, _LEAST_RELIABILITY)

    @cached_property
    def _frequencies(self) -> np.ndarray:
        """How often each label is true, of all samples.

        Not of the other folds: there the labels of a fold look rarer than they are. Where each
        label has about as many samples, `log_frequencies` tells nothing apart: otherwise, with a
        sample for each of a few labels, they would tell which labels are true.
        """
        truth, weight = self.trial.truth, self._weight
        if self._is_single:
            return log_frequencies(np.bincount(truth, weight, minlength=len(self.trial.target)))
        return np.asarray(np.log((weight @ (truth == 1) + 0.5) / (weight @ (truth == 0) + 0.5)))

    def _fit_stacking(
        self, sight: Sight, truth: np.ndarray, weight: np.ndarray
    ) -> LogisticStacking | None:
        if not self._regresses:
            return None
        return fit_stacking(
            LogisticStacking(self.trial.task),
            stacking_features(sight),
            truth,
            len(self.trial.target),
            None if self.trial.sample_weight is None else weight,
        )

    # -- features ----------------------------------------------------------------------

    def _sight(self, rows: Any, kernels: Sequence[np.ndarray]) -> Sight:
        votes = self._votes[:, rows][:, :, None].astype(np.float64)
        each = [DenseKernel(kernel) for kernel in kernels]
        return Sight([scores[rows] for scores in self._scores], each, votes)

    @cached_property
    def _seen(self) -> _Seen:
        """The features of every sample, by what is known from the other folds."""
        folds = np.unique(self.folds)
        parts: dict[int, _Seen] = {}

        def look(fold: int) -> None:
            parts[fold] = self._look(self.folds != fold, np.flatnonzero(self.folds == fold))

        if self._regresses:  # here: in a thread that is stopped, an import would be left half done
            load_extra("sklearn.linear_model", "learn", purpose="stacking")
        share([partial(look, int(fold)) for fold in folds])
        first = parts[int(folds[0])]
        values = np.zeros((self.trial.n_samples, *first.values.shape[1:]))
        candidates = np.zeros((self.trial.n_samples, first.candidates.shape[1]), dtype=np.intp)
        for fold, part in parts.items():
            rows = self.folds == fold
            values[rows], candidates[rows] = part.values, part.candidates
        return _Seen(first.columns, values, candidates)

    def _look(self, known_from: np.ndarray, rows: np.ndarray) -> _Seen:
        """The features of some samples, by what is known from others."""
        n_target = len(self.trial.target)
        n_kept = min(n_target, _N_CANDIDATES) if self._is_single else n_target
        known, kernels = self._know(known_from)
        parts = []
        for tile in _in_tiles(rows, n_target):
            looked = list(known.look(self._sight(tile, kernels), GROUPS))
            best = _best_candidates(looked, n_kept)
            seen = [np.take_along_axis(values, best, axis=1) for _, values in looked]
            parts.append(_Seen([feature for feature, _ in looked], np.stack(seen, axis=2), best))
        values = np.concatenate([part.values for part in parts])
        candidates = np.concatenate([part.candidates for part in parts])
        return _Seen(parts[0].columns, values, candidates)


def _without(place: int, variant: _Variant) -> np.ndarray:
    """The coefficients that were fitted without the fold at a place."""
    return variant.on_others[place]


def _shared(columns: Sequence[Feature]) -> np.ndarray:
    """Columns as they are fitted: each by itself, and the sum over models of each sort.

    The ridge then holds a model's coefficient back towards that of the other models, not only
    towards 0: with few samples, models of which little is known are treated alike.
    """
    sorts = dict.fromkeys((c.group, c.name) for c in columns if c.model is not None)
    sums = [[float((c.group, c.name) == sort) for c in columns] for sort in sorts]
    return np.hstack([np.eye(len(columns)), np.array(sums).reshape(len(sorts), len(columns)).T])


def _in_tiles(rows: np.ndarray, n_target: int) -> Iterator[np.ndarray]:
    size = max(1, _TILE // n_target)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _best_candidates(looked: Sequence[tuple[Feature, np.ndarray]], n_kept: int) -> np.ndarray:
    """The target labels that look best if every model's evidence counts alike."""
    n_rows, n_target = looked[0][1].shape
    if n_kept == n_target:
        return np.tile(np.arange(n_target), (n_rows, 1))
    total = sum(values for feature, values in looked if feature.model is not None)
    return np.argpartition(-np.asarray(total), n_kept - 1, axis=1)[:, :n_kept]


def _some(rows: np.ndarray) -> np.ndarray:
    """Places of the samples in a mask; no more than coefficients need."""
    places = np.flatnonzero(rows)
    if len(places) <= _N_FITTED:
        return places
    return np.sort(np.random.default_rng(0).choice(places, _N_FITTED, replace=False))


def fit_stacking(
    rule: LogisticStacking,
    features: np.ndarray,
    truth: np.ndarray,
    n_target: int,
    sample_weight: np.ndarray | None = None,
) -> LogisticStacking:
    """A logistic regression by scikit-learn: one for all labels, or one for each.

    Parameters
    ----------
    features : array of shape (n_samples, n_features)
    truth : array of shape (n_samples,) or (n_samples, n_target)
        Place of the true label, or 1, 0 and nan.
    """
    linear = load_extra("sklearn.linear_model", "learn", purpose="stacking")
    coefficients = np.zeros((n_target, features.shape[1]))
    intercepts = np.full(n_target, -np.inf)  # of labels that did not occur
    varies = np.ptp(features, axis=0) > 0  # the others could only be told from the intercept
    varies[0] |= not varies.any()  # a regression takes at least one

    def fit(true: np.ndarray, rows: Any, strength: float) -> Any:
        weight = None if sample_weight is None else sample_weight[rows]
        model = linear.LogisticRegression(C=strength, max_iter=100, tol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it did not converge costs it, nobody else
            return model.fit(features[rows][:, varies], true, sample_weight=weight)

    if rule.task == "multiclass":
        seen = np.unique(truth)
        intercepts[seen] = 0
        if len(seen) > 1:
            model = fit(truth, slice(None), rule.strength)
            # Of two classes there is one margin, that of the second; the first has 0.
            places = model.classes_[-len(model.coef_) :]
            coefficients[np.ix_(places, varies)] = model.coef_
            intercepts[places] = model.intercept_
        return rule.with_parameters({"coefficients": coefficients, "intercepts": intercepts})
    for label in range(n_target):
        rows = np.flatnonzero(~np.isnan(truth[:, label]))
        true = truth[rows, label].astype(int)
        if len(np.unique(true)) < 2:
            intercepts[label] = np.inf if true.any() else -np.inf
            continue
        model = fit(true, rows, rule.strength / 10)
        coefficients[label, varies] = model.coef_[0]
        intercepts[label] = model.intercept_[0]
    return rule.with_parameters({"coefficients": coefficients, "intercepts": intercepts})
