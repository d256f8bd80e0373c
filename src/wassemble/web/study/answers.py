"""What raters say of items, and all of a study at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from wassemble.errors import fail
from wassemble.web.study.design import Design, Shown
from wassemble.web.study.items import Item, is_readable, read_item
from wassemble.web.study.questions import Question

_FORMAT = "wassemble study 2"
_MAX_WORDS = 5_000  # letters
TIE = -1  # in place of the best choice: none is better
NOT_SHOWN = 0  # in place of a grade

Said = tuple[int | None, ...] | int | str | None
"""To one question: a grade for each choice, the best choice, a label, or words; None: not yet."""


@dataclass(frozen=True)
class Answer:
    """What a rater says of an item, by the names of questions.

    Choices are numbered as `Item.choices`, not as the rater saw them; grades count from 1.
    """

    said: dict[str, Said]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to say."""
        given = self.said.values()
        return not any(each is None or (isinstance(each, tuple) and None in each) for each in given)

    def grades(self, question: str) -> tuple[int | None, ...]:
        """The grade of each choice."""
        grades = self.said[question]
        assert isinstance(grades, tuple)
        return grades

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Answer:
        """The answer that was kept as JSON."""
        said = {name: tuple(v) if isinstance(v, list) else v for name, v in record.items()}
        return cls(said)

    @classmethod
    def empty(cls, item: Item, shown: Shown, questions: Sequence[Question]) -> Answer:
        """Nothing said yet."""
        return read_answer({}, item, shown, questions)


def letter(position: int) -> str:
    """What a rater calls the caption at a position, counted from 0: A, B, C..."""
    return "ABCDEFGHIJ"[position]


def field_name(at: int, position: int | None = None) -> str:
    """The form's field for a question, or for one caption: by position, not by system."""
    return f"q{at + 1}" if position is None else f"q{at + 1}-{letter(position)}"


def read_answer(
    form: Mapping[str, Any], item: Item, shown: Shown, questions: Sequence[Question]
) -> Answer:
    """The answer in a form's fields; what is not there is not said yet."""
    readers = {
        "grade": _read_grades,
        "best": _read_best,
        "label": _read_label,
        "words": _read_words,
    }
    return Answer(
        {
            question.name: readers[question.kind](form, at, question, item, shown)
            for at, question in enumerate(questions)
        }
    )


def _read_grades(
    form: Mapping[str, Any], at: int, question: Question, item: Item, shown: Shown
) -> Said:
    grades: list[int | None] = [NOT_SHOWN] * len(item.choices)
    meanings = {str(grade): grade for grade in range(1, len(question.options) + 1)}
    for position, choice in enumerate(shown.order):
        grades[choice] = _read(form, field_name(at, position), meanings)
    return tuple(grades)


def _read_best(
    form: Mapping[str, Any], at: int, question: Question, item: Item, shown: Shown
) -> Said:
    if len(shown.order) == 1:  # one choice alone is the best; nobody is asked
        return shown.order[0]
    letters = {letter(position): choice for position, choice in enumerate(shown.order)}
    return _read(form, field_name(at), letters | ({"tie": TIE} if question.options else {}))


def _read_label(
    form: Mapping[str, Any], at: int, question: Question, item: Item, shown: Shown
) -> Said:
    place = _read(form, field_name(at), {str(n): n for n in range(1, len(question.options) + 1)})
    return None if place is None else question.options[place - 1]


def _read_words(
    form: Mapping[str, Any], at: int, question: Question, item: Item, shown: Shown
) -> Said:
    words = form.get(field_name(at))
    if not isinstance(words, str) or not words.strip():
        return None
    if len(words) > _MAX_WORDS or not is_readable(words):
        fail(f"an answer must be readable text of at most {_MAX_WORDS:,} letters; this one is not.")
    return words.strip()


def _read(form: Mapping[str, Any], name: str, meanings: Mapping[str, int]) -> int | None:
    value = form.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or value not in meanings:
        fail(f"`{name}` must be one of {', '.join(meanings)}; got {str(value)[:20]!r}.")
    return meanings[value]


def fails_check(item: Item, answer: Answer, questions: Sequence[Question]) -> bool:
    """Whether the answer is not one that an attentive rater gives to this attention check."""
    check = item.check
    assert check is not None
    if check.best is not None:
        wanted = item.choice_of(check.best)
        chosen = [answer.said[question.name] for question in questions if question.kind == "best"]
        if any(choice != wanted for choice in chosen):
            return True
    if any(answer.said[question] not in labels for question, labels in check.labels.items()):
        return True
    return any(
        answer.grades(question)[item.choice_of(system)] not in allowed
        for question, systems in check.grades.items()
        for system, allowed in systems.items()
    )


@dataclass(frozen=True)
class Given(Answer):
    """An answer to the item at a place of the study, when it was given, and how long it took."""

    item: int
    answered_at: str
    seconds: float | None = None  # on the item's page, while it was in sight; None: not measured


@dataclass(frozen=True)
class Person:
    """Who a crowd's platform says that a rater is; empty where it says nothing."""

    participant: str = ""  # Prolific's PROLIFIC_PID, MTurk's workerId
    task: str = ""  # Prolific's STUDY_ID, MTurk's hitId
    session: str = ""  # Prolific's SESSION_ID, MTurk's assignmentId


@dataclass(frozen=True)
class Participant:
    """A rater: what was shown, and what was answered so far."""

    number: int
    shown: tuple[Shown, ...]
    consented_at: str | None
    is_closed: bool
    answers: tuple[Given, ...]
    person: Person = Person()
    finished_at: str | None = None
    left: str | None = None  # why the place was given back: late, declined, withdrawn

    @property
    def complete(self) -> dict[int, Given]:
        """Answers in which nothing is missing, by the item's place in the study."""
        return {answer.item: answer for answer in self.answers if answer.is_complete}

    def list_complete(self) -> list[tuple[Shown, Given]]:
        """The same with what was shown, in the rater's order."""
        complete = self.complete
        return [(shown, complete[shown.item]) for shown in self.shown if shown.item in complete]


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
