"""Files that were sent here: few, small, in a folder of their own that goes with the server."""

import gzip
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.inputs.formats import ENDS
from wassemble.inputs.formats.sources import blame

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
    """At most 64 files and ``max_bytes`` in all; the oldest go first, all when the server ends.

    They are in a folder that belongs to ``run_id``, so that every process of a server has them:
    ``IDENT/file.csv`` beside ``IDENT/name``.
    """

    def __init__(self, max_bytes: int, run_id: str) -> None:
        self._max_bytes = max_bytes
        self.folder = Path(tempfile.gettempdir(), f"{_FOLDER}{run_id}")
        self._finalizer = weakref.finalize(self, remove_uploads, run_id)

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

    def close(self) -> None:
        """Remove everything now."""
        self._finalizer()

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


def remove_uploads(run_id: str) -> None:
    """Remove every file that was sent to a run of the server."""
    shutil.rmtree(Path(tempfile.gettempdir(), f"{_FOLDER}{run_id}"), ignore_errors=True)


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


_PIECE = 1 << 20
_N_ROWS = 256
# A text takes this much beside its letters, a number this much alone.
_TEXT_BYTES = 64
_NUMBER_BYTES = 8


def check_unpacked(path: Path, limit: int) -> int:
    """Bytes that a file takes once it is unpacked; more than ``limit`` are refused.

    Tables are counted as they are once decoded: a text that a column repeats counts each time.
    """
    sizes = _SIZES.get(path.suffix.lower())
    if sizes is None:
        return path.stat().st_size
    total = 0
    with blame(path.name, "a whole file of its kind"):
        for size in sizes(path):
            total += size
            if total > limit:
                fail(f"unpacked, a file must have at most {limit:,} bytes; got more.")
    return total


def _npz(path: Path) -> Iterator[int]:
    with zipfile.ZipFile(path) as archive:
        yield sum(member.file_size for member in archive.infolist())


def _gzip(path: Path) -> Iterator[int]:
    with gzip.open(path) as file:
        while piece := file.read(_PIECE):
            yield len(piece)


def _parquet(path: Path) -> Iterator[int]:
    pq = load_extra("pyarrow.parquet", "tables", purpose="reading Parquet files")
    with pq.ParquetFile(path) as file:
        about, texts = file.metadata, _find_texts(file.schema_arrow)
        stored = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        yield max(stored, _NUMBER_BYTES * about.num_rows * about.num_columns)
    # As a dictionary, a text that is repeated is in memory once.
    options = {"read_dictionary": texts, "buffer_size": 1 << 14, "pre_buffer": False}
    for name in texts:
        with pq.ParquetFile(path, **options) as file:
            for batch in file.iter_batches(_N_ROWS, columns=[name]):
                yield _text_size(batch.column(name))


def _arrow(path: Path) -> Iterator[int]:
    pa = load_extra("pyarrow", "tables", purpose="reading Arrow files")
    with pa.memory_map(str(path)) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        texts = _find_texts(reader.schema)
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            batch.validate(full=True)
            yield _NUMBER_BYTES * batch.num_rows * batch.num_columns
            yield from (_text_size(batch.column(name)) for name in texts)


def _find_texts(schema: Any) -> list[str]:
    """Columns of text; all others must be of plain numbers, or the size is not told easily."""
    types = load_extra("pyarrow", "tables", purpose="reading tables").types
    is_text = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    is_number = (types.is_primitive, types.is_decimal, types.is_null)
    texts = []
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if any(test(kind) for test in is_text):
            texts.append(field.name)
        elif not any(test(kind) for test in is_number):
            fail(f"columns must hold numbers or text; got {field.type} in {field.name!r}.")
    return texts


def _text_size(column: Any) -> int:
    """Bytes of a column of text once every row has a text of its own."""
    pa = load_extra("pyarrow", "tables", purpose="reading tables")
    pc = load_extra("pyarrow.compute", "tables", purpose="reading tables")
    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary).take(column.indices)
    else:
        lengths = pc.binary_length(column)
    return _TEXT_BYTES * len(column) + (pc.sum(lengths).as_py() or 0)


_SIZES = {
    ".npz": _npz,
    ".gz": _gzip,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".ipc": _arrow,
}
