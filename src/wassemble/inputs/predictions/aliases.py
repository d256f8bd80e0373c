"""Aliases: what the labels of models stand for, where names alone do not say it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import fail
from wassemble.inputs.formats.columns import as_narwhals
from wassemble.inputs.predictions.value import Kind
from wassemble.inputs.words.text_files import read_fields
from wassemble.labels import LabelSpace, enumerate_names, fold_name, read_name

_COLUMNS = ("model", "source", "target", "weight")


@dataclass(frozen=True)
class Aliases:
    """Which target labels the labels of models stand for.

    Parameters
    ----------
    rows : iterable of (model, source, target) or (model, source, target, weight)
        ``source``, a label of ``model`` (None: of every model that has it), stands for
        ``target``. A source label may have several rows: its mass may then go to each of
        those labels, in proportion to their weights (1 if not given). Several source labels
        of a model may stand for one target label: histograms are summed, scores of labels
        that do not exclude each other have their maximum taken.

    Labels that are not listed go by their names.

    Examples
    --------
    >>> aliases = Aliases([(None, "sedan", "car"), ("parity", "odd", "1"), ("parity", "odd", "3")])
    >>> aliases.of_model("parity")
    {'sedan': {'car': 1.0}, 'odd': {'1': 1.0, '3': 1.0}}
    >>> aliases.of_model("wheels")
    {'sedan': {'car': 1.0}}
    """

    rows: tuple[tuple[str | None, str, str, float], ...]

    def __init__(self, rows: Iterable[Iterable[Any]] = ()) -> None:
        read = tuple(_read_row(row) for row in rows)
        seen: set[tuple[str | None, str, str]] = set()
        for model, source, target, _ in read:
            if (model, source, target) in seen:
                where = "" if model is None else f" of {model!r}"
                fail(f"an alias must be given once; got {source!r} -> {target!r}{where} twice.")
            seen.add((model, source, target))
        object.__setattr__(self, "rows", read)

    @staticmethod
    def of(given: Any) -> Aliases:
        """Aliases from what a user may give: a dict ``{source: target}``, rows, or None.

        In a dict a target may be a list, or a dict of targets and weights. A data frame has the
        columns that `read_aliases` knows.
        """
        if given is None:
            return Aliases()
        if isinstance(given, Aliases):
            return given
        if is_frame(given):
            return Aliases(_rows_of(given))
        if isinstance(given, Mapping):
            _refuse_models(given)
            return Aliases(
                (None, source, target, weight)
                for source, goals in given.items()
                for target, weight in _goals(goals)
            )
        if isinstance(given, str) or not isinstance(given, Iterable):
            fail(
                f"`aliases` must be a dict of names to target labels; got {given!r}.",
                hint="`read_aliases(path)` reads a file; Aliases([(model, source, target), ...])"
                " says it for each model",
            )
        return Aliases(given)

    def of_model(self, model: str) -> dict[str, dict[str, float]]:
        """Target labels and weights of each source label; a model's own rows come first."""
        own: dict[str, dict[str, float]] = {}
        for wanted in (None, model):
            meanings: dict[str, dict[str, float]] = {}
            for named, source, target, weight in self.rows:
                if named == wanted:
                    meanings.setdefault(source, {})[target] = weight
            own |= meanings
        return own

    def with_folded(
        self, models: Iterable[tuple[str, LabelSpace]], names: Iterable[str]
    ) -> Aliases:
        """These, and that labels of ``models`` stand for ``names`` which are written otherwise.

        Labels that only models have are written as the first of these models does.

        Examples
        --------
        >>> Aliases().with_folded([("a", LabelSpace(["Cat", "dog"]))], ["cat", "dog"]).rows
        (('a', 'Cat', 'cat', 1.0),)
        """
        known = dict.fromkeys(names)
        first: dict[str, str] = {}
        for name in known:
            first.setdefault(fold_name(name), name)
        rows = list(self.rows)
        for model, space in models:
            own = self.of_model(model)
            for name in space:
                goal = first.setdefault(fold_name(name), name)
                if name != goal and name not in known and name not in own:
                    rows.append((model, name, goal, 1.0))
        return Aliases(rows)

    def check_models(self, models: Mapping[str, LabelSpace]) -> None:
        """Refuse rows about labels that a model lacks, and rows about strangers alone."""
        strangers = self.strangers(models)
        if strangers and all(model in strangers for model, *_ in self.rows):
            fail(
                f"some alias must be of the models {enumerate_names(models)}; got"
                f" {enumerate_names(strangers)}.",
                hint="an alias without a model holds for all of them",
            )
        for model, source, _, _ in self.rows:
            if model is not None and model in models and source not in models[model]:
                fail(
                    f"an alias must be of a label that its model has; {model!r} has no"
                    f" {source!r}, but {enumerate_names(models[model])}."
                )

    def strangers(self, models: Mapping[str, Any]) -> tuple[str, ...]:
        """Models that rows are about and that are not there: a table may serve several tasks."""
        return tuple(dict.fromkeys(m for m, *_ in self.rows if m is not None and m not in models))

    def unused(self, models: Mapping[str, LabelSpace], *, fold: bool) -> tuple[str, ...]:
        """Source labels that no model has; with ``fold``, by no spelling of theirs."""
        spell = fold_name if fold else str
        there = {spell(name) for space in models.values() for name in space}
        own = (s for model, s, *_ in self.rows if model is None or model in models)
        return tuple(dict.fromkeys(s for s in own if spell(s) not in there))

    def __bool__(self) -> bool:
        return bool(self.rows)


def read_aliases(path: str | Path) -> Aliases:
    """Aliases from a table: ``source,target``, with ``model`` and ``weight`` if need be.

    Parameters
    ----------
    path : str or path
        A ``.csv`` file, or one whose columns are parted by tabs. The first line names the
        columns, in any order; without it there are two, source and target. An empty model
        means every model, an empty weight 1.
    """
    path = Path(path)
    columns: list[str] | None = None
    rows: list[tuple[str | None, str, str, float]] = []
    first: dict[tuple[str | None, str, str], int] = {}
    for number, fields in read_fields(path):
        if columns is None:
            names = [field.casefold() for field in fields]
            if {"source", "target"} <= set(names):
                strange = [name for name in names if name not in _COLUMNS]
                if strange or len(set(names)) < len(names):
                    fail(
                        f"{path}, line {number}: columns must be {', '.join(_COLUMNS)}, each"
                        f" once; got {', '.join(fields)}."
                    )
                columns = names
                continue
            columns = ["source", "target"]
        if len(fields) != len(columns):
            fail(
                f"{path}, line {number}: must hold {', '.join(columns)}; got {len(fields)}"
                f" columns, {', '.join(fields)!r}.",
                hint="a first line `model,source,target,weight` names the columns",
            )
        row = dict(zip(columns, fields, strict=True))
        try:
            read = _read_row(
                (row.get("model") or None, row["source"], row["target"], row.get("weight") or 1.0)
            )
        except ValueError as error:
            fail(f"{path}, line {number}: {error}")
        if (before := first.setdefault(read[:3], number)) != number:
            fail(f"{path}, line {number}: says again what line {before} says.")
        rows.append(read)
    if not rows:
        fail(f"{path}: must hold a label and the target label it stands for; got no row.")
    return Aliases(rows)


def merge_scores(scores: np.ndarray, groups: np.ndarray, kind: Kind) -> np.ndarray:
    """Scores of labels that are one: sums of histograms, maxima of multi-label scores.

    ``groups`` has the place of each label afterwards; every place from 0 on has a label. The
    score is nan where none of a group was reported.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    missing = np.isnan(scores)
    merge = np.add if kind == "multiclass" else np.maximum
    merged = np.asarray(
        merge.reduceat(np.where(missing, 0, scores)[:, order], starts, axis=1), dtype=scores.dtype
    )
    if missing.any():
        merged[np.logical_and.reduceat(missing[:, order], starts, axis=1)] = np.nan
    return merged


def _rows_of(frame: Any) -> list[tuple[Any, Any, Any, Any]]:
    """The rows of a data frame; without a model they are of every model, without a weight 1."""
    table = as_narwhals(frame)
    names = table.columns
    if not {"source", "target"} <= set(names) or not set(names) <= set(_COLUMNS):
        fail(
            "a data frame of aliases must have the columns source and target, and may have model"
            f" and weight; got {enumerate_names(names)}."
        )
    every: dict[str, list[Any]] = {"model": [None] * len(table), "weight": [1.0] * len(table)}
    for name in names:
        series = table.get_column(name)
        gaps = series.is_null().to_list()
        missing = 1.0 if name == "weight" else None
        every[name] = [
            missing if gap or value == "" else value
            for value, gap in zip(series.to_list(), gaps, strict=True)
        ]
    return list(zip(*(every[name] for name in _COLUMNS), strict=True))


def _refuse_models(given: Mapping[Any, Any]) -> None:
    """Refuse a dict of models, whose dicts hold labels where weights belong."""
    for model, goals in given.items():
        for source, target in goals.items() if isinstance(goals, Mapping) else ():
            if isinstance(target, str | list | tuple | Mapping):
                goal = target if isinstance(target, str) else next(iter(target), "")
                fail(
                    f"the weight of an alias must be a number above 0; got {target!r} for"
                    f" {model!r} -> {source!r}.",
                    hint="what the labels of one model stand for is said by"
                    f' Aliases([("{model}", "{source}", "{goal}"), ...])',
                )


def _goals(goals: Any) -> list[tuple[Any, Any]]:
    if isinstance(goals, Mapping):
        return list(goals.items())
    if isinstance(goals, list | tuple | set):
        return [(goal, 1.0) for goal in goals]
    return [(goals, 1.0)]


def _read_row(row: Iterable[Any]) -> tuple[str | None, str, str, float]:
    parts = [row] if isinstance(row, str) else list(row)
    if len(parts) not in (3, 4):
        fail(
            "an alias must be (model, source, target) or (model, source, target, weight); got"
            f" {row!r}."
        )
    model, source, target = parts[:3]
    names = [read_name(name, " in an alias") for name in (source, target)]
    try:
        weight = float(parts[3]) if len(parts) == 4 else 1.0
    except (TypeError, ValueError):
        weight = math.nan
    if not (weight > 0 and math.isfinite(weight)):
        fail(
            f"the weight of an alias must be a number above 0; got {parts[3]!r} for"
            f" {names[0]!r} -> {names[1]!r}."
        )
    return (None if model is None else str(model), names[0], names[1], weight)
