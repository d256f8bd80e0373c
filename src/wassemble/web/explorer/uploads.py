"""Files that were sent here: few, small, in a folder of their own that goes with the server."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from wassemble._checks import fail
from wassemble.inputs.formats import ENDS

__all__ = ["KERNEL_ENDS", "PREFIX", "Upload", "Uploads"]

PREFIX = "upload:"
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
        found = Path(tempfile.mkdtemp(prefix="wassemble-"))
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


def _end(name: str) -> str:
    lower = name.lower()
    fitting = [end for end in _ENDS if lower.endswith(end) and lower != end]
    return max(fitting, key=len, default="")
