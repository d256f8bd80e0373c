"""An open file of predictions, whatever its format, and whom to blame for its faults.

A format makes a `Source` of a file; a `PredictionFile` is what others see of it.
"""

import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

import numpy as np

from wassemble._checks import check_count, fail
from wassemble.errors import InvalidInputError, MissingExtraError, option
from wassemble.inputs.formats.layout import describe_ids
from wassemble.inputs.predictions.doubts import doubt_rest, doubt_scores, doubt_values
from wassemble.inputs.predictions.value import (
    Kind,
    Misfit,
    Origin,
    Predictions,
    detect_kind,
    is_near_one,
)
from wassemble.inputs.reading import Reading
from wassemble.labels import LabelSpace, enumerate_names

# What libraries raise on a file that is not what its name says.
_FAULTS = (
    *(OSError, ValueError, EOFError, RuntimeError, MemoryError, ArithmeticError, LookupError),
    *(struct.error, zlib.error, zipfile.BadZipFile),
)
# The same of libraries that need not be there; what was never imported raised nothing.
_FOREIGN_FAULTS = (("lzma", "LZMAError"), ("pyarrow", "ArrowException"))

# Samples read at once, and their scores at most.
_N_ROWS = 1024
_N_SCORES = 1 << 24

# Whole numbers with more do not fit an int64, and stay text.
_DIGITS = 19


@dataclass(frozen=True, eq=False)
class Source:
    """Who is in a file, and a way to its scores."""

    labels: LabelSpace
    samples: np.ndarray  # every id: these are always read whole
    # Goes through the scores from the first sample on, so many rows at most at a time, all of one
    # floating type.
    blocks: Callable[[int], Iterator[np.ndarray]]
    streams: bool  # whether `blocks` holds no more than a few blocks in memory
    is_hard: bool = False
    kind: Kind | None = None  # if the file says so
    model: str | None = None  # if the file says so
    id_column: str | None = None  # name of the column or key that has the ids
    has_ids: bool = True  # if not, the rows are counted from 0
    is_long: bool = False  # whether scores are listed one by one
    labels_occur: bool = False  # whether nobody declared its labels: they are those that occur
    left_out: tuple[str, ...] = ()  # columns that are none of the labels asked for
    # Rows from which the kind of all can be told, by their places; else the first ones are.
    find_telling: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None
    first: Callable[[int], np.ndarray] | None = None  # the first block, without reading it twice
    close: Callable[[], None] = lambda: None  # lets go of what `first` keeps open

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
        told = describe_ids(file, self.id_column, self.has_ids, doubts)
        return replace(told, is_wide=not self.is_long, labels_occur=self.labels_occur)


class PredictionFile:
    """An open file of predictions; `open_predictions` makes one.

    Attributes
    ----------
    model : str
    labels : LabelSpace
    samples : array of shape (n_samples,)
        Every id.
    kind : {"multiclass", "multilabel"}
    kind_is_detected : bool
        Whether ``kind`` was told from the first samples.
    is_hard : bool
        The labels have no scores.
    is_normalized : bool
        Whether each row is divided by its sum.
    streams : bool
        Whether only a few rows are in memory at a time: so for wide tables in CSV, Parquet
        and Arrow files, wide JSON lines, and ``.npy``. Long tables and ``.npz`` are kept
        in memory as they are in the file.
    misfit : Misfit or None
        What shows that these are no histograms, if it was told from the first samples.
    origin : Origin
        Where ids were found, and what looked odd.
    """

    def __init__(self, path: Path, source: Source, model: str, reading: Reading) -> None:
        self.path = path
        self.name = path.name  # as errors call it
        self.model = model
        self.labels = source.labels
        self.samples = source.samples
        self.is_hard = source.is_hard
        self.streams = source.streams
        self.is_normalized = reading.normalize
        kind = "multiclass" if reading.normalize else reading.kind or source.kind
        self.kind_is_detected = kind is None
        self._source = source
        self._is_open = True
        self._running: WeakSet[Any] = WeakSet()
        self._evidence = np.empty((0, len(self.labels)))
        self._n_looked_at = 0
        self.misfit: Misfit | None = None
        doubts: list[str] = []
        if kind is None:
            rows, first = source.look()
            looked_at = Predictions(
                model, self.samples[rows], self.labels, first, is_hard=self.is_hard
            )
            kind = looked_at.kind
            self.misfit = looked_at.misfit if kind == "multilabel" else None
            self._evidence = _find_evidence(first)
            self._n_looked_at = self.n_samples if source.is_long else len(first)
            if reading.labels is None and not source.is_long:
                doubts = doubt_scores(self.labels, first, kind)
            else:
                doubts = doubt_rest(source.left_out, kind) or doubt_values(first, kind)
        self.kind: Kind = kind
        self.origin = source.origin(path.name, doubts)
        if reading.normalize:
            self.origin = self.origin.of_normalized()

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.samples)

    def chunks(self, n_rows: int) -> Iterator[Predictions]:
        """Consecutive samples, ``n_rows`` at a time and the rest at the end.

        A file without samples has one chunk without samples.

        If ``kind`` was detected and a later sample contradicts it, that is an error, so
        that chunks never say something else than the whole.
        """
        n_rows = check_count(n_rows, "n_rows")
        self._check_open()
        chunks = self._chunks(n_rows)
        self._running.add(chunks)
        return chunks

    def read(self) -> Predictions:
        """Every sample at once."""
        self._check_open()
        with blame(self.name, "a whole file"):
            scores = self._source.read()
            chunk = self._chunk(self.samples, scores)
            if self.kind_is_detected and self._n_looked_at < self.n_samples:
                _check_kind(chunk, _add_evidence(self._evidence, scores))
            return chunk

    def close(self) -> None:
        """Let go of the file; chunks that are under way end."""
        self._is_open = False
        self._source.close()
        for chunks in list(self._running):
            chunks.close()

    def _check_open(self) -> None:
        if not self._is_open:
            fail(f"{self.name}: the file must be open; it has been closed.")

    def _chunks(self, n_rows: int) -> Iterator[Predictions]:
        if self.n_samples == 0:
            yield self.read()
            return
        with blame(self.name, "a whole file"):
            start = 0
            evidence = self._evidence
            for scores in _regroup(self._source.blocks(n_rows), n_rows):
                ids = self.samples[start : start + len(scores)]
                check_unchanged(len(ids), len(scores))
                start += len(scores)
                chunk = self._chunk(ids, scores)
                if self.kind_is_detected and self._n_looked_at < start:
                    evidence = _add_evidence(evidence, scores)
                    _check_kind(chunk, evidence)
                yield chunk
            check_unchanged(self.n_samples, start)

    def _chunk(self, ids: np.ndarray, scores: np.ndarray) -> Predictions:
        kind: Kind = "multilabel" if self.is_normalized else self.kind
        chunk = Predictions(self.model, ids, self.labels, scores, kind=kind, is_hard=self.is_hard)
        if self.is_normalized:
            chunk = chunk.normalized()
        chunk.kind_is_detected = self.kind_is_detected
        chunk.origin = self.origin
        return chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"PredictionFile({self.name!r}: {self.n_samples:,} samples x"
            f" {len(self.labels):,} labels, {self.kind})"
        )


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
        libraries = ((sys.modules.get(module), name) for module, name in _FOREIGN_FAULTS)
        foreign = tuple(getattr(each, name) for each, name in libraries if each is not None)
        if not isinstance(error, (*_FAULTS, *foreign)):
            raise
        raise InvalidInputError(f"{name}: {_describe(error, must)}") from error


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
            f"the file must have a column for each of {option('labels')}; it has none for"
            f" {enumerate_names(missing)}."
        )
    return chosen, found.places(chosen)


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


def _regroup(blocks: Iterator[np.ndarray], n_rows: int) -> Iterator[np.ndarray]:
    """The same rows, ``n_rows`` at a time."""
    parts: list[np.ndarray] = []
    n_held = 0
    for block in blocks:  # of n_rows at most
        parts.append(block)
        n_held += len(block)
        if n_held >= n_rows:
            held = parts[0] if len(parts) == 1 else np.concatenate(parts)
            yield held[:n_rows]
            parts, n_held = [held[n_rows:]], n_held - n_rows
    if n_held:
        yield np.concatenate(parts)


def _find_evidence(scores: np.ndarray) -> np.ndarray:
    """The few rows from which `detect_kind` tells the same as from all."""
    sums = np.asarray(np.nansum(scores, axis=1, dtype=np.float64))
    off = ~is_near_one(scores, sums)
    telling = (off & (sums > 1), off & (sums < 1) & (sums > 0), np.isnan(scores).any(axis=1))
    return scores[np.concatenate([np.flatnonzero(mask)[:1] for mask in telling])]


def _add_evidence(evidence: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return _find_evidence(np.vstack([evidence, _find_evidence(scores)]))


def _check_kind(chunk: Predictions, evidence: np.ndarray) -> None:
    """Refuse a chunk after which the kind of all that was read is not the first one's."""
    if detect_kind(evidence) == chunk.kind:
        return
    sums = np.asarray(np.nansum(chunk.scores, axis=1, dtype=np.float64))
    if chunk.kind == "multiclass":
        off = (sums > 0) & ~is_near_one(chunk.scores, sums)
        row = int(np.where(off, np.abs(sums - 1), 0).argmax())
        got = f"a sum of {sums[row]:g}"
    else:
        row = int(np.isnan(chunk.scores).any(axis=1).argmax())
        got = "missing scores, as of histograms,"
    fail(
        f"the kind that the first samples have, {chunk.kind}, must hold for all; got {got} at"
        f" sample {chunk.samples.tolist()[row]!r}.",
        hint=f"{option('kind', 'multilabel')} or {option('kind', 'multiclass')} says which it is;"
        f" {option('normalize', True)} divides each row by its sum",
    )
