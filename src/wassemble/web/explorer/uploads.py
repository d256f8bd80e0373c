"""Files that were sent here: few, small, in a folder of their own that goes with the server."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
import time
import weakref
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from wassemble._checks import fail
from wassemble.inputs.formats import ENDS

__all__ = ["KERNEL_ENDS", "PREFIX", "Upload", "Uploads"]

PREFIX = "upload:"
_FOLDER = "wassemble-uploads-"
_OLD_SECONDS = 24 * 3600
_N_FILES = 64
_PIECE = 1 << 20
_N_LETTERS = 120
# Files from which a kernel may be made: tables, and lists of words.
KERNEL_ENDS = (*ENDS, ".txt", ".txt.gz", ".vec", ".bin")
# A .npy has its labels in a file beside it.
_ENDS = tuple(end for end in KERNEL_ENDS if end != ".npy")


@dataclass(frozen=True)
class Upload:
    """A file that was sent: the name is only ever shown."""

    path: Path
    name: str
    n_bytes: int

    @property
    def stem(self) -> str:
        """The name without its end."""
        return self.name[: -len(_end(self.name))]


class Uploads:
    """At most 64 files and ``max_bytes`` in all; the oldest go first, all when the server ends."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._files: OrderedDict[str, Upload] = OrderedDict()
        self._lock = Lock()
        self._finalizer: weakref.finalize | None = None

    @cached_property
    def folder(self) -> Path:
        """Made when the first file comes."""
        _sweep(Path(tempfile.gettempdir()))
        found = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        self._finalizer = weakref.finalize(self, shutil.rmtree, found, ignore_errors=True)
        return found

    def keep(self, name: str, content: BinaryIO) -> str:
        """Store a file; the answer names it in a view."""
        name = "".join(c for c in name if c.isprintable())[-_N_LETTERS:] or "file"
        end = _end(name)
        if not end:
            fail(f"{name}: a file must end in {', '.join(_ENDS)}; this one does not.")
        ident = secrets.token_urlsafe(12)
        with self._lock:  # two first files must come into one folder
            path = self.folder / f"{ident}{end}"
        with path.open("xb") as file:
            shutil.copyfileobj(content, file, _PIECE)
        with self._lock:
            self._files[ident] = Upload(path, name, path.stat().st_size)
            while len(self._files) > 1 and (
                len(self._files) > _N_FILES
                or sum(each.n_bytes for each in self._files.values()) > self._max_bytes
            ):
                _, old = self._files.popitem(last=False)
                old.path.unlink(missing_ok=True)
        return PREFIX + ident

    def find(self, reference: str) -> Upload:
        """The file that `keep` named so."""
        with self._lock:
            found = self._files.get(reference.removeprefix(PREFIX))
        if found is None:
            fail("this upload is no longer kept.", hint="send the file again")
        return found

    def close(self) -> None:
        """Remove everything now."""
        if self._finalizer is not None:
            self._finalizer()


def _sweep(place: Path) -> None:
    """Remove old folders of servers that were killed."""
    if os.name != "posix":  # elsewhere, asking for a process may end it
        return
    for folder in place.glob(f"{_FOLDER}*"):
        number = folder.name.removeprefix(_FOLDER).split("-")[0]
        with suppress(OSError):
            about = folder.lstat()  # not what a link leads to: others may write here too
            is_old = about.st_mtime < time.time() - _OLD_SECONDS
            is_ours = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
            if is_old and is_ours and re.fullmatch("[0-9]{1,9}", number) and _is_gone(int(number)):
                shutil.rmtree(folder, ignore_errors=True)


def _is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)  # no signal: only asks
    except ProcessLookupError:
        return True
    return False


def _end(name: str) -> str:
    lower = name.lower()
    fitting = [end for end in _ENDS if lower.endswith(end) and lower != end]
    return max(fitting, key=len, default="")
