"""`Reading`: how a table of predictions is read, as one value."""

from dataclasses import dataclass
from typing import Any, TypedDict

from wassemble._checks import fail
from wassemble.errors import option
from wassemble.inputs.predictions.value import Kind, check_kind
from wassemble.labels import LabelSpace


class ReadingFields(TypedDict, total=False):
    """The fields of a `Reading`, where a function takes them by name."""

    id_column: str | None
    label_column: str | None
    score_column: str | None
    labels: Any  # LabelSpace or iterable of str
    kind: Kind | None
    by_row: bool
    normalize: bool


@dataclass(frozen=True)
class Reading:
    """How a table is read: which column is what, and what its scores mean.

    Parameters
    ----------
    id_column : str, optional
        Column, key of JSON lines, or index of a pandas frame, with the sample ids. If not given:
        the column called "sample", "sample_id" or "id"; else an index of a pandas frame that
        has a name or holds text; else the only column of text; else an index of whole numbers.
        One that just counts the rows holds the ids only where no column could: samples 0, 1,
        2 ... NumPy files have no columns.
    label_column, score_column : str, optional
        Columns of a long table, if they are not called "label" and "score". With either of
        them, other columns are not read.
    labels : LabelSpace, or iterable of str, optional
        Of a wide table or a NumPy file, the labels to read; of a long table or JSON lines,
        every label that the model could have named. Names the columns of a NumPy file that
        does not.
    kind : {"multiclass", "multilabel"}, optional
        Detected if not given.
    by_row : bool
        The table may be without sample ids: its rows are then counted from 0.
    normalize : bool
        Divide each row by its sum, as counts, percentages and rounded histograms need it.
    is_truth : bool
        It holds true labels, beside which there may be columns of any other use.
    is_pairs : bool
        It holds a number for each pair of labels, and the first column names the rows, unless
        there is one of sample ids.
    """

    id_column: str | None = None
    label_column: str | None = None
    score_column: str | None = None
    labels: LabelSpace | None = None
    kind: Kind | None = None
    by_row: bool = False
    normalize: bool = False
    is_truth: bool = False
    is_pairs: bool = False

    def __post_init__(self) -> None:
        taken: dict[str, str] = {}
        for argument in ("id_column", "label_column", "score_column"):
            name = getattr(self, argument)
            if name is None:
                continue
            if not isinstance(name, str):
                fail(f"{option(argument)} must be the name of a column; got {name!r}.")
            if name in taken:
                both = f"{option(taken[name])} and {option(argument)}"
                fail(f"{both} must name two columns; got {name!r} for both.")
            taken[name] = argument
        if self.labels is not None:
            object.__setattr__(self, "labels", LabelSpace(self.labels))
        check_kind(self.kind, normalize=self.normalize)

    @property
    def kind_of_scores(self) -> Kind | None:
        """What scores are before they are normalized, if that is said."""
        return "multilabel" if self.normalize or self.is_truth else self.kind
