"""JSON lines of predictions: one object per sample, or per sample and label."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wassemble._checks import fail, option, shorten
from wassemble.inputs.formats.columns import long_source
from wassemble.inputs.formats.layout import ID_NAMES, LongLayout
from wassemble.inputs.formats.long_tables import LongTable, find_labels
from wassemble.inputs.formats.sources import Source
from wassemble.inputs.predictions.value import Predictions, read_samples
from wassemble.inputs.reading import Reading
from wassemble.labels import LabelSpace, enumerate_names


class _Line(NamedTuple):
    number: int  # from 1
    sample: Any
    label: str | None  # of a long line
    scores: Any  # wide: name -> number or None; long: number or None; hard: _HARD
    id_key: str | None  # None where rows are counted
    form: str  # in words


_HARD = object()
_WIDE = 'all with "scores"'
_FLAT = "all with nothing but a sample id and numbers"
_LONG = 'all with "label"'


def open_json_lines(path: Path, reading: Reading, model: str) -> Source:
    """The predictions in a file of JSON lines; long ones are read whole.

    Wide: ``{"sample": "a", "scores": {"cat": 0.9, "dog": 0.1}}``; other keys are not read. Flat, as
    tables are written: ``{"sample": "a", "cat": 0.9, "dog": 0.1}``, with nothing but numbers.
    Long: ``{"sample": "a", "label": "cat", "score": 0.9}``; without scores, and without any
    other key, the labels are hard.
    """
    ids: list[Any] = []
    names: dict[str, None] = {}
    listed: list[_Line] = []
    first = None
    for line in _read(path, reading):
        first = first or line
        _check_form(line, first)
        if isinstance(line.scores, dict):
            ids.append(line.sample)
            if not names.keys() >= line.scores.keys():
                names |= dict.fromkeys(line.scores)
        else:
            listed.append(line)
    id_key = None if first is None else first.id_key
    if listed:
        return _open_long(listed, reading, model, id_key)
    labels = find_labels(names, reading.labels)
    samples = read_samples(ids, model)

    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        place = {label: column for column, label in enumerate(labels)}
        lines = _read(path, reading)
        for start in range(0, len(samples), n_rows):
            size = min(n_rows, len(samples) - start)
            block = np.full((size, len(labels)), np.nan)
            for row, line in zip(range(size), lines, strict=False):
                columns = [place[name] for name in line.scores]
                block[row, columns] = _numbers(line)
            yield block

    return Source(
        labels, samples, blocks, streams=True, id_column=id_key, has_ids=id_key is not None
    )


@contextmanager
def append_json_lines(
    path: Path, labels: LabelSpace, *, final: Path, id_column: str | None = None
) -> Iterator[Callable[[Predictions], None]]:
    """A function that appends predictions to a new file of JSON lines."""
    id_key = "sample" if id_column in (None, "scores") else id_column
    with path.open("w", encoding="utf-8", newline="\n") as file:

        def append(chunk: Predictions) -> None:
            for sample, row in zip(chunk.samples.tolist(), chunk.scores.tolist(), strict=True):
                # Null rather than left out, so that the label stays declared. Only nan
                # differs from itself.
                values = [value if value == value else None for value in row]  # noqa: PLR0124
                record = {id_key: sample, "scores": dict(zip(labels, values, strict=True))}
                file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")

        yield append


def _open_long(listed: list[_Line], reading: Reading, model: str, id_key: str | None) -> Source:
    is_hard = all(line.scores is _HARD or line.label is None for line in listed)
    is_hard &= any(line.scores is _HARD for line in listed)
    if not is_hard:
        for line in listed:
            if line.scores is _HARD and line.label is not None:
                fail(f"line {line.number} must have a score, like other lines; got none.")
    scores = [math.nan if line.scores is _HARD else line.scores for line in listed]
    table = LongTable(
        [line.sample for line in listed],
        [line.label for line in listed],
        None if is_hard else np.array(scores, dtype=np.float64),
        reading.labels,
        place=lambda row: f"line {listed[row].number}",
    )
    has_ids = id_key is not None
    layout = LongLayout(id_key, reading.label_column or "label", reading.score_column, has_ids)
    return long_source(table, layout, model)


def _check_form(line: _Line, first: _Line) -> None:
    if line.form != first.form:
        fail(
            f"line {line.number} must have the form of the first lines, {first.form}; got"
            f" {line.form}."
        )


def _read(path: Path, reading: Reading) -> Iterator[_Line]:
    n_before = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if not text:
                    continue
                record = json.loads(text, object_pairs_hook=_without_repeats)
            except UnicodeDecodeError:
                fail(f"the text must be UTF-8; line {number} is not.", hint="save it as UTF-8")
            except (ValueError, RecursionError) as error:
                reason = getattr(error, "msg", None) or str(error).splitlines()[0]
                fail(f"line {number} must be one JSON object; got: {reason.rstrip('.')}.")
            if not isinstance(record, dict):
                fail(f"line {number} must be one JSON object; got {_show(record)}.")
            yield _as_line(number, n_before, record, reading)
            n_before += 1


def _as_line(number: int, n_before: int, record: dict[str, Any], reading: Reading) -> _Line:
    id_key = _id_key(number, record, reading)
    sample = n_before if id_key is None else record[id_key]
    if isinstance(sample, bool) or not isinstance(sample, str | int) or sample == "":
        fail(f"line {number}: {id_key!r} must be a text or a whole number; got {_show(sample)}.")
    wide_key = reading.score_column or "scores"
    if reading.label_column is None and isinstance(record.get(wide_key, 0), dict | None):
        scores = record[wide_key] or {}
        if not set(map(type, scores.values())) <= {float, int, bool, type(None)}:
            for name, value in scores.items():
                _number(number, name, value)  # one of them is none
        return _Line(number, sample, None, scores, id_key, _WIDE)
    label_key = reading.label_column or "label"
    if label_key not in record:
        scores = _flat_scores(number, record, id_key, reading)
        return _Line(number, sample, None, scores, id_key, _FLAT)
    label = _label_name(number, record[label_key])
    score_key = reading.score_column or "score"
    if reading.is_truth and (reading.label_column is not None or score_key not in record):
        return _Line(number, sample, label or None, _HARD, id_key, _LONG)
    if score_key in record:
        score = _number(number, label, record[score_key])
        return _Line(number, sample, label or None, score, id_key, _LONG)
    others = [key for key in record if key not in (id_key, label_key)]
    if others and label:
        # Labels without scores are hard: not to be concluded from a misnamed key.
        fail(
            f"line {number} must have {json.dumps(score_key)}, or nothing but sample and label;"
            f" got {enumerate_names(others)}.",
            hint=f"{option('score_column')} names it",
        )
    return _Line(number, sample, label or None, _HARD, id_key, _LONG)


def _flat_scores(
    number: int, record: dict[str, Any], id_key: str | None, reading: Reading
) -> dict[str, Any]:
    """The scores of a line whose labels stand beside the sample id."""
    scores = {name: value for name, value in record.items() if name != id_key}
    are_numbers = set(map(type, scores.values())) <= {float, int, bool, type(None)}
    if not scores or not are_numbers or reading.label_column or reading.score_column:
        label_key = json.dumps(reading.label_column or "label")
        fail(
            f'line {number} must have "scores", an object with a number for each label, or'
            f" {label_key}, or nothing but a sample id and numbers; got {enumerate_names(record)}."
        )
    return scores


def _label_name(number: int, label: Any) -> str | None:
    """A label as text; whole numbers are names too."""
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, bool) or not isinstance(label, int):
        fail(f"line {number}: a label must be text or a whole number; got {_show(label)}.")
    return str(label)


def _id_key(number: int, record: dict[str, Any], reading: Reading) -> str | None:
    names = ID_NAMES if reading.id_column is None else (reading.id_column,)
    keys = [name for name in names if name in record]
    if not keys and reading.by_row:
        return None
    if len(keys) != 1:
        one_of = " or ".join(json.dumps(name) for name in names)
        fail(
            f"line {number} must have one sample id, under {one_of}; got"
            f" {enumerate_names(keys or record) or 'an empty object'}.",
            hint=f"{option('id_column')} names it",
        )
    return keys[0]


def _number(number: int, label: Any, value: Any) -> float:
    if value is None:
        return math.nan
    if not isinstance(value, int | float):
        fail(f"line {number}: the score of {label!r} must be a number; got {_show(value)}.")
    try:
        return float(value)
    except OverflowError:
        return math.inf  # refused later, by sample and label


def _numbers(line: _Line) -> Any:
    try:
        return np.array(list(line.scores.values()), dtype=np.float64)  # None becomes nan
    except OverflowError:
        return [_number(line.number, name, value) for name, value in line.scores.items()]


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("the same name twice in one object")
    return record


def _show(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False))
