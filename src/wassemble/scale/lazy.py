"""`fuse_lazily`: Dask data frames or folders of part files in, a Dask data frame out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.ensemble.account import FusionAccount
from wassemble.ensemble.label_overlap import check_labels
from wassemble.ensemble.plan import FusionPlan
from wassemble.ensemble.tables import (
    align_samples,
    common_kind,
    read_options,
    warn_of,
    warn_of_inputs,
)
from wassemble.errors import InvalidInputError
from wassemble.inputs import (
    DataSet,
    Kind,
    Predictions,
    frame_from_predictions,
    open_data_set,
    predictions_from_frame,
    read_predictions,
)
from wassemble.inputs.data_sets import PartReader, common_parts, is_data_set, open_parts
from wassemble.inputs.folders import fetch_file
from wassemble.inputs.layout import free_id_name
from wassemble.inputs.overlap import check_part_samples, count_shared
from wassemble.inputs.predictions import have_numbers
from wassemble.labels import LabelSpace

__all__ = ["fuse_lazily", "is_lazy", "read_places"]

# Rows of a folder that say which types its scores and ids have.
_N_FIRST = 1024


def fuse_lazily(
    models: Mapping[str, Any],
    *,
    kernel: Any = None,
    target: LabelSpace | Iterable[str] | None = None,
    weights: Any = None,
    kind: Kind | None = None,
    aliases: Any = None,
    fold: bool = False,
    other: str | Mapping[str, str] | None = None,
    samples: Literal["all", "common"] = "all",
    allow_disjoint: bool = False,
    normalize: bool = False,
    **options: Any,
) -> Any:
    """Consensus of models in partitions, as a Dask data frame that is computed when asked for.

    Partitions in, partitions out: the first one of every model makes the first one of the
    consensus, and so on. Samples are matched by id within a partition.

    Parameters
    ----------
    models : dict of name to Dask data frame, or of name to folder
        Data frames are wide and have the same number of partitions. Folders hold part files
        as in `open_data_set`, on this machine or at any URL that fsspec knows; parts belong
        together by their names.
    kind : {"multiclass", "multilabel"}, optional
        If not given, it is detected from the first partitions, which are read at once, and
        must hold for the others.
    allow_disjoint : bool
        Models may have no sample in common in the first partitions, and few in any.

    Other parameters and options as in `fuse_tables`.

    Returns
    -------
    consensus : dask.dataframe.DataFrame
        Of pandas frames, with ids where those of the first model are.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> first = pd.DataFrame({"sample": ["x", "y"], "cat": [0.9, 0.2], "dog": [0.1, 0.8]})
    >>> second = pd.DataFrame({"sample": ["y", "x"], "cat": [0.3, 0.6], "dog": [0.7, 0.4]})
    >>> frames = {"a": dd.from_pandas(first), "b": dd.from_pandas(second)}
    >>> fuse_lazily(frames).compute().round(2)
      sample   cat   dog
    0      x  0.77  0.23
    1      y  0.25  0.75
    """
    if not models:
        fail("there must be at least one model; got none.")
    is_folder = [isinstance(given, str | os.PathLike) for given in models.values()]
    source: _Folders | _Frames
    if all(is_folder):
        how: dict[str, Any] = {"kind": kind, "normalize": normalize}
        source = _Folders([open_data_set(p, model=m, **how) for m, p in models.items()])
    elif all(_is_dask_frame(given) for given in models.values()):
        frames = {str(name): frame for name, frame in models.items()}
        source = _Frames(frames, kind, normalize=normalize)
    else:
        kinds = ", ".join(type(given).__name__ for given in models.values())
        fail(f"models must be all Dask data frames or all folders; got {kinds}.")
    found, detected = common_kind(source.heads, kind)
    space = target if target is None or isinstance(target, LabelSpace) else LabelSpace(target)
    plan = FusionPlan(
        [(head.model, head.labels) for head in source.heads],
        found,
        target=space,
        kernel=kernel,
        weights=weights,
        aliases=aliases,
        fold=fold,
        other=other,
        options=read_options(options),
    )
    account = FusionAccount.of(plan, kind_is_detected=detected)
    account.read_from([head.origin for head in source.heads])
    if kernel is None:
        account.warnings += check_labels(plan)
    source.check_samples(allow_disjoint)
    warn_of_inputs(account.warnings)
    dask = load_extra("dask", "scale", purpose="fusing lazily")
    dd = load_extra("dask.dataframe", "scale", purpose="fusing lazily")
    # One node of the graph for all partitions: a worker gets the kernel once.
    part = _FusePart(plan, detected, samples, source.like(plan), allow_disjoint)
    fuse = dask.delayed(part, traverse=False)
    parts = [
        dask.delayed(_fuse_part)(fuse, name, part) for name, part in source.parts(dask).items()
    ]
    return dd.from_delayed(parts, meta=_meta(plan, source), verify_meta=False)


def is_lazy(given: Any) -> bool:
    """Whether a model is a Dask data frame or the path of a folder; imports nothing."""
    return isinstance(given, str | os.PathLike) or _is_dask_frame(given)


def read_places(
    models: Mapping[str, Any], kind: Kind | None = None, *, by_row: bool = False
) -> dict[str, Any]:
    """The models, with files read that paths or URLs lead to; those of folders are kept."""
    found = dict(models)
    for name, given in models.items():
        if isinstance(given, str | os.PathLike) and not is_data_set(given):
            with fetch_file(given) as path:
                found[name] = read_predictions(path, model=str(name), kind=kind, by_row=by_row)
    return found


def _is_dask_frame(value: Any) -> bool:
    return type(value).__module__.startswith("dask.dataframe") and hasattr(value, "to_delayed")


class _Frames:
    """Models in Dask data frames."""

    def __init__(self, frames: Mapping[str, Any], kind: Kind | None, *, normalize: bool) -> None:
        sizes = {name: frame.npartitions for name, frame in frames.items()}
        if len(set(sizes.values())) > 1:
            each = ", ".join(f"{n} of {name}" for name, n in sizes.items())
            fail(f"models must have the same number of partitions; got {each}.")
        for name, frame in frames.items():
            if "label" in frame.columns and frame._meta["label"].dtype.kind not in "iuf":
                fail(
                    f"{name}: a Dask data frame must be wide, with a column for each label; got a"
                    " long one.",
                    hint="a folder of long part files can be fused, with `labels`",
                )
        self._frames = frames
        self._normalize = normalize
        self.heads = [
            predictions_from_frame(_first_rows(frame, kind), name, kind=kind, normalize=normalize)
            for name, frame in frames.items()
        ]

    def parts(self, dask: Any) -> dict[str, Any]:
        names = list(self._frames)
        each = [frame.to_delayed() for frame in self._frames.values()]
        return {
            f"partition {place}": dask.delayed(_read_frames)(names, list(part), self._normalize)
            for place, part in enumerate(zip(*each, strict=True))
        }

    def check_samples(self, allow_disjoint: bool) -> None:
        check_part_samples([self.heads], allow_disjoint=allow_disjoint)

    def like(self, plan: FusionPlan) -> Any:
        return next(iter(self._frames.values()))._meta


def _first_rows(frame: Any, kind: Kind | None) -> Any:
    """The first partition, to tell the kind from; no rows if it is known."""
    return frame._meta if kind is not None else frame.get_partition(0).compute()


def _read_frames(names: list[str], frames: list[Any], normalize: bool) -> list[Predictions]:
    return [
        predictions_from_frame(frame, name, normalize=normalize)
        for name, frame in zip(names, frames, strict=True)
    ]


class _Folders:
    """Models in folders of part files."""

    def __init__(self, sets: list[DataSet]) -> None:
        self._sets = sets
        self.heads = [_read_first(each) for each in sets]

    def parts(self, dask: Any) -> dict[str, Any]:
        readers = dask.delayed([each.reader for each in self._sets], traverse=False)
        return {
            name: dask.delayed(_read_files)(readers, [each.parts[name].file for each in self._sets])
            for name in common_parts(self._sets)
        }

    def check_samples(self, allow_disjoint: bool) -> None:
        check_part_samples(open_parts(self._sets), allow_disjoint=allow_disjoint)

    def like(self, plan: FusionPlan) -> Any:
        pd = load_extra("pandas", "scale", purpose="fusing lazily")
        names = [head.origin.id_column for head in self.heads]
        wanted = next((name for name in names if name is not None), None)
        id_column = free_id_name(plan.target, wanted)
        return pd.DataFrame({id_column: ["some sample"], plan.target[0]: [1.0]})


def _read_first(given: DataSet) -> Predictions:
    """A few rows, which are like all others."""
    with given.reader.open(given.typical.file) as file:
        some = next(file.chunks(_N_FIRST))
    some.kind, some.kind_is_detected = given.kind, given.kind_is_detected
    return some


def _read_files(readers: Sequence[PartReader], files: Sequence[str]) -> list[Predictions]:
    found = []
    with ExitStack() as stack:
        for reader, name in zip(readers, files, strict=True):
            file = stack.enter_context(reader.open(name))
            found.append(next(file.chunks(max(1, file.n_samples))))
    return found


@dataclass(frozen=True)
class _FusePart:
    """Fuses the predictions of one partition into a frame."""

    plan: FusionPlan
    kind_is_detected: bool
    samples: Literal["all", "common"]
    like: Any  # a frame of the kind to give
    allow_disjoint: bool

    def __call__(self, predictions: list[Predictions]) -> Any:
        for given in predictions:
            if self.kind_is_detected and given.n_samples and given.kind != self.plan.kind:
                fail(
                    f"{given.model}: the kind that the first partition has, {self.plan.kind}, must"
                    f" hold for all; got {given.kind} at sample {given.samples.tolist()[0]!r}.",
                    hint="`kind` says which it is",
                )
        members = align_samples(predictions, self.samples)
        chunk = self.plan.fuse(members)
        account = FusionAccount.of(self.plan, kind_is_detected=self.kind_is_detected)
        if not self.allow_disjoint:
            account.warnings += count_shared(predictions).warnings()
        account.add(members, chunk)
        warn_of(account)
        consensus = Predictions(
            "consensus", members[0].samples, self.plan.target, chunk.scores, kind=self.plan.kind
        )
        return frame_from_predictions(consensus, self.like)


def _fuse_part(fuse: _FusePart, name: str, predictions: list[Predictions]) -> Any:
    try:
        return fuse(predictions)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from None


def _meta(plan: FusionPlan, source: _Frames | _Folders) -> Any:
    """An empty frame that is like every partition."""
    dtype = np.result_type(np.float32, *(head.scores.dtype for head in source.heads))
    ids = np.empty(0, dtype=np.int64 if have_numbers(source.heads) else object)
    nothing = Predictions("consensus", ids, plan.target, np.empty((0, len(plan.target)), dtype))
    return frame_from_predictions(nothing, source.like(plan))
