"""What the store gives out, one for each row: a study, a link, a rater."""

from __future__ import annotations

from dataclasses import dataclass

from wassemble.web.study.assignment import Shown
from wassemble.web.study.design import Design

__all__ = ["Link", "Rater", "Study"]


@dataclass(frozen=True)
class Study:
    """A study without its items."""

    id: int
    design: Design
    created_at: str
    is_closed: bool
    n_items: int
    n_raters: int


@dataclass(frozen=True)
class Link:
    """A rater as the operator sees one."""

    id: int
    number: int
    secret: str
    has_begun: bool
    is_closed: bool
    n_done: int
    n_shown: int


@dataclass(frozen=True)
class Rater:
    """A rater as the rater's own pages need one."""

    id: int
    study: int
    design: Design
    shown: tuple[Shown, ...]
    has_consented: bool
    is_closed: bool
    done: frozenset[int]
    """Items, by their place in the study, that are answered in full."""

    @property
    def next_number(self) -> int | None:
        """The first item, counted from 1, that is not answered; None at the end."""
        for number, shown in enumerate(self.shown, start=1):
            if shown.item not in self.done:
                return number
        return None
