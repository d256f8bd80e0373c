"""Parquet and Arrow files of predictions, read and written a few rows at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.inputs.formats.columns import (
    column_type,
    load_narwhals,
    long_source,
    read_ids,
    read_long_table,
    read_scores,
    read_stored_index,
)
from wassemble.inputs.formats.layout import WideLayout, find_layout, free_id_name
from wassemble.inputs.formats.sources import Source
from wassemble.inputs.predictions.value import Predictions, read_samples
from wassemble.inputs.reading import Reading
from wassemble.labels import LabelSpace

# A row group, the piece that a reader takes at once: about 8 MB.
_GROUP_CELLS = 1 << 20

Batches = Callable[[Sequence[str], int], Iterator[Any]]
Append = Callable[[Predictions], None]


def open_parquet(path: Path, reading: Reading, model: str) -> Source:
    """The predictions in a Parquet file; long tables are read whole."""
    pq = load_extra("pyarrow.parquet", "tables", purpose="reading Parquet files")

    def batches(names: Sequence[str], n_rows: int) -> Iterator[Any]:
        # So a column is read by pages and let go of, and not kept by row groups.
        with pq.ParquetFile(path, buffer_size=1 << 14, pre_buffer=False) as file:
            # A name selects more than itself if others begin with it and a dot.
            yield from file.iter_batches(n_rows, columns=list(names))

    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
    return _open_table(schema, batches, reading, model)


def open_arrow(path: Path, reading: Reading, model: str) -> Source:
    """The predictions in an Arrow (Feather) file or stream; long tables are read whole."""
    pa = load_extra("pyarrow", "tables", purpose="reading Arrow files")
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"FEA1"):
        fail("the file must be of Feather version 2; got version 1.", hint="write it anew")
    is_file = start == b"ARROW1"

    def batches(names: Sequence[str], n_rows: int) -> Iterator[Any]:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
            each = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            for batch in each:
                chosen = batch.select(list(names))
                # Unlike Parquet, the bytes are used as they are: offsets may point anywhere.
                chosen.validate(full=True)
                for row in range(0, chosen.num_rows, n_rows):
                    yield chosen.slice(row, n_rows)

    with pa.memory_map(str(path)) as file:
        schema = (pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)).schema
    return _open_table(schema, batches, reading, model)


def append_parquet(path: Path, labels: LabelSpace, **how: Any) -> AbstractContextManager[Append]:
    """A function that appends predictions to a new Parquet file."""
    pq = load_extra("pyarrow.parquet", "tables", purpose="writing Parquet files")
    return _appending(labels, partial(pq.ParquetWriter, path, use_dictionary=False), **how)


def append_arrow(path: Path, labels: LabelSpace, **how: Any) -> AbstractContextManager[Append]:
    """A function that appends predictions to a new Arrow file."""
    pa = load_extra("pyarrow", "tables", purpose="writing Arrow files")
    return _appending(labels, partial(pa.ipc.new_file, str(path)), **how)


def _open_table(schema: Any, batches: Batches, reading: Reading, model: str) -> Source:
    pa = load_extra("pyarrow", "tables", purpose="reading Arrow files")
    nw = load_narwhals()
    # Types are told from the schema; twice the same name is for `find_layout` to refuse.
    types = {
        field.name: lambda field=field: column_type(
            nw.from_native(pa.chunked_array([], type=field.type), series_only=True)
        )
        for field in schema
    }
    layout = find_layout(
        schema.names, lambda name: types[name](), reading, stored_index=read_stored_index(schema)
    )

    def read(wanted: Sequence[str]) -> Any:
        parts = list(batches(wanted, _GROUP_CELLS))
        columns = pa.schema([schema.field(name) for name in wanted])
        return nw.from_native(
            pa.Table.from_batches(parts) if parts else columns.empty_table(), eager_only=True
        )

    id_column = layout.id_column  # a file has no index
    if isinstance(layout, WideLayout):
        labels = layout.labels
        if id_column is None:
            samples = read_samples(range(len(read(labels.names[:1]))), model)
        else:
            samples = read_samples(read_ids(read([id_column]).get_column(id_column)), model)

        def blocks(n_rows: int) -> Iterator[np.ndarray]:
            if len(samples) == 0:  # still tells of which type scores are
                yield read_scores(read(labels.names), labels.names)
            n_rows = min(n_rows, max(1, 4 * _GROUP_CELLS // len(labels)))
            for batch in batches(labels.names, n_rows):
                yield read_scores(nw.from_native(pa.Table.from_batches([batch])), labels.names)

        return Source(
            labels,
            samples,
            blocks,
            streams=True,
            id_column=id_column,
            has_ids=layout.has_ids,
            left_out=layout.left_out,
        )

    frame = read(layout.columns)
    ids: Any = range(len(frame))
    if id_column is not None:
        ids = read_ids(frame.get_column(id_column))
    listed = read_long_table(ids, frame, layout, reading.labels)
    return long_source(listed, layout, model)


@contextmanager
def _appending(
    labels: LabelSpace,
    open_writer: Callable[[Any], Any],
    *,
    final: Path,
    id_column: str | None = None,
) -> Iterator[Append]:
    groups = _RowGroups([free_id_name(labels, id_column), *labels], labels, open_writer)
    try:
        yield groups.append
        groups.finish()
    finally:
        if groups.writer is not None:
            groups.writer.close()


class _RowGroups:
    """Gathers rows into groups; the first of them say which types the file has."""

    def __init__(
        self, names: list[str], labels: LabelSpace, open_writer: Callable[[Any], Any]
    ) -> None:
        self.labels = labels
        self.names = names
        self.writer: Any = None
        self._open_writer = open_writer
        self._schema: Any = None
        self._empty_schema: Any = None  # of a chunk without rows, for a file without any
        self._pending: list[Any] = []

    def append(self, chunk: Predictions) -> None:
        batch = self._as_batch(chunk)
        if chunk.n_samples == 0:
            self._empty_schema = batch.schema
            return
        self._start(batch.schema)
        if batch.schema != self._schema:
            got, must = batch.schema.types, self._schema.types
            fail(
                "every chunk must have ids and scores of the same type; got"
                f" {got[0]} and {got[1]} after {must[0]} and {must[1]}."
            )
        self._pending.append(batch)
        if sum(part.num_rows for part in self._pending) * len(self.labels) >= _GROUP_CELLS:
            self._flush()

    def finish(self) -> None:
        if self._empty_schema is None:
            nothing = Predictions("none", [], self.labels, np.empty((0, len(self.labels))))
            self._empty_schema = self._as_batch(nothing).schema
        self._start(self._empty_schema)
        if self._pending:
            self._flush()

    def _start(self, schema: Any) -> None:
        if self._schema is None:
            self._schema = schema
            self.writer = self._open_writer(schema)

    def _as_batch(self, chunk: Predictions) -> Any:
        pa = load_extra("pyarrow", "tables", purpose="writing tables")
        ids = pa.int64() if chunk.samples.dtype.kind == "i" else pa.string()
        arrays = [pa.array(chunk.samples.tolist(), ids)]
        arrays += [pa.array(column, from_pandas=True) for column in chunk.scores.T]
        return pa.record_batch(arrays, names=self.names)

    def _flush(self) -> None:
        pa = load_extra("pyarrow", "tables", purpose="writing tables")
        self.writer.write_table(pa.Table.from_batches(self._pending).combine_chunks())
        self._pending.clear()
