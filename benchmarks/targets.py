"""What the solver must reach, as ratios within one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True)
class Target:
    """A ratio, the bound it must keep, and why where it cannot."""

    name: str
    must: str
    ratio: Callable[[dict[str, Any]], float]
    met: Callable[[float], bool]
    limit: str = ""


def _seconds(records: dict[str, Any], case: str, name: str) -> float:
    return records[case]["timings"][name]["seconds"]


def _over(case: str, slow: str, fast: str) -> Callable[[dict[str, Any]], float]:
    return lambda records: _seconds(records, case, slow) / _seconds(records, case, fast)


def _of(rows: list[dict], key: str, value: int) -> dict:
    return next(row for row in rows if row[key] == value)


def _label_growth(records: dict[str, Any]) -> float:
    rows = records["growth"]["labels"]
    small, large = _of(rows, "n_labels", 10_000), rows[-1]
    return large["seconds"] / small["seconds"] / (large["n_labels"] / small["n_labels"])


def _sample_growth(records: dict[str, Any]) -> float:
    rows = records["growth"]["samples"]
    base = _of(rows, "n_samples", 10_000)["microseconds_per_sample"]
    return rows[-1]["microseconds_per_sample"] / base


TARGETS = (
    Target(
        "dense, 5 sweeps, against a POT loop",
        "at least 25x faster",
        _over("multilabel", "POT, loop, 5 sweeps", "dense kernel, 5 sweeps"),
        lambda r: r >= 25,
    ),
    Target(
        "the same, against the whole batch at once in torch",
        "at least 8x faster",
        _over("multilabel", "torch, whole batch, 5 sweeps", "dense kernel, 5 sweeps"),
        lambda r: r >= 8,
    ),
    Target(
        "the same, against its floor",
        "within 1.6x",
        _over("multilabel", "dense kernel, 5 sweeps", "floor of 5 sweeps"),
        lambda r: r <= 1.6,
    ),
    Target(
        "diagonal kernel, converged, against NumPy's geometric mean",
        "not slower",
        _over("multilabel", "geometric mean, NumPy", "diagonal kernel, converged"),
        lambda r: r >= 1,
    ),
    Target(
        "10,096 labels, 50 neighbours, against dense",
        "at least 12x faster",
        _over("captioning", "dense", "sparse, 50 neighbours"),
        lambda r: r >= 12,
    ),
    Target(
        "one sample, float32, against POT",
        "at least 2x faster",
        _over("latency", "POT, float32", "wassemble, float32"),
        lambda r: r >= 2,
        "Five sweeps of 8 x 80 numbers are some 80 calls into NumPy of about a microsecond"
        " each and 9 small matrix products; that is most of the time, and POT makes nearly"
        " the same calls. What is left is checking the input and choosing the solver.",
    ),
    Target(
        "samples streamed, time per sample against 10,000 samples",
        "within 1.2x",
        _sample_growth,
        lambda r: r <= 1.2,
    ),
    Target(
        "samples streamed, memory gained on the way (MB)",
        "flat (under 50)",
        lambda records: records["growth"]["samples"][-1]["megabytes_gained"],
        lambda r: r < 50,
    ),
    Target(
        "labels from 10,000 up, sparse, against linear growth",
        "at most 1.3x",
        _label_growth,
        lambda r: r <= 1.3,
    ),
    Target(
        "import wassemble (seconds)",
        "under 0.5, nothing optional",
        lambda records: (
            records["import"]["seconds"]
            + (9 if records["import"]["optional_modules"] != "[]" else 0)
        ),
        lambda r: r < 0.5,
    ),
)
