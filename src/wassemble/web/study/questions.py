"""What raters are asked: grades, the best of several captions, a label, or words of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wassemble.errors import fail

KINDS = {
    "grade": "a grade for each caption",
    "best": "the best caption",
    "label": "a label for the item",
    "words": "words of their own",
}
_MAX_QUESTIONS = 12
_MAX_OPTIONS = 20
_MAX_LETTERS = {"name": 60, "text": 1000, "option": 100}


@dataclass(frozen=True)
class Question:
    """One question of every item: what it is called in tables, and what raters read."""

    name: str
    kind: str
    text: str
    # Grades from the lowest to the highest; labels; words for a tie, if there may be one.
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            fail(f"a question must be one of {', '.join(KINDS)}; got {self.kind!r}.")
        given = [("name", self.name), ("text", self.text)]
        for what, text in (*given, *(("option", each) for each in self.options)):
            _check_text(text, f"the {what} of a question", _MAX_LETTERS[what])
        fewest, most = {"best": (0, 1), "words": (0, 0)}.get(self.kind, (2, _MAX_OPTIONS))
        if not fewest <= len(self.options) <= most:
            fail(
                f"question {self.name!r}: {KINDS[self.kind]} must have {fewest} to {most} options;"
                f" got {len(self.options)}.",
                hint="write them with commas between: wrong, partly right, right",
            )
        if len(set(self.options)) < len(self.options):
            fail(f"question {self.name!r}: options must differ; got {', '.join(self.options)}.")

    @property
    def is_of_captions(self) -> bool:
        """Whether it compares what systems say, not what the item is."""
        return self.kind in ("grade", "best")


def check_questions(questions: Sequence[Question]) -> None:
    """Refuse a list of questions that no study can ask."""
    if not 1 <= len(questions) <= _MAX_QUESTIONS:
        fail(f"a study must have 1 to {_MAX_QUESTIONS} questions; got {len(questions)}.")
    names = [question.name for question in questions]
    if len(set(names)) < len(names):
        fail(f"questions must have names of their own; got {', '.join(names)}.")


def _check_text(text: str, what: str, longest: int) -> None:
    if not text.strip() or len(text) > longest:
        fail(f"{what} must be a text of 1 to {longest} letters; got {len(text)} letters.")
    if not text.isprintable():
        fail(f"{what} must be readable text in one line; got {ascii(text)[:60]}.")


SCORES = ("1", "2", "3", "4", "5")
PAPER = (
    Question("correctness", "grade", "Correctness: 1 wrong, 5 right", SCORES),
    Question("detail", "grade", "Detail: 1 hardly any, 5 all", SCORES),
    Question("most correct", "best", "Which caption is the most correct?"),
    Question("most detailed", "best", "Which caption is the most detailed?"),
)
_QUALITY = ("bad", "poor", "fair", "good", "excellent")  # of ITU-T P.800
# What a study may begin with, by what the form calls it.
TEMPLATES = {
    "the paper's study": PAPER,
    "grades": (Question("quality", "grade", "How good is this caption?", _QUALITY),),
    "pairs": (Question("better", "best", "Which one is better?", ("about the same",)),),
    "best of several": (Question("best", "best", "Which one is the best?"),),
    "labels": (Question("label", "label", "What is this?", ("yes", "no", "cannot tell")),),
}
