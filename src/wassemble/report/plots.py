"""How plots look; one style for all, and texts that Plotly shows letter by letter.

Backgrounds are clear, and colours of marks stand out on white and on black alike. The page
adds the colours of text and grid, which follow the reader's light or dark mode.
"""

from __future__ import annotations

import html
import textwrap
from typing import Any

from wassemble._extras import load_extra

Plot = dict[str, Any]
"""Data and layout of a plot, as JSON has them.

``narrow`` holds what is laid out differently on a phone, ``choices`` the groups of traces
that a list beside the plot chooses from.
"""

CHOSEN, BLUE, GREY = "#d9711c", "#3b7dd8", "#7f8792"
PURPLE, GREEN, RED, TEAL = "#9b6bd3", "#2b9a66", "#d6494f", "#1f97a6"

# Colour and symbol of each sort of rule; the last is drawn above the others.
SORTS = {
    "model": (GREY, "circle"),
    "mean": (BLUE, "square"),
    "mean through mistakes": (TEAL, "triangle-up"),
    "gate": (TEAL, "hexagon"),
    "barycenter": (PURPLE, "diamond"),
    "stacking": (GREEN, "cross"),
    "stacked consensus": (RED, "pentagon"),
    "chosen": (CHOSEN, "star"),
}
# Colour, symbol and dash of each rule that curves compare.
ROLES = {
    "chosen": (CHOSEN, "star", "solid"),
    "chosen as fused": (CHOSEN, "circle-open", "dot"),
    "barycenter": (PURPLE, "diamond", "solid"),
    "best single": (GREY, "circle", "dash"),
    "arithmetic mean": (BLUE, "square", "dashdot"),
    "geometric mean": (TEAL, "triangle-up", "longdash"),
}

_PURPOSE = "the evidence report"


def new_figure() -> Any:
    """A Plotly figure without anything on it."""
    return load_extra("plotly.graph_objects", "report", purpose=_PURPOSE).Figure()


def new_panels(n_panels: int) -> Any:
    """A figure with panels above each other, which share what is below them."""
    subplots = load_extra("plotly.subplots", "report", purpose=_PURPOSE)
    return subplots.make_subplots(rows=n_panels, cols=1, shared_xaxes=True, vertical_spacing=0.07)


def shown(text: str) -> str:
    """Text as Plotly shows it letter by letter: it would read tags."""
    return html.escape(text, quote=False)


def short(text: str, n_letters: int = 24) -> str:
    """The beginning of a long name, ready to show."""
    return shown(text if len(text) <= n_letters else text[: n_letters - 1] + "…")


def wrap(text: str, width: int) -> str:
    """Lines of at most ``width`` letters, ready to show."""
    return "<br>".join(shown(line) for line in textwrap.wrap(text, width))


def finish(figure: Any, height: int, **layout: Any) -> Plot:
    """The figure as the page takes it."""
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 48, "r": 12, "t": 12, "b": 44},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        dragmode=False,
        hovermode="closest",
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
    )
    figure.update_layout(**layout)
    figure.update_xaxes(fixedrange=True, automargin=True, zeroline=False)
    figure.update_yaxes(fixedrange=True, automargin=True, zeroline=False)
    plot: Plot = figure.to_plotly_json()
    plot["layout"].pop("template", None)
    return plot
