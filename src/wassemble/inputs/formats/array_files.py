"""NumPy files of predictions: .npz with names inside, .npy with names beside it.

Never unpickles. Headers are read and compared with the size of the data before anything is
allocated, so that a header that lies costs nothing.
"""

import math
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.lib import format as npy

from wassemble._checks import fail, option
from wassemble._files import whole_file
from wassemble.inputs.formats.sources import Source, as_scores, ids_from_text, pick_labels
from wassemble.inputs.predictions.value import Kind, Predictions, check_kind, read_samples
from wassemble.inputs.reading import Reading
from wassemble.labels import LabelSpace, check_readable, enumerate_names

_PIECE = 1 << 24  # bytes unpacked at a time


class _Header(NamedTuple):
    shape: tuple[int, ...]
    order: Any  # "C" or "F"
    dtype: np.dtype
    n_bytes: int  # of the data
    start: int  # where they begin


def open_npz(path: Path, reading: Reading, model: str) -> Source:
    """The predictions in a .npz file, read whole.

    Arrays ``scores`` and ``labels``; if there are any, ``samples``, ``kind``, ``model``,
    ``is_hard`` and ``id_column``, the name of the ids. Others are not read.
    """
    _refuse_columns(reading)
    with zipfile.ZipFile(path) as archive:
        names_there = {name.removesuffix(".npy") for name in archive.namelist()}
        wanted = ("scores", "labels", "samples", "kind", "model", "is_hard", "id_column")
        arrays = {name: _read_member(archive, name) for name in wanted if name in names_there}
    if "scores" not in arrays:
        got = enumerate_names(sorted(names_there)) if names_there else "none"
        fail(f"there must be an array 'scores'; got {got}.")
    scores = arrays["scores"]
    _check_shape(scores.shape)
    names = _texts(arrays["labels"], "labels") if "labels" in arrays else None
    labels, columns = _name_columns(names, reading, scores.shape[1], "an array 'labels'")
    ids: Any = range(len(scores))
    if "samples" in arrays:
        ids = arrays["samples"]
        ids = _texts(ids, "samples") if ids.dtype.kind not in "iu" else ids.ravel()
        _check_count(len(ids), len(scores), "sample ids", "rows")
    id_column = _texts(arrays["id_column"], "id_column")[0] if "id_column" in arrays else None
    return Source(
        labels,
        read_samples(ids, model),
        lambda n_rows: _slices(scores, columns, n_rows),
        streams=False,
        is_hard="is_hard" in arrays and bool(arrays["is_hard"].any()),
        kind=_kind(arrays),
        model=_texts(arrays["model"], "model")[0] if "model" in arrays else None,
        id_column=id_column,
        has_ids="samples" in arrays,
    )


def open_npy(path: Path, reading: Reading, model: str) -> Source:
    """The predictions in a .npy file, mapped into memory.

    The labels are in NAME.labels.txt beside it, one per line; so may be the sample ids, in
    NAME.samples.txt. Without, the samples are counted from 0.
    """
    _refuse_columns(reading)
    with path.open("rb") as file:
        header = _read_header(file, path.stat().st_size)
    _check_shape(header.shape)
    beside = path.with_suffix(".labels.txt")
    names = _read_lines(beside) if beside.exists() else None
    labels, columns = _name_columns(names, reading, header.shape[1], f"a file {beside.name}")
    ids: Any = range(header.shape[0])
    beside = path.with_suffix(".samples.txt")
    has_ids = beside.exists()
    if has_ids:
        ids = ids_from_text(_read_lines(beside))
        _check_count(len(ids), header.shape[0], f"lines of {beside.name}", "rows")

    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        mapped = np.memmap(
            path, header.dtype, "r", header.start, shape=header.shape, order=header.order
        )
        yield from _slices(mapped, columns, n_rows)

    as_scores(np.empty(0, header.dtype))  # refuses what are no numbers
    return Source(labels, read_samples(ids, model), blocks, streams=True, has_ids=has_ids)


@contextmanager
def append_npz(
    path: Path, labels: LabelSpace, *, final: Path, id_column: str | None = None
) -> Iterator[Callable[[Predictions], None]]:
    """A function that gathers predictions; they are written at the end."""
    parts: list[Predictions] = []
    yield parts.append
    first = parts[0] if parts else Predictions("none", [], labels, np.empty((0, len(labels))))
    ids = [part.samples for part in parts if part.n_samples] or [first.samples]
    samples = np.concatenate(ids)
    arrays = {
        "scores": np.concatenate([part.scores for part in parts or [first]]),
        "labels": _text_array(labels.names, "label"),
        "samples": samples if samples.dtype.kind == "i" else _text_array(samples, "sample id"),
        "kind": np.array(first.kind),
        "model": _text_array([first.model], "model")[0],
        "is_hard": np.array(first.is_hard),
    }
    if id_column is not None:
        arrays["id_column"] = _text_array([id_column], "name of ids")[0]
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


@contextmanager
def append_npy(
    path: Path, labels: LabelSpace, *, final: Path, id_column: str | None = None
) -> Iterator[Callable[[Predictions], None]]:
    """A function that appends predictions to a new .npy file.

    ``final`` is the name that it will have; its companions are put beside it when all is
    well, before the file itself is. They have no place for ``id_column``.
    """
    dtype: np.dtype | None = None
    n_rows = 0
    with (
        whole_file(final.with_suffix(".labels.txt")) as labels_path,
        whole_file(final.with_suffix(".samples.txt")) as samples_path,
        path.open("wb") as file,
        samples_path.open("w", encoding="utf-8", newline="\n") as samples_file,
    ):
        labels_path.write_bytes(_lines(labels.names, "label").encode())

        def write_header() -> None:
            # NumPy leaves room in the header for the number of rows to grow.
            about = {"descr": np.dtype(dtype).str, "fortran_order": False}
            npy.write_array_header_1_0(file, about | {"shape": (n_rows, len(labels))})

        def append(chunk: Predictions) -> None:
            nonlocal dtype, n_rows
            if chunk.n_samples == 0:
                return
            if dtype is None:
                dtype = chunk.scores.dtype
                write_header()
            elif chunk.scores.dtype != dtype:
                fail(
                    f"every chunk must have scores of the same type; got {chunk.scores.dtype}"
                    f" after {dtype}."
                )
            samples_file.write(_lines([str(sample) for sample in chunk.samples], "sample id"))
            file.write(np.ascontiguousarray(chunk.scores).data)
            n_rows += chunk.n_samples

        yield append
        file.seek(0)
        write_header()


def _read_member(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    info = archive.getinfo(f"{name}.npy" if f"{name}.npy" in archive.namelist() else name)
    with archive.open(info) as member:
        try:
            header = _read_header(member, info.file_size)
        except ValueError as error:
            fail(f"array {name!r}: {error}")
        data = bytearray()
        # Grows with what there is, not with what is claimed.
        while piece := member.read(_PIECE):
            data += piece
    if len(data) != header.n_bytes:
        fail(f"array {name!r} must have {header.n_bytes:,} bytes; got {len(data):,}.")
    return np.frombuffer(data, header.dtype).reshape(header.shape, order=header.order)


def _read_header(file: Any, size: int) -> _Header:
    """What an array of ``size`` bytes, header included, says of itself."""
    try:
        with warnings.catch_warnings():  # of odd ways to write a dtype
            warnings.simplefilter("ignore")
            is_first = npy.read_magic(file) == (1, 0)
            read = npy.read_array_header_1_0 if is_first else npy.read_array_header_2_0
            shape, is_fortran, dtype = read(file)
    except Exception as error:  # whatever Python's own parser raises, too
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        fail(f"an array must begin with a header that can be read; got: {reason[:100]}.")
    if dtype.hasobject:
        fail(
            "arrays must hold numbers or text; got pickled objects, which are never read.",
            hint="`.astype(str)` makes text of an array of names",
        )
    n_bytes = math.prod(shape) * dtype.itemsize
    start = file.tell()
    if min(shape, default=0) < 0 or n_bytes != size - start:
        fail(
            f"an array of shape {_words(shape)} and dtype {dtype} must have {n_bytes:,} bytes;"
            f" got {size - start:,}."
        )
    return _Header(shape, "F" if is_fortran else "C", dtype, n_bytes, start)


def _refuse_columns(reading: Reading) -> None:
    for name in ("id_column", "label_column", "score_column"):
        if getattr(reading, name) is not None:
            fail(f"{option(name)} must be left out of NumPy files: they have no columns of names.")


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        fail(f"the scores must have shape (n_samples, n_labels); got {_words(shape)}.")


def _check_count(got: int, must: int, what: str, of: str) -> None:
    if got != must:
        fail(f"there must be as many {what} as {of}, {must:,}; got {got:,}.")


def _name_columns(
    names: list[str] | None, reading: Reading, n_columns: int, source: str
) -> tuple[LabelSpace, Any]:
    if names is None and reading.labels is None:
        fail(
            f"the labels must be named in {source}; there is none.",
            hint=f"{option('labels')} names them in the order of the columns",
        )
    if names is None:
        labels, columns = pick_labels(reading.labels, None)  # type: ignore[arg-type]
        _check_count(len(labels), n_columns, "labels", "columns")
        return labels, columns
    _check_count(len(names), n_columns, "labels", "columns")
    return pick_labels(LabelSpace(names), reading.labels)


def _slices(scores: np.ndarray, columns: Any, n_rows: int) -> Iterator[np.ndarray]:
    for start in range(0, max(1, len(scores)), n_rows):
        yield as_scores(scores[start : start + n_rows, columns])


def _texts(array: np.ndarray, name: str) -> list[str]:
    may_be_empty = name in ("labels", "samples")
    if array.dtype.kind != "U" or (array.size == 0 and not may_be_empty):
        fail(
            f"array {name!r} must hold text; got {array.size:,} entries of dtype {array.dtype}.",
            hint="`.astype(str)` makes text of it",
        )
    texts = [str(text) for text in array.ravel()]
    check_readable(texts, f"text of array {name!r}")
    return texts


def _kind(arrays: dict[str, np.ndarray]) -> Kind | None:
    if "kind" not in arrays:
        return None
    kind = _texts(arrays["kind"], "kind")[0]
    check_kind(kind)
    return cast("Kind", kind)


def _text_array(texts: Any, what: str) -> np.ndarray:
    array = np.array(list(texts), dtype=str)
    for text, stored in zip(texts, array.tolist(), strict=True):
        if text != stored:  # NumPy drops zeros at the end
            fail(f"a {what} in a .npz file must not end in a zero byte; got {text!r}.")
    return array


def _lines(texts: Any, what: str) -> str:
    for text in texts:
        if "\n" in text or "\r" in text or text.startswith("\ufeff"):
            fail(
                f"a {what} beside a .npy file must be one line of text; got {text!r}.",
                hint="other formats keep every name",
            )
    return "".join(f"{text}\n" for text in texts)


def _read_lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        fail(f"{path.name} must be UTF-8; line {line} is not.", hint="save it as UTF-8")
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if "" in lines:
        fail(f"{path.name} must have a name on each line; line {lines.index('') + 1} is empty.")
    return lines


def _words(shape: tuple[int, ...]) -> str:
    text = str(shape)
    return text if len(text) <= 60 else f"{len(shape)} axes"
