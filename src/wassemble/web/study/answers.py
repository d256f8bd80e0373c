"""What a rater says of an item: scores on each scale, and the best choice on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wassemble.errors import fail
from wassemble.web.study.assignment import Shown
from wassemble.web.study.items import SCORES, Item

__all__ = ["Answer", "fails_check", "field_name", "letter", "read_answer"]

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
        scores = {scale: list(each) for scale, each in self.scores.items()}
        return {"scores": scores, "best": self.best}

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
