"""Plots of findings, as SVG files that are the same each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.record.findings import Plot
from wassemble._extras import load_extra
from wassemble._files import whole_file

_SIZE = (8.5, 4.0)
_MARKERS = "osD^vPX*<>"
# Okabe and Ito 2008: told apart with any colour vision.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def draw(plot: Plot, path: Path) -> None:
    """Write a plot to a file."""
    mpl = load_extra("matplotlib", "report", purpose="plots of experiments")
    mpl.use("svg")
    plt = load_extra("matplotlib.pyplot", "report", purpose="plots of experiments")
    settings = {"svg.hashsalt": plot.name, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(settings):
        figure, axes = plt.subplots(figsize=_SIZE, layout="constrained")
        is_bars = any(isinstance(x, str) for line in plot.series.values() for x, _ in line)
        (_bars if is_bars else _curves)(axes, plot)
        axes.set(xlabel=plot.x_label, ylabel=plot.y_label)
        figure.suptitle(plot.title)  # of the figure: a long one has room beside the curves
        if plot.log_x:
            axes.set_xscale("log")
        if len(plot.series) > 1:
            figure.legend(loc="outside right center", frameon=False)  # never on a curve
        with whole_file(path) as temporary:
            figure.savefig(temporary, metadata={"Date": None})
        plt.close(figure)


def _curves(axes: Any, plot: Plot) -> None:
    for number, (name, points) in enumerate(plot.series.items()):
        x, y = zip(*points, strict=True)
        color, marker = _COLORS[number % len(_COLORS)], _MARKERS[number % len(_MARKERS)]
        axes.plot(x, y, marker=marker, markersize=5, label=name, color=color)
    axes.grid(alpha=0.25)


def _bars(axes: Any, plot: Plot) -> None:
    names = list(dict.fromkeys(x for line in plot.series.values() for x, _ in line))
    width = 0.8 / len(plot.series)
    for number, (name, points) in enumerate(plot.series.items()):
        places = [names.index(x) + (number - (len(plot.series) - 1) / 2) * width for x, _ in points]
        color = _COLORS[number % len(_COLORS)]
        axes.bar(places, [y for _, y in points], width, label=name, color=color)
    axes.set_xticks(range(len(names)), [str(n) for n in names], rotation=60, ha="right")
