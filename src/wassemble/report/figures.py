"""Plots of a record, by name; they know nothing of ensembles."""

from __future__ import annotations

from typing import Any

from wassemble.report.kernel_plots import draw_shuffling, draw_sweep
from wassemble.report.label_plots import draw_calibration, draw_gains, draw_precision
from wassemble.report.plots import Plot
from wassemble.report.rule_plots import (
    draw_label_weights,
    draw_leaderboard,
    draw_time,
    draw_weights,
)

__all__ = ["draw_all"]

_MAKERS = {
    "leaderboard": draw_leaderboard,
    "calibration": draw_calibration,
    "precision": draw_precision,
    "gains": draw_gains,
    "weights": draw_weights,
    "label_weights": draw_label_weights,
    "sweep": draw_sweep,
    "shuffling": draw_shuffling,
    "time": draw_time,
}


def draw_all(record: dict[str, Any]) -> dict[str, Plot]:
    """Every plot that the record has figures for."""
    found = {name: make(record) for name, make in _MAKERS.items()}
    return {name: plot for name, plot in found.items() if plot is not None}
