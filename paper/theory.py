"""The paper's proposition 1, lemma 2 and remarks, measured on real predictions.

Bounds 2 to 4 of proposition 1 are proved for continuous space; on a fixed label set they are
statements to check, so each is reported as the share of images for which it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.stats import spearmanr

from paper.data.files import find_data
from paper.evidence.tasks import TASKS
from paper.record.findings import Claim, Figure, Findings, Plot, Progress, Table, fill, ticker
from paper.record.verdicts import (
    EXACT,
    claim_all,
    conclude,
    held,
    smallest_exception,
    smallest_visible,
)
from wassemble.errors import fail
from wassemble.kernels import from_cost
from wassemble.metrics import (
    coupling_entropy,
    entropic_distance,
    entropy,
    extended_kl,
    percentile_interval,
    sinkhorn_divergence,
    smoothness_energy,
    unbalanced_distance,
    wasserstein_distance,
)
from wassemble.solvers import ARITHMETIC, GEOMETRIC, Barycenter, BarycenterResult, solve_barycenter

_TEXT = """\
Three networks on CIFAR-100, their 20 best scores divided by their sum; cost is the squared
distance of the class names' GloVe unit vectors, so distances are the paper's squared W_2, exact
by linear programming, as is the barycenter without regularisation. {n_samples} images drawn by
seed among those where the three lists share a class, so that a geometric mean exists. The
entropic barycenter is Algorithm 1 at epsilon {epsilon:g} ({n_converged} of {n_samples} rows
converged). The truth is all mass on the true class. Nothing is tuned."""

_BOUNDS_NOTE = """\
Share of images for which each bound of proposition 1 holds: at most 4 times the models' mean
distance from the truth; no further from any model than the weighted distances of the others to
it; smoothness energy at most, entropy at least the models' mean. The first is proved for the
exact barycenter on any label set, the others in continuous space only: between labels there is
nothing, so where two models agree on a label the barycenter may be theirs, and is then too far
from the third for the second bound. Where there are several exact barycenters, the programme
gives one at a corner, with few labels. The last column is the first bound without its factor."""

_VALUES_NOTE = """\
Means over images, of histograms. Models: the mean of the three; their distance is to each
other. A truth of one label makes the distance to it linear in the histogram, so that of the
arithmetic mean is the models'."""

_REMARK_NOTE = """\
Spearman's rank correlation over images, with 95 % bootstrap intervals, between what the rule
adds to the models' mean entropy and the models' mean distance to each other."""

_WHY = "what is proved for continuous space need not hold over a fixed set of labels"

_N_DRAWS = 500
_SLACK = 1e-7  # what the linear programmes and the sweeps leave open
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Config:
    """Knobs: how many images, and the regularisation."""

    n_samples: int = 100
    epsilon: float = 0.1
    tolerance: float = 1e-6
    max_sweeps: int = 10_000
    n_divergences: int = 40
    divergence_epsilons: tuple[float, ...] = (0.05, 0.2, 0.5, 1.0, 3.0, 10.0, 1000.0)
    n_scores: int = 10
    mass_penalties: tuple[float, ...] = (0.5, 2.0, 10.0, 100.0, 1000.0)
    score_epsilons: tuple[float, ...] = (0.3, 0.1)
    seed: int = 0


_Values = dict[str, np.ndarray]
"""A rule's figures for each image, by name; of distances to the models, one row per model."""

_TO_TRUTH, _TO_MODELS = "distance to the truth", "distance to a model"
_ENERGY, _ENTROPY = "smoothness energy", "entropy"


def run(config: Config, progress: Progress = None) -> Findings:
    """Every bound on real predictions."""
    tick = ticker(progress, 5)
    histograms, truth, cost = _cifar100(config)
    result = solve_barycenter(
        histograms,
        from_cost(cost, config.epsilon),
        Barycenter(max_sweeps=config.max_sweeps, tolerance=config.tolerance),
    )
    exact = np.stack([exact_barycenter(histograms[:, i], cost) for i in range(config.n_samples)])
    tick()
    consensus = {
        "Wasserstein, exact": exact,
        f"Wasserstein, epsilon {config.epsilon:g}": result.barycenter,
        "arithmetic mean": ARITHMETIC.fuse(histograms).scores,
        "geometric mean": GEOMETRIC.fuse(histograms).scores,
    }
    rules = {name: _measure(each, histograms, truth, cost) for name, each in consensus.items()}
    tick()
    models = [_measure(each, histograms, truth, cost) for each in histograms]
    tick()
    holds = {name: _check(each, models) for name, each in rules.items()}
    divergences = _follow_divergence(histograms[:2, : config.n_divergences], cost, config)
    tick()
    remark = _remark_table(rules, models, config.seed)
    costs = _compare_costs_of_scores(config)
    tick()
    claims = [
        *_proposition_claims(holds),
        _remark_claim(remark),
        _lemma_claim(result, histograms),
        *_mean_claims(histograms, truth),
        *divergences.claims,
        *costs.claims,
    ]
    return Findings(
        text=fill(_TEXT, config, n_converged=int(np.sum(result.converged))),
        tables=[
            _bounds_table(holds),
            _values_table(rules, models),
            remark,
            *divergences.tables,
            *costs.tables,
        ],
        plots=divergences.plots,
        claims=claims,
        verdict=conclude(claims, _WHY),
        difference="the paper proves these statements, and has no figures of them.",
    )


def _cifar100(config: Config) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Histograms of the models, true classes, and squared distances of the classes."""
    task = TASKS["cifar100"]()
    truth = task.target.places(task.truth)
    histograms = np.nan_to_num([model.scores.astype(np.float64) for model in task.models])
    cost = _squared_distances(np.load(find_data("cifar100/class_glove_100d.npy")))
    has_mean = np.flatnonzero(np.any(np.all(histograms > 0, axis=0), axis=1))
    rows = np.random.default_rng(config.seed).permutation(has_mean)[: config.n_samples]
    histograms = histograms[:, rows] / histograms[:, rows].sum(axis=2, keepdims=True)
    return histograms, truth[rows], cost


def _squared_distances(vectors: np.ndarray) -> np.ndarray:
    """Between vectors of length 1."""
    unit = vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return np.asarray(np.square(unit[:, None] - unit).sum(axis=2))


def _measure(
    consensus: np.ndarray, histograms: np.ndarray, truth: np.ndarray, cost: np.ndarray
) -> _Values:
    certain = np.eye(len(cost))[truth]
    return {
        _TO_TRUTH: wasserstein_distance(consensus, certain, cost),
        _TO_MODELS: np.stack([wasserstein_distance(consensus, h, cost) for h in histograms]),
        _ENERGY: smoothness_energy(consensus, cost),
        _ENTROPY: entropy(consensus),
    }


def _check(rule: _Values, models: list[_Values]) -> dict[str, np.ndarray]:
    """For each bound, the images for which it holds."""

    def mean(name: str) -> np.ndarray:
        return np.asarray(np.mean([each[name] for each in models], axis=0))

    # The mean of distances to a model is that to the others, by weight: it is at 0 from itself.
    return {
        "semantic accuracy": rule[_TO_TRUTH] <= 4 * mean(_TO_TRUTH) + _SLACK,
        "diversity": np.asarray((rule[_TO_MODELS] <= mean(_TO_MODELS) + _SLACK).all(axis=0)),
        "smoothness": rule[_ENERGY] <= mean(_ENERGY) + _SLACK,
        "entropy": rule[_ENTROPY] >= mean(_ENTROPY) - _SLACK,
        "accuracy, factor 1": rule[_TO_TRUTH] <= mean(_TO_TRUTH) + _SLACK,
    }


def _bounds_table(holds: Mapping[str, Mapping[str, np.ndarray]]) -> Table:
    rows = [
        {"rule": name, **{bound: float(kept.mean()) for bound, kept in each.items()}}
        for name, each in holds.items()
    ]
    return Table.of("Bounds of proposition 1", rows, 2, _BOUNDS_NOTE)


def _values_table(rules: Mapping[str, _Values], models: list[_Values]) -> Table:
    of_models = {name: np.stack([each[name] for each in models]) for name in models[0]}
    of_models[_TO_MODELS] = of_models[_TO_MODELS][~np.eye(len(models), dtype=bool)]
    rows = [
        [name, *(float(np.mean(each)) for each in values.values())]
        for name, values in {"models": of_models, **rules}.items()
    ]
    return Table("What the consensus is like", ["rule", *of_models], rows, note=_VALUES_NOTE)


def _remark_table(rules: Mapping[str, _Values], models: list[_Values], seed: int) -> Table:
    """Remark 3: whether the entropy gained grows with the models' distances."""
    rng = np.random.default_rng(seed)
    diversity = np.mean([each[_TO_MODELS] for each in models], axis=(0, 1))
    rows: list[list[Any]] = []
    for name, rule in rules.items():
        gained = rule[_ENTROPY] - np.mean([each[_ENTROPY] for each in models], axis=0)
        drawn = [
            float(spearmanr(gained[draw], diversity[draw]).statistic)
            for draw in rng.integers(len(gained), size=(_N_DRAWS, len(gained)))
        ]
        value = float(spearmanr(gained, diversity).statistic)
        rows.append([name, Figure(value, *percentile_interval(np.array(drawn)), is_gain=True)])
    title = "Entropy gained, against the models' distances (remark 3)"
    return Table(title, ["rule", "rank correlation"], rows, digits=2, note=_REMARK_NOTE)


def _remark_claim(table: Table) -> Claim:
    correlation: Figure = table.rows[0][1]
    return Claim(
        "entropy of the exact barycenter grows with the models' distances (conjectured)",
        "remark 3",
        held(correlation),
        f"rank correlation {correlation.words(2)}",
        f"{smallest_visible(correlation):.2f}",
    )


def _proposition_claims(holds: Mapping[str, Mapping[str, np.ndarray]]) -> list[Claim]:
    *proved, _ = holds["Wasserstein, exact"].items()
    return [
        _image_claim(f"{bound} of the exact barycenter", f"proposition 1.{number}", kept)
        for number, (bound, kept) in enumerate(proved, start=1)
    ]


def _lemma_claim(result: BarycenterResult, histograms: np.ndarray) -> Claim:
    """Entropies of consensus and model sum to at least the entropy of their coupling."""
    spread = entropy(result.barycenter) + entropy(histograms)
    slack = []
    for model, row in np.ndindex(spread.shape):
        coupling = result.coupling(model, row)
        slack.append(spread[model, row] - (coupling_entropy(coupling) - coupling.sum()))
    n_held = int(np.sum(np.array(slack) >= -1e-4))  # marginals are right to the tolerance
    return Claim(
        "entropies of consensus and model sum to at least that of their coupling",
        "lemma 2",
        n_held == len(slack),
        f"{n_held} of {len(slack)} couplings; slack at least {min(slack):.1g},"
        f" {np.mean(slack):.2f} on average",
        # Couplings of one image stand and fall together.
        f"{100 * smallest_exception(spread.shape[1]):.2g} % of images",
    )


def _mean_claims(histograms: np.ndarray, truth: np.ndarray) -> list[Claim]:
    """Propositions 2 and 3: for how many images each bound of the means holds."""
    n_models, _, n_labels = histograms.shape
    certain = np.eye(n_labels)[truth]
    arithmetic, geometric = (rule.fuse(histograms).scores for rule in (ARITHMETIC, GEOMETRIC))
    each = np.stack([extended_kl(certain, h) for h in histograms])
    apart = [
        np.abs(histograms[i] - histograms[j]).sum(axis=1) for i in range(n_models) for j in range(i)
    ]
    far = np.square(arithmetic - certain).sum(axis=1)
    bound = 2 * np.square(histograms - certain).sum(axis=2).mean(axis=0)
    gained = np.square(apart).sum(axis=0) / n_models**2 / 2
    return [
        _image_claim(
            "extended KL of the truth to the geometric mean is at most the models' mean",
            "proposition 2.2",
            extended_kl(certain, geometric) <= each.mean(axis=0) + _ROUNDING,
        ),
        _image_claim(
            "squared distance of the arithmetic mean to the truth is at most twice theirs",
            "proposition 3.2",
            far <= bound + _ROUNDING,
        ),
        _image_claim(
            "entropy of the arithmetic mean is above theirs by the L1 distances (pairs once)",
            "proposition 3.3",
            entropy(arithmetic) >= entropy(histograms).mean(axis=0) + gained - _ROUNDING,
        ),
    ]


def _image_claim(statement: str, source: str, kept: np.ndarray) -> Claim:
    return claim_all(statement, source, int(kept.sum()), kept.size, "images")


def exact_barycenter(histograms: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """A histogram of least mean transport cost to ``histograms``; not always the only one.

    The barycenter without regularisation, by linear programming (equation 3), from
    ``histograms`` of shape (n_models, n_source) and ``cost`` of shape (n_source, n_target).
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


# Transport costs on real predictions: regularised and not, balanced and not (appendix D).

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


def _follow_divergence(histograms: np.ndarray, cost: np.ndarray, config: Config) -> Findings:
    """The way of the Sinkhorn divergence from Wasserstein to MMD (appendix D.1)."""
    (first, second), epsilons = histograms, config.divergence_epsilons
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
    lines = {
        "Sinkhorn divergence": list(zip(epsilons, divergence, strict=True)),
        "Wasserstein": [(epsilons[0], exact), (epsilons[-1], exact)],
        "MMD": [(epsilons[0], end), (epsilons[-1], end)],
    }
    title = "Sinkhorn divergence between two networks"
    return Findings(
        "",
        [Table("From Wasserstein to MMD", columns, rows, note=_DIVERGENCE_NOTE)],
        [Plot("divergence", title, "epsilon", "mean over images", lines, log_x=True)],
        [
            Claim(
                "the Sinkhorn divergence goes from Wasserstein to MMD",
                "appendix D.1",
                close[1] < 0.01 and all(a > b for a, b in pairwise([exact, *divergence])),
                f"{100 * close[0]:.1f} % from Wasserstein at epsilon {epsilons[0]:g},"
                f" {100 * close[1]:.2f} % from MMD at {epsilons[-1]:g}",
                EXACT,
            )
        ],
    )


def _compare_costs_of_scores(config: Config) -> Findings:
    """Equation 2, its entropic form, and the limit of a large mass_penalty (appendix D.2)."""
    task, mass_penalties = TASKS["coco"](), config.mass_penalties
    rng = np.random.default_rng(config.seed)
    rows = rng.permutation(len(task.models[0].samples))[: config.n_scores]
    first, second = (np.asarray(model.scores, dtype=np.float64)[rows] for model in task.models[:2])
    with np.load(find_data("coco_multilabel/category_glove100.npz")) as arrays:
        cost = _squared_distances(arrays["vectors"])
    walls = 1000 * (1 - np.eye(len(cost)))

    def shares(price: np.ndarray, penalty: float) -> float:
        return float(unbalanced_distance(first, second, price, penalty).mean()) / penalty

    exact = [shares(cost, penalty) for penalty in mass_penalties]
    apart = [shares(penalty * walls, penalty) for penalty in mass_penalties]
    table = [["equation 2", *exact]]
    for epsilon in config.score_epsilons:
        found = [
            float(entropic_distance(first, second, cost, epsilon, mass_penalty=p).mean()) / p
            for p in mass_penalties
        ]
        table.append([f"entropic, epsilon {epsilon:g}", *found])
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
                EXACT,
            )
        ],
    )
