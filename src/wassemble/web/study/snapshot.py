"""All of a study at one moment, without its raters' secrets: what results are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wassemble.errors import fail
from wassemble.web.study.answers import Answer
from wassemble.web.study.assignment import Shown
from wassemble.web.study.design import Design
from wassemble.web.study.items import Item, read_item

__all__ = ["Given", "Participant", "Snapshot"]

_FORMAT = "wassemble study 1"


@dataclass(frozen=True)
class Given:
    """An answer, and when it was given."""

    answer: Answer
    answered_at: str


@dataclass(frozen=True)
class Participant:
    """A rater: what was shown, and what was answered, by the item's place in the study."""

    number: int
    shown: tuple[Shown, ...]
    consented_at: str | None
    is_closed: bool
    given: dict[int, Given]

    @property
    def complete(self) -> dict[int, Answer]:
        """Answers in which nothing is missing."""
        found = {item: given.answer for item, given in self.given.items()}
        return {item: answer for item, answer in found.items() if answer.is_complete}


@dataclass(frozen=True)
class Snapshot:
    """A study with its items, raters and answers."""

    design: Design
    created_at: str
    is_closed: bool
    items: tuple[Item, ...]
    raters: tuple[Participant, ...]

    def record(self) -> dict[str, Any]:
        """Everything as JSON has it; `from_record` reads it again."""
        return {
            "format": _FORMAT,
            "design": self.design.record(),
            "created_at": self.created_at,
            "is_closed": self.is_closed,
            "items": [item.record() for item in self.items],
            "raters": [
                {
                    "number": rater.number,
                    "consented_at": rater.consented_at,
                    "is_closed": rater.is_closed,
                    "shown": [
                        {"item": shown.item, "order": list(shown.order)} for shown in rater.shown
                    ],
                    "answers": [
                        {"item": item, "answered_at": given.answered_at} | given.answer.record()
                        for item, given in sorted(rater.given.items())
                    ],
                }
                for rater in self.raters
            ],
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Snapshot:
        """The study that `record` wrote."""
        if record.get("format") != _FORMAT:
            fail(f"a study's export must have format {_FORMAT!r}; got {record.get('format')!r}.")
        return cls(
            Design.from_record(record["design"]),
            record["created_at"],
            record["is_closed"],
            tuple(read_item(item, f"item {item.get('id')}") for item in record["items"]),
            tuple(
                Participant(
                    rater["number"],
                    tuple(Shown(each["item"], tuple(each["order"])) for each in rater["shown"]),
                    rater["consented_at"],
                    rater["is_closed"],
                    {
                        each["item"]: Given(Answer.from_record(each), each["answered_at"])
                        for each in rater["answers"]
                    },
                )
                for rater in record["raters"]
            ),
        )
