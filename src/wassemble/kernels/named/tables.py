"""Kernels as tables of source, target and similarity: Parquet in and out, CSV in."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._checks import fail, option_or
from wassemble._extras import load_extra
from wassemble.kernels.base import Kernel
from wassemble.kernels.named.labelled import LabelledKernel
from wassemble.kernels.places import named_labels
from wassemble.kernels.sparse import SparseKernel
from wassemble.labels import LabelSpace, enumerate_names

_COLUMNS = ("source", "target", "similarity")


def write_parquet(labelled: LabelledKernel, path: Path) -> None:
    """The entries above 0 as a table, all else in the file's metadata."""
    kernel = labelled.kernel
    if not kernel.keeps_entries:
        fail(
            "a kernel must have its similarities as such to be saved as .parquet; this one is"
            f" {kernel.storage}.",
            hint="save it as .npz",
        )
    pa = load_extra("pyarrow", "tables", purpose="writing Parquet files")
    parquet = load_extra("pyarrow.parquet", "tables", purpose="writing Parquet files")
    about = {
        "storage": kernel.storage,
        "symmetric": kernel.is_symmetric,
        "source": labelled.source.names,
        "target": labelled.target.names,
        "origin": labelled.origin,
        "notes": labelled.notes,
    }
    if labelled.declared is not None:
        declared = np.flatnonzero(labelled.declared).tolist()
        about["declared"] = [labelled.target[place] for place in declared]
    similarity = pa.float32() if kernel.dtype == np.float32 else pa.float64()
    name = pa.dictionary(pa.int32(), pa.string())
    fields = zip(_COLUMNS, (name, name, similarity), strict=True)
    schema = pa.schema(list(fields), metadata={"wassemble kernel": json.dumps(about)})
    names = [pa.array(space.names) for space in (labelled.source, labelled.target)]
    with parquet.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        for start, rows in kernel.blocks():
            coo = sp.coo_array(rows)
            places = coo.row.astype(np.int32) + np.int32(start), coo.col.astype(np.int32)
            columns = [
                pa.DictionaryArray.from_arrays(pa.array(place), known)
                for place, known in zip(places, names, strict=True)
            ]
            values = pa.array(coo.data.astype(similarity.to_pandas_dtype(), copy=False))
            writer.write_table(pa.Table.from_arrays([*columns, values], schema=schema))


def read_parquet(path: Path) -> LabelledKernel:
    """What `write_parquet` wrote, or the kernel of any table with the three columns."""
    pa = load_extra("pyarrow", "tables", purpose="reading Parquet files")
    parquet = load_extra("pyarrow.parquet", "tables", purpose="reading Parquet files")
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            table = file.read() if sorted(schema.names) == sorted(_COLUMNS) else None
        if table is not None:
            table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        fail(f"{path}: must be a Parquet file; it cannot be read ({reason}).")
    if table is None:
        fail(f"{path}: must have the columns {', '.join(_COLUMNS)}; got {schema.names}.")
    about = _read_about(path, (schema.metadata or {}).get(b"wassemble kernel"))
    places, spaces = [], []
    for side in ("source", "target"):
        of_rows, names = _decode_names(path, pa, table.column(side), side)
        used, first = np.unique(of_rows, return_index=True)
        appearing = [names[place] for place in used[np.argsort(first)].tolist()]
        space = LabelSpace(about[side]) if about else LabelSpace(appearing)
        strange = [name for name in appearing if name not in space]
        if strange:
            fail(
                f"{path}: the {side} labels must hold every name in the table; they lack"
                f" {enumerate_names(strange)}."
            )
        # A dictionary may hold names that no row uses.
        numbers = np.array([space.place(name) if name in space else -1 for name in names])
        places.append(numbers[of_rows])
        spaces.append(space)
    similarity = table.column("similarity")
    if not pa.types.is_floating(similarity.type) and not pa.types.is_integer(similarity.type):
        fail(f"{path}: `similarity` must hold numbers; got {similarity.type}.")
    if similarity.null_count:
        fail(f"{path}: `similarity` must have a number in every row; got an empty one.")
    (source, target), (rows, columns) = spaces, places
    storage, symmetric = (about["storage"], about["symmetric"]) if about else ("sparse", False)
    entries = _read_entries(path, source, target, rows, columns, similarity.to_numpy())
    with named_labels(source, target):
        checked = SparseKernel(entries, symmetric=symmetric).to_sparse()
        kernel = Kernel.from_entries(storage, checked, symmetric=symmetric)
    if about is None:
        return LabelledKernel(kernel, source, target, path.name)
    declared = None
    if "declared" in about:
        declared = np.zeros(len(target), dtype=bool)
        declared[target.places(about["declared"])] = True
    return LabelledKernel(
        kernel, source, target, about["origin"], about["notes"], declared=declared
    )


def _read_about(path: Path, text: bytes | None) -> dict[str, Any] | None:
    if text is None:
        return None
    wanted = {"storage": str, "symmetric": bool, "origin": str}
    wanted |= {"source": list, "target": list, "notes": list}
    try:
        about = json.loads(text)
    except ValueError as error:
        fail(f"{path}: the metadata of a kernel must be JSON; got an error ({error}).")
    if isinstance(about, dict) and "declared" in about:
        wanted["declared"] = list
    if not isinstance(about, dict) or set(about) != set(wanted):
        fail(f"{path}: the metadata of a kernel must be {', '.join(wanted)}; got other keys.")
    for key, kind in wanted.items():
        if not isinstance(about[key], kind):
            fail(f"{path}: `{key}` in the metadata must be a {kind.__name__}; got {about[key]!r}.")
    return about


def _decode_names(path: Path, pa: Any, column: Any, side: str) -> tuple[np.ndarray, list[str]]:
    """Place of each row's name in a list of names, and the list."""
    if column.null_count:
        fail(f"{path}: `{side}` must have a name in every row; got an empty one.")
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    kind = column.type.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        fail(f"{path}: `{side}` must hold names; got {kind}.")
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return np.zeros(0, dtype=np.int64), []
    numbers = np.concatenate([chunk.indices.to_numpy() for chunk in column.chunks]).astype(np.int64)
    return numbers, column.chunk(0).dictionary.to_pylist()


def read_csv(path: Path) -> LabelledKernel:
    """The kernel of a table with a header line and the three columns."""
    places: dict[str, dict[str, int]] = {"source": {}, "target": {}}
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for line, record in _read_records(path):
        for side, listed in (("source", rows), ("target", columns)):
            name = record[side]
            if not name:
                fail(f"{path}, line {line}: `{side}` must be a label name; got nothing.")
            listed.append(places[side].setdefault(name, len(places[side])))
        try:
            values.append(float(record["similarity"]))
        except ValueError:
            got = record["similarity"]
            fail(f"{path}, line {line}: `similarity` must be a number; got {got!r}.")
    if not values:
        fail(f"{path}: must have at least one row below its header; got none.")
    spaces = LabelSpace(places["source"]), LabelSpace(places["target"])
    entries = _read_entries(path, *spaces, np.array(rows), np.array(columns), np.array(values))
    with named_labels(*spaces):
        return LabelledKernel(SparseKernel(entries), *spaces, path.name)


def _read_records(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            if sorted(header) != sorted(_COLUMNS):
                fail(
                    f"{path}: the first line must be {','.join(_COLUMNS)}; got {','.join(header)}.",
                    hint="a table with a row and a column for each label is one of ratings:"
                    f" {option_or('kernels.from_ratings(frame)', ratings=path.name)}",
                )
            for fields in reader:
                if not fields:
                    continue
                if len(fields) != len(_COLUMNS):
                    fail(f"{path}, line {reader.line_num}: must have 3 fields; got {len(fields)}.")
                yield reader.line_num, dict(zip(header, fields, strict=True))
        except UnicodeDecodeError:
            fail(f"{path}, line {reader.line_num + 1}: must be UTF-8 text; got other bytes.")
        except csv.Error as error:
            fail(f"{path}, line {reader.line_num}: must be a line of CSV ({error}).")


def _read_entries(
    path: Path,
    source: LabelSpace,
    target: LabelSpace,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
) -> sp.csr_array:
    """The rows of a table as a matrix, each pair once."""
    keys = np.sort(rows * len(target) + columns)
    twice = keys[1:][keys[1:] == keys[:-1]]
    if len(twice):
        row, column = divmod(int(twice[0]), len(target))
        fail(
            f"{path}: a pair of labels must be in one row; got more for source"
            f" {source[row]!r}, target {target[column]!r}."
        )
    return sp.csr_array((values, (rows, columns)), shape=(len(source), len(target)))
