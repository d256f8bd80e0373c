"""Pictures of a study: files of the served folder that are pictures by what is in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from wassemble.errors import fail
from wassemble.web.paths import inside
from wassemble.web.study.items import Item, picture_type

__all__ = ["check_pictures", "find_picture"]


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
