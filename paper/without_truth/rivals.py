"""What one would try instead: crowd-kit and Snorkel, where they are installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from wassemble.ensemble.without_truth import Votes
from wassemble.ensemble.without_truth.relatives import mark_answers

SNORKEL = "Snorkel"
RIVALS = ("Dawid-Skene", "one-coin Dawid-Skene", "MACE", SNORKEL)
# MACE starts anew from many places; beyond so many votes that takes hours.
_MOST_VOTES = 30_000
# Snorkel compares all labels of all models in pairs.
_MOST_LABELS = 1_000


def can_run(name: str, votes: Votes) -> bool:
    """Whether a rival is installed, and takes no more than minutes."""
    if name == SNORKEL:
        return _has("snorkel") and len(votes.owner) <= _MOST_LABELS
    return _has("crowdkit") and (name != "MACE" or votes.given.nnz <= _MOST_VOTES)


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def aggregate(name: str, votes: Votes) -> np.ndarray:
    """A rival's consensus, ``(n_samples, n_target)``."""
    if name == SNORKEL:
        return _label_model(votes)
    found = _make(name).fit_predict_proba(_to_frame(votes))
    consensus = np.zeros((votes.n_samples, len(votes.target)))
    consensus[np.ix_(found.index.to_numpy(), found.columns.to_numpy())] = found.to_numpy()
    return np.nan_to_num(consensus)


def _label_model(votes: Votes) -> np.ndarray:
    from snorkel.labeling.model import LabelModel

    answers = np.full((votes.n_samples, votes.n_models), -1)
    for label, marked in enumerate(mark_answers(votes)):
        answers[marked.nonzero()] = label
    model = LabelModel(cardinality=len(votes.target), verbose=False)
    model.fit(answers, seed=0, progress_bar=False)
    return np.nan_to_num(model.predict_proba(answers))


def _make(name: str) -> Any:
    from crowdkit.aggregation import MACE, DawidSkene, OneCoinDawidSkene

    if name == "MACE":
        return MACE(random_state=0)
    return {RIVALS[0]: DawidSkene, RIVALS[1]: OneCoinDawidSkene}[name](n_iter=100)


def _to_frame(votes: Votes) -> Any:
    import pandas as pd

    parts = [answers.tocoo() for answers in mark_answers(votes)]
    columns = {
        "task": np.concatenate([part.row for part in parts]),
        "worker": np.concatenate([part.col for part in parts]),
        "label": np.repeat(np.arange(len(parts)), [part.nnz for part in parts]),
    }
    return pd.DataFrame(columns)
