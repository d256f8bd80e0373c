"""Plots of what the kernel does: the epsilon sweep, and shuffled neighbours."""

from __future__ import annotations

from typing import Any

from wassemble.report.plots import (
    BLUE,
    CHOSEN,
    GREY,
    PURPLE,
    ROLES,
    TEAL,
    Plot,
    finish,
    new_figure,
    new_panels,
    shown,
)

__all__ = ["draw_shuffling", "draw_sweep"]


def draw_sweep(record: dict[str, Any]) -> Plot | None:
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


def draw_shuffling(record: dict[str, Any]) -> Plot | None:
    """The metric over the size of shuffled neighbourhoods."""
    found = record["shuffling"]
    if "omitted" in found:
        return None
    figure = new_figure()
    for name, scores in found["scores"].items():
        color, symbol, dash = ROLES[name]
        figure.add_scatter(
            x=[str(size) for size in found["sizes"]],
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
