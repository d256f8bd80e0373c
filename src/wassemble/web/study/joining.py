"""A study file from captions, one file of JSON lines for each system."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wassemble.errors import fail
from wassemble.web.study.items import Check, Item, read_lines

_MIN_LETTERS = 4  # of words that say what a caption is about


def read_captions(path: Path) -> dict[str, str]:
    """Captions by image id, from JSON lines with ``image_id`` and ``caption``."""
    return {key: _get(record, "caption", str, path) for key, record in _records(path).items()}


def read_references(path: Path) -> dict[str, list[str]]:
    """Reference captions by image id, from JSON lines with ``image_id`` and ``captions``."""
    return {
        number: _get(record, "captions", list, path) for number, record in _records(path).items()
    }


def join_captions(
    runs: Mapping[str, Mapping[str, str]],
    *,
    references: Mapping[str, Sequence[str]] | None = None,
    image: str | None = None,
) -> list[Item]:
    """One item for each image that the first system captioned; all must have captioned it.

    ``runs`` are captions by image id, by system. Shown are the ``references``, as text, or the
    picture ``image`` of the served folder, where ``{image_id}`` stands for its number.
    """
    if (references is None) == (image is None):
        fail("either references or pictures must be shown; got both or neither.")
    first, *others = runs
    items = []
    for number in runs[first]:
        for system in others:
            if number not in runs[system]:
                fail(f"{system} must have a caption for image {number}, as {first} has; got none.")
        captions = {system: captions[number] for system, captions in runs.items()}
        if image is not None:
            items.append(Item(number, captions, image=image.replace("{image_id}", number)))
        elif references is not None and references.get(number):
            items.append(Item(number, captions, text=_as_text(references[number])))
        else:
            fail(f"image {number} must have a reference caption; got none.")
    return items


def make_checks(references: Mapping[str, Sequence[str]], n_checks: int) -> list[Item]:
    """Attention checks: an image's own reference caption among captions of other images.

    The others are from the images that share the fewest words with it; an attentive rater
    scores their correctness 1 or 2.
    """
    words = {number: _words(captions) for number, captions in references.items()}
    checks = []
    for number in sorted(references, key=lambda each: (-len(words[each]), each))[:n_checks]:
        own, *shown = references[number]
        away = sorted(
            (other for other in references if other != number),
            key=lambda other: (len(words[number] & words[other]), other),
        )[:2]
        if not shown or len(away) < 2:
            fail("attention checks must be made of three images with two references; got fewer.")
        captions = {"reference": own} | {f"image {each}": references[each][0] for each in away}
        allowed: dict[str, tuple[int, ...]] = {f"image {each}": (1, 2) for each in away}
        check = Check(grades={"correctness": allowed})
        checks.append(Item(f"check {number}", captions, text=_as_text(shown), check=check))
    return checks


def _as_text(captions: Sequence[str]) -> str:
    told = "\n".join(f"- {caption}" for caption in captions)
    return f"What people wrote of the picture:\n{told}"


def _words(captions: Sequence[str]) -> set[str]:
    said = {word for caption in captions for word in caption.lower().split()}
    return {word for word in said if len(word) >= _MIN_LETTERS}


def _records(path: Path) -> dict[str, dict[str, Any]]:
    """Objects of a file's lines by their image id."""
    records: dict[str, dict[str, Any]] = {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{path}: must be a UTF-8 file of captions; got {type(error).__name__}.")
    for number, record in read_lines(text, str(path)):
        if not isinstance(record, dict) or "image_id" not in record:
            fail(f"{path}, line {number}: must be a JSON object with image_id.")
        image_id = str(record["image_id"])
        if image_id in records:
            fail(f"{path}, line {number}: image_id must come once; got {image_id!r} again.")
        records[image_id] = record
    if not records:
        fail(f"{path}: must have a caption; got none.")
    return records


def _get(record: dict[str, Any], key: str, kind: type, path: Path) -> Any:
    value = record.get(key)
    if not isinstance(value, kind) or not value:
        fail(f"{path}: image {record['image_id']} must have `{key}`; got {value!r}.")
    return value
