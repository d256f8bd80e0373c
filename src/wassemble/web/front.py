"""The example that moves on the front page: two models, a plain mean, and the consensus.

One model sees a cat, the other a tiger, and both a car; a lynx lies between cat and tiger.
"""

from functools import cache
from typing import Any

import numpy as np

from wassemble.solvers import ARITHMETIC, Balanced, Barycenter

_LABELS = ("cat", "lynx", "tiger", "car", "bicycle")
_MODELS = {
    "one model": [0.56, 0.02, 0.01, 0.38, 0.03],
    "another model": [0.01, 0.02, 0.56, 0.37, 0.04],
}
# Places of the labels on a line, by what they mean.
_PLACES = np.array([0.0, 1.0, 2.0, 7.0, 8.0])
_EPSILONS = np.geomspace(0.15, 4, 24)
_START = 6


@cache
def make_demo() -> dict[str, Any]:
    """Bars of the models and the mean, and of the consensus at each place of the slider."""
    rows = [np.array(scores) for scores in _MODELS.values()]
    mean = ARITHMETIC.fuse(rows).consensus
    frames = [_fuse(rows, float(epsilon)) for epsilon in _EPSILONS]
    panels = {**_MODELS, "plain mean": mean.tolist(), "consensus": frames[_START]}
    return {
        "labels": _LABELS,
        "panels": [_panel(name, scores) for name, scores in panels.items()],
        "frames": frames,
        "start": _START,
    }


def _fuse(rows: list[np.ndarray], epsilon: float) -> list[float]:
    kernel = np.exp(-((_PLACES[:, None] - _PLACES) ** 2) / epsilon)
    rule = Barycenter(Balanced(), max_sweeps=2000)
    return [round(score, 4) for score in rule.fuse(rows, kernel).consensus.tolist()]


def _panel(name: str, scores: list[float]) -> dict[str, Any]:
    best = _LABELS[int(np.argmax(scores))]
    return {"name": name, "scores": [round(score, 4) for score in scores], "best": best}
