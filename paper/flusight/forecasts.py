"""The forecasts of three seasons as one stream of weeks, and how far each is from the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from paper.data.files import find_data
from wassemble.metrics import interval_coverage
from wassemble.metrics.ordered import interval_scores, squared_distances

SEASONS = ("2023-24", "2024-25", "2025-26")
ENSEMBLE = "FluSight-ensemble"
Sort = Literal["categorical", "quantiles"]


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts of all teams and seasons, item by item; an item is a week, a place and a horizon.

    Attributes
    ----------
    teams : array of shape (n_teams, n_items, n_values)
        Probabilities of the categories, or quantiles; nan where a team has no forecast.
    official, baseline : array of shape (n_items, n_values)
        What the hub made of the teams, and its reference without any model.
    week : array of int, shape (n_items,)
        In which week the forecasts were made, counted without gaps between seasons.
    known_from : array of int, shape (n_items,)
        The first week whose forecasts may know the truth.
    losses : callable
        ``losses(values)``: of each item, the lower the better.
    coverage : callable
        ``coverage(values, rows)``: share of truths inside the 95 % interval; None of categories.
    """

    teams: np.ndarray
    official: np.ndarray
    baseline: np.ndarray
    season: np.ndarray
    week: np.ndarray
    known_from: np.ndarray
    has_truth: np.ndarray
    losses: Callable[[np.ndarray], np.ndarray]
    coverage: Callable[[np.ndarray, np.ndarray], float | None]

    @property
    def answered(self) -> np.ndarray:
        """Which teams have a forecast for which items, (n_teams, n_items)."""
        return ~np.isnan(self.teams[:, :, 0])


def load_forecasts(sort: Sort) -> Forecasts:
    """The forecasts of all seasons; states only for quantiles, whose sum the nation is."""
    files = [np.load(find_data(f"flusight/{sort}_{season}.npz")) for season in SEASONS]
    names = sorted({name for file in files for name in file["models"].tolist()})
    values = np.concatenate([_take(file, names, sort) for file in files], axis=1)
    weeks = [file["weeks"].astype("datetime64[W]").astype(int)[file["item_week"]] for file in files]
    week = np.concatenate(weeks)
    truth = np.concatenate([file["truth"] for file in files])
    is_state = np.concatenate([file["locations"][file["item_location"]] != "US" for file in files])
    is_known = truth >= 0 if sort == "categorical" else np.isfinite(truth)
    is_tested = is_known & (is_state | (sort == "categorical"))
    measured = _judge_places(truth) if sort == "categorical" else _judge_counts(truth, files[0])
    is_team = np.array([not name.startswith("FluSight-") for name in names])
    baseline = next(name for name in names if name.startswith("FluSight-baseline"))
    return Forecasts(
        values[is_team],
        values[names.index(ENSEMBLE)],
        values[names.index(baseline)],
        np.repeat(np.arange(len(files)), [len(each) for each in weeks]),
        week,
        week + np.concatenate([file["item_horizon"] for file in files]) + 1,
        is_tested,
        *measured,
    )


def _take(file: np.lib.npyio.NpzFile, names: list[str], sort: Sort) -> np.ndarray:
    """What each model of all seasons says in one, (n_models, n_items, n_values)."""
    given = file["probabilities" if sort == "categorical" else "values"].astype(np.float64)
    if sort == "quantiles":
        given *= float(file["value_scale"])
    else:
        given /= given.sum(axis=2, keepdims=True)  # float16 is off by up to 0.002
    values = np.full((len(names), *given.shape[1:]), np.nan)
    for name, own in zip(file["models"].tolist(), given, strict=True):
        values[names.index(name)] = own
    return values


_Measured: TypeAlias = tuple[
    Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray, np.ndarray], float | None]
]


def _judge_places(truth: np.ndarray) -> _Measured:
    places = np.maximum(truth, 0).astype(np.int64)
    return lambda values: squared_distances(values, places), lambda values, rows: None


def _judge_counts(truth: np.ndarray, file: np.lib.npyio.NpzFile) -> _Measured:
    counts, levels = np.log1p(np.nan_to_num(truth)), file["quantile_levels"]

    def losses(values: np.ndarray) -> np.ndarray:
        return interval_scores(np.log1p(np.nan_to_num(values)), levels, counts)

    def coverage(values: np.ndarray, rows: np.ndarray) -> float:
        return interval_coverage(values[rows], levels, truth[rows])

    return losses, coverage
