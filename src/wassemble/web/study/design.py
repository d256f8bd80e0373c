"""How a study is run: what raters are told and asked, and who sees which items in which order.

What a rater sees follows from the study's seed and the rater's number, and is stored when the
rater's link is made: it does not change when this file does.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from wassemble._checks import check_count
from wassemble.errors import fail
from wassemble.web.study.items import SCALES, Item, is_readable

CONSENT = "\n\n".join(
    (
        "You will be shown pictures or texts, each with several captions that computer programs"
        " wrote. Please score each caption, and choose the best one.",
        "Your answers are kept without your name and used to compare the programs. You may stop"
        " at any time, and come back through the same link.",
    )
)


@dataclass(frozen=True)
class Design:
    """The options of a study."""

    title: str  # raters see it
    consent: str = CONSENT  # what raters agree to before they begin
    scales: tuple[str, ...] = SCALES  # on which captions are scored, and the best is chosen
    items_per_rater: int | None = None  # attention checks not counted; None for all items
    # Whether several raters may see the same item. Without, there is no agreement to measure.
    is_repeated: bool = True
    seed: int = 0  # of who sees what, in which order

    def __post_init__(self) -> None:
        for name, text, longest in (("title", self.title, 200), ("consent", self.consent, 20_000)):
            if not text.strip() or len(text) > longest:
                fail(f"`{name}` must be a text of 1 to {longest} letters; got {len(text)} letters.")
            if not is_readable(text):
                fail(f"`{name}` must be readable text; got {ascii(text)[:60]}.")
        if not self.scales or tuple(s for s in SCALES if s in self.scales) != self.scales:
            fail(f"`scales` must be some of {', '.join(SCALES)}; got {self.scales}.")
        if self.items_per_rater is not None:
            check_count(self.items_per_rater, "items_per_rater")
        check_count(self.seed, "seed", at_least=0)

    def check_items(self, items: list[Item]) -> None:
        """Refuse items that do not go with the options."""
        n_items = sum(item.check is None for item in items)
        if self.items_per_rater is not None and self.items_per_rater > n_items:
            fail(
                f"`items_per_rater` must be at most {n_items}, the items; got"
                f" {self.items_per_rater}."
            )
        for item in items:
            unasked = set(item.check.scores if item.check else ()) - set(self.scales)
            if unasked:
                fail(
                    f"item {item.id!r}: `check` must be on a scale that is asked for"
                    f" ({', '.join(self.scales)}); got {min(unasked)}."
                )

    def record(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Design:
        """The options that `record` wrote."""
        return cls(**record | {"scales": tuple(record["scales"])})


_MAX_RATERS = 10_000
_MAX_SHOWN = 500_000


@dataclass(frozen=True)
class Shown:
    """An item as one rater sees it."""

    item: int  # its place in the study's file
    order: tuple[int, ...]  # the choice under each letter: the first is A


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
