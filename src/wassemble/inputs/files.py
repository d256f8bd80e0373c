"""The one door for files of predictions: read, read in chunks, write.

The format follows from the end of the name; see `formats`.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, Unpack

from wassemble._checks import fail, option
from wassemble._files import whole_file
from wassemble.inputs.formats import Append, Format, recognise
from wassemble.inputs.formats.sources import PredictionFile, Source, blame
from wassemble.inputs.predictions.doubts import doubt_rest, doubt_scores, doubt_values
from wassemble.inputs.predictions.truth import check_truth
from wassemble.inputs.predictions.value import Kind, Predictions, check_kind
from wassemble.inputs.reading import Reading, ReadingFields
from wassemble.labels import LabelSpace

# Scores that are turned into bytes at once.
_N_SCORES = 1 << 20


def read_predictions(
    path: str | os.PathLike[str],
    reading: Reading = Reading(),
    *,
    model: str | None = None,
    **changes: Unpack[ReadingFields],
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
    reading : Reading
        How the file is read.
    model : str, optional
        Name of the model; that of the file if not given.
    **changes
        Fields of the reading, by name: ``id_column``, ``labels``, ``kind`` ...

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "tiny.csv"
    >>> _ = path.write_text("sample,cat,dog\na,0.9,0.1\nb,0.2,0.8\n")
    >>> read_predictions(path)
    Predictions('tiny': 2 samples x 2 labels, multiclass)
    """
    with _opened(path, reading, changes) as (file, how, source):
        made = _read(file, source, how, model)
        if made.kind_is_detected:
            if how.labels is None and not source.is_long:
                doubts = doubt_scores(made.labels, made.scores, made.kind)
            else:
                doubts = doubt_rest(source.left_out, made.kind)
                doubts = doubts or doubt_values(made.scores, made.kind)
            made.origin = source.origin(file.path.name, doubts)
        return made.normalized() if how.normalize else made


def open_predictions(
    path: str | os.PathLike[str],
    reading: Reading = Reading(),
    *,
    model: str | None = None,
    **changes: Unpack[ReadingFields],
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
    with _opened(path, reading, changes) as (file, how, source):
        return PredictionFile(file.path, source, file.name_model(model, source), how)


def read_truth(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    id_column: str | None = None,
    by_row: bool = False,
) -> Predictions:
    r"""The true labels of samples, from a file.

    Parameters
    ----------
    path : str or path
        As in `read_predictions`: ``sample`` and ``label``, or a column of 0 and 1 for each
        label.
    column : str, optional
        The column of true labels, in a table that may have any others. If not given: the
        one called "label", or the only one beside the ids if it holds text. Whole numbers
        are names of labels: 2 and 2.0 are "2".
    id_column, by_row
        As in `read_predictions`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "test.csv"
    >>> _ = path.write_text("image,width,digit\na.png,28,2\nb.png,28,7\n")
    >>> truth = read_truth(path, column="digit")
    >>> truth.samples.tolist(), truth.labels.names
    (['a.png', 'b.png'], ('2', '7'))
    """
    columns: ReadingFields = {"id_column": id_column, "label_column": column, "by_row": by_row}
    with _opened(path, Reading(is_truth=True), columns) as (file, how, source):
        truth = _read(file, source, how, file.stem)
        check_truth(truth)
        return truth


def write_predictions(path: str | os.PathLike[str], predictions: Predictions) -> None:
    """Write predictions to a file, whole or not at all.

    Parameters
    ----------
    path : str or path
        Its end says which format, as in `read_predictions`. Tables are wide; a score that
        is nan is left empty. The ids have the name that they were read under. That labels
        are hard, the kind and the model's name are kept by ``.npz`` only, float32 by all but
        CSV, TSV and JSON lines.
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
    id_column = predictions.origin.id_column
    with PredictionWriter(path, predictions.labels, id_column=id_column) as writer:
        writer.write(predictions)


class _Named(NamedTuple):
    """A file, and what its name says."""

    path: Path
    format: Format
    stem: str

    def name_model(self, model: str | None, source: Source) -> str:
        return next(name for name in (model, source.model, self.stem) if name is not None)


@contextmanager
def _opened(
    path: str | os.PathLike[str], reading: Reading, changes: ReadingFields
) -> Iterator[tuple[_Named, Reading, Source]]:
    """What is in a file; errors inside begin with its name."""
    _refuse_pipe(path)
    file = _Named(*recognise(path))
    with blame(file.path.name, f"a whole {file.format.name} file"):
        reading = replace(reading, **changes) if changes else reading
        if file.path.is_dir():
            fail("must be a file; got a folder.")
        if not file.path.exists():
            fail(f"must be a file; there is none at {file.path}.")
        source: Source = file.format.open(file.path, reading, file.stem)
        if source.is_long and not (source.has_ids or reading.is_truth):
            fail(
                "a long table must have sample ids, since a sample may have several rows; got"
                " none.",
                hint=f"{option('id_column')} names their column",
            )
        yield file, reading, source


def _refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Refuse what can be read only once."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, TypeError, ValueError):  # told when it is opened
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        fail(
            f"{path}: must be a file, which is read more than once; got a pipe or a device.",
            hint="write it to a file first; .csv.gz and .tsv.gz are read as they are",
        )


def _read(file: _Named, source: Source, reading: Reading, model: str | None) -> Predictions:
    made = Predictions(
        file.name_model(model, source),
        source.samples,
        source.labels,
        source.read(),
        kind=reading.kind_of_scores or source.kind,
        is_hard=source.is_hard,
    )
    made.origin = source.origin(file.path.name)
    return made


class PredictionWriter:
    """A file of predictions that is written in chunks, and appears whole or not at all.

    Parameters
    ----------
    path : str or path
        Its end says which format, as in `write_predictions`. All but ``.npz`` are written
        as chunks come; for ``.npz`` they are kept in memory until the end.
    labels : LabelSpace or iterable of str
        Those of every chunk.
    kind : {"multiclass", "multilabel"}, optional
        What a ``.npz`` file says of the predictions, if not what the first chunk says.
    id_column : str, optional
        Name of the column, or key, of the sample ids; "sample" if not given or if a label has
        this name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "tiny.csv"
    >>> with PredictionWriter(path, ["cat", "dog"]) as writer:
    ...     for sample in ("a", "b"):
    ...         writer.write(Predictions("tiny", [sample], ["cat", "dog"], [[0.5, 0.5]]))
    >>> print(path.read_text(), end="")
    sample,cat,dog
    a,0.5,0.5
    b,0.5,0.5
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        labels: Iterable[str],
        *,
        kind: Kind | None = None,
        id_column: str | None = None,
    ) -> None:
        check_kind(kind)
        self.path, self._format, _ = recognise(path)
        self.labels = LabelSpace(labels)
        self.kind = kind
        self.id_column = id_column
        self._stack = ExitStack()
        self._append: Append | None = None

    def write(self, predictions: Predictions) -> None:
        """Append a chunk; no sample may come twice, which only readers check."""
        if self._append is None:
            fail(f"{self.path.name}: chunks must be written inside a `with` block.")
        if not isinstance(predictions, Predictions):
            fail(f"what is written must be Predictions; got {type(predictions).__name__}.")
        if predictions.labels != self.labels:
            fail(
                f"{self.path.name}: every chunk must have the labels of the file,"
                f" {self.labels!r}; got {predictions.labels!r}."
            )
        if self.kind is not None:
            predictions = predictions.replace(kind=self.kind)
        n_rows = max(1, _N_SCORES // len(self.labels))
        try:
            with blame(self.path.name, "a file that can be written"):
                for start in range(0, max(1, predictions.n_samples), n_rows):
                    self._append(predictions.take(slice(start, start + n_rows)))
        except BaseException as error:
            # Half a chunk may be in the file: no clean end may follow.
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def __enter__(self) -> Self:
        with blame(self.path.name, "a file that can be written"), ExitStack() as stack:
            temporary = stack.enter_context(whole_file(self.path))
            # The format's own end comes before the file gets its name.
            self._append = stack.enter_context(
                self._format.append(
                    temporary, self.labels, final=self.path, id_column=self.id_column
                )
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._append = None
        if error is not None:  # the caller's: not to be reworded
            self._stack.__exit__(kind, error, traceback)
            return
        with blame(self.path.name, "a file that can be written"):
            self._stack.close()
