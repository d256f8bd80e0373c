"""Files that were sent here: few, small, in a folder of their own that goes with the server."""

import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from wassemble._checks import fail
from wassemble.inputs.formats import ENDS
from wassemble.web.settings import Settings

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


class Uploads:
    """At most 64 files and ``max_bytes`` in all; the oldest go first.

    They are in a folder that belongs to ``run_id``, so that workers find what the server keeps:
    ``IDENT/file.csv`` beside ``IDENT/name``.
    """

    def __init__(self, max_bytes: int, run_id: str) -> None:
        self._max_bytes = max_bytes
        self.folder = Path(tempfile.gettempdir(), f"{_FOLDER}{run_id}")

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Those of a run of the server."""
        return cls(4 * settings.max_upload_bytes, settings.run_id)

    def keep(self, name: str, content: BinaryIO) -> str:
        """Store a file; the answer names it in a view."""
        name = "".join(c for c in name if c.isprintable())[-_N_LETTERS:] or "file"
        end = _end(name)
        if not end:
            fail(f"{name}: a file must end in {', '.join(_ENDS)}; this one does not.")
        if not self.folder.exists():
            _sweep(self.folder.parent)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        ident = secrets.token_urlsafe(12)
        # Under a name that nothing asks for until it is whole.
        unfinished, final = self.folder / f".{ident}", self.folder / ident
        unfinished.mkdir(mode=0o700)
        try:
            with (unfinished / f"file{end}").open("xb") as file:
                shutil.copyfileobj(content, file, _PIECE)
            (unfinished / "name").write_text(name, encoding="utf-8")
            unfinished.rename(final)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        self._let_go(ident)
        return PREFIX + ident

    def find(self, reference: str) -> Upload:
        """The file that `keep` named so."""
        upload = self._look(reference.removeprefix(PREFIX))
        if upload is None:
            fail("this upload is no longer kept.", hint="send the file again")
        return upload

    def list_kept(self) -> list[tuple[str, str]]:
        """What is kept: how a view names it, and its own name; the newest first."""
        found = []
        for place in self.folder.glob("[!.]*"):
            upload = self._look(place.name)
            if upload is not None:
                with suppress(FileNotFoundError):  # another request may let it go
                    written = upload.path.stat().st_mtime_ns
                    found.append((written, PREFIX + place.name, upload.name))
        return [(reference, name) for _, reference, name in sorted(found, reverse=True)]

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _look(self, ident: str) -> Upload | None:
        if not re.fullmatch(r"[\w-]{16}", ident, re.ASCII):
            return None
        try:
            name = (self.folder / ident / "name").read_text(encoding="utf-8")
            path = self.folder / ident / f"file{_end(name)}"
            return Upload(path, name, path.stat().st_size)
        except FileNotFoundError:
            return None

    def _let_go(self, newest: str) -> None:
        """Remove the oldest while there are too many, or too large ones, but never the newest."""
        kept = []
        for place in self.folder.glob("[!.]*"):
            upload = self._look(place.name)
            if upload is not None:  # another process may have let it go
                kept.append((upload.path.stat().st_mtime_ns, place.name, upload.n_bytes))
        kept.sort()
        n_files, n_bytes = len(kept), sum(size for *_, size in kept)
        for _, ident, size in kept:
            if n_files <= _N_FILES and n_bytes <= self._max_bytes:
                break
            if ident != newest:
                shutil.rmtree(self.folder / ident, ignore_errors=True)
                n_files, n_bytes = n_files - 1, n_bytes - size


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
