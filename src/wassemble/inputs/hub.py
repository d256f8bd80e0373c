"""Forecast hubs: folders of forecasts in the layout of the hubverse, and what happened.

A row has what is asked, such as place and date, in columns of its own, and the answer in
``output_type``, ``output_type_id`` and ``value`` (hubverse.io): the probability of a category
(pmf), a quantile at a level (quantile), the probability of at most a number (cdf), or a number that
was drawn (sample).
"""

import csv
import gzip
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble._files import write_whole
from wassemble.errors import InputWarning, tell_count
from wassemble.inputs.predictions.value import Predictions, is_near_one
from wassemble.labels import LabelSpace, enumerate_names

_ANSWER = ("output_type", "output_type_id", "value")
_SORTS = ("pmf", "quantile", "cdf", "sample")
_BY_NUMBER = ("quantile", "cdf")
_NO_DISTRIBUTION = ("mean", "median")
_ROUNDING = 1e-6  # of probabilities, by which a distribution function may fall
_ENDS = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, eq=False)
class HubTable:
    """What all models say of the same questions, in one output type.

    Attributes
    ----------
    sort : {"pmf", "quantile", "cdf", "sample"}
        The output type.
    columns : tuple of str
        Names of what is asked.
    tasks : list of tuple of str
        What is asked, one value per column.
    ids : tuple of str
        Categories in their order, levels or numbers from the lowest to the highest, or names of
        draws.
    models : tuple of str
    values : array of shape (n_models, n_tasks, n_ids)
        nan at all ids where a model did not answer.
    """

    sort: str
    columns: tuple[str, ...]
    tasks: list[tuple[str, ...]]
    ids: tuple[str, ...]
    models: tuple[str, ...]
    values: np.ndarray

    @property
    def samples(self) -> list[str]:
        """A name for each task."""
        return ["|".join(task) for task in self.tasks]

    @property
    def levels(self) -> np.ndarray:
        """The levels of quantiles, or the numbers of distribution functions."""
        return np.array([float(level) for level in self.ids])

    @property
    def positions(self) -> tuple[float, ...] | None:
        """Where categories lie on a line, if `in_order` was told."""
        return self.ids.positions if isinstance(self.ids, LabelSpace) else None

    @property
    def has_histograms(self) -> bool:
        """Whether it has probabilities of places, not numbers."""
        return self.sort in ("pmf", "cdf")

    def to_histograms(self) -> np.ndarray:
        """Probabilities of categories, or of what lies between the numbers and beyond the last."""
        if self.sort == "pmf":
            return self.values
        shares = np.diff(self.values, axis=2, prepend=0.0, append=1.0)
        if (shares < -_ROUNDING).any():
            model, task, place = np.argwhere(shares < -_ROUNDING)[0].tolist()
            fail(
                "a distribution function must rise from 0 to 1; that of"
                f" {self.models[model]} does not at {self.samples[task]},"
                f" {self.ids[min(place, len(self.ids) - 1)]}."
            )
        return np.maximum(shares, 0)

    def with_histograms(self, model: str, histograms: np.ndarray) -> "HubTable":
        """The same with one model, of which these are the probabilities."""
        values = histograms
        if self.sort == "cdf":
            values = np.cumsum(histograms, axis=1)[:, :-1]
        return replace(self, models=(model,), values=values[None])

    def to_predictions(self) -> list[Predictions]:
        """Probabilities of categories as predictions, one per model."""
        if self.sort != "pmf":
            fail(f"predictions must be probabilities of categories; got a {self.sort}.")
        return [
            Predictions(model, self.samples, self.ids, values, kind="multiclass")
            for model, values in zip(self.models, self.values, strict=True)
        ]

    def take(self, rows: np.ndarray) -> "HubTable":
        """Some of the tasks, as a mask."""
        tasks = [task for task, is_taken in zip(self.tasks, rows, strict=True) if is_taken]
        return replace(self, tasks=tasks, values=self.values[:, rows])

    def of_those_who_answered(self) -> "HubTable":
        """The same without models that answered nothing."""
        there = ~np.isnan(self.values).all(axis=(1, 2))
        models = tuple(
            model for model, answered in zip(self.models, there, strict=True) if answered
        )
        return replace(self, models=models, values=self.values[there])

    def in_order(self, order: Sequence[str]) -> "HubTable":
        """The same with categories in this order, and where a `LabelSpace` says that they lie."""
        if set(order) != set(self.ids):
            fail(
                f"the order must name all of {enumerate_names(self.ids)}; got"
                f" {enumerate_names(order)}."
            )
        places = [self.ids.index(name) for name in order]
        return replace(self, ids=LabelSpace(order), values=self.values[:, :, places])


def read_hub(folder: str | PathLike[str]) -> list[HubTable]:
    """The forecasts in a hub: a table for each target and output type.

    Parameters
    ----------
    folder : str or path
        The ``model-output`` folder of a hub, or the hub: a folder for each model with its CSV or
        Parquet files. Of output types, mean and median are passed over, as they are no
        distribution; others than pmf, quantile, cdf and sample with a warning. A model that gives
        only some of the levels of a task counts as one that did not answer, with a warning; a
        category that is not listed has the probability 0, and probabilities must sum to 1.
    """
    root = Path(folder)
    root = root / "model-output" if (root / "model-output").is_dir() else root
    files = sorted(path for path in root.glob("*/*") if path.name.endswith(_ENDS))
    if not files:
        fail(f"{root}: must have a folder for each model, with CSV or Parquet files; got none.")
    rows: dict[tuple[str, str], list[tuple[str, dict[str, str]]]] = {}
    others: dict[str, None] = {}
    for path in files:
        for entries in _read_rows(path):
            sort = entries["output_type"]
            if sort not in _SORTS:
                others[sort] = None
                continue
            if sort in _BY_NUMBER:
                entries["output_type_id"] = _spell_level(entries["output_type_id"], path)
            rows.setdefault((entries.get("target", ""), sort), []).append(
                (path.parent.name, entries)
            )
    if not rows:
        fail(f"{root}: must have forecasts of type {', '.join(_SORTS)}; got none.")
    if strange := [each for each in others if each not in _NO_DISTRIBUTION]:
        told = f"forecasts of these types are not read: {enumerate_names(strange)}."
        warnings.warn(told, InputWarning, stacklevel=2)
    return [_fill(sort, given, root) for (_, sort), given in sorted(rows.items())]


def write_hub(path: str | PathLike[str], tables: Iterable[HubTable]) -> None:
    """Write tables of one model in the layout that `read_hub` reads."""
    rows: list[dict[str, str]] = []
    for table in tables:
        for task, values in zip(table.tasks, table.values[0], strict=True):
            asked = dict(zip(table.columns, task, strict=True))
            rows += [
                asked
                | {"output_type": table.sort, "output_type_id": name, "value": f"{value:.10g}"}
                for name, value in zip(table.ids, values, strict=True)
                if not np.isnan(value)
            ]
    header = dict.fromkeys(name for row in rows for name in row if name not in _ANSWER)
    text = io.StringIO()
    writer = csv.DictWriter(text, [*header, *_ANSWER], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(Path(path), text.getvalue())


def read_oracle(path: str | PathLike[str], table: HubTable) -> np.ndarray:
    """What happened, for each task of a table: the place of the category, or the number.

    Of distribution functions it is the place of the first number that the truth is at most.

    Parameters
    ----------
    path : str or path
        CSV with the column ``oracle_value`` (or ``value``, ``observation``) and some of the columns
        of what is asked; of categories and distribution functions, ``output_type_id`` says which,
        with 1 for what happened.
    table : HubTable

    Returns
    -------
    truth : array of shape (n_tasks,)
        The place, or -1 where it is not known; the number, or nan.
    """
    rows = list(_read_rows(Path(path), _find_value))
    value = _find_value(rows[0], Path(path))
    shared = [name for name in table.columns if name in rows[0]]
    if not shared:
        fail(f"{path}: must have some of the columns {enumerate_names(table.columns)}; got none.")
    known: dict[tuple[str, ...], float] = {}
    for row in rows:
        if row.get("output_type", table.sort) not in (table.sort, "") or not row[value]:
            continue
        key = tuple(row[name] for name in shared)
        if not table.has_histograms:
            known[key] = float(row[value])
        elif (place := _find_place(table, row, float(row[value]))) is not None:
            known[key] = min(place, known.get(key, place))
    places = [table.columns.index(name) for name in shared]
    found = [known.get(tuple(task[place] for place in places)) for task in table.tasks]
    missing = -1 if table.has_histograms else np.nan
    truth = np.array([missing if each is None else each for each in found])
    return truth.astype(np.int64) if table.has_histograms else truth


def _find_place(table: HubTable, row: Mapping[str, str], value: float) -> int | None:
    """Where a row says that the truth is: the category, or the first number that it is at most.

    Of a distribution function, a row has 1 for a number that the truth is at most, 0 for one that
    it is above, or no such number and the truth itself.
    """
    name = row.get("output_type_id", "")
    if table.sort == "pmf":
        return table.ids.index(name) if value == 1 and name in table.ids else None
    if not name:
        return int(np.searchsorted(table.levels, value))
    return int(np.searchsorted(table.levels, float(name))) if value == 1 else len(table.ids)


def _find_value(row: Mapping[str, str], path: Path) -> str:
    names = ("oracle_value", "observation", "value")
    found = next((name for name in names if name in row), None)
    if found is None:
        fail(
            f"{path}: what happened must be in a column {' or '.join(names)};"
            f" got {enumerate_names(row)}."
        )
    return found


def _find_answer(row: Mapping[str, str], path: Path) -> str:
    missing = [name for name in _ANSWER if name not in row]
    if missing:
        fail(f"{path}: a forecast must have the columns {', '.join(_ANSWER)}; got no {missing[0]}.")
    return "value"


def _read_rows(
    path: Path, find_value: Callable[[Mapping[str, str], Path], str] = _find_answer
) -> Iterator[dict[str, str]]:
    """Rows as dicts; the value is a number, or empty."""
    value = None
    lines = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    for where, row in lines:
        value = value or find_value(row, path)
        try:
            float(row[value] or 0)
        except ValueError:
            fail(f"{path}, {where}: {value} must be a number; got {row[value]!r}.")
        yield row
    if value is None:
        fail(f"{path}: must have rows below its header; got none.")


def _read_csv(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Where each row stands, and what is in it."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
        for number, row in enumerate(csv.DictReader(text), start=2):
            if None in row or None in row.values():
                fail(f"{path}, line {number}: must have as many columns as the first line.")
            yield f"line {number}", row


def _read_parquet(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The same of a Parquet file; dates and numbers as CSV spells them."""
    parquet = load_extra("pyarrow.parquet", "tables", purpose="reading Parquet files")
    for number, row in enumerate(parquet.read_table(path).to_pylist(), start=1):
        told = {name: "" if each is None else str(each) for name, each in row.items()}
        yield f"row {number}", told


def _spell_level(level: str, path: Path) -> str:
    """The number of a quantile or a distribution function in one spelling: .50 is 0.5."""
    try:
        return f"{float(level):.12g}"
    except ValueError:
        fail(f"{path}: what a quantile or a cdf is of must be a number; got {level!r}.")


def _fill(sort: str, rows: Sequence[tuple[str, dict[str, str]]], root: Path) -> HubTable:
    columns = tuple(dict.fromkeys(n for _, row in rows for n in row if n not in _ANSWER))
    models = sorted({model for model, _ in rows})
    tasks = dict.fromkeys(tuple(row.get(n, "") for n in columns) for _, row in rows)
    names = dict.fromkeys(row["output_type_id"] for _, row in rows)
    ids = sorted(names, key=float) if sort in _BY_NUMBER else list(names)
    place = [{each: i for i, each in enumerate(axis)} for axis in (models, tasks, ids)]
    values = np.full([len(each) for each in place], np.nan)
    for model, row in rows:
        task = tuple(row.get(n, "") for n in columns)
        at = place[0][model], place[1][task], place[2][row["output_type_id"]]
        if not np.isnan(values[at]):
            fail(f"{root}: {model} must answer {'|'.join(task)} once; got several answers.")
        values[at] = float(row["value"] or "nan")
    in_part = np.isnan(values).any(axis=2) & ~np.isnan(values).all(axis=2)
    if sort == "pmf":
        values[in_part] = np.nan_to_num(values[in_part])  # a category that is not listed has none
    elif in_part.any():
        values[in_part] = np.nan  # quantiles that are missing cannot be known
        _warn_of_parts(sort, np.array(models)[in_part.any(axis=1)], int(in_part.sum()), len(ids))
    table = HubTable(sort, columns, list(tasks), tuple(ids), tuple(models), values)
    if np.isnan(values).all():
        fail(
            f"{root}: some answer must have all {len(ids)} values of a {sort}; got none:"
            f" {enumerate_names(ids)}.",
            hint="models must give the same ones",
        )
    if sort == "pmf":
        _check_shares(table, root)
    return table


def _check_shares(table: HubTable, root: Path) -> None:
    """Probabilities of categories sum to 1, but for rounding; no answer is shared out anew."""
    sums = table.values.sum(axis=2)
    near = np.array([is_near_one(*each) for each in zip(table.values, sums, strict=True)])
    wrong = ~np.isnan(sums) & ~near | (table.values < 0).any(axis=2)
    if wrong.any():
        model, task = np.argwhere(wrong)[0].tolist()
        fail(
            f"{root}: probabilities of a pmf must be at least 0 and sum to 1; those of"
            f" {table.models[model]} for {table.samples[task]} sum to {sums[model, task]:.4g}.",
            hint="a category that is not listed counts as 0",
        )


def _warn_of_parts(sort: str, models: np.ndarray, n_answers: int, n_ids: int) -> None:
    told = (
        f"{enumerate_names(models.tolist())} gave less than all {n_ids} values of a {sort};"
        f" {tell_count(n_answers, 'answer')} left out."
    )
    warnings.warn(told, InputWarning, stacklevel=4)
