"""What one would try instead: crowd-kit's aggregators, where it is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from wassemble.ensemble.without_truth import Votes
from wassemble.ensemble.without_truth.relatives import mark_answers

RIVALS = ("Dawid-Skene", "one-coin Dawid-Skene", "MACE")
# MACE starts anew from many places; beyond so many votes that takes hours.
_MOST_VOTES = 30_000


def has_crowdkit() -> bool:
    """Whether the rivals are installed."""
    return importlib.util.find_spec("crowdkit") is not None


def aggregate(name: str, votes: Votes) -> np.ndarray | None:
    """A rival's consensus, ``(n_samples, n_target)``; None if it would take too long."""
    if name == "MACE" and votes.given.nnz > _MOST_VOTES:
        return None
    table = _to_frame(votes)
    found = _make(name).fit_predict_proba(table)
    consensus = np.zeros((votes.n_samples, len(votes.target)))
    consensus[np.ix_(found.index.to_numpy(), found.columns.to_numpy())] = found.to_numpy()
    return np.nan_to_num(consensus)


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
