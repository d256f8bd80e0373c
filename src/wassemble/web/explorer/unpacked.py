"""How much memory a packed file takes, found out before the whole of it is read."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.inputs.sources import blame

__all__ = ["check_unpacked"]

_PIECE = 1 << 20
_N_ROWS = 256
# A text takes this much beside its letters, a number this much alone.
_TEXT_BYTES = 64
_NUMBER_BYTES = 8


def check_unpacked(path: Path, limit: int) -> None:
    """Refuse a file that would take more than ``limit`` bytes once it is unpacked.

    Tables are counted as they are once decoded: a text that a column repeats counts each time.
    """
    sizes = _SIZES.get(path.suffix.lower())
    total = 0
    if sizes is None:
        return
    with blame(path.name, "a whole file of its kind"):
        for size in sizes(path):
            total += size
            if total > limit:
                fail(f"unpacked, a file must have at most {limit:,} bytes; got more.")


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
        yield _NUMBER_BYTES * about.num_rows * about.num_columns
        yield sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    # As a dictionary, a text that is repeated is in memory once.
    options = {"read_dictionary": texts, "buffer_size": 1 << 14, "pre_buffer": False}
    for name in texts:
        with pq.ParquetFile(path, **options) as file:
            for batch in file.iter_batches(_N_ROWS, columns=[name]):
                yield from map(_text_size, batch.columns)


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
    pa = load_extra("pyarrow", "tables", purpose="reading tables")
    types, texts = pa.types, []
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        is_text = any(
            test(kind)
            for test in (types.is_string, types.is_large_string)
            + (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
        )
        if is_text:
            texts.append(field.name)
        elif not (types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)):
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
