"""Data frames in, predictions out, and back: pandas, polars, pyarrow, what narwhals knows."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from wassemble._checks import fail
from wassemble.inputs.formats.columns import (
    as_narwhals,
    column_type,
    counts_rows,
    load_narwhals,
    read_ids,
    read_long_table,
    read_numbers,
    read_scores,
    read_stored_index,
)
from wassemble.inputs.formats.layout import (
    ID_NAMES,
    Index,
    LongLayout,
    WideLayout,
    describe_ids,
    find_layout,
)
from wassemble.inputs.formats.sources import blame, check_memory
from wassemble.inputs.predictions.doubts import doubt_rest, doubt_scores, doubt_values
from wassemble.inputs.predictions.value import Origin, Predictions
from wassemble.inputs.reading import Reading, ReadingFields


def predictions_from_frame(
    frame: Any, model: str, reading: Reading = Reading(), **changes: Unpack[ReadingFields]
) -> Predictions:
    """Predictions of one model from a wide or a long data frame.

    A wide frame has one row per sample: its id, and one column per label. A long frame has
    one row per sample and label, with the columns "sample", "label" and "score"; without
    "score", the labels are hard. What is missing or not listed is nan: unobserved, not 0.
    A sample whose label is missing or empty is an abstention.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table or other
        Any eager data frame that narwhals knows.
    model : str
        Name of the model.
    reading : Reading
        How the frame is read.
    **changes
        Fields of the reading, by name: ``id_column``, ``labels``, ``kind`` ...

    Returns
    -------
    Predictions
        float32 if every score is, float64 otherwise.

    Examples
    --------
    >>> import pyarrow as pa
    >>> wide = pa.table({"sample": ["a", "b"], "cat": [0.9, 0.2], "dog": [0.1, 0.8]})
    >>> predictions_from_frame(wide, "tiny")
    Predictions('tiny': 2 samples x 2 labels, multiclass)
    >>> long = pa.table({"sample": ["a", "b"], "label": ["cat", "dog"], "score": [0.9, 0.8]})
    >>> predictions_from_frame(long, "tiny").scores
    array([[0.9, nan],
           [nan, 0.8]])
    """
    reading = replace(reading, **changes) if changes else reading
    with blame(f"the table of {model!r}", "a data frame that can be read"):
        kind = reading.kind_of_scores
        table = as_narwhals(frame)
        layout = _find_layout(table, reading)
        ids: Any = range(len(table))
        if layout.has_ids:
            ids = read_ids(_id_series(table, layout.id_column))
        is_hard, labels_occur = False, False
        if isinstance(layout, WideLayout):
            labels, scores = layout.labels, read_scores(table, layout.labels.names)
        else:
            listed = read_long_table(ids, table, layout, reading.labels)
            ids, labels, is_hard = listed.ids, listed.labels, listed.is_hard
            labels_occur = listed.labels_occur
            check_memory(len(ids), len(labels))
            scores = next(listed.blocks(max(1, len(ids))), np.empty((0, len(labels))))
        made = Predictions(model, ids, labels, scores, kind=kind, is_hard=is_hard)
        doubts: list[str] = []
        if kind is None and reading.labels is None and isinstance(layout, WideLayout):
            doubts = doubt_scores(labels, scores, made.kind)
        elif kind is None:
            left_out = layout.left_out if isinstance(layout, WideLayout) else ()
            doubts = doubt_rest(left_out, made.kind) or doubt_values(scores, made.kind)
        made.origin = replace(
            _origin(table, layout, doubts),
            is_wide=isinstance(layout, WideLayout),
            labels_occur=labels_occur,
        )
    return made.normalized() if reading.normalize else made


def _origin(table: Any, layout: WideLayout | LongLayout, doubts: list[str]) -> Origin:
    if layout.id_column is None and layout.has_ids:
        index = _index_of(table, Reading())
        name = None if index is None else index.name
        words = "ids in the index" if name is None else f"ids in the index, {name!r}"
        return Origin(None, name, words, doubts=tuple(doubts))
    return describe_ids(None, layout.id_column, layout.has_ids, doubts)


def frame_from_predictions(
    predictions: Predictions, like: Any, *, id_column: str | None = None
) -> Any:
    """A wide data frame of the predictions, of the same library as ``like``.

    Parameters
    ----------
    predictions : Predictions
    like : pandas.DataFrame, polars.DataFrame, pyarrow.Table or other
        Gives the library and the name of the column of ids. If it is a pandas frame with
        ids in its index, so is the result.
    id_column : str, optional
        Name of the column of ids, if not that of ``like``.

    Returns
    -------
    frame
        One row per sample: its id, and one column per label, null where the score is nan.
        If the columns of ``like`` are named by whole numbers, and the labels are such, they
        stay whole numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> tiny = Predictions("tiny", ["a"], ["cat", "dog"], [[0.9, float("nan")]])
    >>> like = pa.table({"id": ["x"], "cow": [1.0]})
    >>> frame_from_predictions(tiny, like).to_pydict()
    {'id': ['a'], 'cat': [0.9], 'dog': [None]}
    """
    nw = load_narwhals()
    with blame("`like`", "a data frame that can be read"):
        table = as_narwhals(like)
        if id_column is None:
            id_column = _find_layout(table, Reading()).id_column
        elif id_column not in table.columns:
            index = _index_of(table, Reading())
            if index is not None and index.name == id_column:
                id_column = None
    if id_column in predictions.labels:
        fail(
            f"the column of sample ids must not be called like a label; got {id_column!r}.",
            hint="`id_column` gives it another name",
        )
    if predictions.n_samples == 0:  # libraries tell types from rows
        example = 0 if predictions.samples.dtype.kind == "i" else "some sample"
        one = predictions.replace(
            samples=np.array([example]),
            scores=np.ones_like(predictions.scores, shape=(1, len(predictions.labels))),
        )
        return frame_from_predictions(one, like, id_column=id_column)[:0]
    ids = predictions.samples.tolist()
    columns: dict[str, Any] = {} if id_column is None else {id_column: ids}
    scores = np.asfortranarray(predictions.scores)  # each column contiguous
    columns |= {label: scores[:, place] for place, label in enumerate(predictions.labels)}
    library = nw.get_native_namespace(table)
    made = nw.from_dict(columns, backend=library)
    if np.isnan(scores).any() and not made.implementation.is_pandas_like():
        dtype = made.get_column(predictions.labels[0]).dtype
        null = nw.new_series("null", [None] * len(ids), dtype, backend=library)
        each = map(made.get_column, predictions.labels)
        made = made.with_columns(*[series.zip_with(~series.is_nan(), null) for series in each])
    native = made.to_native()
    if id_column is None:
        native.index = library.Index(ids, name=nw.maybe_get_index(table).name)
    whole = _whole_names(predictions.labels, like)
    if whole is not None:
        native.columns = [*([] if id_column is None else [id_column]), *whole]
    return native


def _whole_names(labels: Sequence[str], like: Any) -> list[int] | None:
    """Labels as whole numbers, if the columns of ``like`` are named so; None if they are not."""
    names = [name for name in like.columns if isinstance(name, int | np.integer)]
    if not names or not all(re.fullmatch(r"0|-?[1-9][0-9]*", label) for label in labels):
        return None
    return [int(label) for label in labels]


def _index_of(table: Any, reading: Reading) -> Index | None:
    """The index of a pandas frame, unless it only counts, or once counted, rows with ids."""
    index = load_narwhals().maybe_get_index(table)
    if index is None or (_is_plain_count(table) and _may_have_ids(table)):
        return None
    # Rows that were filtered, shuffled or concatenated keep the numbers that they had.
    if index.name is None and index.dtype.kind in "iu" and _has_text_ids(table, reading):
        return None
    if getattr(index, "nlevels", 1) > 1:
        fail(
            f"the index of the table must have one level; got {index.nlevels}.",
            hint="`frame.reset_index()` makes columns of them",
        )
    return Index(index.name if isinstance(index.name, str) else None)


def _is_plain_count(table: Any) -> bool:
    return counts_rows(table) and load_narwhals().maybe_get_index(table).name is None


def _may_have_ids(table: Any) -> bool:
    """Whether some column could hold sample ids, or the table is long."""
    names = set(table.columns)
    if not names.isdisjoint((*ID_NAMES, "label", "score")):
        return True
    columns = [table.get_column(name) for name in table.columns]
    return any(
        column_type(each) != "number" or (_is_whole(each) and each.max() > 1) for each in columns
    )


def _has_text_ids(table: Any, reading: Reading) -> bool:
    """Whether a single column of text is left for the sample ids."""
    taken = {"label", reading.label_column, reading.score_column, *(reading.labels or ())}
    free = [table.get_column(name) for name in table.columns if name not in taken]
    return sum(column_type(each) == "text" for each in free) == 1


def _is_whole(series: Any) -> bool:
    """Whether a column of numbers holds whole ones only, and some."""
    values = read_numbers(series, series.name)
    values = values[~np.isnan(values)]
    return bool(len(values) and (np.isfinite(values) & (values == np.floor(values))).all())


def _id_series(table: Any, id_column: str | None) -> Any:
    nw = load_narwhals()
    if id_column is not None:
        return table.get_column(id_column)
    return nw.from_native(nw.maybe_get_index(table).to_series(), series_only=True)


def _find_layout(table: Any, reading: Reading) -> WideLayout | LongLayout:
    is_arrow = table.implementation.is_pyarrow()
    return find_layout(
        table.columns,
        lambda name: column_type(table.get_column(name)),
        reading,
        # An index that only counts rows is none to match them by.
        index=None if reading.by_row and _is_plain_count(table) else _index_of(table, reading),
        stored_index=read_stored_index(table.to_native().schema) if is_arrow else (),
    )
