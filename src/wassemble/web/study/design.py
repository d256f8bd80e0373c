"""How a study is run: what raters are told and asked, and how many items each sees."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from wassemble._checks import check_count
from wassemble.errors import fail
from wassemble.web.study.items import SCALES, Item, is_readable

__all__ = ["CONSENT", "Design"]

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
    """The options of a study.

    Attributes
    ----------
    title : str
        Raters see it.
    consent : str
        What raters agree to before they begin.
    scales : tuple of str
        Of "correctness" and "detail": each caption is scored on each, and the best is chosen.
    items_per_rater : int or None
        Attention checks not counted; None for all items.
    is_repeated : bool
        Whether several raters may see the same item. Without, there is no agreement to measure.
    seed : int
        Of who sees what, in which order.
    """

    title: str
    consent: str = CONSENT
    scales: tuple[str, ...] = SCALES
    items_per_rater: int | None = None
    is_repeated: bool = True
    seed: int = 0

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
        return asdict(self) | {"scales": list(self.scales)}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Design:
        """The options that `record` wrote."""
        return cls(**record | {"scales": tuple(record["scales"])})
