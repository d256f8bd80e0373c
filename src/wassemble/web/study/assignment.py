"""Who sees which items, in which order, with captions under which letters.

Everything follows from the study's seed and the rater's number, and is stored when the rater's
link is made: what a rater saw does not change when this file does.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from wassemble.errors import fail
from wassemble.web.study.design import Design
from wassemble.web.study.items import Item

__all__ = ["Shown", "assign", "check_raters"]

_MAX_RATERS = 10_000
_MAX_SHOWN = 500_000


@dataclass(frozen=True)
class Shown:
    """An item as one rater sees it.

    Attributes
    ----------
    item : int
        Its place in the study's file.
    order : tuple of int
        The choice under each letter: the first is A.
    """

    item: int
    order: tuple[int, ...]


def check_raters(items: list[Item], design: Design, n_before: int, n_raters: int) -> None:
    """Refuse so many raters more where a study would become too large."""
    n_all = n_before + n_raters
    if n_raters < 1 or n_all > _MAX_RATERS:
        fail(f"`n_raters` must be from 1 to {_MAX_RATERS - n_before}; got {n_raters}.")
    n_checks = sum(item.check is not None for item in items)
    n_shown = n_checks + (design.items_per_rater or len(items) - n_checks)
    if n_all * n_shown > _MAX_SHOWN:
        fail(
            f"a study must show at most {_MAX_SHOWN:,} items to all raters together; got"
            f" {n_all:,} raters with {n_shown:,} items each.",
            hint="give each rater fewer items",
        )


def assign(items: list[Item], design: Design, number: int) -> tuple[Shown, ...]:
    """What rater ``number``, counted from 0, sees, in order.

    Raters take items in turn from one shuffled round of them, so that all items are rated
    equally often (but for one). Every rater gets every attention check, mixed in.
    """
    rated = [place for place, item in enumerate(items) if item.check is None]
    checks = [place for place, item in enumerate(items) if item.check is not None]
    count = design.items_per_rater or len(rated)
    start = number * count
    if not design.is_repeated and start + count > len(rated):
        fail(
            f"`n_raters` must be at most {len(rated) // count}, as each item goes to one rater"
            f" only; got {number + 1} raters with {count} items each.",
            hint="let items repeat over raters, or give each rater fewer",
        )
    Random(f"round {design.seed}").shuffle(rated)
    own = Random(f"rater {design.seed} {number}")
    places = [rated[(start + step) % len(rated)] for step in range(count)] + checks
    own.shuffle(places)
    return tuple(
        Shown(place, tuple(own.sample(range(n_choices), n_choices)))
        for place in places
        for n_choices in [len(items[place].choices)]
    )
