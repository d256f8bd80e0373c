"""Files that appear whole or not at all, and never in place of one that is read."""

from __future__ import annotations

import os
import secrets
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wassemble.errors import fail

if TYPE_CHECKING:
    import numpy as np

Place = str | os.PathLike[str]
_HINT = "choose another name"
# What np.load raises on bytes that are not what they say they are.
_BROKEN = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OverflowError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
)


def is_remote(place: Place) -> bool:
    """Whether a place is a URL of another store than this machine's files."""
    protocol, sign, _ = os.fspath(place).partition("://")
    return bool(sign) and protocol not in ("file", "local")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write to; it becomes ``path`` at the end.

    If anything fails, an interrupt included, ``path`` is left as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The same suffix: libraries tell formats by it. Named before it is made, so that an
    # interrupt in between leaves nothing behind.
    temporary = path.parent / f".unfinished-{secrets.token_hex(8)}{path.suffix}"
    try:
        temporary.touch(mode=0o600, exist_ok=False)
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


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a ``.npz`` file; nothing in it is run."""
    import numpy as np

    try:
        # Opened here: np.load leaves a file open that it cannot read.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except _BROKEN as error:
        fail(f"{path}: must be a .npz file of plain arrays; it cannot be read ({error}).")


def refuse_overwriting(out: Place, inputs: Iterable[Place], *, name: str = "the output") -> None:
    """Refuse an output that is an input, or a folder in which one lies.

    A file is the same under every name: other spellings of a path, symbolic links, hard
    links. Nothing may be written into a folder that is read as a whole either. ``out`` is a file
    or a folder that need not exist; ``name`` is what the message calls it.
    """
    for each in inputs:
        if _is_same(out, each):
            also = "" if _url(out) == _url(each) else f", which is {each}"
            fail(f"{name} must not be an input as well; got {out}{also}.", hint=_HINT)
        if _is_inside(each, out):
            fail(f"{name} must be a folder of its own; got {out}, where {each} is.", hint=_HINT)
        if _is_inside(out, each):
            fail(f"{name} must not be in a folder that is read; got {out}.", hint=_HINT)


def _is_same(first: Place, second: Place) -> bool:
    paths = _local(first), _local(second)
    if paths[0] is None or paths[1] is None:
        return _url(first) == _url(second)
    try:
        return paths[0].samefile(paths[1])
    except OSError:  # one of them is not there
        return paths[0].resolve() == paths[1].resolve()


def _is_inside(inner: Place, outer: Place) -> bool:
    inside, around = _local(inner), _local(outer)
    if inside is None or around is None:
        return _url(inner).startswith(f"{_url(outer)}/")
    if not around.is_dir():
        return False
    # By file and not by name: a folder has other names, too.
    return any(parent.is_dir() and parent.samefile(around) for parent in inside.resolve().parents)


def _local(place: Place) -> Path | None:
    """The path of a place on this machine; None for a URL of another store."""
    text = os.fspath(place)
    return None if is_remote(place) else Path(text.partition("://")[2] or text)


def _url(place: Place) -> str:
    return os.fspath(place).rstrip("/")
