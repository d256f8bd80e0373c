"""What raters say of items, and all of a study at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from wassemble.errors import fail
from wassemble.web.study.design import Design, Shown
from wassemble.web.study.items import SCORES, Item, read_item

_FORMAT = "wassemble study 1"
_SCORES = {str(score): score for score in SCORES}


@dataclass(frozen=True)
class Answer:
    """Scores and best choices by scale; None for what was not said yet.

    Choices are numbered as `Item.choices`, not as the rater saw them.
    """

    scores: dict[str, tuple[int | None, ...]]
    best: dict[str, int | None]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to say."""
        said = (score for scores in self.scores.values() for score in scores)
        return None not in self.best.values() and None not in said

    def record(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        return {"scores": self.scores, "best": self.best}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Answer:
        """The answer that `record` wrote."""
        scores = {scale: tuple(each) for scale, each in record["scores"].items()}
        return cls(scores, dict(record["best"]))

    @classmethod
    def empty(cls, n_choices: int, scales: tuple[str, ...]) -> Answer:
        """Nothing said yet."""
        # One choice alone is the best; nobody is asked.
        best = 0 if n_choices == 1 else None
        return cls(dict.fromkeys(scales, (None,) * n_choices), dict.fromkeys(scales, best))


def letter(position: int) -> str:
    """What a rater calls the caption at a position, counted from 0: A, B, C..."""
    return "ABCDEFGHIJ"[position]


def field_name(scale: str, position: int) -> str:
    """The form's field for a score: by position, which says nothing of the system."""
    return f"{scale}-{letter(position)}"


def read_answer(form: Mapping[str, Any], shown: Shown, scales: tuple[str, ...]) -> Answer:
    """The answer in a form's fields; what is not there is not said yet."""
    answer = Answer.empty(len(shown.order), scales)
    letters = {letter(position): choice for position, choice in enumerate(shown.order)}
    for scale in scales:
        scores = list(answer.scores[scale])
        for position, choice in enumerate(shown.order):
            scores[choice] = _read(form, field_name(scale, position), _SCORES)
        answer.scores[scale] = tuple(scores)
        if len(letters) > 1:
            answer.best[scale] = _read(form, f"best-{scale}", letters)
    return answer


def fails_check(item: Item, answer: Answer) -> bool:
    """Whether the answer is not one that an attentive rater gives to this attention check."""
    assert item.check is not None
    if item.check.best is not None:
        wanted = item.choice_of(item.check.best)
        if any(choice != wanted for choice in answer.best.values()):
            return True
    return any(
        answer.scores[scale][item.choice_of(system)] not in allowed
        for scale, systems in item.check.scores.items()
        for system, allowed in systems.items()
    )


def _read(form: Mapping[str, Any], name: str, meanings: Mapping[str, int]) -> int | None:
    value = form.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or value not in meanings:
        fail(f"`{name}` must be one of {', '.join(meanings)}; got {str(value)[:20]!r}.")
    return meanings[value]


@dataclass(frozen=True)
class Given(Answer):
    """An answer to the item at a place of the study, and when it was given."""

    item: int
    answered_at: str


@dataclass(frozen=True)
class Participant:
    """A rater: what was shown, and what was answered so far."""

    number: int
    shown: tuple[Shown, ...]
    consented_at: str | None
    is_closed: bool
    answers: tuple[Given, ...]

    @property
    def complete(self) -> dict[int, Given]:
        """Answers in which nothing is missing, by the item's place in the study."""
        return {answer.item: answer for answer in self.answers if answer.is_complete}


@dataclass(frozen=True)
class Snapshot:
    """All of a study at one moment, without its raters' secrets: what results are made from."""

    design: Design
    created_at: str
    is_closed: bool
    items: tuple[Item, ...]
    raters: tuple[Participant, ...]

    def record(self) -> dict[str, Any]:
        """Everything as JSON has it; `from_record` reads it again."""
        record = TypeAdapter(Snapshot).dump_python(replace(self, items=()), mode="json")
        return {"format": _FORMAT, **record, "items": [item.record() for item in self.items]}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Snapshot:
        """The study that `record` wrote."""
        if record.get("format") != _FORMAT:
            fail(f"a study's export must have format {_FORMAT!r}; got {record.get('format')!r}.")
        items = [read_item(item, f"item {item.get('id')}") for item in record["items"]]
        return TypeAdapter(cls).validate_python(record | {"items": items})
