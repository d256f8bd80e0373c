"""The exact view of a page: what is open, which sample, every slider; to an address and back."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, Field, StringConstraints

# Beyond them nothing moves, or everything does.
SMALLEST, LARGEST = 1e-6, 1e6
MAX_FILES = 20

_Name = Annotated[str, StringConstraints(max_length=2000)]
_Number = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
_Weight = Annotated[float, Field(ge=0, le=LARGEST)]


class View(BaseModel, frozen=True, extra="forbid"):
    """What a page shows, and what its address says; empty values stand for what the data suggest.

    Examples
    --------
    >>> View(example="animals", epsilon=0.5, weight=(1, 0.25)).to_query()
    'example=animals&epsilon=0.5&weight=1.0&weight=0.25'
    """

    example: Annotated[_Name, Field(description="A shipped example; without one, files.")] = ""
    file: Annotated[
        tuple[_Name, ...],
        Field(max_length=MAX_FILES, description="One per model: in the folder, or `upload:ID`."),
    ] = ()
    kernel: Annotated[_Name, Field(description="What the kernel is made from.")] = ""
    kernel_file: Annotated[_Name, Field(description="The file that the kernel needs.")] = ""
    sample: Annotated[_Name, Field(description="Its id; the most disputed if empty.")] = ""
    epsilon: Annotated[_Number | None, Field(description="How far mass travels.")] = None
    mass: Annotated[
        Literal["", "balanced", "unbalanced"], Field(description="Whether mass is kept.")
    ] = ""
    mass_penalty: Annotated[_Number | None, Field(description="Price of changing mass.")] = None
    weight: Annotated[
        tuple[_Weight, ...],
        Field(max_length=MAX_FILES, description="One per model; proportions matter alone."),
    ] = ()
    label: Annotated[_Name, Field(description="The label that is looked into.")] = ""
    model: Annotated[_Name, Field(description="Whose label it is; the consensus' if empty.")] = ""
    page: Annotated[int, Field(ge=1, le=1_000_000, description="Of the list of samples.")] = 1
    search: Annotated[_Name, Field(description="Part of the ids that are listed.")] = ""

    @property
    def source(self) -> tuple[str, ...]:
        """What is open, whatever is looked at."""
        return (self.example, self.kernel, self.kernel_file, *self.file)

    def pairs(self, *but: str) -> list[tuple[str, Any]]:
        """Names and values, as a form sends them; what is left as it was, or ``but``, left out."""
        chosen = self.model_dump(exclude_defaults=True, exclude=set(but))
        return [
            (name, each)
            for name, value in chosen.items()
            for each in (value if isinstance(value, tuple) else (value,))
        ]

    def to_query(self) -> str:
        """The view as the query of an address."""
        return urlencode(self.pairs())

    def but(self, **changes: Any) -> View:
        """The same view with some things changed."""
        return self.model_copy(update=changes)

    def address(self, path: str = "/explorer/view", **changes: Any) -> str:
        """The address of this view, with some things changed."""
        return f"{path}?{self.but(**changes).to_query()}"
