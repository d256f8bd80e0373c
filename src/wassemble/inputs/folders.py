"""Folders of files, on this machine or in any store that fsspec knows.

Both kinds of folder do the same few things, so that what reads and writes part files need
not know where they are.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble._files import is_remote

# What stores call the version of a file.
_TAGS = ("ETag", "etag")  # made from the content, or anew for each write
_VERSIONS = (*_TAGS, "mtime", "LastModified", "last_modified", "updated", "created")
# Nanoseconds between two times that a file system can tell apart, at the coarsest.
_CLOCK_STEP = 2_000_000_000
_UNFINISHED = ".unfinished-"


class Found(NamedTuple):
    """A file of a folder."""

    n_bytes: int
    stamp: str  # changes when the file does
    is_sure: bool = True  # no change can leave the stamp as it is


def open_folder(place: str | os.PathLike[str]) -> Folder:
    """The folder at a path or at a URL that fsspec knows (s3://, gs://, memory:// ...)."""
    return RemoteFolder(os.fspath(place)) if is_remote(place) else LocalFolder(_path(place))


def is_folder(place: str | os.PathLike[str]) -> bool:
    """Whether there is a folder at a place: one on this machine, or a URL with files below."""
    folder = open_folder(place)
    return folder.path.is_dir() if isinstance(folder, LocalFolder) else bool(folder.find())


def fetch_file(place: str | os.PathLike[str]) -> AbstractContextManager[Path]:
    """A path to read the file from that is at a path or URL."""
    return RemoteFolder(os.fspath(place)).fetch() if is_remote(place) else nullcontext(_path(place))


def store_file(place: str | os.PathLike[str]) -> AbstractContextManager[Path]:
    """A path to write to, whole; of a URL, the file goes there at the end."""
    if not is_remote(place):
        return nullcontext(_path(place))
    if os.fspath(place).endswith(".npy"):
        fail(
            f"{_without_password(os.fspath(place))}: .npy has its names in other files.",
            hint=".npz and .parquet hold them",
        )
    return RemoteFolder(os.fspath(place)).store()


class LocalFolder:
    """A folder of this machine, or of a file system that its workers share."""

    def __init__(self, path: Path) -> None:
        self.name = path.absolute().name  # not that of what a link leads to
        self.path = path.resolve()  # workers may have started elsewhere

    def __str__(self) -> str:
        return str(self.path)

    def find(self, under: str = "") -> dict[str, Found]:
        """Every file below ``under`` by its name there, sorted; not those that . or _ hides."""
        by_name = {}
        root = self.path / under
        for folder, folders, files in os.walk(root, onerror=_refuse_unreadable, followlinks=True):
            folders[:] = [name for name in folders if not _is_hidden(name)]
            for name in folders:
                link = Path(folder, name)
                if link.is_symlink() and link.parent.resolve().is_relative_to(link.resolve()):
                    fail(f"{link}: a link must not lead to a folder that it is in.")
            for file in files:
                if not _is_hidden(file):
                    path = Path(folder, file)
                    by_name[path.relative_to(root).as_posix()] = _look_at(path)
        return dict(sorted(by_name.items()))

    def fetch(self, name: str) -> AbstractContextManager[Path]:
        """A path to read the file from."""
        return nullcontext(self.path / name)

    @contextmanager
    def store(self, name: str, *, durable: bool = False) -> Iterator[Path]:
        """A path to write to; at the end the file appears under its name, whole.

        One that is ``durable`` is whole even if the power fails just then; this takes the
        time that the disk takes.
        """
        final = self.path / name
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=self.path) as temporary:
            path = Path(temporary, final.name)
            yield path
            if durable:
                _force_to_disk(path)
            path.replace(final)
            if durable:
                with suppress(OSError):  # not every file system does this for folders
                    _force_to_disk(final.parent)

    def read(self, name: str) -> str | None:
        """The text of a file; None if there is none."""
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def look(self, name: str) -> Found | None:
        """A file as `find` has it; None if there is none."""
        path = self.path / name
        return _look_at(path) if path.is_file() else None

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        path = self.path / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what runs that were killed left unfinished."""
        for path in self.path.glob(f"{_UNFINISHED}*"):
            self.remove(path.name)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Refuse if another process is in this block; the system lets go when it is killed."""
        import fcntl

        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fail(
                    f"{self}: one run at a time may write here; another one is at work.",
                    hint="wait for it, or choose another folder",
                )
            except OSError as error:
                fail(
                    f"{self}: must be on a file system that has locks; {error.strerror}.",
                    hint="choose another folder, or mount it with locks",
                )
            yield


class RemoteFolder:
    """A folder of an object store, or of whatever else has a URL.

    Files pass through temporary copies on this machine. An object appears under its name
    when the store has all of it; where a store shows files that are still being written,
    their size gives them away. There is no lock.
    """

    def __init__(self, url: str) -> None:
        self._shown = _without_password(url.rstrip("/"))
        fsspec = load_extra("fsspec.core", "scale", purpose=f"reaching {self}")
        try:
            self._files, root = fsspec.url_to_fs(url.rstrip("/"))
        except (ImportError, ValueError) as error:
            fail(f"{self}: must be a place that fsspec can reach; {error}.")
        self._root = str(root).rstrip("/")

    def __str__(self) -> str:
        return self._shown

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return PurePosixPath(self._root).name

    def find(self, under: str = "") -> dict[str, Found]:
        root = self._path(under)
        self._files.invalidate_cache()
        by_name = {}
        for path, about in self._files.find(root, detail=True).items():
            name = path.removeprefix(root).lstrip("/")
            # A path that is itself a file is found under the empty name: no folder.
            if name and not any(map(_is_hidden, name.split("/"))):
                by_name[name] = _found(about)
        return dict(sorted(by_name.items()))

    @contextmanager
    def fetch(self, name: str = "") -> Iterator[Path]:
        """A path to read the file from; without a name, the URL is one of a file."""
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary, PurePosixPath(self._path(name)).name)
            try:
                self._files.get_file(self._path(name), str(path))
            except FileNotFoundError:
                fail(f"{self._files.unstrip_protocol(self._path(name))}: there is no such file.")
            yield path

    @contextmanager
    def store(self, name: str = "", *, durable: bool = False) -> Iterator[Path]:
        """A path to write to; at the end the file appears under its name.

        How durable it is, is the store's to say.
        """
        final = self._path(name)
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary, PurePosixPath(final).name)
            yield path
            self._files.makedirs(final.rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(path), final)

    def read(self, name: str) -> str | None:
        try:
            return str(self._files.cat_file(self._path(name)).decode("utf-8"))
        except FileNotFoundError:
            return None

    def look(self, name: str) -> Found | None:
        self._files.invalidate_cache()
        try:
            return _found(self._files.info(self._path(name)))
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        if self._files.exists(self._path(name)):
            self._files.rm(self._path(name), recursive=True)

    def sweep(self) -> None:
        """Nothing: what is unfinished never gets here."""

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Nothing: stores have no locks that a kill lets go of."""
        return nullcontext()

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root


Folder: TypeAlias = LocalFolder | RemoteFolder


def _path(place: str | os.PathLike[str]) -> Path:
    text = os.fspath(place)
    return Path(text.partition("://")[2] or text)


def _without_password(url: str) -> str:
    return re.sub(r"://[^/]*@", "://", url)


def _look_at(path: Path) -> Found:
    try:
        status = path.stat()
    except FileNotFoundError:  # a link to nothing: an error when it is read, of this part alone
        return Found(0, "missing")
    # The time of the last change of anything is the system's alone: whoever sets the time of
    # writing back, or puts a copy with the old time in its place, changes this one.
    changed = status.st_ctime_ns
    stamp = f"{status.st_size} {status.st_mtime_ns} {changed} {status.st_ino}"
    # Clocks of file systems have steps: what has just been written may be so again in the same.
    return Found(status.st_size, stamp, time.time_ns() - changed > _CLOCK_STEP)


def _found(about: Mapping[str, Any]) -> Found:
    """A file of a store, from what fsspec says about it."""
    version = next((str(about[key]) for key in _VERSIONS if about.get(key)), "")
    is_sure = any(about.get(key) for key in _TAGS)
    # Lists and single files have the same tag, but for its quotes.
    stripped = version.strip('"')
    return Found(int(about["size"]), f"{about['size']} {stripped}", is_sure)


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_unreadable(error: OSError) -> None:
    """What is not there has no files; a folder that cannot be read may have some."""
    if not isinstance(error, FileNotFoundError):
        fail(f"{error.filename}: must be a folder that can be read; {error.strerror}.")


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))
