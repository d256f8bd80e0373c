"""An open file of predictions, whatever its format, and whom to blame for its faults."""

from __future__ import annotations

import lzma
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import numpy as np

from wassemble._checks import fail
from wassemble.errors import InvalidInputError, MissingExtraError
from wassemble.inputs.formats.layout import describe_ids
from wassemble.inputs.predictions.value import Kind, Origin
from wassemble.labels import LabelSpace, enumerate_names

__all__ = [
    "Source",
    "as_scores",
    "blame",
    "check_kind",
    "check_memory",
    "check_unchanged",
    "ids_from_text",
    "pick_labels",
]

# What libraries raise on a file that is not what its name says.
_FAULTS = (
    OSError,
    ValueError,
    EOFError,
    RuntimeError,
    MemoryError,
    ArithmeticError,
    LookupError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
)

# Samples read at once, and their scores at most.
_N_ROWS = 1024
_N_SCORES = 1 << 24

# Whole numbers with more do not fit an int64, and stay text.
_DIGITS = 19


@dataclass(frozen=True, eq=False)
class Source:
    """Who is in a file, and a way to its scores.

    Attributes
    ----------
    labels : LabelSpace
    samples : array of shape (n_samples,)
        Every id; these are always read whole.
    blocks : callable
        ``blocks(n_rows)`` goes through the scores from the first sample on, ``n_rows`` at
        most at a time, all of one floating type.
    streams : bool
        Whether ``blocks`` holds no more than a few blocks in memory.
    is_hard : bool
    kind, model : str, optional
        If the file says so.
    id_column : str, optional
        Name of the column or key that has the ids.
    has_ids : bool
        Whether there are ids; if not, the rows are counted from 0.
    is_long : bool
        Whether scores are listed one by one.
    find_telling : callable, optional
        Rows from which the kind of all can be told, by their places; the first ones if not
        given.
    first : callable, optional
        ``first(n_rows)`` is the first block, without reading it twice.
    close : callable, optional
        Lets go of what ``first`` keeps open.
    """

    labels: LabelSpace
    samples: np.ndarray
    blocks: Callable[[int], Iterator[np.ndarray]]
    streams: bool
    is_hard: bool = False
    kind: Kind | None = None
    model: str | None = None
    id_column: str | None = None
    has_ids: bool = True
    is_long: bool = False
    find_telling: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None
    first: Callable[[int], np.ndarray] | None = None
    close: Callable[[], None] = lambda: None

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows from which the kind of all can be told: their places, and their scores."""
        if self.find_telling is not None:
            return self.find_telling()
        first = self.first or (lambda n_rows: next(self.blocks(n_rows), self._nothing()))
        scores = first(self._n_rows())
        return np.arange(len(scores)), scores

    def read(self) -> np.ndarray:
        """The scores of every sample."""
        blocks = self.blocks(self._n_rows())
        first = next(blocks, self._nothing())
        n_samples, n_labels = len(self.samples), len(self.labels)
        check_memory(n_samples, n_labels, first.dtype.itemsize)
        scores = np.empty((n_samples, n_labels), first.dtype)
        start = 0
        for block in chain([first], blocks):
            part = scores[start : start + len(block)]
            check_unchanged(len(part), len(block))
            part[:] = block
            start += len(block)
        check_unchanged(n_samples, start)
        return scores

    def _n_rows(self) -> int:
        """Rows that are read at a time where nobody says how many."""
        return max(1, min(_N_ROWS, _N_SCORES // len(self.labels)))

    def _nothing(self) -> np.ndarray:
        return np.empty((0, len(self.labels)))

    def origin(self, file: str, doubts: Iterable[str] = ()) -> Origin:
        """What there is to say of how ``file`` was read."""
        return describe_ids(file, self.id_column, self.has_ids, doubts)


def check_memory(n_samples: int, n_labels: int, n_bytes: int = 8) -> None:
    """Refuse scores that would not fit in the memory that is free, before they are made."""
    wanted, free = n_samples * n_labels * n_bytes, _free_memory()
    if free is not None and wanted > free:
        fail(
            f"{n_samples:,} samples x {n_labels:,} labels must fit in memory; they take"
            f" {wanted / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free.",
            hint="`open_predictions` and `wassemble fuse` read a few rows at a time, if the"
            " samples of all files come in the same order",
        )


def _free_memory() -> int | None:
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as file:
            about = dict(line.split(":", 1) for line in file)
        return int(about["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None  # no Linux


@contextmanager
def blame(name: str, must: str) -> Iterator[None]:
    """Errors inside start with ``name``; what libraries raise becomes `InvalidInputError`.

    ``must`` goes after "must be": "a whole CSV file".
    """
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from None
    except MissingExtraError:
        raise
    except Exception as error:
        arrow = sys.modules.get("pyarrow")
        if not isinstance(error, _FAULTS) and (
            arrow is None or not isinstance(error, arrow.ArrowException)
        ):
            raise
        raise InvalidInputError(f"{name}: {_describe(error, must)}") from error


def check_kind(kind: Any, *, normalize: bool = False) -> None:
    """Refuse a kind that is none; None is for one that will be detected."""
    if kind not in (None, *get_args(Kind)):
        fail(f'`kind` must be "multiclass" or "multilabel"; got {kind!r}.')
    if normalize and kind == "multilabel":
        fail('`normalize` makes histograms; got kind="multilabel".')


def check_unchanged(must: int, got: int) -> None:
    """Refuse a file that had another number of rows when its ids were read."""
    if must != got:
        fail(f"the file must not change while it is read; got {got:,} rows after {must:,}.")


def as_scores(array: Any) -> np.ndarray:
    """A float32 array as it is, other real numbers as float64, in the machine's byte order."""
    if array.dtype.kind not in "fiub":
        fail(f"scores must be real numbers; got an array of dtype {array.dtype}.")
    single = array.dtype.kind == "f" and array.dtype.itemsize == 4
    return np.array(array, dtype=np.float32 if single else np.float64, order="C")


def ids_from_text(ids: list[str]) -> list[Any]:
    """Ids from a format that has text only: integers if all are written as such.

    Examples
    --------
    >>> ids_from_text(["0", "-17"]), ids_from_text(["007", "8"])
    ([0, -17], ['007', '8'])
    """
    if all(_is_integer(text) for text in ids):
        return [int(text) for text in ids]
    return list(ids)


def pick_labels(found: LabelSpace, chosen: LabelSpace | None) -> tuple[LabelSpace, Any]:
    """The labels that were asked for, and an index of their columns."""
    if chosen is None or chosen == found:
        return found, slice(None)
    missing = [label for label in chosen if label not in found]
    if missing:
        fail(
            "the file must have a column for each of `labels`; it has none for"
            f" {enumerate_names(missing)}."
        )
    return chosen, found.positions(chosen)


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        return False
    return (digits[0] != "0" or text == "0") and -(2**63) <= int(text) < 2**63


def _describe(error: Exception, must: str) -> str:
    if isinstance(error, MemoryError):
        return (
            "must fit in memory; it does not.\nhint: `open_predictions` reads a few rows at a time"
        )
    if isinstance(error, OSError) and error.strerror:
        return f"must be {must}; got: {error.strerror}."
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    return f"must be {must}; got: {text[:160].rstrip('.')}."
