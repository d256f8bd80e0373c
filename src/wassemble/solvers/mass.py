"""What may happen to mass on its way: kept (Algorithm 1) or created and destroyed (Algorithm 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from wassemble._checks import Constraints, Number, check_fields, fail, option_or


@dataclass(frozen=True)
class Balanced:
    """Mass is kept: histograms in, a histogram out (Algorithm 1, multi-class).

    Examples
    --------
    >>> Balanced().order
    0.0
    """

    #: Order of the power mean of line p (the geometric mean), and exponent of lines u and v.
    order: ClassVar[float] = 0.0
    exponent: ClassVar[float] = 1.0

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

    constraints: ClassVar[Constraints] = dict.fromkeys(("mass_penalty", "epsilon"), Number(above=0))

    mass_penalty: float
    epsilon: float

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.exponent <= 1:  # the sum overflows, or the quotient vanishes
            fail(
                "`mass_penalty` and `epsilon` must be such that their quotient is a number; got"
                f" {self.mass_penalty:g} and {self.epsilon:g}."
            )

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


def check_mass(value: Any, name: str) -> MassRule:
    """``value``, which must be one of both."""
    if not isinstance(value, Balanced | Unbalanced):
        fail(
            f"`{name}` must be Balanced() or Unbalanced(mass_penalty, epsilon=...); got {value!r}."
        )
    return value


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
