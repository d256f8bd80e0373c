"""What the fusion options ask for, as Python takes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wassemble.cli.options import is_given, read_labels, read_meanings
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.ensemble import Options
    from wassemble.labels import LabelSpace

__all__ = ["FusionRequest"]


@dataclass(frozen=True)
class FusionRequest:
    """The fusion options of a command, as Python takes them."""

    target: LabelSpace | None
    matching: dict[str, Any]  # how labels are matched: aliases, other and fold
    weights: dict[str, float] | None
    options: Options

    @classmethod
    def of(cls, values: dict[str, Any], models: Sequence[Any]) -> FusionRequest:
        """Read what the options name, about ``models``, open files or folders."""
        import wassemble as ws
        from wassemble.ensemble import Options

        epsilon = values["epsilon"] if values["epsilon"] != "auto" else 0.3
        if values["balanced"] and values["mass_penalty"] is not None:
            fail("--balanced and --mass-penalty are two algorithms; got both.")
        if values["rule"] != "barycenter":
            for name in ("balanced", "mass_penalty", "n_top", "max_sweeps", "tolerance"):
                if is_given(name):
                    option = f"--{name.replace('_', '-')}"
                    fail(f"{option} must go with the barycenter; got --rule {values['rule']}.")
        mass: Any = None
        if values["balanced"]:
            mass = ws.Balanced()
        elif values["mass_penalty"] is not None:
            mass = ws.Unbalanced(values["mass_penalty"], epsilon=epsilon)
        rules: dict[str, Any] = {
            "barycenter": ws.solve_barycenter,
            "arithmetic": ws.arithmetic_mean,
            "geometric": ws.geometric_mean,
            "hellinger": ws.hellinger_mean,
        }
        tolerance = None if values["tolerance"] == "none" else values["tolerance"]
        options = Options(
            mass=mass,
            rule=rules[values["rule"]],
            tolerance=tolerance,
            **{
                name: values[name]
                for name in (
                    "leftover",
                    "unobserved",
                    "hard_confidence",
                    "max_sweeps",
                    "n_top",
                    "n_threads",
                )
            },
        )
        return cls(
            target=None if values["target"] is None else read_labels(values["target"]),
            matching=read_meanings(values["aliases"], values["others"], models)
            | {"fold": values["fold"]},
            weights=None if values["weights"] is None else _read_weights(values["weights"]),
            options=options,
        )


def _read_weights(text: str) -> dict[str, float]:
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
