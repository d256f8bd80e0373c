"""The paper's two charts (figure 3): best choices, and mean opinion scores.

Differs from the paper: shares stand beside each other instead of on top of each other, so that
each can show its interval.
"""

from typing import Any

from wassemble.report import plots
from wassemble.report.plots import Plot, finish, new_figure, short, shown
from wassemble.web.study.results import Estimate, Results

_COLORS = (plots.PURPLE, plots.TEAL, plots.BLUE, plots.CHOSEN, plots.GREEN, plots.RED, plots.GREY)
_SCALE_COLORS = {"correctness": plots.BLUE, "detail": plots.CHOSEN}


def draw_charts(results: Results) -> dict[str, Plot]:
    """Plots by name, for Plotly; none where there are too few answers to draw."""
    if not results.has_intervals:
        return {}
    return {"best": _best(results), "opinion": _opinion(results)}


def _best(results: Results) -> Plot:
    """Shares of best choices: one group of bars for each scale."""
    figure = new_figure()
    for place, system in enumerate(results.systems):
        shares = [results.best[scale][system] for scale in results.scales]
        figure.add_bar(
            name=short(system),
            x=list(results.scales),
            **_heights(shares, 100),
            marker_color=_COLORS[place % len(_COLORS)],
            customdata=[shown(system)] * len(shares),
            hovertemplate="%{y:.0f} %<extra>%{customdata}</extra>",
        )
    axis = {"title": {"text": "chosen as best, percent"}, "rangemode": "tozero"}
    return finish(figure, 360, barmode="group", yaxis=axis, xaxis={"type": "category"})


def _opinion(results: Results) -> Plot:
    """Mean opinion scores: one group of bars for each system."""
    figure = new_figure()
    places = list(range(len(results.systems)))  # the beginnings of names may be alike
    for scale in results.scales:
        figure.add_bar(
            name=scale,
            x=places,
            **_heights([results.opinion[scale][system] for system in results.systems]),
            marker_color=_SCALE_COLORS[scale],
            customdata=[shown(system) for system in results.systems],
            hovertemplate="%{customdata}: %{y:.2f}",
        )
    names = {"tickvals": places, "ticktext": [short(system) for system in results.systems]}
    axis = {"title": {"text": "mean opinion score"}, "range": [1, 5], "dtick": 1}
    return finish(figure, 360, barmode="group", yaxis=axis, xaxis=names)


def _heights(estimates: list[Estimate], factor: float = 1) -> dict[str, Any]:
    """Bars with their intervals as whiskers."""
    whiskers = {
        "type": "data",
        "symmetric": False,
        "array": [factor * max(0.0, (each.high or 0) - each.value) for each in estimates],
        "arrayminus": [factor * max(0.0, each.value - (each.low or 0)) for each in estimates],
        "thickness": 1.5,
        "width": 4,
    }
    return {"y": [factor * each.value for each in estimates], "error_y": whiskers}
