"""What raters are shown: a picture or a text, and what several systems say of it.

One item on each line of a JSON-lines file:

    {"id": "785", "image": "pictures/785.jpg", "captions": {"glove": "a man skis", ...}}
    {"id": "786", "text": "A dog in the snow.", "captions": {"glove": "a dog", ...}}

``check`` makes an item an attention check: ``{"best": system}`` must be chosen as best, and
``{"correctness": {system: [1, 2]}}`` lists the scores that an attentive rater may give. Checks
may name systems of their own; all other items must have the same ones.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from wassemble.errors import fail
from wassemble.web.paths import inside

SCALES = ("correctness", "detail")
SCORES = (1, 2, 3, 4, 5)
_KEYS = {"id", "image", "text", "captions", "check"}
_MAX_ITEMS = 10_000
_MAX_CAPTIONS = 10
_MAX_LETTERS = 5_000


@dataclass(frozen=True)
class Check:
    """What an attentive rater answers."""

    best: str | None = None  # the system whose caption must be chosen on every scale asked for
    # By scale and system, the scores that may be given.
    scores: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)


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
        record: dict[str, Any] = {"id": self.id, **shown, "captions": self.captions}
        if self.check is not None:
            best = {} if self.check.best is None else {"best": self.check.best}
            scores = {
                scale: {system: list(allowed) for system, allowed in each.items()}
                for scale, each in self.check.scores.items()
            }
            record["check"] = best | scores
        return record


def read_items(text: str, *, name: str = "study file") -> list[Item]:
    """The items of a JSON-lines file, in its order.

    Examples
    --------
    >>> [item] = read_items('{"id": "1", "text": "A dog.", "captions": {"a": "dog", "b": "cat"}}')
    >>> item.choices
    ('dog', 'cat')
    """
    items: list[Item] = []
    seen: dict[str, int] = {}
    for number, record in read_lines(text, name):
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
    captions = _captions(record.get("captions"), where)
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


def picture_type(beginning: bytes) -> str | None:
    """The media type of a PNG, JPEG or WebP file, from its first 12 bytes; None for all else.

    Examples
    --------
    >>> picture_type(b"<svg xmlns="), picture_type(bytes.fromhex("ffd8ffe0"))
    (None, 'image/jpeg')
    """
    if beginning.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if beginning.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return None


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
    if not 2 <= len(value) <= _MAX_CAPTIONS:
        fail(f"{where}: `captions` must be 2 to {_MAX_CAPTIONS}; got {len(value)}.")
    return {
        _text(system, "captions", where): _text(caption, f"captions, {system}", where)
        for system, caption in value.items()
    }


def _read_check(value: Any, captions: dict[str, str], where: str) -> Check:
    where = f"{where}: `check`"
    keys = ("best", *SCALES)
    if not isinstance(value, dict) or not value:
        fail(f"{where} must be an object with {', '.join(keys)}; got {_short(value)}.")
    if strange := sorted(set(value) - set(keys)):
        fail(f"{where} must have keys of {', '.join(keys)}; got {strange[0]!r}.")
    best = value.get("best")
    if "best" in value and (not isinstance(best, str) or best not in captions):
        fail(f"{where}, best must be one of {', '.join(captions)}; got {_short(best)}.")
    scores = {
        scale: _read_allowed(value[scale], captions, f"{where}, {scale}")
        for scale in SCALES
        if scale in value
    }
    return Check(best, scores)


def _read_allowed(value: Any, captions: dict[str, str], where: str) -> dict[str, tuple[int, ...]]:
    """The scores that may be given to systems on one scale."""
    if not isinstance(value, dict) or not value:
        fail(f"{where} must be an object of scores by system; got {_short(value)}.")
    for system, allowed in value.items():
        if system not in captions:
            fail(f"{where} must name one of {', '.join(captions)}; got {system!r}.")
        is_list = isinstance(allowed, list) and bool(allowed)
        if not is_list or any(type(s) is not int or s not in SCORES for s in allowed):
            fail(f"{where}, {system} must list scores from 1 to 5; got {_short(allowed)}.")
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


def find_picture(folder: Path, name: str) -> tuple[Path, str]:
    """The path of a picture inside ``folder``, and its media type."""
    path = inside(folder, name)
    if not path.is_file():
        fail(f"the served folder must have the picture {name!r}; it has not.")
    with path.open("rb") as file:
        media_type = picture_type(file.read(12))
    if media_type is None:
        fail(f"a picture must be PNG, JPEG or WebP by its content; {name!r} is not.")
    return path, media_type


def check_pictures(folder: Path, items: Iterable[Item]) -> None:
    """Refuse items whose pictures cannot be shown."""
    for item in items:
        if item.image is not None:
            find_picture(folder, item.image)
