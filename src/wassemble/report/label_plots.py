"""Plots of scores against the truth, over all labels and label by label."""

from __future__ import annotations

from typing import Any

from wassemble.report.plots import GREEN, GREY, RED, ROLES, Plot, finish, new_figure, short, shown

__all__ = ["draw_calibration", "draw_gains", "draw_precision"]

# Samples that a bin must hold to be a point.
_LEAST = 5


def draw_calibration(record: dict[str, Any]) -> Plot | None:
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
            x=[confidence for confidence, _, _ in points],
            y=[right for _, right, _ in points],
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
            hoverinfo="text",
            hovertext=[
                f"{shown(curve['rule'])}<br>confidence {confidence:.3f}, accuracy {right:.3f},"
                f" {count:,} samples"
                for confidence, right, count in points
            ],
        )
    return finish(
        figure,
        460,
        xaxis={"range": [0, 1.02], "title": {"text": "confidence"}},
        yaxis={"range": [0, 1.04], "title": {"text": "accuracy"}},
    )


def draw_precision(record: dict[str, Any]) -> Plot | None:
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


def draw_gains(record: dict[str, Any]) -> Plot | None:
    """Bars of the labels that gain and lose most."""
    gains = record["gains"]
    rows = [*gains.get("gained", []), *reversed(gains.get("lost", []))]
    if not rows:
        return None
    digits = 3 if max(abs(row["gain"]) for row in rows) > 0.02 else 4
    figure = new_figure()
    figure.add_bar(
        x=[row["gain"] for row in rows],
        y=[-place for place in range(len(rows))],
        orientation="h",
        marker={"color": [GREEN if row["gain"] > 0 else RED for row in rows]},
        text=[f"{row['gain']:+.{digits}f}" for row in rows],
        textposition="outside",
        hoverinfo="text",
        hovertext=[
            f"{shown(row['label'])}: {row['chosen']:.3f} against {row['simple']:.3f},"
            f" {row['n_samples']:,} samples"
            for row in rows
        ],
    )
    ticks = {"tickvals": [-p for p in range(len(rows))]}
    # Room for the figures beside their bars, on a phone as well.
    low, high = min(0, *(row["gain"] for row in rows)), max(0, *(row["gain"] for row in rows))
    ends = [low - 0.36 * (high - low) * (low < 0), high + 0.36 * (high - low) * (high > 0)]
    return finish(
        figure,
        70 + 22 * len(rows),
        xaxis={"range": ends, "title": {"text": f"gain in {gains['metric']}"}},
        yaxis=ticks | {"ticktext": [short(row["label"]) for row in rows], "showgrid": False},
        bargap=0.25,
    )
