"""Columns of data frames as sample ids, label names and scores, through narwhals.

Leaves to `layout` which column is which.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble._checks import fail, option
from wassemble._extras import load_extra
from wassemble.inputs.formats.layout import ColumnType, LongLayout
from wassemble.inputs.formats.long_tables import LongTable
from wassemble.inputs.formats.sources import Source
from wassemble.inputs.predictions.value import read_samples
from wassemble.labels import LabelSpace, name_of, read_name

_WHOLE = re.compile(r"-?\d+(\.0+)?")

# Above this, a float64 no longer holds every whole number.
_LARGEST_WHOLE = 2**53


def load_narwhals() -> Any:
    """The narwhals module."""
    return load_extra("narwhals", "tables", purpose="reading data frames")


def as_narwhals(frame: Any) -> Any:
    """``frame`` in narwhals' interface, with texts for the names of its columns."""
    nw = load_narwhals()
    try:
        return nw.from_native(_with_text_names(frame), eager_only=True)
    except TypeError:
        library = type(frame).__module__.split(".")[0]
        hint = "`Predictions` takes arrays with names"
        if hasattr(frame, "collect"):
            hint = "`.collect()` makes one"
        elif library == "dask":
            hint = "`wassemble.scale.fuse_lazily` takes Dask data frames"
        fail(
            f"the table must be a data frame in memory; got an object of type"
            f" {library}.{type(frame).__name__}.",
            hint=hint,
        )
    except nw.exceptions.DuplicateError as error:
        got = ", ".join(line.removeprefix("- ") for line in str(error).splitlines()[1:])
        fail(f"the names of columns must differ; got {got}.")


def _with_text_names(frame: Any) -> Any:
    """A pandas frame with texts in place of whole numbers that name columns."""
    if not load_narwhals().dependencies.is_pandas_like_dataframe(frame):
        return frame
    names = list(frame.columns)
    if all(isinstance(name, str) for name in names):
        return frame
    renamed = frame.copy(deep=False)
    renamed.columns = [name if isinstance(name, str) else read_name(name) for name in names]
    return renamed


def counts_rows(table: Any) -> bool:
    """Whether the index of a pandas frame only counts its rows."""
    nw = load_narwhals()
    index = nw.maybe_get_index(table)
    return index is not None and isinstance(index, nw.get_native_namespace(table).RangeIndex)


def column_type(series: Any) -> ColumnType:
    """What a column holds."""
    nw = load_narwhals()
    dtype = series.dtype
    if dtype == nw.String:
        return "text"
    if dtype == nw.Boolean or dtype.is_integer() or dtype.is_float():
        return "number"
    values = series.drop_nulls()
    if len(values) == 0 and dtype in (nw.Object, nw.Unknown):
        return "empty"
    if dtype in (nw.Object, nw.Categorical, nw.Enum):
        # Categories may be of any type, and objects are.
        value = values.to_list()[0] if len(values) else ""
        return "text" if isinstance(value, str) else "number" if _is_number(value) else "other"
    return "other"


def read_ids(series: Any) -> Sequence[Any] | np.ndarray:
    """Sample ids of each row; whole numbers that are stored as floats become integers.

    An empty array of integers says that ids would be such, if there were any.
    """
    nw = load_narwhals()
    if series.dtype == nw.Boolean:
        fail("sample ids must be text or whole numbers; got a column of True and False.")
    empty = np.flatnonzero(np.asarray(series.is_null().to_numpy(), dtype=bool))
    if empty.size:
        fail(f"every row must have a sample id; got none at row {int(empty[0])}.")
    if len(series) == 0 and (series.dtype.is_integer() or series.dtype.is_float()):
        return np.empty(0, dtype=np.int64)
    if not series.dtype.is_float():
        return list(series.to_list())
    values = series.cast(nw.Float64).to_numpy()
    wrong = np.flatnonzero(~((values == np.floor(values)) & (np.abs(values) <= _LARGEST_WHOLE)))
    if wrong.size:
        row = int(wrong[0])
        fail(f"sample ids must be text or whole numbers; got {values[row]!s} at row {row}.")
    return list(values.astype(np.int64).tolist())


def read_label_names(series: Any, name: str) -> list[str | None]:
    """Label of each row, None where there is none; whole numbers become text."""
    empty = np.asarray(series.is_null().to_numpy(), dtype=bool)
    names: list[str | None] = []
    for row, (value, is_empty) in enumerate(zip(series.to_list(), empty, strict=True)):
        text = None if is_empty or value == "" else name_of(value)
        if text is None and not (is_empty or value == ""):
            fail(
                f"the column {name!r} must hold the names of labels, as text or whole numbers; got"
                f" {value!r} at row {row}.",
                hint=f"{option('labels', [name])} reads scores of a label that is called so",
            )
        names.append(text)
    return without_point(names)


def without_point(names: list[str | None]) -> list[str | None]:
    """Names as they are; if every one is a whole number, without a decimal point.

    Examples
    --------
    >>> without_point(["2.0", "10.0"]), without_point(["2", "2.0"]), without_point(["2.0", "2.1"])
    (['2', '10'], ['2', '2'], ['2.0', '2.1'])
    """
    texts = {name for name in names if name}
    if not texts or not all(_WHOLE.fullmatch(text) for text in texts):
        return names
    return [name and name.partition(".")[0] for name in names]


def read_scores(frame: Any, names: Sequence[str]) -> np.ndarray:
    """Columns ``names`` as one array: float32 if all of them are, float64 otherwise.

    What is missing is nan.
    """
    nw = load_narwhals()
    schema = frame.schema
    types = {schema[name] for name in names}
    if len(types) == 1 and types <= {nw.Float32(), nw.Float64()}:
        return np.array(frame[:, list(names)].to_numpy(), order="C")
    scores = np.empty((len(frame), len(names)))
    for place, name in enumerate(names):
        scores[:, place] = read_numbers(frame.get_column(name), name)
    return scores


def read_long_table(
    ids: Sequence[Any] | np.ndarray,
    frame: Any,
    layout: LongLayout,
    declared: LabelSpace | None,
    **options: Any,
) -> LongTable:
    """The rows of a long table, whose ``ids`` have been read."""
    names = read_label_names(frame.get_column(layout.label_column), layout.label_column)
    scores = None
    if layout.score_column is not None:
        scores = read_scores(frame, [layout.score_column])[:, 0]
    return LongTable(ids, names, scores, declared, **options)


def long_source(listed: LongTable, layout: LongLayout, model: str) -> Source:
    """A long table as a source of predictions."""
    return Source(
        listed.labels,
        read_samples(listed.ids, model),
        listed.blocks,
        streams=False,
        is_hard=listed.is_hard,
        id_column=layout.id_column,
        has_ids=layout.has_ids,
        is_long=True,
        labels_occur=listed.labels_occur,
        find_telling=listed.find_telling,
    )


def read_stored_index(schema: Any) -> list[str]:
    """The columns of an Arrow schema that were the index of a pandas frame."""
    try:
        about = schema.pandas_metadata or {}
    except (ValueError, RecursionError):  # not JSON
        about = None
    columns = about.get("index_columns", []) if isinstance(about, dict) else None
    # An index that counts the rows is described by a dict and has no column.
    if not isinstance(columns, list) or not all(isinstance(c, str | dict) for c in columns):
        fail(
            "what pandas noted in the table about its index must be readable; it is not.",
            hint="PyArrow's `table.replace_schema_metadata()` forgets it",
        )
    return [column for column in columns if isinstance(column, str)]


def read_numbers(series: Any, name: str) -> np.ndarray:
    """A column of numbers as float64, nan where there is none."""
    nw = load_narwhals()
    kind = column_type(series)
    n_missing = series.null_count()
    if kind == "number" and series.dtype != nw.Object:
        # pyarrow would not cast whole numbers beyond 2**53.
        is_plain = series.dtype.is_integer() and n_missing == 0
        numbers = series if is_plain else series.cast(nw.Float64)
        return np.asarray(numbers.to_numpy(), dtype=np.float64)
    if kind in ("empty", "text") and n_missing == len(series):
        return np.full(len(series), np.nan)
    values = series.drop_nulls().to_list()
    example = next((value for value in values if not _is_number(value)), None)
    if kind != "number" or example is not None:
        got = f"{series.dtype}" if example is None else f"{example!r} ({series.dtype})"
        fail(
            f"the column {name!r} must hold scores, as numbers; got {got}.",
            hint=f"{option('labels')} lists the columns that are labels; a long table has the"
            f" columns 'sample', 'label' and 'score'; {option('label_column', name)} says that this"
            " one names labels",
        )
    return np.array([v if _is_number(v) else np.nan for v in series.to_list()], dtype=float)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)
