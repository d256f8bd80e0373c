"""Plots of a record, by name; they know nothing of ensembles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from wassemble.report.plots import (
    BLUE,
    CHOSEN,
    GREEN,
    GREY,
    PURPLE,
    RED,
    ROLES,
    SORTS,
    TEAL,
    Plot,
    finish,
    new_figure,
    new_panels,
    short,
    shown,
    wrap,
)

# Samples that a bin must hold to be a point.
_LEAST = 5


def draw_all(record: dict[str, Any]) -> dict[str, Plot]:
    """Every plot that the record has figures for."""
    makers = {
        "leaderboard": _draw_leaderboard,
        "calibration": _draw_calibration,
        "precision": _draw_precision,
        "gains": _draw_gains,
        "weights": _draw_weights,
        "label_weights": _draw_label_weights,
        "sweep": _draw_sweep,
        "shuffling": _draw_shuffling,
        "time": _draw_time,
    }
    plots = {name: make(record) for name, make in makers.items()}
    return {name: plot for name, plot in plots.items() if plot is not None}


def _marks(
    rows: Sequence[Any],
    x: Callable[[Any], Any],
    y: Callable[[Any], Any],
    said: Callable[[Any], str],
) -> dict[str, Any]:
    """A mark for each row, and what is said of it."""
    return {
        "x": [x(row) for row in rows],
        "y": [y(row) for row in rows],
        "hoverinfo": "text",
        "hovertext": [said(row) for row in rows],
    }


def _draw_leaderboard(record: dict[str, Any]) -> Plot:
    """Every rule with its interval on test, and a tick for validation."""
    rows = [row | {"place": -place} for place, row in enumerate(record["leaderboard"]["rows"])]
    low, high = _range(record)
    figure = new_figure()
    place_of, score_of = itemgetter("place"), _test_score
    for style, own in _by_sort(rows, low):
        tests = [row["test"] for row in own]
        error = {
            "type": "data",
            "symmetric": False,
            "array": [test["high"] - test["score"] for test in tests],
            "arrayminus": [test["score"] - test["low"] for test in tests],
            "thickness": 2,
            "width": 0,
        }
        figure.add_scatter(**_marks(own, score_of, place_of, _said), **style, error_x=error)
    seen = [row for row in rows if row["validation"]["score"] >= low]
    figure.add_scatter(
        **_marks(seen, lambda row: row["validation"]["score"], place_of, _said),
        mode="markers",
        name="validation",
        marker={"color": GREY, "symbol": "line-ns-open", "size": 13, "line": {"width": 2}},
    )
    far = [row for row in rows if row["test"] is not None and row["test"]["score"] < low]
    figure.add_scatter(
        **_marks(far, lambda row: low + 0.01 * (high - low), place_of, _said),
        mode="markers+text",
        text=[f" {row['test']['score']:.3f}" for row in far],
        textposition="middle right",
        showlegend=False,
        marker={"color": GREY, "symbol": "triangle-left", "size": 10},
    )
    names = [wrap(row["name"], 42) for row in rows]
    most_lines = 1 + max(name.count("<br>") for name in names)
    plot = finish(
        figure,
        90 + max(36, 16 * most_lines) * len(rows),
        margin={"l": 48, "r": 16, "t": 12, "b": 44},
        xaxis={"range": [low, high], "title": {"text": shown(record["headline"]["metric"])}},
        yaxis={
            "range": [-len(rows) + 0.4, 0.6],
            "tickvals": [row["place"] for row in rows],
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


def _by_sort(rows: list[dict[str, Any]], low: float) -> list[tuple[Plot, list[dict[str, Any]]]]:
    """How each sort of rule looks, and its rows with a test score of at least ``low``."""
    traces = []
    for sort, (color, symbol) in SORTS.items():
        is_chosen = sort == "chosen"
        own = [
            row
            for row in rows
            if row["test"] and (is_chosen if row["is_chosen"] else row["sort"] == sort)
        ]
        if own:
            marker = {"color": color, "symbol": symbol, "size": 15 if is_chosen else 10}
            rank = 1 if is_chosen else 1000
            style = {"mode": "markers", "name": sort, "legendrank": rank, "marker": marker}
            traces.append((style, [row for row in own if _test_score(row) >= low]))
    return traces


def _test_score(row: dict[str, Any]) -> float:
    return float(row["test"]["score"])


def _said(row: dict[str, Any]) -> str:
    said = f"{wrap(row['name'], 46)}<br>validation {row['validation']['score']:.4f}"
    test = row["test"]
    if test is None:
        return said
    return f"{said}<br>test {test['score']:.4f} ({test['low']:.4f} to {test['high']:.4f})"


def _said_of_time(row: dict[str, Any]) -> str:
    return f"{_said(row)}<br>{row['microseconds']:.1f} microseconds"


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


def _draw_time(record: dict[str, Any]) -> Plot:
    """The metric on test over the time of each rule."""
    figure = new_figure()
    low, high = _range(record)
    for style, rows in _by_sort(record["leaderboard"]["rows"], low):
        marks = _marks(rows, itemgetter("microseconds"), _test_score, _said_of_time)
        figure.add_scatter(**marks, **style)
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


def _draw_weights(record: dict[str, Any]) -> Plot | None:
    """Bars of the models' weights."""
    if "omitted" in record["weights"]:
        return None
    weights = record["weights"]["weights"]
    rows = [(name, weight, f"{shown(name)}: {weight:.4f}") for name, weight in weights.items()]
    figure, axis = _bars(
        rows,
        marker={"color": BLUE},
        text=[f"{weight:.3f}" for weight in weights.values()],
        textposition="auto",
        insidetextfont={"color": "#ffffff"},
    )
    across = {"rangemode": "tozero", "title": {"text": "weight"}}
    return finish(figure, 70 + 30 * len(weights), xaxis=across, yaxis=axis)


def _bars(rows: Sequence[tuple[str, float, str]], **look: Any) -> tuple[Any, Plot]:
    """Bars below each other, of a name, a value and what is said of it; and the axis of names."""
    figure = new_figure()
    places = [-place for place in range(len(rows))]
    figure.add_bar(
        x=[value for _, value, _ in rows],
        y=places,
        orientation="h",
        hoverinfo="text",
        hovertext=[said for _, _, said in rows],
        **look,
    )
    ticks = [short(name) for name, _, _ in rows]
    return figure, {"tickvals": places, "ticktext": ticks, "showgrid": False}


def _draw_label_weights(record: dict[str, Any]) -> Plot | None:
    """A heat map of weights, labels by models."""
    per_label = record["weights"].get("per_label")
    if per_label is None:
        return None
    labels, models = per_label["labels"], per_label["models"]
    figure = new_figure()
    figure.add_heatmap(
        z=per_label["weights"],
        zmin=0,
        zmax=max(max(row) for row in per_label["weights"]),
        colorscale=[[0, "rgba(59,125,216,0.04)"], [1, "rgba(59,125,216,1)"]],
        xgap=2,
        ygap=1,
        hoverinfo="text",
        hovertext=[
            [f"{shown(m)} on {shown(label)}: {w:.3f}" for m, w in zip(models, row, strict=True)]
            for label, row in zip(labels, per_label["weights"], strict=True)
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


def _draw_calibration(record: dict[str, Any]) -> Plot | None:
    """A reliability diagram."""
    if record["calibration"] is None:
        return None
    figure = new_figure()
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        name="as right as sure",
        hoverinfo="skip",
        line={"color": GREY, "width": 1, "dash": "dot"},
    )
    for curve in record["calibration"]["curves"]:
        color, symbol, dash = ROLES[curve["role"]]
        points = list(zip(curve["confidence"], curve["accuracy"], curve["count"], strict=True))
        most = max(curve["count"])
        # A few samples make a point of noise, unless there are no others.
        points = [point for point in points if point[2] >= min(_LEAST, most)]
        figure.add_scatter(
            **_marks(points, itemgetter(0), itemgetter(1), partial(_said_of_bin, curve["rule"])),
            mode="lines+markers",
            name=f"{shown(curve['title'])} (error {curve['calibration_error']:.3f})",
            line={"color": color, "dash": dash},
            marker={
                "size": [7 + 9 * (count / most) ** 0.5 for _, _, count in points],
                "symbol": symbol,
                "color": color,
                "opacity": 1,
                "line": {"width": 2 if symbol.endswith("open") else 0, "color": color},
            },
        )
    return finish(
        figure,
        460,
        xaxis={"range": [0, 1.02], "title": {"text": "confidence"}},
        yaxis={"range": [0, 1.04], "title": {"text": "accuracy"}},
    )


def _said_of_bin(rule: str, point: tuple[float, float, int]) -> str:
    confidence, right, count = point
    return f"{shown(rule)}<br>confidence {confidence:.3f}, accuracy {right:.3f}, {count:,} samples"


def _draw_precision(record: dict[str, Any]) -> Plot | None:
    """Precision over recall; a list beside it chooses the label."""
    if record["precision"] is None:
        return None
    figure = new_figure()
    choices = []
    for place, group in enumerate(record["precision"]["groups"]):
        first = len(figure.data)
        for curve in group["curves"]:
            color, _, dash = ROLES[curve["title"]]
            figure.add_scatter(
                x=curve["recall"],
                y=curve["precision"],
                mode="lines",
                name=curve["title"],
                visible=place == 0,
                line={"color": color, "dash": dash},
                hovertemplate="recall %{x:.3f}, precision %{y:.3f}",
            )
        title = "all labels together" if group["label"] is None else group["label"]
        choices.append({"title": title, "traces": list(range(first, len(figure.data)))})
    axis = {"range": [0, 1.02]}
    plot = finish(
        figure,
        420,
        xaxis=axis | {"title": {"text": "recall"}},
        yaxis=axis | {"title": {"text": "precision"}},
    )
    plot["choices"] = choices
    return plot


def _draw_gains(record: dict[str, Any]) -> Plot | None:
    """Bars of the labels that gain and lose most."""
    gains = record["gains"]
    rows = [*gains.get("gained", []), *reversed(gains.get("lost", []))]
    if not rows:
        return None
    digits = 3 if max(abs(row["gain"]) for row in rows) > 0.02 else 4
    bars = [
        (
            row["label"],
            row["gain"],
            f"{shown(row['label'])}: {row['chosen']:.3f} against {row['simple']:.3f},"
            f" {row['n_samples']:,} samples",
        )
        for row in rows
    ]
    figure, axis = _bars(
        bars,
        marker={"color": [GREEN if row["gain"] > 0 else RED for row in rows]},
        text=[f"{row['gain']:+.{digits}f}" for row in rows],
        textposition="outside",
    )
    # Room for the figures beside their bars, on a phone as well.
    low, high = min(0, *(row["gain"] for row in rows)), max(0, *(row["gain"] for row in rows))
    ends = [low - 0.36 * (high - low) * (low < 0), high + 0.36 * (high - low) * (high > 0)]
    return finish(
        figure,
        70 + 22 * len(rows),
        xaxis={"range": ends, "title": {"text": f"gain in {gains['metric']}"}},
        yaxis=axis,
        bargap=0.25,
    )


def _draw_sweep(record: dict[str, Any]) -> Plot | None:
    """Metric, entropy and distance to the identity over the power of the kernel."""
    sweep = record["sweep"]
    if "omitted" in sweep:
        return None
    color = CHOSEN if sweep["is_chosen"] else PURPLE
    panels = [("score", record["headline"]["metric"], color), ("entropy", "entropy", GREY)]
    if sweep["points"][0]["distance_to_identity"] is not None:
        panels.append(("distance_to_identity", "|K - I|", TEAL))
    figure = new_panels(len(panels))
    powers = [point["power"] for point in sweep["points"]]
    for row, (key, title, color) in enumerate(panels, start=1):
        figure.add_scatter(
            x=powers,
            y=[point[key] for point in sweep["points"]],
            mode="lines+markers",
            line={"color": color},
            showlegend=False,
            hovertemplate=f"{shown(title)} %{{y:.4f}} at power %{{x:g}}<extra></extra>",
            row=row,
            col=1,
        )
        figure.update_yaxes(title={"text": shown(title)}, row=row, col=1)
        figure.add_vline(
            x=sweep["own_power"], line={"color": GREY, "dash": "dot", "width": 1}, row=row, col=1
        )
    if sweep["mean_score"] is not None:
        figure.add_hline(
            y=sweep["mean_score"],
            line={"color": BLUE, "dash": "dashdot", "width": 1},
            annotation={"text": "arithmetic mean", "font": {"color": BLUE, "size": 11}},
            row=1,
            col=1,
        )
    figure.update_xaxes(type="log", tickvals=powers, ticktext=[f"{power:g}" for power in powers])
    figure.update_xaxes(title={"text": "power of the kernel (1 / epsilon)"}, row=len(panels), col=1)
    return finish(figure, 60 + 190 * len(panels))


def _draw_shuffling(record: dict[str, Any]) -> Plot | None:
    """The metric over the size of shuffled neighbourhoods."""
    shuffling = record["shuffling"]
    if "omitted" in shuffling:
        return None
    figure = new_figure()
    for name, scores in shuffling["scores"].items():
        color, symbol, dash = ROLES[name]
        figure.add_scatter(
            x=[str(size) for size in shuffling["sizes"]],
            y=scores,
            mode="lines+markers",
            name=name,
            line={"color": color, "dash": dash},
            marker={"color": color, "symbol": symbol, "size": 10},
            hovertemplate="%{x} labels: %{y:.4f}",
        )
    return finish(
        figure,
        400,
        xaxis={"type": "category", "title": {"text": "labels of a neighbourhood"}},
        yaxis={"title": {"text": shown(record["headline"]["metric"])}},
    )
