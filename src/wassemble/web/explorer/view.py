"""The exact view of a page: what is open, which sample, every slider; to an address and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import parse_qs, urlencode

from wassemble._checks import fail

__all__ = ["LIMITS", "MassChoice", "View"]

MassChoice = Literal["", "balanced", "unbalanced"]

# Smallest and largest of each number; beyond them nothing moves, or everything does.
LIMITS = {
    "epsilon": (1e-6, 1e6),
    "mass_penalty": (1e-6, 1e6),
    "weight": (0.0, 1e6),
    "page": (1, 1_000_000),
}


@dataclass(frozen=True)
class View:
    """What a page shows; empty values stand for what the data suggest.

    Attributes
    ----------
    example : str
        Name of a shipped example; without one, ``file`` names prediction files.
    file : tuple of str
        Inside the served folder, or ``upload:ID``.
    kernel, kernel_file : str
        What the kernel is made from, and the file that it needs, if any.
    sample : str
        Its id; the most disputed one if empty.
    weight : tuple of float
        One per model; only their proportions matter.
    label, model : str
        The label that is looked into: of the consensus, or of this model.
    page, search : int, str
        Which samples are listed.
    """

    example: str = ""
    file: tuple[str, ...] = ()
    kernel: str = ""
    kernel_file: str = ""
    sample: str = ""
    epsilon: float | None = None
    mass: MassChoice = ""
    mass_penalty: float | None = None
    weight: tuple[float, ...] = ()
    label: str = ""
    model: str = ""
    page: int = 1
    search: str = ""

    def to_query(self) -> str:
        """The view as the query of an address; what is left as it was is left out."""
        chosen = {
            name: getattr(self, name)
            for name, field in self.__dataclass_fields__.items()
            if getattr(self, name) != field.default
        }
        return urlencode(chosen, doseq=True)

    @classmethod
    def from_query(cls, query: str) -> View:
        """The view that `to_query` wrote.

        Examples
        --------
        >>> View.from_query("example=animals&epsilon=0.5&weight=1&weight=0.25").weight
        (1.0, 0.25)
        """
        found: dict[str, Any] = {}
        for name, values in parse_qs(query, strict_parsing=bool(query)).items():
            if name not in cls.__dataclass_fields__:
                fail(f"a view knows {', '.join(cls.__dataclass_fields__)}; got {name!r}.")
            if name == "file":
                found[name] = tuple(values)
            elif name == "weight":
                found[name] = tuple(float(value) for value in values)
            elif name in ("epsilon", "mass_penalty"):
                found[name] = float(values[-1])
            else:
                found[name] = int(values[-1]) if name == "page" else values[-1]
        return cls(**found)

    def but(self, **changes: Any) -> View:
        """The same view with some things changed."""
        return replace(self, **changes)

    def address(self, path: str = "/explorer/view", **changes: Any) -> str:
        """The address of this view, with some things changed."""
        return f"{path}?{self.but(**changes).to_query()}"
