"""Files inside the served folder, and none outside it."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePath

from wassemble._checks import fail
from wassemble.errors import InvalidInputError

_MAX_LOOKED_AT = 20_000


def inside(folder: Path, name: str) -> Path:
    """The path ``name`` inside ``folder``; links are followed, and must stay inside too.

    Absolute paths, ``..`` and hidden files are refused. The file need not exist.
    """
    parts = PurePath(name).parts
    if not parts or PurePath(name).is_absolute() or _is_hidden(PurePath(name)):
        fail(f"a file must be named by its path inside the served folder; got {name!r}.")
    root = folder.resolve()
    try:
        path = (root / name).resolve()
        is_inside = path != root and path.is_relative_to(root)
        # A link may lead to a hidden file.
        is_inside = is_inside and not _is_hidden(path.relative_to(root))
        if is_inside:
            path.stat()
    except FileNotFoundError:  # yet to be written, or a 422 of who wanted to read it
        pass
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, links in a circle
        fail(f"a file must have a name that can exist; got {name[:100]!r}.")
    if not is_inside:
        fail(f"a file must lie inside the served folder; got {name!r}.")
    return path


def _is_hidden(path: PurePath) -> bool:
    return any(part.startswith(".") for part in path.parts)


def list_files(folder: Path, ends: tuple[str, ...], *, at_most: int = 200) -> list[str]:
    """Files with one of these ``ends`` that `inside` would open: paths in ``folder``, sorted.

    A folder may be somebody's whole home: no more than its first entries are looked at.
    """
    fitting = (
        name for name in islice(_walk(folder), _MAX_LOOKED_AT) if name.lower().endswith(ends)
    )
    return sorted(islice((name for name in fitting if _may_open(folder, name)), at_most))


def _walk(folder: Path) -> Iterator[str]:
    """Names of all files that are not hidden; folders behind links are left out."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield (Path(place) / name).relative_to(folder).as_posix()


def _may_open(folder: Path, name: str) -> bool:
    try:
        return inside(folder, name).is_file()
    except InvalidInputError:
        return False
