"""CSV and TSV files of predictions, UTF-8, plain or gzipped; read and written by pyarrow.

pyarrow is fast and says little of what is wrong with a file. When it refuses one, Python's
own reader goes through it again, to name the line.

pyarrow reads ahead on threads of its own, which nobody can wait for: it opens files itself. From a
file of Python's those threads would call into Python, and one that did so while the interpreter
ends would abort the process.
"""

import csv
import gzip
import io
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from wassemble._checks import fail, option, shorten
from wassemble._extras import load_extra
from wassemble.inputs.formats.columns import load_narwhals, long_source, read_long_table
from wassemble.inputs.formats.layout import (
    ColumnType,
    LongLayout,
    WideLayout,
    find_layout,
    free_id_name,
)
from wassemble.inputs.formats.sources import Source, ids_from_text
from wassemble.inputs.predictions.value import Predictions, read_samples
from wassemble.inputs.reading import Reading
from wassemble.labels import LabelSpace

_MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
_FLAGS = ("True", "true", "TRUE", "False", "false", "FALSE")
# Rows that are looked at to tell text from numbers where names do not.
_N_LOOKED_AT = 20
# Bytes that are parsed at a time; pyarrow reads up to 32 times as many ahead. A row must fit
# in, so wide files get more.
_BLOCK = 1 << 20
_BYTES_PER_FIELD = 500
# Fields that are handed on at a time: each column of each table has its price.
_N_FIELDS = 1 << 20


@dataclass(frozen=True)
class _CsvFile:
    """Where a file is, and what its first lines look like."""

    path: Path
    arrow: Any  # the module pyarrow, with its csv
    delimiter: str
    n_blank: int  # lines above the header
    header: list[str]
    first_rows: list[list[str]]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.header)}

    def type_of(self, name: str) -> ColumnType:
        fields = self._fields(name)
        if not fields:
            return "empty"
        return "number" if all(f in _FLAGS or _is_number(f) for f in fields) else "text"

    def has_flags(self, name: str) -> bool:
        fields = self._fields(name)
        return bool(fields) and all(field in _FLAGS for field in fields)

    def _fields(self, name: str) -> list[str]:
        place = self._places[name]
        fields = [row[place] for row in self.first_rows if len(row) > place]
        return [field for field in fields if field not in _MISSING]


class _Scores:
    """The scores of a wide file, from its first row on.

    What was looked at is not read again: the first who goes through the rows begins with the
    table that `first` kept.
    """

    def __init__(self, file: _CsvFile, labels: LabelSpace) -> None:
        self._file = file
        self._names = labels.names
        self._begun: tuple[list[Any], Any] | None = None

    def first(self, n_rows: int) -> np.ndarray:
        """The first ``n_rows`` rows at most; the file stays open behind them."""
        if self._begun is None:
            tables = _tables(self._file, self._names)
            self._begun = list(islice(tables, 1)), tables
        begin, _ = self._begun
        return self._read(begin[0].slice(0, n_rows)) if begin else np.empty((0, len(self._names)))

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        begin, tables = self._begun or ([], _tables(self._file, self._names))
        self._begun = None
        with closing(tables):
            for table in chain(begin, tables):
                begin.clear()
                for start in range(0, len(table), n_rows):
                    yield self._read(table.slice(start, n_rows))

    def close(self) -> None:
        if self._begun is not None:
            self._begun[1].close()
            self._begun = None

    def _read(self, table: Any) -> np.ndarray:
        number = self._file.arrow.float64()
        return np.column_stack([column.cast(number).to_numpy() for column in table.columns])


def open_csv(path: Path, reading: Reading, model: str, *, delimiter: str) -> Source:
    """The predictions in a CSV file; the scores of a wide table are read later."""
    file = _look_at(path, delimiter)
    layout = find_layout(file.header, file.type_of, reading)
    if isinstance(layout, WideLayout):
        return _open_wide(file, layout, model)
    return _open_long(file, layout, reading.labels, model)


def _open_wide(file: _CsvFile, layout: WideLayout, model: str) -> Source:
    if layout.id_column is None:  # a file has no index
        counted = _tables(file, layout.labels.names[:1])
        ids: list[Any] = list(range(sum(table.num_rows for table in counted)))
    else:
        columns = _tables(file, [layout.id_column], text=[layout.id_column])
        texts = [text for table in columns for text in table.column(0).to_pylist()]
        ids = _check_ids(file, texts)
    scores = _Scores(file, layout.labels)
    return Source(
        layout.labels,
        read_samples(ids, model),
        scores.blocks,
        streams=True,
        id_column=layout.id_column,
        has_ids=layout.has_ids,
        left_out=layout.left_out,
        first=scores.first,
        close=scores.close,
    )


def _open_long(
    file: _CsvFile, layout: LongLayout, declared: LabelSpace | None, model: str
) -> Source:
    pa = file.arrow
    wanted = layout.columns
    text = [name for name in wanted if name != layout.score_column]
    tables = list(_tables(file, wanted, text=text))
    whole = pa.concat_tables(tables) if tables else pa.table({name: [] for name in wanted})
    frame = load_narwhals().from_native(whole)
    ids: list[Any] = list(range(len(frame)))
    if layout.id_column is not None:
        ids = _check_ids(file, frame.get_column(layout.id_column).to_list())
    listed = read_long_table(ids, frame, layout, declared, place=lambda i: _place(file, i))
    return long_source(listed, layout, model)


@contextmanager
def append_csv(
    path: Path, labels: LabelSpace, *, final: Path, delimiter: str, id_column: str | None = None
) -> Iterator[Callable[[Predictions], None]]:
    """A function that appends predictions to a new CSV file, gzipped if ``final`` says so."""
    pa_csv = load_extra("pyarrow.csv", "tables", purpose="writing CSV files")
    import pyarrow as pa

    header = [free_id_name(labels, id_column), *labels]
    quoted = re.compile(f'[{delimiter}"\r\n]')
    fields = ['"' + n.replace('"', '""') + '"' if quoted.search(n) else n for n in header]

    with ExitStack() as stack:
        file: Any = stack.enter_context(path.open("wb"))
        if _is_gzipped(final):
            # Without a time and a name inside, the same predictions give the same bytes.
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))

        def append(chunk: Predictions) -> None:
            arrays = [pa.array(chunk.samples.tolist())]
            arrays += [pa.array(column, from_pandas=True) for column in chunk.scores.T]
            batch = pa.record_batch(arrays, names=[str(i) for i in range(len(arrays))])
            buffer = pa.BufferOutputStream()
            try:
                options = pa_csv.WriteOptions(
                    include_header=False, delimiter=delimiter, quoting_style="none"
                )
                pa_csv.write_csv(batch, buffer, options)
            except pa.ArrowInvalid:  # an id with a separator, a quote or a line break
                buffer = pa.BufferOutputStream()
                options = pa_csv.WriteOptions(include_header=False, delimiter=delimiter)
                pa_csv.write_csv(batch, buffer, options)
            file.write(memoryview(buffer.getvalue()))

        file.write((delimiter.join(fields) + "\n").encode())
        yield append


def _look_at(path: Path, delimiter: str) -> _CsvFile:
    """What the first lines say."""
    load_extra("pyarrow.csv", "tables", purpose="reading CSV files")
    import pyarrow as pa

    with _open_bytes(path) as raw:
        start = raw.read(2)
        raw.seek(0)
        if start in (b"\xff\xfe", b"\xfe\xff"):
            fail("the text must be UTF-8; it looks like UTF-16.", hint="save it as UTF-8")
        with _as_text(raw) as text:
            records = list(islice(_records(text, delimiter), _N_LOOKED_AT + 1))
    if not records:
        fail("the first line must name the columns; got an empty file.")
    line, header = records[0]
    if len(header) == 1:
        others = [mark for mark in ";\t,|" if mark != delimiter and mark in header[0]]
        if others:
            fail(
                f"columns must be separated by {delimiter!r}; line {line} has one column,"
                f" {shorten(header[0])!r}.",
                hint=f"it looks as if they were separated by {others[0]!r}: write the table with"
                f" {delimiter!r} between columns, and numbers with decimal points",
            )
    return _CsvFile(path, pa, delimiter, line - 1, header, [fields for _, fields in records[1:]])


def _tables(file: _CsvFile, names: Sequence[str], *, text: Sequence[str] = ()) -> Generator[Any]:
    """Some columns, as one pyarrow table after the other; ``text`` are those without numbers."""
    if not file.first_rows:
        return
    pa, pa_csv = file.arrow, file.arrow.csv
    block = max(_BLOCK, _BYTES_PER_FIELD * len(file.header))
    types = {
        name: pa.string() if name in text else pa.bool_() if file.has_flags(name) else pa.float64()
        for name in names
    }
    try:
        reader = pa_csv.open_csv(
            _open_for_arrow(file),
            read_options=pa_csv.ReadOptions(
                column_names=file.header,
                skip_rows=file.n_blank,
                skip_rows_after_names=1,
                block_size=block,
            ),
            parse_options=pa_csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=types,
                include_columns=list(names),
                null_values=list(_MISSING),
                strings_can_be_null=False,
            ),
        )
        batches: list[Any] = []
        for batch in reader:
            batches.append(batch)
            if sum(part.num_rows for part in batches) * len(names) >= _N_FIELDS:
                yield pa.Table.from_batches(batches)
                batches = []
        if batches:
            yield pa.Table.from_batches(batches)
    except pa.ArrowInvalid as error:
        flags = {name for name, of in types.items() if of == pa.bool_()}
        numbers = {name for name, of in types.items() if of == pa.float64()}
        _explain(file, numbers, flags)
        if "straddling" in str(error):
            fail(f"a row must have at most {block:,} bytes; got a longer one.")
        raise


def _explain(file: _CsvFile, numbers: set[str], flags: set[str]) -> None:
    """Fail with the line of the first fault, if there is one that Python's reader sees."""
    width = len(file.header)
    for line, fields in islice(_read_records(file), 1, None):
        if len(fields) != width:
            quoted = any("\n" in field for field in fields)
            fail(
                f"line {line} must have {width} fields; got {len(fields)}.",
                hint="a quote is opened there and not closed" if quoted else None,
            )
        for name, field in zip(file.header, fields, strict=True):
            if field in _MISSING:
                continue
            if (name in numbers and not _is_number(field)) or (
                name in flags and field not in (*_FLAGS, "0", "1")
            ):
                must = "a number" if name in numbers else "True or False, as above"
                fail(
                    f"line {line}, column {name!r} must hold {must}; got {shorten(field)!r}.",
                    hint=f"{option('id_column')} and {option('labels')} say which columns are what"
                    + (
                        f"; {option('label_column', name)}, that it names labels"
                        * (name in numbers)
                    ),
                )


def _check_ids(file: _CsvFile, ids: list[str]) -> list[Any]:
    if "" in ids:
        fail(f"every row must have a sample id; got none at {_place(file, ids.index(''))}.")
    return ids_from_text(ids)


def _place(file: _CsvFile, row: int) -> str:
    """Row ``row`` below the header, as the line of the file where it starts."""
    line, _ = next(islice(_read_records(file), row + 1, None), (None, None))
    return f"row {row}" if line is None else f"line {line}"


def _read_records(file: _CsvFile) -> Iterator[tuple[int, list[str]]]:
    """Each row with the line it starts on, from the file anew."""
    with _open_bytes(file.path) as raw, _as_text(raw) as text:
        yield from _records(text, file.delimiter)


def _as_text(raw: BinaryIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(raw, "utf-8-sig", errors="surrogateescape", newline="")


def _records(text: io.TextIOWrapper, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each row with the line it starts on, counted from 1; lines without anything are left out."""
    line = 1
    reader = csv.reader(text, delimiter=delimiter)
    try:
        for fields in reader:
            if not all(map(_is_valid, fields)):
                fail(f"the text must be UTF-8; line {line} is not.", hint="save it as UTF-8")
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        fail(f"line {line} must be readable; got: {error}.")


def _open_bytes(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb") if _is_gzipped(path) else path.open("rb"))


def _open_for_arrow(file: _CsvFile) -> Any:
    """The file as Arrow's threads may read it: without Python, unpacked if it is gzipped.

    It is not for us to close: a thread that reads ahead may be at it. The last that lets go of
    it does.
    """
    packed = file.arrow.OSFile(os.fsencode(file.path))
    if _is_gzipped(file.path):
        return file.arrow.CompressedInputStream(packed, "gzip")
    return packed


def _is_gzipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _is_valid(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return "_" not in text and text.isascii()
    return False
