"""`PredictionWriter`: predictions that are written in chunks, to whatever format."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from wassemble._checks import fail
from wassemble._files import whole_file
from wassemble.inputs.formats import Append, recognise
from wassemble.inputs.formats.sources import blame
from wassemble.inputs.predictions.value import Kind, Predictions, check_kind
from wassemble.labels import LabelSpace

# Scores that are turned into bytes at once.
_N_SCORES = 1 << 20


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
        self.labels = labels if isinstance(labels, LabelSpace) else LabelSpace(labels)
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
