"""How a study is run: what raters are told and asked, and who sees which items in which order.

What a rater sees follows from the study's seed and the rater's number, and is stored when the
rater's link is made: it does not change when this file does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from random import Random
from typing import Any
from urllib.parse import quote

from wassemble._checks import check_count
from wassemble.errors import fail
from wassemble.web.study.items import Item, is_readable
from wassemble.web.study.questions import PAPER, Question, check_questions

CONSENT = "\n\n".join(
    (
        "You will be shown pictures or texts, one after another, and asked a few questions about"
        " each. Captions, where there are some, were written by computer programs.",
        "Your answers are kept without your name and used for research. You may stop at any time,"
        " and come back through the same link.",
    )
)
_MAX_LETTERS = {"title": 200, "consent": 20_000, "thanks": 5_000, "code": 100, "return_url": 1_000}
_NEEDED = ("title", "consent")


@dataclass(frozen=True)
class Design:
    """The options of a study."""

    title: str  # raters see it
    consent: str = CONSENT  # what raters agree to before they begin
    questions: tuple[Question, ...] = PAPER
    items_per_rater: int | None = None  # attention checks not counted; None for all items
    # Whether several raters may see the same item. Without, there is no agreement to measure.
    is_repeated: bool = True
    is_pairwise: bool = False  # two captions of an item are shown, another pair to each rater
    seed: int = 0  # of who sees what, in which order
    hold_minutes: int = 120  # after which the place of who joined and did not finish is offered
    thanks: str = ""  # what raters read in the end
    code: str = ""  # for raters to enter where they came from
    return_url: str = ""  # where raters go in the end; {code} and {participant} are filled in

    def __post_init__(self) -> None:
        for name, longest in _MAX_LETTERS.items():
            text, fewest = getattr(self, name), int(name in _NEEDED)
            if len(text) > longest or len(text.strip()) < fewest:
                fail(
                    f"`{name}` must be a text of {fewest} to {longest} letters; got {len(text)}"
                    " letters."
                )
            if not is_readable(text):
                fail(f"`{name}` must be readable text; got {ascii(text)[:60]}.")
        if self.return_url and not re.match(r"https?://[^/\s]+", self.return_url):
            fail(f"`return_url` must be a web address, https://...; got {self.return_url!r}.")
        check_questions(self.questions)
        if self.items_per_rater is not None:
            check_count(self.items_per_rater, "items_per_rater")
        check_count(self.hold_minutes, "hold_minutes")
        check_count(self.seed, "seed", at_least=0)

    @property
    def is_of_captions(self) -> bool:
        """Whether any question compares what systems say."""
        return any(question.is_of_captions for question in self.questions)

    @property
    def is_papers(self) -> bool:
        """Whether raters are asked what the paper's raters were asked."""
        return set(self.questions) <= set(PAPER)

    def fill_return_url(self, participant: str) -> str:
        """Where a participant goes in the end."""
        filled = {"{code}": self.code, "{participant}": participant}
        url = self.return_url
        for word, value in filled.items():
            url = url.replace(word, quote(value, safe=""))
        return url

    def check_items(self, items: list[Item]) -> None:
        """Refuse items that do not go with the options."""
        n_items = sum(item.check is None for item in items)
        if self.items_per_rater is not None and self.items_per_rater > n_items:
            fail(
                f"`items_per_rater` must be at most {n_items}, the items; got"
                f" {self.items_per_rater}."
            )
        for item in items:
            if self.is_of_captions and not item.captions:
                fail(
                    f"item {item.id!r} must have captions, as a question is about them; got none.",
                    hint="ask for labels or words alone, or give captions of two systems or more",
                )
            self._check_check(item)

    def _check_check(self, item: Item) -> None:
        """Refuse an attention check whose answer nobody is asked for."""
        if item.check is None:
            return
        known = {question.name: question for question in self.questions}
        if unasked := sorted(item.check.questions - set(known)):
            fail(
                f"item {item.id!r}: `check` must be on a question that is asked"
                f" ({', '.join(known)}); got {unasked[0]}."
            )
        for name, labels in item.check.labels.items():
            if strange := sorted(set(labels) - set(known[name].options)):
                fail(
                    f"item {item.id!r}: `check`, {name} must be of"
                    f" {', '.join(known[name].options)}; got {strange[0]}."
                )
        for name in item.check.grades:
            if known[name].kind != "grade":
                fail(f"item {item.id!r}: `check`, {name} must list labels; got grades.")

    def record(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Design:
        """The options that `record` wrote."""
        questions = (
            Question(**each | {"options": tuple(each["options"])}) for each in record["questions"]
        )
        return cls(**record | {"questions": tuple(questions)})


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
        Shown(place, _draw_order(items[place], design, place + number, own)) for place in places
    )


def _draw_order(item: Item, design: Design, turn: int, own: Random) -> tuple[int, ...]:
    """Choices in the order of their letters; of pairs, each in its turn. Checks show all."""
    choices: Sequence[int] = range(len(item.choices))
    if design.is_pairwise and item.check is None and len(choices) > 2:
        pairs = list(combinations(choices, 2))
        choices = pairs[turn % len(pairs)]
    return tuple(own.sample(choices, len(choices)))
