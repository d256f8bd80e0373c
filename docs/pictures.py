"""Draw the pictures of the pages into `images/`: `make docs`.

Each is a function that fills a figure, by calls of the library itself.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import wassemble as ws

FOLDER = Path(__file__).resolve().parent / "images"
LABELS = ["sedan", "coupe", "bicycle"]
FIRST, SECOND = [0.60, 0.02, 0.38], [0.02, 0.60, 0.38]
CARS = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
# Two models on a line of labels, one sure of its left end, the other of its right.
LINE = np.arange(25)
HILLS = [np.exp(-((LINE - place) ** 2) / 4) for place in (5, 19)]
HILLS = [hill / hill.sum() for hill in HILLS]
COST = ((LINE[:, None] - LINE) / 24) ** 2


def car(plt: Any) -> None:
    """Two models, their mean, and their consensus."""
    mean = ws.fuse([FIRST, SECOND], rule=ws.GEOMETRIC)
    consensus = ws.fuse([FIRST, SECOND], kernel=CARS)
    shown = {"one model": FIRST, "another": SECOND, "geometric mean": mean, "consensus": consensus}
    _, axes = plt.subplots(1, 4, figsize=(10, 2.2), sharey=True, layout="constrained")
    for place, (title, values) in zip(axes, shown.items(), strict=True):
        names = LABELS if len(values) == 3 else ["car", "bicycle"]
        colours = ["tab:orange" if value == max(values) else "tab:blue" for value in values]
        place.bar(names, values, color=colours)
        place.set_title(title)


def kernel(plt: Any) -> None:
    """What a kernel does: names alone, similar labels, another label set."""
    names = ["husky", "beagle", "tabby", "sedan"]
    alike = [[1, 0.8, 0.1, 0], [0.8, 1, 0.1, 0], [0.1, 0.1, 1, 0], [0, 0, 0, 1]]
    kinds = [[1, 0.1, 0], [1, 0.1, 0], [0.1, 1, 0], [0, 0, 1]]
    made = {
        "by name: nothing moves": ws.LabelledKernel(np.eye(4), names),
        "similar labels: mass is shared": ws.LabelledKernel(alike, names),
        "other labels: mass is carried": ws.LabelledKernel(kinds, names, ["dog", "cat", "car"]),
    }
    _, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
    for place, (title, each) in zip(axes, made.items(), strict=True):
        each.plot(place).set_title(title, fontsize="medium")


def draw_between(axes: Any, consensus: np.ndarray) -> None:
    """The two models, dotted, and their consensus."""
    for hill in HILLS:
        axes.plot(hill, color="grey", linestyle=":")
    axes.fill_between(LINE, consensus, alpha=0.6)


def epsilon(plt: Any) -> None:
    """After five sweeps, and converged, from a small epsilon to a large one."""
    five = ws.Barycenter(max_sweeps=5, tolerance=None)
    last = ws.Barycenter(max_sweeps=100_000)
    shown = [(0.001, five), (0.001, last), (0.01, last), (0.1, last), (10.0, last)]
    _, axes = plt.subplots(1, 5, figsize=(13, 2.6), sharey=True, layout="constrained")
    for place, (value, rule) in zip(axes, shown, strict=True):
        kernel = ws.kernels.from_cost(COST, epsilon=value)
        draw_between(place, ws.solve_barycenter(HILLS, kernel, rule).barycenter)
        place.set_title(f"epsilon {value:g}{', 5 sweeps' if rule is five else ''}")


def mass(plt: Any) -> None:
    """Models that are sure of different labels: balanced mass must travel, unbalanced may not."""
    kernel = ws.kernels.from_cost(COST, epsilon=0.002)
    rules = {"balanced": ws.Barycenter(max_sweeps=20_000)}
    for price in (1.0, 0.1, 0.01):
        title = f"unbalanced, mass_penalty {price:g}"
        rules[title] = ws.Barycenter(ws.Unbalanced(price, epsilon=0.002), max_sweeps=20_000)
    _, axes = plt.subplots(1, 4, figsize=(13, 2.6), sharey=True, layout="constrained")
    for place, (title, rule) in zip(axes, rules.items(), strict=True):
        draw_between(place, ws.fuse(HILLS, kernel=kernel, rule=rule))
        place.set_title(title, fontsize="medium")


def silence(plt: Any) -> None:
    """Why label-aware: a model that has never heard of a lynx must not vote it down."""
    wild = ws.Predictions("wild", ["photo"], ["cat", "lynx"], [[0.30, 0.70]])
    pets = ws.Predictions("pets", ["photo"], ["cat", "dog"], [[0.55, 0.45]])
    plain = np.mean([[0.30, 0.70, 0.0], [0.55, 0.0, 0.45]], axis=0)
    aware = ws.fuse([wild, pets], rule=ws.ARITHMETIC)
    _, axes = plt.subplots(1, 2, figsize=(8, 2.4), sharey=True, layout="constrained")
    for place, values in zip(axes, (plain, aware.scores[0]), strict=True):
        place.bar(list(aware.labels), values)
    axes[0].set_title("silence counted as no: a cat")
    axes[1].set_title("label-aware: a lynx")


PICTURES: dict[str, Callable[[Any], None]] = {
    "car": car,
    "kernel": kernel,
    "epsilon": epsilon,
    "mass": mass,
    "silence": silence,
}


def main() -> int:
    """Draw them all, the same bytes for the same library."""
    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "wassemble", "svg.fonttype": "none"}
    import matplotlib.pyplot as plt

    for name, fill in PICTURES.items():
        fill(plt)
        plt.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})
        plt.close()
        print(f"wrote docs/images/{name}.svg", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
