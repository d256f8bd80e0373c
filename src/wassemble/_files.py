"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["whole_file", "write_whole"]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write to; it becomes ``path`` at the end.

    If anything fails, an interrupt included, ``path`` is left as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The same suffix: libraries tell formats by it.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)  # a temporary file is its owner's alone; the final one need not be
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
