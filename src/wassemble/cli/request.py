"""What the fusion options ask for, as Python takes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wassemble.cli.kernels import choose_kernel
from wassemble.cli.options import FileOptions, is_given, read_labels, read_meanings
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.ensemble import Fusion
    from wassemble.solvers import Rule

__all__ = ["read_fusion"]

# Options of the barycenter alone.
_BARYCENTER = ("balanced", "mass_penalty", "n_top", "max_sweeps", "tolerance")


def read_fusion(
    values: dict[str, Any], models: Sequence[Any], reading: FileOptions
) -> tuple[Fusion, tuple[str, ...]]:
    """The fusion that a command's options describe, and what looks as if it was not meant.

    ``models``, open files or folders, are what the options speak of.
    """
    from wassemble.ensemble import Fusion

    as_they_are = ("fold", "samples", "allow_disjoint", "leftover", "unobserved", "hard_confidence")
    weights = None if values["weights"] == "accuracy" else _read_weights(values["weights"])
    fusion = Fusion(
        _read_rule(values),
        target=None if values["target"] is None else read_labels(values["target"]),
        weights=weights,
        kind=reading.kind,
        **read_meanings(values["aliases"], values["others"], models),
        **{name: values[name] for name in as_they_are},
    )
    chosen = choose_kernel(values, models, fusion, reading)
    if values["weights"] == "accuracy":
        weights = _by_accuracy(chosen.accuracy)
    fusion = fusion.replace(kernel=chosen.kernel, target=chosen.target, weights=weights)
    return fusion, chosen.doubts


def _read_rule(values: dict[str, Any]) -> Rule:
    import wassemble as ws

    means = {"arithmetic": ws.ARITHMETIC, "geometric": ws.GEOMETRIC, "hellinger": ws.HELLINGER}
    if values["balanced"] and values["mass_penalty"] is not None:
        fail("--balanced and --mass-penalty are two algorithms; got both.")
    if values["rule"] in means:
        for name in _BARYCENTER:
            if is_given(name):
                option = f"--{name.replace('_', '-')}"
                fail(f"{option} must go with the barycenter; got --rule {values['rule']}.")
        return means[values["rule"]]
    mass: Any = ws.Unbalanced(2.0, epsilon=0.3)
    if values["balanced"]:
        mass = ws.Balanced()
    elif values["mass_penalty"] is not None:
        epsilon = values["epsilon"] if values["epsilon"] != "auto" else 0.3
        mass = ws.Unbalanced(values["mass_penalty"], epsilon=epsilon)
    tolerance = None if values["tolerance"] == "none" else values["tolerance"]
    return ws.Barycenter(
        mass, max_sweeps=values["max_sweeps"], tolerance=tolerance, n_top=values["n_top"]
    )


def _read_weights(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    found = {}
    for part in text.split(","):
        model, sign, number = part.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not sign or not math.isfinite(weight):
            fail(f"--weights must read MODEL=NUMBER,MODEL=NUMBER; got {part!r}.")
        found[model.strip()] = weight
    return found


def _by_accuracy(accuracy: dict[str, float] | None) -> dict[str, float]:
    """Weights in proportion to what each model got right."""
    if accuracy is None:
        fail("--weights accuracy must go with --confusion, which says what is right.")
    total = sum(accuracy.values())
    if total == 0:
        fail("--weights accuracy: some model must be right about some sample; got none.")
    return {model: right / total for model, right in accuracy.items()}
