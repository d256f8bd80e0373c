"""The exact view of a page: what is open, which samples, every slider; to an address and back."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlencode

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from wassemble._checks import fail

# Beyond them nothing moves, or everything does.
SMALLEST, LARGEST = 1e-6, 1e6
MAX_FILES = 20
# What sliders set.
KNOBS = ("epsilon", "mass", "mass_penalty", "weight")
USUAL = "usual"
_OPENED = {
    *("example", "file", "normalize", "kind", "other"),
    *("kernel", "kernel_file", "truth", "names"),
}

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
    normalize: Annotated[bool, Field(description="Divide each row by its sum.")] = False
    kind: Annotated[
        Literal["", "multiclass", "multilabel"],
        Field(description="One label a sample, or any number; as it seems if empty."),
    ] = ""
    other: Annotated[_Name, Field(description="The label for none of a model's own labels.")] = ""
    kernel: Annotated[_Name, Field(description="What the kernel is made from.")] = ""
    kernel_file: Annotated[_Name, Field(description="The file that the kernel needs.")] = ""
    truth: Annotated[_Name, Field(description="A file of true labels.")] = ""
    names: Annotated[_Name, Field(description="A file of what people call the labels.")] = ""
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
    search: Annotated[_Name, Field(description="Part of the ids or texts that are listed.")] = ""
    show: Annotated[
        Literal["", "gained", "lost", "right", "wrong", "missed", "apart"],
        Field(description="Listed alone: consensus right where the mean is wrong, and so on."),
    ] = ""
    about: Annotated[_Name, Field(description="Listed alone: samples of this label.")] = ""
    dispute: Annotated[
        _Weight, Field(description="Listed alone: samples that models dispute at least so much.")
    ] = 0.0
    sort: Annotated[
        Literal["", "sample", "truth", "consensus", "mean", "sure", "unsure"],
        Field(description="Order of the list; the most disputed first if empty."),
    ] = ""
    than: Annotated[
        _Name, Field(description="Settings to compare with: the query of their knobs, or `usual`.")
    ] = ""
    pair: Annotated[
        tuple[_Name, ...], Field(max_length=2, description="Two rules whose answers are compared.")
    ] = ()

    @property
    def source(self) -> tuple[str, ...]:
        """What is open, whatever is looked at."""
        return tuple(map(str, self.model_dump(include=_OPENED).values()))

    @property
    def settings(self) -> str:
        """What the sliders say, as the value of ``than``."""
        others = set(type(self).model_fields) - set(KNOBS)
        return urlencode(self.pairs(*others)) or USUAL

    @property
    def kept(self) -> View | None:
        """The same with the sliders of ``than``; None if nothing is to be compared with."""
        if not self.than:
            return None
        read = View.from_query("" if self.than == USUAL else self.than)
        return self.but(than="", **{name: getattr(read, name) for name in KNOBS})

    @staticmethod
    def from_query(text: str) -> View:
        """The view of the query of an address."""
        lists = ("file", "weight", "pair")
        said = {name: each if name in lists else each[-1] for name, each in parse_qs(text).items()}
        try:
            return View.model_validate(said)
        except ValidationError:
            fail(f"a view must be the query of an address of the explorer; got {text[:200]!r}.")

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
