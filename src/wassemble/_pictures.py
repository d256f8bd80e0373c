"""Pictures of what is found: as HTML, which notebooks show, and drawn by matplotlib.

A picture is a value: names and numbers. What it is a picture of is for the class that has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from wassemble._extras import load_extra

# Models of a sample that are shown beside the consensus: the first.
N_MODELS = 8
# Labels of each; what is less is left out.
_N_LABELS = 8
# Rows that a drawing has room for at least, so that one bar is no wall.
_FEWEST_ROWS = 4
# Labels of a grid on a page, and those whose names fit beside a drawing.
_N_CELLS = 16
_N_NAMES = 40
_HEIGHT = 3.2  # inches
_BLUE = "#4878a8"
_SHADE = "72, 120, 168"


@dataclass(frozen=True)
class Bars:
    """A bar for each name; with ends of intervals where there are some."""

    title: str
    names: Sequence[str]
    values: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None

    @classmethod
    def largest(cls, title: str, names: Sequence[Any], values: Any) -> "Bars":
        """The labels with the largest values above 0, the largest first."""
        values = np.nan_to_num(np.asarray(values, dtype=np.float64))
        order = np.argsort(-values, kind="stable")[:_N_LABELS]
        kept = [place for place in order.tolist() if values[place] > 0]
        return cls(title, [str(names[place]) for place in kept], values[kept].tolist())

    @property
    def n_rows(self) -> int:
        """Number of bars."""
        return len(self.names)

    def to_html(self) -> str:
        """The bars as a table, without scripts, on any background."""
        sizes = np.abs(np.nan_to_num(self.values))  # losses are below 0
        widths = 100 * sizes / (sizes.max(initial=0) or 1)
        rows = [
            f"<tr><td style='text-align:left'>{escape(name)}</td><td style='width:8em'>"
            f"<div style='height:.8em;background:{_BLUE};width:{width:.1f}%'></div></td>"
            f"<td>{value:.3g}</td></tr>"
            for name, value, width in zip(self.names, self.values, widths, strict=True)
        ]
        return f"<table><caption>{escape(self.title)}</caption>{''.join(rows)}</table>"

    def draw(self, axes: Any) -> None:
        """Draw it, the first bar on top."""
        places = np.arange(len(self.names))
        if self.low is None or self.high is None:
            axes.barh(places, self.values, color=_BLUE)
        else:
            values = np.asarray(self.values)
            ends = [values - self.low, np.asarray(self.high) - values]
            axes.errorbar(self.values, places, xerr=np.maximum(ends, 0), fmt="o", color=_BLUE)
        axes.set_yticks(places, self.names)
        axes.set_ylim(max(len(self.names), _FEWEST_ROWS) - 0.5, -0.5)  # the first is on top
        axes.set_title(self.title, fontsize="medium")


@dataclass(frozen=True)
class Grid:
    """How strongly each row is joined to each column; darker is more."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def to_html(self) -> str:
        """The grid as a table of shaded cells, or its corner if it is large."""
        values = self.values[:_N_CELLS, :_N_CELLS]
        shades = values / (values.max(initial=0) or 1)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns[:_N_CELLS])
        lines = [
            f"<tr><th>{escape(name)}</th>{''.join(map(_shade, shades[row], values[row]))}</tr>"
            for row, name in enumerate(self.rows[:_N_CELLS])
        ]
        left_out = ", its corner" if values.size < self.values.size else ""
        caption = f"<caption>{escape(self.title)}{left_out}</caption>"
        return f"<table>{caption}<tr><th></th>{head}</tr>{''.join(lines)}</table>"

    def draw(self, axes: Any) -> None:
        """Draw it, with names where they can be read."""
        shown = axes.imshow(self.values, cmap="Blues", vmin=0, aspect="auto")
        if len(self.columns) <= _N_NAMES:
            axes.set_xticks(range(len(self.columns)), self.columns, rotation=45, ha="right")
        if len(self.rows) <= _N_NAMES:
            axes.set_yticks(range(len(self.rows)), self.rows)
        axes.set_title(self.title, fontsize="medium")
        axes.figure.colorbar(shown, ax=axes)


def _shade(share: float, value: float) -> str:
    return f"<td style='background:rgba({_SHADE},{share:.2f})'>{value:.2g}</td>"


def show(pictures: Sequence[Bars | Grid], words: str = "") -> str:
    """Pictures side by side in HTML, below some words."""
    cells = "".join(f"<div style='margin-right:2em'>{each.to_html()}</div>" for each in pictures)
    told = f"<p>{escape(words)}</p>" if words else ""
    return f"<div>{told}<div style='display:flex;flex-wrap:wrap'>{cells}</div></div>"


def new_axes(axes: Any, n_columns: int = 1, height: float = _HEIGHT) -> Any:
    """The axes that were given, or new ones; an array of them for several columns."""
    if axes is not None:
        return axes
    pyplot = load_extra("matplotlib.pyplot", "report", purpose="drawing")
    width = 6.4 if n_columns == 1 else 3.2 * n_columns
    return pyplot.subplots(1, n_columns, figsize=(width, height), layout="constrained")[1]


def draw(picture: Bars | Grid, axes: Any = None) -> Any:
    """Draw a picture, on new axes if none are given; the axes."""
    axes = new_axes(axes, height=max(_HEIGHT, 0.25 * min(picture.n_rows, _N_NAMES)))
    picture.draw(axes)
    return axes


def draw_beside(bars: Sequence[Bars]) -> Any:
    """Draw bars side by side; the figure."""
    axes = np.atleast_1d(new_axes(None, len(bars)))
    for each, place in zip(bars, axes, strict=True):
        each.draw(place)
    return axes[0].figure
