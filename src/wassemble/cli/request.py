"""What the fusion options ask for, as Python takes it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wassemble.cli.options import is_given, read_labels
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.ensemble import Options
    from wassemble.labels import LabelSpace

__all__ = ["FusionRequest"]


@dataclass(frozen=True)
class FusionRequest:
    """The fusion options of a command, as Python takes them."""

    target: LabelSpace | None
    aliases: dict[str, str] | None
    fold: bool
    weights: dict[str, float] | None
    options: Options

    @property
    def matching(self) -> dict[str, Any]:
        """How names are matched."""
        return {"aliases": self.aliases, "fold": self.fold}

    @classmethod
    def of(cls, values: dict[str, Any]) -> FusionRequest:
        """Read what the options name."""
        import wassemble as ws
        from wassemble.ensemble import Options

        epsilon = values["epsilon"] if values["epsilon"] != "auto" else 0.3
        if values["balanced"] and values["mass_penalty"] is not None:
            fail("--balanced and --mass-penalty are two algorithms; got both.")
        if values["rule"] != "barycenter":
            for name in ("balanced", "mass_penalty", "n_top", "max_iterations", "tolerance"):
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
                    "max_iterations",
                    "n_top",
                    "n_threads",
                )
            },
        )
        return cls(
            target=None if values["target"] is None else read_labels(values["target"]),
            aliases=None if values["aliases"] is None else _read_aliases(values["aliases"]),
            fold=values["fold"],
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


def _read_aliases(path: Path) -> dict[str, str]:
    """A table of two columns: a name, and the target label that it stands for."""
    from wassemble.inputs.word_files import read_columns

    what = "a name and the target label that it stands for"
    found: dict[str, str] = {}
    for number, fields in read_columns(path, what):
        if len(fields) != 2:
            fail(f"{path}, line {number}: must hold {what}; got {len(fields)} columns.")
        if found.setdefault(fields[0], fields[1]) != fields[1]:
            fail(f"{path}, line {number}: {fields[0]!r} must stand for one label; got two.")
    return found
