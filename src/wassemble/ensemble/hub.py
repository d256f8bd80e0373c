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
# Powers to which the skill of models is raised; 0 is equal weights.
_POWERS = (0, 1, 2, 4, 8, 16)
_MADE = ("reference_date", "origin_date", "forecast_date")
_ENDS = ("target_end_date", "target_date")
_NO_DATE = ("", "NA", "None", "nan")


def fuse_hub(
    table: HubTable, *, power: int = 2, weights: Mapping[str, float] | None = None
) -> HubTable:
    """The exact barycenter of what the models of a hub say, in the same layout.

    Parameters
    ----------
    table : HubTable
        Categories are taken in the order of ``ids``, one step apart; `HubTable.in_order` changes
        it. Of
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
    """Categories where they lie; what is between two numbers at the upper one."""
    positions = table.positions
    if table.sort == "cdf":
        ends = table.levels
        positions = (*ends, ends[-1] + (ends[-1] - ends[-2] if len(ends) > 1 else 1.0))
    rule, histograms = LineBarycenter(power, positions), table.to_histograms()
    votes = ~np.isnan(histograms[:, :, :1]) * given[:, None, None]
    sums = votes.sum(axis=0)
    votes = np.where(sums > 0, votes / np.where(sums > 0, sums, 1), 1 / len(votes))
    fused = rule.fuse(np.nan_to_num(histograms), weights=votes, holds="scores").scores
    shares = np.where(sums > 0, np.asarray(rule.to_histograms(fused)), np.nan)
    return table.with_histograms(CONSENSUS, shares)


@dataclass(frozen=True, eq=False)
class LearnedHub:
    """A consensus whose weights are, at every date, those of what was known before."""

    consensus: HubTable
    date: str  # the last one
    n_known: int  # tasks whose outcome was known by then
    power: int  # to which skill is raised
    weights: Mapping[str, float]  # of the models that have forecasts of that date


def learn_hub(table: HubTable, truth: np.ndarray, *, power: int = 2) -> LearnedHub:
    """Weights by skill, and the consensus of each date by what was known before that date.

    The skill of a model is how much less it loses than the consensus with equal weights, on the
    same tasks; a model that is new is thought as good as that. To which power skill is raised is
    told by the dates before, too: equal weights stay unless they are worse by more than a standard
    error, paired by date.

    Parameters
    ----------
    table : HubTable
        What is asked must have the date of the forecast, and that of the outcome, which is known
        to forecasts of later dates alone; to none, where it has no date.
    truth : array of shape (n_tasks,)
        As `read_oracle` gives it.
    power : {1, 2}
        As in `LineBarycenter`.
    """
    made, ends = (_read_dates(table, names) for names in (_MADE, _ENDS))
    is_told = truth >= 0 if table.has_histograms else np.isfinite(truth)
    ways = {way: np.full(table.values.shape[1:], np.nan) for way in _POWERS}
    consensus = np.full_like(ways[0], np.nan)
    answered = ~np.isnan(table.values).all(axis=(0, 2)) & ~np.isnat(made)
    if not answered.any():
        fail("there must be forecasts that have a date; got none.")
    for date in np.unique(made[answered]):
        now, known = made == date, (ends < date) & is_told
        # All that follows sees of the truth is what was known.
        past = _Past(table.take(known), truth[known], made[known])
        asked = table.take(now).of_those_who_answered()
        weights = {way: past.weights(asked.models, ways[0][known], way) for way in _POWERS}
        for way, fused in ways.items():
            fused[now] = fuse_hub(asked, power=power, weights=weights[way]).values[0]
        best = past.choose({way: fused[known] for way, fused in ways.items()})
        consensus[now] = ways[best][now]
    fused_table = replace(table, models=(CONSENSUS,), values=consensus[None])
    return LearnedHub(fused_table, str(date), int(known.sum()), best, weights[best])


@dataclass(frozen=True, eq=False)
class _Past:
    """Tasks whose outcome is known."""

    table: HubTable
    truth: np.ndarray
    made: np.ndarray

    def weights(self, models: Sequence[str], usual: np.ndarray, power: int) -> dict[str, float]:
        """A weight per model, by its losses beside those of the ``usual`` consensus."""
        reference = _losses_or_nan(self.table, usual, self.truth)
        # As many tasks as are asked at a date, on which a model that is new is as good.
        n_dates = max(len(np.unique(self.made)), 1)
        before = float(np.nansum(reference)) / n_dates or 1.0
        skill = {}
        for model in models:
            own = np.full(len(self.truth), np.nan)
            if model in self.table.models:
                values = self.table.values[self.table.models.index(model)]
                own = _losses_or_nan(self.table, values, self.truth)
            both = ~np.isnan(own) & ~np.isnan(reference)
            skill[model] = (reference[both].sum() + before) / (own[both].sum() + before)
        total = sum(each**power for each in skill.values())
        return {model: each**power / total for model, each in skill.items()}

    def choose(self, ways: Mapping[int, np.ndarray]) -> int:
        """The first power that is within a standard error of the best, paired by date."""
        losses = [_losses_or_nan(self.table, each, self.truth) for each in ways.values()]
        _, date = np.unique(self.made, return_inverse=True)
        n_dates = int(date.max(initial=-1)) + 1
        if n_dates < 2:
            return next(iter(ways))
        counts = np.bincount(date)
        by_date = np.array([np.bincount(date, np.nan_to_num(own)) / counts for own in losses])
        apart = by_date - by_date[by_date.mean(axis=1).argmin()]
        error = apart.std(axis=1, ddof=1) / np.sqrt(n_dates)
        return list(ways)[int(np.argmax(apart.mean(axis=1) <= error))]


def _read_dates(table: HubTable, names: Sequence[str]) -> np.ndarray:
    """The date of each task, in the first of these columns that there is."""
    found = next((name for name in names if name in table.columns), None)
    if found is None:
        fail(
            f"what is asked must have a column {' or '.join(names)}, to tell what was known when;"
            f" got {enumerate_names(table.columns)}."
        )
    place = table.columns.index(found)
    dates = []
    for task in table.tasks:
        try:
            dates.append(np.datetime64("NaT" if task[place] in _NO_DATE else task[place], "D"))
        except ValueError:
            fail(f"{found} must be a date, such as 2025-01-31; got {task[place]!r}.")
    return np.array(dates)


def _losses_or_nan(table: HubTable, values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The loss of each task; nan where there is no answer."""
    losses = np.full(len(truth), np.nan)
    there = ~np.isnan(values).any(axis=1)
    if there.any():
        losses[there] = _losses(table, values[there], truth[there])
    return losses


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
        histograms = replace(table, values=values[None]).to_histograms()[0]
        return squared_distances(histograms, truth, table.positions)
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
