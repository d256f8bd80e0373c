"""What raters are shown: a picture or a text, and what several systems say of it.

One item on each line of a JSON-lines file:

    {"id": "785", "image": "pictures/785.jpg", "captions": {"glove": "a man skis", ...}}
    {"id": "786", "text": "A dog in the snow.", "captions": {"glove": "a dog", ...}}

or in each row of a CSV file, where every column but id, image, text and check is a system.

``check`` makes an item an attention check: ``{"best": system}`` must be chosen as best,
``{"correctness": {system: [1, 2]}}`` lists the grades that an attentive rater may give, and
``{"animal": ["cat"]}`` the labels. Checks may name systems of their own; all other items must have
the same ones.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from wassemble.errors import fail

_KEYS = {"id", "image", "text", "captions", "check"}
_MAX_ITEMS = 10_000
_MAX_CAPTIONS = 10
_MAX_LETTERS = 5_000


@dataclass(frozen=True)
class Check:
    """What an attentive rater answers."""

    best: str | None = None  # the system whose caption must be chosen wherever one is
    # By question and system, the grades that may be given, counted from 1.
    grades: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by question

    @property
    def questions(self) -> set[str]:
        """Names of the questions whose answers are looked at."""
        return {*self.grades, *self.labels}

    def record(self) -> dict[str, Any]:
        """The check as a line of the file has it."""
        best = {} if self.best is None else {"best": self.best}
        grades = {
            question: {system: list(allowed) for system, allowed in each.items()}
            for question, each in self.grades.items()
        }
        return best | grades | {question: list(each) for question, each in self.labels.items()}


@dataclass(frozen=True)
class Item:
    """A picture (its name in the served folder) or a text, and captions by system."""

    id: str
    captions: dict[str, str]
    image: str | None = None
    text: str | None = None
    check: Check | None = None

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """Captions that differ: systems that say the same are shown, and rated, once."""
        return tuple(dict.fromkeys(self.captions.values()))

    @cached_property
    def _choice_by_system(self) -> dict[str, int]:
        places = {caption: place for place, caption in enumerate(self.choices)}
        return {system: places[caption] for system, caption in self.captions.items()}

    def choice_of(self, system: str) -> int:
        """Which of the choices is the system's."""
        return self._choice_by_system[system]

    def record(self) -> dict[str, Any]:
        """The item as a line of the file has it."""
        shown = {"image": self.image} if self.image is not None else {"text": self.text}
        check = {} if self.check is None else {"check": self.check.record()}
        return {"id": self.id, **shown, "captions": self.captions, **check}


def read_items(text: str, *, name: str = "study file") -> list[Item]:
    """The items of a file, in its order: CSV if its name ends so, otherwise JSON lines.

    Examples
    --------
    >>> [item] = read_items('{"id": "1", "text": "A dog.", "captions": {"a": "dog", "b": "cat"}}')
    >>> item.choices
    ('dog', 'cat')
    """
    items: list[Item] = []
    seen: dict[str, int] = {}
    is_table = name.lower().endswith((".csv", ".tsv"))
    for number, record in _read_rows(text, name) if is_table else read_lines(text, name):
        where = f"{name}, line {number}"
        item = read_item(record, where)
        if item.id in seen:
            fail(
                f"{where}: `id` must be unlike all others; got {item.id!r} of line {seen[item.id]}."
            )
        seen[item.id] = number
        _check_systems(item, items, where)
        items.append(item)
        if len(items) > _MAX_ITEMS:
            fail(f"{name}: a study must have at most {_MAX_ITEMS} items; got more.")
    if not any(item.check is None for item in items):
        fail(f"{name}: must have an item that is not an attention check; got none.")
    return items


def read_lines(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """The values of JSON lines with their numbers, counted from 1; empty lines are passed over."""
    # Not splitlines: that parts at U+2028, which may stand inside a JSON string.
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                fail(f"{name}, line {number}: must be a JSON object; got {line.strip()[:40]!r}.")


def _read_rows(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """The rows of a table, as JSON lines would have them, with the numbers of their lines."""
    lines = io.StringIO(text.removeprefix("\ufeff"), newline="")
    delimiter = "\t" if name.lower().endswith(".tsv") else ","
    reader = csv.DictReader(lines, restval="", delimiter=delimiter)
    try:
        names = reader.fieldnames or []
        if len(set(names)) < len(names):
            fail(f"{name}: columns must have names of their own; got {', '.join(names)}.")
        for row in reader:
            yield reader.line_num, _as_record(row, f"{name}, line {reader.line_num}")
    except csv.Error as error:
        fail(f"{name}, line {reader.line_num}: must be a row of a table; got: {error}.")


def _as_record(row: dict[Any, Any], where: str) -> dict[str, Any]:
    """A row as a JSON line has it; an empty cell is no entry."""
    if None in row:
        fail(f"{where}: must have as many cells as the first line; got more.")
    known = {key: row[key] for key in ("id", "image", "text") if row.get(key)}
    captions = {key: cell for key, cell in row.items() if key not in _KEYS and cell}
    check: Any = row.get("check")
    if not check:
        return known | {"captions": captions}
    if not check.startswith("{"):
        return known | {"captions": captions, "check": {"best": check}}
    [(_, check)] = read_lines(check, f"{where}: `check`")
    return known | {"captions": captions, "check": check}


def read_item(record: Any, where: str) -> Item:
    """The item of one line; ``where`` names the line in errors."""
    if not isinstance(record, dict):
        fail(f"{where}: must be a JSON object; got {_short(record)}.")
    if strange := sorted(set(record) - _KEYS):
        fail(f"{where}: keys must be of {', '.join(sorted(_KEYS))}; got {strange[0]!r}.")
    if ("image" in record) == ("text" in record):
        got = "both" if "image" in record else "neither"
        fail(f"{where}: must have either `image` or `text`; got {got}.")
    shown = {key: _text(record[key], key, where) for key in ("image", "text") if key in record}
    number = record.get("id")  # COCO's ids are whole numbers
    is_number = isinstance(number, int) and not isinstance(number, bool)
    captions = _captions(record.get("captions", {}), where)
    check = None if "check" not in record else _read_check(record["check"], captions, where)
    return Item(
        id=str(number) if is_number else _text(number, "id", where),
        captions=captions,
        check=check,
        **shown,
    )


def system_names(items: Iterable[Item]) -> tuple[str, ...]:
    """The systems that a study compares, in the order of its first item."""
    return next(tuple(item.captions) for item in items if item.check is None)


def _check_systems(item: Item, earlier: list[Item], where: str) -> None:
    """Refuse systems that are not those of earlier items."""
    compared = next((other for other in earlier if other.check is None), None)
    if item.check is not None or compared is None:
        return
    if set(item.captions) != set(compared.captions):
        fail(
            f"{where}: `captions` must have the systems {', '.join(compared.captions)}, as item"
            f" {compared.id!r}; got {', '.join(item.captions)}."
        )


def _captions(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        fail(f"{where}: `captions` must be an object of captions by system; got {_short(value)}.")
    if len(value) == 1 or len(value) > _MAX_CAPTIONS:
        fail(f"{where}: `captions` must be 2 to {_MAX_CAPTIONS}, or none; got {len(value)}.")
    return {
        _text(system, "captions", where): _text(caption, f"captions, {system}", where)
        for system, caption in value.items()
    }


def _read_check(value: Any, captions: dict[str, str], where: str) -> Check:
    where = f"{where}: `check`"
    if not isinstance(value, dict) or not value:
        fail(f"{where} must be an object with best, or with questions; got {_short(value)}.")
    best, check = None, Check()
    for question, allowed in value.items():
        place = f"{where}, {question}"
        if isinstance(allowed, dict):
            check.grades[question] = _read_grades(allowed, captions, place)
        elif isinstance(allowed, list):
            check.labels[question] = tuple(_text(each, question, where) for each in allowed)
        elif question == "best" and isinstance(allowed, str) and allowed in captions:
            best = allowed
        elif question == "best":
            fail(f"{place} must be one of {', '.join(captions)}; got {_short(allowed)}.")
        else:
            fail(f"{place} must be grades by system, or a list of labels; got {_short(allowed)}.")
    return Check(best, check.grades, check.labels)


def _read_grades(
    value: dict[str, Any], captions: dict[str, str], where: str
) -> dict[str, tuple[int, ...]]:
    """The grades that may be given to systems, for one question."""
    for system, allowed in value.items():
        if system not in captions:
            fail(f"{where} must name one of {', '.join(captions)}; got {system!r}.")
        is_list = isinstance(allowed, list) and bool(allowed)
        if not is_list or any(type(grade) is not int or grade < 1 for grade in allowed):
            fail(f"{where}, {system} must list grades, counted from 1; got {_short(allowed)}.")
    return {system: tuple(allowed) for system, allowed in value.items()}


def _text(value: Any, key: str, where: str) -> str:
    """A text that every page and database can hold."""
    if not isinstance(value, str) or not value.strip():
        fail(f"{where}: `{key}` must be a text that is not empty; got {_short(value)}.")
    if len(value) > _MAX_LETTERS:
        fail(f"{where}: `{key}` must have at most {_MAX_LETTERS} letters; got {len(value)}.")
    if not is_readable(value):
        fail(f"{where}: `{key}` must be readable text; got {_short(value)}.")
    return value.strip()


def is_readable(text: str) -> bool:
    """Whether every page and database can hold a text: no zero bytes, no half characters."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _short(value: Any) -> str:
    told = "nothing" if value is None else ascii(value)
    return told if len(told) <= 60 else told[:57] + "..."
