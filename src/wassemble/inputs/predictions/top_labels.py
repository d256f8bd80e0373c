"""The best labels of each sample as a table: the id, a label, and its confidence."""

import csv
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble._files import whole_file
from wassemble.inputs.predictions.value import Predictions

Row = tuple[Any, str | None, float | None]
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_ENDS = (*_DELIMITERS, ".parquet", ".arrow", ".feather")


def check_top_file(path: str | os.PathLike[str]) -> None:
    """Refuse a name whose end is none of a table of best labels."""
    if Path(path).suffix.lower() not in _ENDS:
        fail(f"a table of the best labels must end in {', '.join(_ENDS)}; got {Path(path).name}.")


def print_top(k: int) -> Callable[[Predictions], None]:
    """A function that prints the ``k`` best labels of chunks as one CSV table."""
    return _csv_appender(sys.stdout, k, ",")


@contextmanager
def write_top(path: str | os.PathLike[str], k: int) -> Iterator[Callable[[Predictions], None]]:
    """A function that appends the ``k`` best labels of chunks to a file, which appears whole."""
    check_top_file(path)
    final = Path(path)
    with whole_file(final) as temporary:
        delimiter = _DELIMITERS.get(final.suffix.lower())
        if delimiter is not None:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                yield _csv_appender(file, k, delimiter)
            return
        # Three cells a row: far smaller than what they were told from.
        lists: list[list[Row]] = []
        headers: list[tuple[str, ...]] = []

        def keep(chunk: Predictions) -> None:
            headers.append(_header(chunk))
            lists.append(list(_rows(chunk, k)))

        yield keep
        _write_arrow(temporary, headers[0], [row for rows in lists for row in rows])


def _rows(predictions: Predictions, k: int) -> Iterator[Row]:
    return ((row.sample, row.label, row.confidence) for row in predictions.top(k))


def _header(chunk: Predictions) -> tuple[str, str, str]:
    """Ids keep the name of their column, unless one of the others has it."""
    own = chunk.origin.id_column
    return ("sample" if own in (None, "label", "confidence") else str(own), "label", "confidence")


def _csv_appender(file: Any, k: int, delimiter: str) -> Callable[[Predictions], None]:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    is_first = True

    def append(chunk: Predictions) -> None:
        nonlocal is_first
        if is_first:
            writer.writerow(_header(chunk))
        is_first = False
        writer.writerows(_rows(chunk, k))

    return append


def _write_arrow(path: Path, header: Sequence[str], rows: list[Row]) -> None:
    pa = load_extra("pyarrow", "tables", purpose="writing tables")
    types = (None, pa.string(), pa.float64())
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    arrays = [pa.array(list(c), type=t) for c, t in zip(columns, types, strict=True)]
    table = pa.Table.from_arrays(arrays, names=list(header))
    if path.suffix.lower() == ".parquet":
        pq = load_extra("pyarrow.parquet", "tables", purpose="writing Parquet files")
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
