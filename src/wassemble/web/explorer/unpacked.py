"""How much memory a packed file takes, found out before the whole of it is read."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.inputs.formats.sources import blame

__all__ = ["check_unpacked"]

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
