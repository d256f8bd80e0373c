"""What may happen to mass on its way: kept (Algorithm 1) or created and destroyed (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from wassemble._checks import check_positive_number, fail
from wassemble.errors import option_or

__all__ = ["Balanced", "MassRule", "Unbalanced", "mass_from_dict", "say_unbalanced"]


@dataclass(frozen=True)
class Balanced:
    """Mass is kept: histograms in, a histogram out (Algorithm 1, multi-class).

    Examples
    --------
    >>> Balanced().order
    0.0
    """

    @property
    def order(self) -> float:
        """Order of the power mean of line p: 0, the geometric mean."""
        return 0.0

    @property
    def exponent(self) -> float:
        """Exponent of lines u and v."""
        return 1.0

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"kind": "balanced"}


@dataclass(frozen=True)
class Unbalanced:
    """Mass may be created and destroyed at a price: scores in, scores out (Algorithm 2).

    Parameters
    ----------
    mass_penalty : float
        Price of creating or destroying mass (the paper's lambda), above 0.
    epsilon : float
        Entropic regularisation, the same as in ``K = exp(-cost / epsilon)``, above 0.

    Examples
    --------
    >>> round(Unbalanced(2.0, epsilon=0.3).order, 4)
    0.1304
    """

    mass_penalty: float
    epsilon: float

    def __post_init__(self) -> None:
        mass_penalty = check_positive_number(self.mass_penalty, "mass_penalty")
        object.__setattr__(self, "mass_penalty", mass_penalty)
        object.__setattr__(self, "epsilon", check_positive_number(self.epsilon, "epsilon"))

    @property
    def order(self) -> float:
        """Order of the power mean of line p: epsilon / (epsilon + mass_penalty)."""
        return self.epsilon / (self.epsilon + self.mass_penalty)

    @property
    def exponent(self) -> float:
        """Exponent of lines u and v: 1 - order."""
        return self.mass_penalty / (self.epsilon + self.mass_penalty)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"kind": "unbalanced", "mass_penalty": self.mass_penalty, "epsilon": self.epsilon}


MassRule: TypeAlias = Balanced | Unbalanced


def mass_from_dict(entries: Mapping[str, Any]) -> MassRule:
    """What `Balanced.to_dict` or `Unbalanced.to_dict` wrote down.

    Examples
    --------
    >>> mass_from_dict({"kind": "unbalanced", "mass_penalty": 2.0, "epsilon": 0.3})
    Unbalanced(mass_penalty=2.0, epsilon=0.3)
    """
    knobs = dict(entries) if isinstance(entries, Mapping) else {}
    kind = knobs.pop("kind", None)
    if kind == "balanced" and not knobs:
        return Balanced()
    if kind != "unbalanced" or set(knobs) != {"mass_penalty", "epsilon"}:
        fail(
            'a mass must be written as {"kind": "balanced"} or {"kind": "unbalanced",'
            f' "mass_penalty": ..., "epsilon": ...}}; got {entries!r}.'
        )
    return Unbalanced(**knobs)


def say_unbalanced() -> str:
    """How a reader of a message asks for an unbalanced mass."""
    python = "mass=Unbalanced(mass_penalty, epsilon=...)"
    return option_or(python, mass_penalty=..., epsilon=...)
