"""Small trials to learn from and to report on: validation half, test half."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from wassemble import LabelledKernel, Predictions
from wassemble.ensemble.learning import LearnedEnsemble, learn_ensemble
from wassemble.kernels import DenseKernel, from_attributes

# Three kinds with two breeds each; one name that would be a tag if nobody minded.
BREEDS = ["husky", "beagle", "tabby", "siamese", "sedan", "<script>alert(1)</script>"]


@dataclass
class Case:
    """A learned ensemble, with samples that it has not seen."""

    learned: LearnedEnsemble
    models: list[Predictions]
    truth: Any


@cache
def breeds(n_samples: int = 200) -> Case:
    """Multi-class over the same labels; models confuse the two breeds of a kind."""
    rng = np.random.default_rng(0)
    truth = rng.integers(6, size=n_samples)
    models = []
    for name, noise in (("one", 0.8), ("two", 1.0), ("three", 1.4)):
        logits = noise * rng.normal(size=(n_samples, 6))
        logits[np.arange(n_samples), truth] += 1.2
        logits[np.arange(n_samples), truth ^ 1] += 0.8
        scores = np.exp(logits)
        scores /= scores.sum(axis=1, keepdims=True)
        models.append(Predictions(name, [f"s{i}" for i in range(n_samples)], BREEDS, scores))
    similar = np.eye(6) + 0.3 * (np.arange(6)[:, None] == np.arange(6) ^ 1) + 0.02
    kernel = LabelledKernel(DenseKernel(similar, symmetric=True), BREEDS, BREEDS, "by kind")
    return _halves(models, [BREEDS[i] for i in truth], kernels={"kinds": kernel})


@cache
def tags(n_samples: int = 160) -> Case:
    """Multi-label; two models of different quality."""
    rng = np.random.default_rng(1)
    labels = ["person", "dog", "car", "tree", "</script><b>boat"]
    present = rng.random((n_samples, 5)) < [0.6, 0.3, 0.4, 0.3, 0.2]
    models = []
    for name, noise in (("sharp", 0.9), ("dull", 1.5)):
        logits = 2 * present - 1 + noise * rng.normal(size=present.shape)
        scores = 1 / (1 + np.exp(-logits))
        models.append(Predictions(name, range(n_samples), labels, scores, kind="multilabel"))
    truth = [[labels[j] for j in np.flatnonzero(row)] for row in present]
    return _halves(models, truth, target=labels, kind="multilabel")


@cache
def animals(n_samples: int = 160) -> Case:
    """Attributes in, animals out: no label in common."""
    rng = np.random.default_rng(2)
    attributes = ["furry", "striped", "swims", "flies", "big", "hooved"]
    names = ["tiger", "zebra", "seal", "bat"]
    has = np.array(
        [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 1, 0, 0]], float
    )
    truth = rng.integers(4, size=n_samples)
    models = []
    for name, noise in (("eye", 0.9), ("ear", 1.2)):
        logits = 3 * has.T[truth] - 1.5 + noise * rng.normal(size=(n_samples, 6))
        scores = 1 / (1 + np.exp(-logits))
        models.append(Predictions(name, range(n_samples), attributes, scores, kind="multilabel"))
    kernel = from_attributes(has, attributes, names)
    return _halves(
        models,
        [names[i] for i in truth],
        target=names,
        kind="multilabel",
        kernels={"attributes": kernel},
    )


@cache
def birds(n_samples: int = 400) -> Case:
    """Label sets differ, mistakes are always alike, one model comes thrice: stacked wins."""
    rng = np.random.default_rng(5)
    names = [f"bird {i}" for i in range(11)] + ["mean by name"]
    truth = rng.choice(12, size=n_samples, p=np.arange(12, 0, -1) / 78)
    noise = 3 * rng.normal(size=(n_samples, 12))
    models = []
    for name, shift, n_known, lead in (
        ("near", 1, 12, 4.0),
        ("far", 3, 9, 4.0),
        ("mean by name", 5, 7, 4.0),
        *((f"poor {i}", 2, 12, 1.5) for i in range(3)),
    ):
        # Half of the time a model names the bird that is so many places on.
        seen = (truth + shift * (rng.random(n_samples) < 0.5)) % 12
        is_poor = name.startswith("poor")
        logits = noise.copy() if is_poor else 1.5 * rng.normal(size=(n_samples, 12))
        logits[np.arange(n_samples), seen] += lead
        scores = np.exp(logits[:, :n_known])
        scores /= scores.sum(axis=1, keepdims=True)
        models.append(Predictions(name, range(n_samples), names[:n_known], scores))
    return _halves(models, [names[i] for i in truth], target=names)


def choose_instead(learned: LearnedEnsemble, wanted: Any) -> LearnedEnsemble:
    """The ensemble as if the first rival that is ``wanted`` had been chosen."""
    rules = [learned.fitted, *learned.rivals]
    fitted = next(rule for rule in rules if wanted(rule.recipe))
    return replace(
        learned,
        fitted=fitted,
        rivals=tuple(rule for rule in rules if rule is not fitted),
        choice=learned.choice
        if fitted is learned.fitted
        else replace(learned.choice, recipe=fitted.recipe, control=None),
        leaderboard=tuple(
            replace(line, is_chosen=line.recipe == fitted.recipe) for line in learned.leaderboard
        ),
    )


def _halves(models: list[Predictions], truth: list[Any], **options: Any) -> Case:
    half = len(truth) // 2
    seen, unseen = slice(half), slice(half, None)
    learned = learn_ensemble([m.take(seen) for m in models], truth[seen], n_folds=2, **options)
    return Case(learned, [model.take(unseen) for model in models], truth[unseen])
