"""Small tables and kernels for tests of the explorer."""

from __future__ import annotations

import numpy as np

from wassemble import LabelSpace, Predictions
from wassemble.inputs import Embeddings
from wassemble.kernels import from_word_vectors
from wassemble.web.explorer.answers import Answer, fuse_sample
from wassemble.web.explorer.cases import Case, Table
from wassemble.web.explorer.similarity import NAMES, Similarity, from_cost
from wassemble.web.explorer.view import View

TAG = "<script>alert(1)</script>"
LABELS = ("cat", "dog", "car", "bus", TAG)
VECTORS = Embeddings(LABELS, [[1, 0, 0], [0.9, 0.4, 0], [0, 1, 0.2], [0.1, 0.9, 0.4], [0, 0, 1]])


def from_vectors(vectors: Embeddings = VECTORS) -> Similarity:
    """Similarity of word vectors."""
    return from_cost("vectors", from_word_vectors, embeddings=vectors)


def histograms(n_models: int = 3, n_samples: int = 4, labels: object = LABELS, seed: int = 0):
    """Models over the same labels."""
    rng = np.random.default_rng(seed)
    names = LabelSpace(labels)
    return [
        Predictions(
            f"model {m}",
            [f"s{i}" for i in range(n_samples)],
            names,
            rng.dirichlet(np.full(len(names), 0.5), size=n_samples),
            kind="multiclass",
        )
        for m in range(n_models)
    ]


def scores(n_models: int = 2, n_samples: int = 3, labels: object = LABELS, seed: int = 0):
    """Models with scores of any mass."""
    rng = np.random.default_rng(seed)
    return [
        Predictions(
            f"model {m}", range(n_samples), labels, rng.random((n_samples, 5)), kind="multilabel"
        )
        for m in range(n_models)
    ]


def make_case(models=None, similarity: Similarity = NAMES, **options: object) -> Case:
    """A case of these models."""
    models = histograms() if models is None else models
    return Case(Table("key", "title", models, models[0].kind, **options), similarity)


def ask(case: Case, row: int = 0, **view: object) -> Answer:
    """An answer as a view asks for it."""
    return fuse_sample(case, row, View(**view))
