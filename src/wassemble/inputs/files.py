"""The one door for files of predictions: read, read in chunks, write.

The format follows from the end of the name; see `formats`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from wassemble._checks import fail
from wassemble.inputs.formats import recognise
from wassemble.inputs.layout import choose_columns
from wassemble.inputs.prediction_file import PredictionFile
from wassemble.inputs.prediction_writer import PredictionWriter
from wassemble.inputs.predictions import Kind, Predictions
from wassemble.inputs.sources import Source, blame, check_kind, check_unchanged

__all__ = [
    "PredictionFile",
    "PredictionWriter",
    "open_predictions",
    "read_predictions",
    "write_predictions",
]

# Samples read at once.
_N_ROWS = 1024


def read_predictions(
    path: str | os.PathLike[str],
    *,
    model: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    score_column: str | None = None,
    labels: Iterable[str] | None = None,
    kind: Kind | None = None,
) -> Predictions:
    r"""Predictions of one model from a file.

    The end of the name says what is inside:

    - ``.csv``, ``.tsv`` (also with ``.gz``), ``.parquet``, ``.arrow``, ``.feather``,
      ``.ipc``: a wide or a long table, as in `predictions_from_frame`. Of CSV and TSV, ids
      are integers if every one is written as such, without leading zeros, and text
      otherwise; empty fields, "NA" and "nan" are missing scores.
    - ``.jsonl``, ``.ndjson``: ``{"sample": "a", "scores": {"cat": 0.9, "dog": 0.1}}`` on
      each line, or ``{"sample": "a", "label": "cat", "score": 0.9}``.
    - ``.npz``: arrays ``scores`` and ``labels``, and perhaps ``samples``, ``kind``,
      ``model`` and ``is_hard``.
    - ``.npy``: scores, with the labels in NAME.labels.txt beside it, one per line, and
      perhaps the sample ids in NAME.samples.txt; without, they are counted from 0.

    Parameters
    ----------
    path : str or path
    model : str, optional
        Name of the model; that of the file if not given.
    id_column, label_column, score_column : str, optional
        Columns, or keys of JSON lines, if they are not called "sample" ("sample_id",
        "id"), "label" and "score". NumPy files have none.
    labels : iterable of str, optional
        Of a wide table or a NumPy file, the labels to read; of a long table or JSON lines,
        every label that the model could have named. Names the columns of a NumPy file that
        does not.
    kind : {"multiclass", "multilabel"}, optional
        Detected if not given.

    Returns
    -------
    Predictions

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "tiny.csv"
    >>> _ = path.write_text("sample,cat,dog\na,0.9,0.1\nb,0.2,0.8\n")
    >>> read_predictions(path)
    Predictions('tiny': 2 samples x 2 labels, multiclass)
    """
    path, format_, stem = recognise(path)
    with blame(path.name, f"a whole {format_.name} file"):
        check_kind(kind)
        choice = choose_columns(id_column, label_column, score_column, labels)
        _check_is_file(path)
        source = format_.open(path, choice, stem)
        return Predictions(
            _name(model, source, stem),
            source.samples,
            source.labels,
            _read_whole(source),
            kind=kind or source.kind,
            is_hard=source.is_hard,
        )


def open_predictions(
    path: str | os.PathLike[str],
    *,
    model: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    score_column: str | None = None,
    labels: Iterable[str] | None = None,
    kind: Kind | None = None,
) -> PredictionFile:
    r"""Predictions in a file that may be larger than memory, to be read in chunks.

    Parameters are those of `read_predictions`. Ids and labels are read at once, and the
    first samples if ``kind`` is to be detected.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "tiny.csv"
    >>> _ = path.write_text("sample,cat,dog\na,0.9,0.1\nb,0.2,0.8\nc,0.5,0.5\n")
    >>> with open_predictions(path) as file:
    ...     for chunk in file.chunks(2):
    ...         print(chunk)
    Predictions('tiny': 2 samples x 2 labels, multiclass)
    Predictions('tiny': 1 samples x 2 labels, multiclass)
    """
    path, format_, stem = recognise(path)
    with blame(path.name, f"a whole {format_.name} file"):
        check_kind(kind)
        choice = choose_columns(id_column, label_column, score_column, labels)
        _check_is_file(path)
        source = format_.open(path, choice, stem)
        return PredictionFile(path, source, _name(model, source, stem), kind or source.kind)


def write_predictions(path: str | os.PathLike[str], predictions: Predictions) -> None:
    """Write predictions to a file, whole or not at all.

    Parameters
    ----------
    path : str or path
        Its end says which format, as in `read_predictions`. Tables are wide; a score that
        is nan is left empty. That labels are hard, the kind and the model's name are kept by
        ``.npz`` only, float32 by all but CSV, TSV and JSON lines.
    predictions : Predictions

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "tiny.csv"
    >>> write_predictions(path, Predictions("tiny", ["a"], ["cat", "dog"], [[0.9, 0.1]]))
    >>> print(path.read_text(), end="")
    sample,cat,dog
    a,0.9,0.1
    """
    if not isinstance(predictions, Predictions):
        fail(f"what is written must be Predictions; got {type(predictions).__name__}.")
    with PredictionWriter(path, predictions.labels) as writer:
        writer.write(predictions)


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        fail("must be a file; got a folder.")
    if not path.exists():
        fail(f"must be a file; there is none at {path}.")


def _name(model: str | None, source: Source, stem: str) -> str:
    return next(name for name in (model, source.model, stem) if name is not None)


def _read_whole(source: Source) -> np.ndarray:
    blocks = source.blocks(_N_ROWS)
    first = next(blocks, np.empty((0, len(source.labels))))
    scores = np.empty((len(source.samples), len(source.labels)), first.dtype)
    start = 0
    block: np.ndarray | None = first
    while block is not None:
        part = scores[start : start + len(block)]
        check_unchanged(len(part), len(block))
        part[:] = block
        start += len(block)
        block = next(blocks, None)
    check_unchanged(len(scores), start)
    return scores
