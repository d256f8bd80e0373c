"""Transport costs on real predictions: regularised and not, balanced and not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from paper.data.files import find_data
from paper.evidence.tasks import TASKS
from paper.record.findings import Claim, Findings, Plot, Table
from wassemble.metrics import (
    entropic_distance,
    sinkhorn_divergence,
    unbalanced_distance,
    wasserstein_distance,
)

_DIVERGENCE_NOTE = """\
Means over images of two networks' histograms. The entropic distance has its entropy inside (the
paper's W_epsilon), so it falls without end as epsilon grows; the Sinkhorn divergence takes the
distances of each to itself off."""

_SCORES_NOTE = """\
Means over images of two COCO heads' scores, by mass_penalty, divided by it; cost is the squared
distance of the categories' GloVe unit vectors. The first row is equation 2 (to a billionth of
the masses), the last are what appendix D.2 says it tends to, and what it does tend to. The
Hellinger distance is reached where labels may not mix (K = I, cost 1,000 mass_penalty off the
diagonal)."""


def maximum_mean_discrepancy(first: np.ndarray, second: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Half the squared discrepancy under the kernel -C: -(p - q) C (p - q) / 2, by row."""
    apart = first - second
    return -np.einsum("si,ij,sj->s", apart, cost, apart) / 2


def follow_divergence(
    histograms: np.ndarray, cost: np.ndarray, epsilons: Sequence[float]
) -> Findings:
    """The way of the Sinkhorn divergence from Wasserstein to MMD (appendix D.1)."""
    first, second = histograms
    exact = float(wasserstein_distance(first, second, cost).mean())
    end = float(maximum_mean_discrepancy(first, second, cost).mean())
    divergence = [float(sinkhorn_divergence(first, second, cost, e).mean()) for e in epsilons]
    rows = [["exact (epsilon 0)", exact, exact]]
    for epsilon, each in zip(epsilons, divergence, strict=True):
        distance = float(entropic_distance(first, second, cost, epsilon).mean())
        rows.append([f"epsilon {epsilon:g}", each, distance])
    rows.append(["MMD (epsilon to infinity)", end, None])
    close = [abs(divergence[0] - exact) / exact, abs(divergence[-1] - end) / end]
    columns = ["", "Sinkhorn divergence", "entropic distance"]
    return Findings(
        "",
        [Table("From Wasserstein to MMD", columns, rows, note=_DIVERGENCE_NOTE)],
        [
            Plot(
                "divergence",
                "Sinkhorn divergence between two networks",
                "epsilon",
                "mean over images",
                {
                    "Sinkhorn divergence": list(zip(epsilons, divergence, strict=True)),
                    "Wasserstein": [(epsilons[0], exact), (epsilons[-1], exact)],
                    "MMD": [(epsilons[0], end), (epsilons[-1], end)],
                },
                log_x=True,
            )
        ],
        [
            Claim(
                "the Sinkhorn divergence goes from Wasserstein to MMD",
                "appendix D.1",
                close[1] < 0.01 and all(a > b for a, b in pairwise([exact, *divergence])),
                f"{100 * close[0]:.1f} % from Wasserstein at epsilon {epsilons[0]:g},"
                f" {100 * close[1]:.2f} % from MMD at {epsilons[-1]:g}",
            )
        ],
    )


def compare_costs_of_scores(
    mass_penalties: Sequence[float], epsilons: Sequence[float], n_samples: int, seed: int
) -> Findings:
    """Equation 2, its entropic form, and the limit of a large mass_penalty (appendix D.2)."""
    task = TASKS["coco"]()
    rows = np.random.default_rng(seed).permutation(len(task.models[0].samples))[:n_samples]
    first, second = (np.asarray(model.scores, dtype=np.float64)[rows] for model in task.models[:2])
    with np.load(find_data("coco_multilabel/category_glove100.npz")) as arrays:
        vectors = arrays["vectors"].astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cost = np.square(vectors[:, None] - vectors).sum(axis=2)
    walls = 1000 * (1 - np.eye(len(cost)))

    def shares(price: np.ndarray, penalty: float) -> float:
        return float(unbalanced_distance(first, second, price, penalty).mean()) / penalty

    exact = [shares(cost, penalty) for penalty in mass_penalties]
    apart = [shares(penalty * walls, penalty) for penalty in mass_penalties]
    table = [["equation 2", *exact]]
    for epsilon in epsilons:
        found = (
            float(entropic_distance(first, second, cost, epsilon, mass_penalty=penalty).mean())
            for penalty in mass_penalties
        )
        values = [each / p for each, p in zip(found, mass_penalties, strict=True)]
        table.append([f"entropic, epsilon {epsilon:g}", *values])
    table.append(["equation 2, K = I", *apart])
    hellinger = float(np.square(np.sqrt(first) - np.sqrt(second)).sum(axis=1).mean())
    masses = (np.sqrt(each.sum(axis=1)) for each in (first, second))
    totals = float(np.square(np.subtract(*masses)).mean())
    table.append(["Hellinger distance of the scores", *[hellinger] * len(exact)])
    table.append(["Hellinger distance of the total masses", *[totals] * len(exact)])
    columns = ["cost / mass_penalty", *(f"{penalty:g}" for penalty in mass_penalties)]
    return Findings(
        "",
        [Table("Costs between scores of any mass", columns, table, 4, _SCORES_NOTE)],
        claims=[
            Claim(
                "the unbalanced cost over mass_penalty tends to the Hellinger distance",
                "appendix D.2",
                abs(exact[-1] - hellinger) < 0.01 * hellinger,
                f"{exact[-1]:.4f} at {mass_penalties[-1]:g}: towards that of the total masses,"
                f" {totals:.4f}, not {hellinger:.4f}; where labels may not mix, {apart[-1]:.4f}",
            )
        ],
    )
