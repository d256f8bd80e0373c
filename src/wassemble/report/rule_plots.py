"""Plots of rules and models: leaderboard, time, weights."""

from __future__ import annotations

from typing import Any

from wassemble.report.plots import (
    BLUE,
    CHOSEN,
    GREY,
    SORTS,
    Plot,
    finish,
    new_figure,
    short,
    shown,
    wrap,
)

__all__ = ["draw_label_weights", "draw_leaderboard", "draw_time", "draw_weights"]


def draw_leaderboard(record: dict[str, Any]) -> Plot:
    """Every rule with its interval on test, and a tick for validation."""
    rows = [row | {"place": -place} for place, row in enumerate(record["leaderboard"]["rows"])]
    low, high = _range(record)
    figure = new_figure()
    for name, own, marker in _by_sort(rows):
        _intervals(figure, [row for row in own if row["test"]["score"] >= low], name, marker)
    seen = [row for row in rows if row["validation"]["score"] >= low]
    figure.add_scatter(
        x=[row["validation"]["score"] for row in seen],
        y=[row["place"] for row in seen],
        mode="markers",
        name="validation",
        marker={"color": GREY, "symbol": "line-ns-open", "size": 13, "line": {"width": 2}},
        hoverinfo="text",
        hovertext=[_said(row) for row in seen],
    )
    far = [row for row in rows if row["test"] is not None and row["test"]["score"] < low]
    figure.add_scatter(
        x=[low + 0.01 * (high - low) for _ in far],
        y=[row["place"] for row in far],
        mode="markers+text",
        text=[f" {row['test']['score']:.3f}" for row in far],
        textposition="middle right",
        showlegend=False,
        marker={"color": GREY, "symbol": "triangle-left", "size": 10},
        hoverinfo="text",
        hovertext=[_said(row) for row in far],
    )
    places = [row["place"] for row in rows]
    names = [wrap(row["name"], 42) for row in rows]
    most_lines = 1 + max(name.count("<br>") for name in names)
    plot = finish(
        figure,
        90 + max(36, 16 * most_lines) * len(rows),
        margin={"l": 48, "r": 16, "t": 12, "b": 44},
        xaxis={"range": [low, high], "title": {"text": shown(record["headline"]["metric"])}},
        yaxis={
            "range": [-len(rows) + 0.4, 0.6],
            "tickvals": places,
            "ticktext": names,
            "showgrid": True,
        },
    )
    # On a phone the names stand above the marks.
    plot["narrow"] = {
        "height": 110 + (28 + 14 * most_lines) * len(rows),
        "margin": {"l": 8, "r": 12, "t": 12, "b": 44},
        "yaxis": {"range": [-len(rows) + 0.6, 0.8], "visible": False, "automargin": False},
        "annotations": [
            {
                "x": 0,
                "xref": "paper",
                "xanchor": "left",
                "y": row["place"],
                "yanchor": "bottom",
                "yshift": 7,
                "showarrow": False,
                "align": "left",
                "text": wrap(row["name"], 46),
                "font": {"size": 11},
            }
            for row in rows
        ],
    }
    return plot


def _by_sort(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]], Plot]]:
    """Rows that have a test figure by the sort of their rule, the chosen one apart."""
    rows = [row for row in rows if row["test"] is not None]
    found = []
    for sort, (color, symbol) in SORTS.items():
        own = [row for row in rows if row["sort"] == sort and not row["is_chosen"]]
        if own:
            found.append((sort, own, {"color": color, "symbol": symbol, "size": 10}))
    chosen = [row for row in rows if row["is_chosen"]]
    # Last, and so above the others.
    return [*found, ("chosen", chosen, {"color": CHOSEN, "symbol": "star", "size": 15})]


def _intervals(figure: Any, rows: list[dict[str, Any]], name: str, marker: Plot) -> None:
    tests = [row["test"] for row in rows]
    figure.add_scatter(
        x=[test["score"] for test in tests],
        y=[row["place"] for row in rows],
        mode="markers",
        name=name,
        legendrank=1 if name == "chosen" else 1000,
        marker=marker,
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [test["high"] - test["score"] for test in tests],
            "arrayminus": [test["score"] - test["low"] for test in tests],
            "thickness": 2,
            "width": 0,
        },
        hoverinfo="text",
        hovertext=[_said(row) for row in rows],
    )


def _said(row: dict[str, Any]) -> str:
    said = f"{wrap(row['name'], 46)}<br>validation {row['validation']['score']:.4f}"
    test = row["test"]
    if test is None:
        return said
    return f"{said}<br>test {test['score']:.4f} ({test['low']:.4f} to {test['high']:.4f})"


def _range(record: dict[str, Any]) -> tuple[float, float]:
    """The scores that a plot can show without squeezing those that matter."""
    rows = [row for row in record["leaderboard"]["rows"] if row["test"] is not None]
    tests = sorted(row["test"]["score"] for row in rows)
    chosen = next(row["test"] for row in rows if row["is_chosen"])
    middle = tests[len(tests) // 2]
    least = min(chosen["low"], middle) - 3 * abs(chosen["score"] - middle)
    ends = [(row["test"]["low"], row["test"]["high"]) for row in rows]
    ends += [(row["validation"]["score"],) * 2 for row in record["leaderboard"]["rows"]]
    low = max(min(low for low, _ in ends), least)
    high = max(high for _, high in ends)
    room = 0.04 * (high - low) or 0.01
    return low - room, high + room


def draw_time(record: dict[str, Any]) -> Plot:
    """The metric on test over the time of each rule."""
    figure = new_figure()
    low, high = _range(record)
    for name, own, marker in _by_sort(record["leaderboard"]["rows"]):
        rows = [row for row in own if row["test"]["score"] >= low]
        figure.add_scatter(
            x=[row["microseconds"] for row in rows],
            y=[row["test"]["score"] for row in rows],
            mode="markers",
            name=name,
            legendrank=1 if name == "chosen" else 1000,
            marker=marker,
            hoverinfo="text",
            hovertext=[f"{_said(row)}<br>{row['microseconds']:.1f} microseconds" for row in rows],
        )
    metric = record["headline"]["metric"]
    ticks = [step * 10.0**power for power in range(-3, 9) for step in (1, 2, 5)]
    return finish(
        figure,
        400,
        xaxis={
            "type": "log",
            "title": {"text": "microseconds per sample"},
            "tickvals": ticks,
            "ticktext": [f"{tick:,g}" if tick < 1e4 else f"{tick:,.0f}" for tick in ticks],
        },
        yaxis={"range": [low, high], "title": {"text": f"{shown(metric)} on test"}},
    )


def draw_weights(record: dict[str, Any]) -> Plot:
    """Bars of the models' weights."""
    weights = record["weights"]["weights"]
    figure = new_figure()
    places = [-place for place in range(len(weights))]
    figure.add_bar(
        x=list(weights.values()),
        y=places,
        orientation="h",
        marker={"color": BLUE},
        text=[f"{weight:.3f}" for weight in weights.values()],
        textposition="auto",
        insidetextfont={"color": "#ffffff"},
        hoverinfo="text",
        hovertext=[f"{shown(name)}: {weight:.4f}" for name, weight in weights.items()],
    )
    ticks = {"tickvals": places, "ticktext": [short(name) for name in weights]}
    return finish(
        figure,
        70 + 30 * len(weights),
        xaxis={"rangemode": "tozero", "title": {"text": "weight"}},
        yaxis=ticks | {"showgrid": False},
    )


def draw_label_weights(record: dict[str, Any]) -> Plot | None:
    """A heat map of weights, labels by models."""
    found = record["weights"]["per_label"]
    if found is None:
        return None
    labels, models = found["labels"], found["models"]
    figure = new_figure()
    figure.add_heatmap(
        z=found["weights"],
        zmin=0,
        zmax=max(max(row) for row in found["weights"]),
        colorscale=[[0, "rgba(59,125,216,0.04)"], [1, "rgba(59,125,216,1)"]],
        xgap=2,
        ygap=1,
        hoverinfo="text",
        hovertext=[
            [f"{shown(m)} on {shown(label)}: {w:.3f}" for m, w in zip(models, row, strict=True)]
            for label, row in zip(labels, found["weights"], strict=True)
        ],
        colorbar={"orientation": "h", "thickness": 10, "y": 1, "yanchor": "bottom"},
    )
    plot = finish(
        figure,
        150 + 18 * len(labels),
        margin={"l": 48, "r": 12, "t": 40, "b": 44},
        xaxis={
            "tickvals": list(range(len(models))),
            "ticktext": [short(m, 16) for m in models],
            "showgrid": False,
        },
        yaxis={
            "showgrid": False,
            "tickvals": list(range(len(labels))),
            "ticktext": [short(label) for label in labels],
            "autorange": "reversed",
        },
    )
    plot["narrow"] = {"xaxis": {"tickangle": -90}}
    return plot
