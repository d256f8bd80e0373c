"""Models whose reliability is known, because they are made up."""

import numpy as np

from wassemble import Predictions

LABELS = ["ant", "bee", "cow"]


def draw_truth(rng, n_samples, n_labels=3):
    return rng.integers(n_labels, size=n_samples)


def draw_answers(rng, truth, accuracy, n_labels=3):
    """Answers that are right so often, and else any other label."""
    wrong = (truth + rng.integers(1, n_labels, size=len(truth))) % n_labels
    return np.where(rng.random(len(truth)) < accuracy, truth, wrong)


def as_model(name, answers, labels=LABELS):
    return Predictions(name, range(len(answers)), labels, np.eye(len(labels))[answers])


def draw_models(rng, truth, accuracies):
    return [
        as_model(f"m{place}", draw_answers(rng, truth, accuracy))
        for place, accuracy in enumerate(accuracies)
    ]


def accuracy_of(consensus, truth):
    return float(np.mean(consensus.scores.argmax(axis=1) == truth))
