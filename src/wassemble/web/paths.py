"""Files inside the served folder, and none outside it."""

from __future__ import annotations

from pathlib import Path, PurePath

from wassemble._checks import fail

__all__ = ["inside", "list_files"]


def inside(folder: Path, name: str) -> Path:
    """The path ``name`` inside ``folder``; links are followed, and must stay inside too.

    Absolute paths, ``..`` and hidden files are refused. The file need not exist.
    """
    parts = PurePath(name).parts
    if not parts or PurePath(name).is_absolute() or any(part.startswith(".") for part in parts):
        fail(f"a file must be named by its path inside the served folder; got {name!r}.")
    root = folder.resolve()
    try:
        path = (root / name).resolve()
        path.stat()
    except FileNotFoundError:  # yet to be written, or a 422 of who wanted to read it
        pass
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, links in a circle
        fail(f"a file must have a name that can exist; got {name[:100]!r}.")
    if path == root or not path.is_relative_to(root):
        fail(f"a file must lie inside the served folder; got {name!r}.")
    return path


def list_files(folder: Path, ends: tuple[str, ...], *, at_most: int = 200) -> list[str]:
    """Files with one of these ``ends`` that `inside` would open: paths in ``folder``, sorted."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in PurePath(name).parts)
        if hidden or not name.lower().endswith(ends) or not path.is_file():
            continue
        if path.resolve().is_relative_to(folder.resolve()):
            found.append(name)
        if len(found) == at_most:
            break
    return found
