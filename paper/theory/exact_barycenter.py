"""The barycenter without regularisation, by linear programming (the paper, equation 3)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from wassemble.errors import fail


def exact_barycenter(histograms: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """A histogram of least mean transport cost to ``histograms``; not always the only one.

    Parameters
    ----------
    histograms : array of shape (n_models, n_source)
    cost : array of shape (n_source, n_target)

    Returns
    -------
    barycenter : array of shape (n_target,)
    """
    n_target = cost.shape[1]
    objective, sent, arrived, masses = [], [], [], []
    for number, histogram in enumerate(histograms):
        labels = np.flatnonzero(histogram)
        objective.append(cost[labels].ravel() / len(histograms))
        # The first model fixes the mass of all: the last sum of each other follows from it, and
        # left in, rounding could contradict it.
        n_fixed = len(labels) - (number > 0)
        sent.append(sp.kron(sp.eye_array(n_fixed, len(labels)), np.ones((1, n_target))))
        arrived.append(sp.kron(np.ones((1, len(labels))), sp.eye_array(n_target)))
        masses.append(histogram[labels[:n_fixed]])
    n_models, consensus = len(histograms), sp.eye_array(n_target)
    found = linprog(
        np.concatenate([*objective, np.zeros(n_target)]),
        A_eq=sp.block_array(
            [
                [sp.block_diag(sent), None],
                [sp.block_diag(arrived), sp.vstack([-consensus] * n_models)],
            ],
            format="csr",
        ),
        b_eq=np.concatenate([*masses, np.zeros(n_models * n_target)]),
        method="highs-ds",
    )
    if found.status != 0:
        fail(f"the exact barycenter must be found; {found.message}")
    return np.maximum(found.x[-n_target:], 0)
