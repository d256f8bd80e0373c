"""The consensus of a forecast hub, and how far every model was from what happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wassemble._checks import fail, option
from wassemble.inputs.hub import HubTable
from wassemble.labels import enumerate_names
from wassemble.metrics.ordered import interval_coverage, interval_scores, squared_distances
from wassemble.solvers import LineBarycenter

CONSENSUS = "consensus"


def fuse_hub(
    table: HubTable, *, power: int = 2, weights: Mapping[str, float] | None = None
) -> HubTable:
    """The exact barycenter of what the models of a hub say, in the same layout.

    Parameters
    ----------
    table : HubTable
        Categories are taken in the order of ``ids``; `HubTable.in_order` changes it. Of
        distribution functions, mass between two numbers lies at the upper one, and mass beyond the
        last as far from it as that from the one before. Draws of a sample are sorted: the first of
        the consensus is made of the lowest of each model.
    power : {1, 2}
        As in `LineBarycenter`.
    weights : dict of model to weight, optional
        On the simplex; uniform if not given. A model that did not answer a task leaves its weight
        to the others.
    """
    given = _read_weights(table, weights)
    if table.has_histograms:
        return _fuse_histograms(table, power, given)
    fused = LineBarycenter(power).fuse_quantiles(np.sort(table.values, axis=2), given)
    return replace(table, models=(CONSENSUS,), values=fused[None])


def _fuse_histograms(table: HubTable, power: int, given: np.ndarray) -> HubTable:
    """Categories one step apart; what lies between two numbers at the upper one."""
    positions = None
    if table.sort == "cdf":
        ends = table.levels
        positions = [*ends, ends[-1] + (ends[-1] - ends[-2] if len(ends) > 1 else 1.0)]
    rule, histograms = LineBarycenter(power, positions), table.to_histograms()
    votes = ~np.isnan(histograms[:, :, :1]) * given[:, None, None]
    sums = votes.sum(axis=0)
    votes = np.where(sums > 0, votes / np.where(sums > 0, sums, 1), 1 / len(votes))
    fused = rule.fuse(np.nan_to_num(histograms), weights=votes, holds="scores").scores
    shares = np.where(sums > 0, np.asarray(rule.to_histograms(fused)), np.nan)
    return table.with_histograms(CONSENSUS, shares)


@dataclass(frozen=True)
class HubScore:
    """How far a model was from what happened, on the tasks that it answered.

    ``reference`` is the mean loss of the consensus on the same tasks.
    """

    model: str
    metric: str
    loss: float
    reference: float
    coverage: float | None
    n_tasks: int


def score_hub(table: HubTable, consensus: HubTable, truth: np.ndarray) -> list[HubScore]:
    """Losses of the consensus and of each model, the least relative to the consensus first.

    The ranked probability score of categories and distribution functions, else the weighted
    interval score; draws of a sample are quantiles at equally spaced levels.
    """
    metric = "rps" if table.has_histograms else "wis"
    known = truth >= 0 if metric == "rps" else np.isfinite(truth)
    both = replace(
        table,
        models=(*consensus.models, *table.models),
        values=np.concatenate([consensus.values, table.values]),
    )
    scores = []
    for model, values in zip(both.models, both.values, strict=True):
        rows = known & ~np.isnan(values).any(axis=1) & ~np.isnan(both.values[0]).any(axis=1)
        if rows.any():
            losses = [_losses(table, each[rows], truth[rows]) for each in (values, both.values[0])]
            scores.append(
                HubScore(
                    model,
                    metric,
                    float(losses[0].mean()),
                    float(losses[1].mean()),
                    _coverage(table, values[rows], truth[rows]),
                    int(rows.sum()),
                )
            )
    if not scores:
        fail("what happened must be known for some task that was answered; it is for none.")
    return sorted(scores, key=lambda each: each.loss / (each.reference or 1.0))


def _levels(table: HubTable) -> np.ndarray:
    n_draws = len(table.ids)
    return table.levels if table.sort == "quantile" else (np.arange(n_draws) + 0.5) / n_draws


def _losses(table: HubTable, values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    if table.has_histograms:
        return squared_distances(replace(table, values=values[None]).to_histograms()[0], truth)
    return interval_scores(np.sort(values, axis=1), _levels(table), truth)


def _coverage(table: HubTable, values: np.ndarray, truth: np.ndarray) -> float | None:
    """Of the 95 % interval, where the levels have both ends of it."""
    has_ends = table.sort == "quantile" and np.isin([0.025, 0.975], table.levels.round(6)).all()
    return interval_coverage(values, table.levels, truth) if has_ends else None


def _read_weights(table: HubTable, weights: Mapping[str, float] | None) -> np.ndarray:
    if weights is None:
        return np.full(len(table.models), 1 / len(table.models))
    strange: Sequence[str] = sorted(set(weights) ^ set(table.models))
    if strange:
        fail(
            f"{option('weights')} must name each model of the hub; see {enumerate_names(strange)}."
        )
    return np.array([weights[model] for model in table.models], dtype=np.float64)
