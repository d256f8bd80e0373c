"""Lines and columns of text files about words; errors name the file and the line."""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from wassemble._checks import fail, shorten

# First lines that are titles, not data.
_TITLES = (
    {"parent", "source", "from", "node1", "word", "start"},
    {"child", "target", "to", "node2", "synonym", "end"},
)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file as bytes, unpacked if its name ends in ``.gz``."""
    if not path.is_file():
        fail(f"{path}: must be a file; there is none.")
    try:
        opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        fail(f"{path}: must be a whole gzip file; it cannot be read ({error}).")


def plain_suffix(path: Path) -> str:
    """The suffix before ``.gz``, in lower case."""
    return Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()


def read_columns(path: Path, what: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each line that holds data, two or three of them.

    A first line of titles is passed over. ``what`` words what a line must hold.
    """
    n_columns = 0
    is_first = True
    for number, fields in read_fields(path):
        if not 2 <= len(fields) <= 3 or not all(fields):
            fail(f"{path}, line {number}: must hold {what}; got {shorten(','.join(fields), 60)!r}.")
        if is_first and all(
            field.casefold() in titles for field, titles in zip(fields, _TITLES, strict=False)
        ):
            is_first = False
            continue
        is_first = False
        n_columns = n_columns or len(fields)
        if len(fields) != n_columns:
            fail(
                f"{path}, line {number}: must have {n_columns} columns as the lines before;"
                f" got {len(fields)}: {shorten(','.join(fields), 60)!r}."
            )
        yield number, fields
    if not n_columns:
        fail(f"{path}: must hold {what} in each line; got none.")


def read_fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each line that is not empty.

    Columns are parted by commas in ``.csv`` files, by tabs where the first line has one,
    else by spaces; there, lines that start with ``#`` are passed over.
    """
    separator: str | None = "," if plain_suffix(path) == ".csv" else None
    is_first = True
    for number, line in _read_lines(path):
        if not line.strip() or (separator is None and line.startswith("#")):
            continue
        if is_first and separator is None and "\t" in line:
            separator = "\t"
        is_first = False
        try:
            yield number, _split(line, separator)
        except csv.Error as error:
            fail(f"{path}, line {number}: must be a line of CSV ({error}).")


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    with open_bytes(path) as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                fail(f"{path}, line {number}: must be UTF-8 text; got other bytes.")
            if "\0" in line:
                fail(f"{path}, line {number}: must be text; got a zero byte.")
            yield number, line


def _split(line: str, separator: str | None) -> list[str]:
    if separator == ",":
        (fields,) = csv.reader([line])
    else:
        fields = line.split(separator)
    return [field.strip() for field in fields]
