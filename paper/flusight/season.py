"""Each week fused by what the weeks before it taught."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

import wassemble as ws
from paper.flusight.forecasts import SEASONS, Forecasts, Sort
from wassemble.metrics import compare

Fuse: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Forecasts of teams, nan where there is none, and a weight per team to a consensus."""

# Powers to which a team's relative skill is raised; 0 is equal weights.
POWERS = (0, 1, 2, 4, 8, 16)
# Items on which a team that is new is thought to be as good as the mean: about a week of them.
_N_BEFORE = 200
CHOSEN = "chosen from earlier weeks"
HASTY = "chosen from the second week on"


def judge_forecasts(sort: Sort, forecasts: Forecasts) -> dict[str, Any]:
    """What each rule reaches in each season, and its difference to the official ensemble."""
    ways = _follow_weeks(forecasts, RULES[sort])
    chosen, kept = _choose_weekly(forecasts, ways, from_season=1)
    hasty, _ = _choose_weekly(forecasts, ways, from_season=0)
    named = {_say(way): values for way, values in ways.items()} | {HASTY: hasty, CHOSEN: chosen}
    found = [_compare(forecasts, named, season) for season in range(len(SEASONS))]
    return {"seasons": dict(zip(SEASONS, found, strict=True)), "last_kept": [_say(n) for n in kept]}


def _fuse_by(rule: ws.Rule) -> Fuse:
    def fuse(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        votes = ~np.isnan(values[:, :, :1]) * weights[:, None, None]
        votes = votes / votes.sum(axis=0)
        scores = rule.fuse(np.nan_to_num(values), weights=votes, holds="partial").scores
        return np.asarray(rule.to_histograms(scores))

    return fuse


def _fuse_quantiles(power: int, *, in_logs: bool = False) -> Fuse:
    rule = ws.LineBarycenter(power)

    def fuse(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        given = np.log1p(values) if in_logs else values
        fused = rule.fuse_quantiles(given, weights / weights.sum())
        return np.expm1(fused) if in_logs else fused

    return fuse


RULES: Mapping[Sort, Mapping[str, Fuse]] = {
    "categorical": {
        "mean": _fuse_by(ws.ARITHMETIC),
        "geometric mean": _fuse_by(ws.GEOMETRIC),
        "Hellinger mean": _fuse_by(ws.HELLINGER),
        "exact W1": _fuse_by(ws.LineBarycenter(1)),
        "exact W2": _fuse_by(ws.LineBarycenter(2)),
    },
    "quantiles": {
        "exact W2 (mean of quantiles)": _fuse_quantiles(2),
        "exact W2 of logs": _fuse_quantiles(2, in_logs=True),
        "exact W1 (median of quantiles)": _fuse_quantiles(1),
    },
}
"""Rules by their names, the simplest first."""

_Way: TypeAlias = tuple[str, int]


def _follow_weeks(forecasts: Forecasts, rules: Mapping[str, Fuse]) -> dict[_Way, np.ndarray]:
    """The consensus of every item by every rule and power of weights."""
    skill = _Skill(forecasts)
    shape = forecasts.official.shape
    ways = {(name, power): np.full(shape, np.nan) for power in POWERS for name in rules}
    for week in np.unique(forecasts.week):
        rows = np.flatnonzero(forecasts.week == week)
        there = forecasts.answered[:, rows].any(axis=1)
        values = forecasts.teams[there][:, rows]
        for (name, power), consensus in ways.items():
            weights = skill.weights(week, power)[there]
            consensus[rows] = rules[name](values, weights)
    return ways


class _Skill:
    """How good teams were, beside the mean of all on the same items."""

    def __init__(self, forecasts: Forecasts) -> None:
        self._forecasts, self._answered = forecasts, forecasts.answered
        self._losses = np.array([forecasts.losses(team) for team in forecasts.teams])
        self._usual = forecasts.losses(np.nanmean(forecasts.teams, axis=0))

    def weights(self, week: int, power: int) -> np.ndarray:
        """A weight per team, by earlier weeks of the same season: teams change in between."""
        known, answered = self._forecasts, self._answered
        season = known.season[known.week == week][0]
        old = (known.known_from <= week) & known.has_truth & (known.season == season)
        before = _N_BEFORE * (self._usual[old].mean() if old.any() else 1.0)
        own = np.where(answered[:, old], self._losses[:, old], 0).sum(axis=1)
        usual = (answered[:, old] * self._usual[old]).sum(axis=1)
        return np.asarray(((own + before) / (usual + before)) ** -float(power))


def _choose_weekly(
    forecasts: Forecasts, ways: Mapping[_Way, np.ndarray], *, from_season: int
) -> tuple[np.ndarray, list[_Way]]:
    """The mean of the ways that serve well by all earlier weeks; and those of the last week.

    A way serves well if its loss is within one standard error of the least, paired by week: a
    few dependent weeks cannot tell more. Before ``from_season`` the simplest way stays: quiet
    weeks, with which a season starts, say nothing of the weeks of change that follow.
    """
    chosen = np.full(forecasts.official.shape, np.nan)
    losses = [forecasts.losses(values) for values in ways.values()]
    kept = list(ways)[:1]
    for week in np.unique(forecasts.week):
        rows = forecasts.week == week
        old = (forecasts.known_from <= week) & forecasts.has_truth
        weekly = np.array([_by_week(own[old], forecasts.week[old]) for own in losses])
        if weekly.shape[1] > 1 and forecasts.season[rows][0] >= from_season:
            kept = [way for way, good in zip(ways, _serve_well(weekly), strict=True) if good]
        chosen[rows] = np.mean([ways[way][rows] for way in kept], axis=0)
    return chosen, kept


def _by_week(losses: np.ndarray, week: np.ndarray) -> np.ndarray:
    _, place = np.unique(week, return_inverse=True)
    return np.asarray(np.bincount(place, losses) / np.bincount(place))


def _serve_well(weekly: np.ndarray) -> np.ndarray:
    """Whose losses, (n_ways, n_weeks), are within one standard error of the least."""
    apart = weekly - weekly[weekly.mean(axis=1).argmin()]
    error = apart.std(axis=1, ddof=1) / np.sqrt(apart.shape[1])
    return np.asarray(apart.mean(axis=1) <= error)


def _compare(forecasts: Forecasts, named: Mapping[str, np.ndarray], season: int) -> dict[str, Any]:
    """Mean losses of a season, and gains over the official ensemble, paired by week."""
    rows = forecasts.has_truth & (forecasts.season == season) & ~np.isnan(forecasts.official[:, 0])
    official = forecasts.losses(forecasts.official)[rows]
    rules = {}
    for name, values in named.items():
        own = forecasts.losses(values)[rows]
        gain = compare(-own, -official, groups=forecasts.week[rows])
        rules[name] = {
            "loss": float(own.mean()),
            "coverage": forecasts.coverage(values, rows),
            "gain": gain.difference,
            "low": gain.low,
            "high": gain.high,
        }
    return {
        "n_items": int(rows.sum()),
        "n_weeks": len(np.unique(forecasts.week[rows])),
        "official": {
            "loss": float(official.mean()),
            "coverage": forecasts.coverage(forecasts.official, rows),
        },
        "baseline": {
            "loss": float(forecasts.losses(forecasts.baseline)[rows].mean()),
            "coverage": forecasts.coverage(forecasts.baseline, rows),
        },
        "rules": rules,
    }


def _say(way: _Way) -> str:
    name, power = way
    return f"{name}, equal weights" if power == 0 else f"{name}, skill to the power {power}"
