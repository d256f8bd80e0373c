"""Forecasts are fused by earlier weeks alone, and the page is made of what the command finds."""

from dataclasses import replace

import numpy as np
import pytest

from paper.flusight.forecasts import load_forecasts
from paper.flusight.page import list_rows
from paper.flusight.season import CHOSEN, HASTY, judge_forecasts


def first_weeks(sort, n_weeks):
    """The first weeks of each season, so that a test takes seconds."""
    whole = load_forecasts(sort)
    early = [np.unique(whole.week[whole.season == season])[:n_weeks] for season in range(3)]
    kept = np.isin(whole.week, np.concatenate(early))

    def within(values):
        spread = np.full((len(kept), values.shape[-1]), 0.2)
        spread[kept] = values
        return spread

    cut = {
        name: getattr(whole, name)[..., kept, :] for name in ("teams", "official", "baseline")
    } | {name: getattr(whole, name)[kept] for name in ("season", "week", "known_from", "has_truth")}
    places = np.flatnonzero(kept)
    return replace(
        whole,
        **cut,
        losses=lambda values: whole.losses(within(values))[kept],
        coverage=lambda values, rows: whole.coverage(within(values), places[rows]),
    )


def test_the_forecasts_are_those_of_their_page():
    whole = load_forecasts("categorical")
    rows = whole.has_truth & ~np.isnan(whole.official[:, 0])
    official = whole.losses(whole.official)
    means = [official[rows & (whole.season == season)].mean() for season in range(3)]
    assert means == pytest.approx([0.2203, 0.4451, 0.3577], abs=5e-5)  # as the hub's data have it
    assert (whole.known_from > whole.week).all()


def test_the_truth_of_a_week_changes_no_forecast_made_before_it_was_known():
    forecasts = first_weeks("categorical", 4)
    found = judge_forecasts("categorical", forecasts)
    week = np.unique(forecasts.week[forecasts.season == 2])[-1]
    late = forecasts.known_from > week  # nobody knew it in the last week
    shuffled = replace(
        forecasts,
        losses=lambda values: np.where(
            late, 4 - forecasts.losses(values), forecasts.losses(values)
        ),
    )
    again = judge_forecasts("categorical", shuffled)
    assert found["last_kept"] == again["last_kept"]
    before = found["seasons"]["2023-24"]["rules"][CHOSEN]["loss"]
    assert before == pytest.approx(again["seasons"]["2023-24"]["rules"][CHOSEN]["loss"])


def test_the_first_season_has_no_rule_but_the_simplest_to_go_by():
    found = judge_forecasts("categorical", first_weeks("categorical", 4))
    first, *later = (season["rules"] for season in found["seasons"].values())
    assert first[CHOSEN] == first["mean, equal weights"]
    assert first[HASTY]["loss"] != first[CHOSEN]["loss"]
    assert all(season[HASTY] == season[CHOSEN] for season in later)


def test_a_season_is_told_in_a_row_for_each_rule():
    found = judge_forecasts("quantiles", first_weeks("quantiles", 3))
    header, rows = list_rows(found)
    assert all(len(row) == len(header) for row in rows)
    assert rows[0][0] == "FluSight-ensemble (official)"
    assert rows[-1][0] == CHOSEN
    assert "% inside" in rows[0][1]
    assert rows[-1][2].endswith(("tie", "better", "worse"))
