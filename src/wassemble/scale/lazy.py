"""`fuse_lazily`: what Dask holds in partitions or blocks, or folders of part files; Dask out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.ensemble import Fusion, FusionAccount, FusionPlan
from wassemble.ensemble.label_overlap import check_labels
from wassemble.ensemble.tables import (
    align_samples,
    name_models,
    read_id_columns,
    warn_of_ends,
    warn_of_inputs,
)
from wassemble.errors import ConvergenceWarning, InvalidInputError
from wassemble.inputs import (
    DataSet,
    Predictions,
    frame_from_predictions,
    open_data_set,
    predictions_from_frame,
)
from wassemble.inputs.formats.layout import free_id_name
from wassemble.inputs.part_files import PartReader, common_parts, open_parts
from wassemble.inputs.predictions.overlap import check_part_samples, count_shared
from wassemble.inputs.predictions.value import have_numbers
from wassemble.inputs.reading import Reading
from wassemble.solvers import Barycenter

# Rows of a folder that say which types its scores and ids have.
_N_FIRST = 1024


def fuse_lazily(models: Any, fusion: Fusion = Fusion()) -> Any:
    """Consensus of models in partitions, computed when it is asked for.

    Partitions in, partitions out: the first one of every model makes the first one of the
    consensus, and so on. Samples of tables are matched by id within a partition.

    Parameters
    ----------
    models : dict of name to Dask data frame, dict of name to folder, or Dask arrays
        Data frames are wide and have the same number of partitions; those of a list are called
        "model 1", "model 2" ... Folders hold part files
        as in `open_data_set`, on this machine or at any URL that fsspec knows; parts belong
        together by their names. Arrays have the shape (n_models, n_samples, n_labels), or
        (n_samples, n_labels) in a list with one per model.
    fusion : Fusion
        How to fuse. Unless it says which ``kind`` tables are, that is detected from the first
        partitions, which are read at once, and must hold for the others. Models may have no
        sample in common in the first partitions, and few in any, only if it allows that.

    Returns
    -------
    consensus : dask.dataframe.DataFrame or dask.array.Array
        Of pandas frames, with ids where those of the first model are; an array for arrays,
        with the blocks of samples of the first model.

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
    if _are_dask_arrays(models):
        return _fuse_arrays(models, fusion)
    source = _open(models, fusion)
    plan = fusion.plan(source.heads)
    account = fusion.open_account(source.heads)
    account.read_from([head.origin for head in source.heads])
    account.warnings += check_labels(plan, source.heads, fusion.kernel)
    source.check_samples(fusion.allow_disjoint)
    warn_of_inputs(account.warnings)
    dask = load_extra("dask", "scale", purpose="fusing lazily")
    dd = load_extra("dask.dataframe", "scale", purpose="fusing lazily")
    # One node of the graph for all partitions: a worker gets the kernel once.
    part = _FusePart(
        plan,
        account.kind_is_detected,
        fusion.samples,
        source.like(plan),
        source.like_ids,
        fusion.allow_disjoint,
    )
    fuse = dask.delayed(part, traverse=False)
    parts = [
        dask.delayed(_fuse_part)(fuse, name, part) for name, part in source.parts(dask).items()
    ]
    return dd.from_delayed(parts, meta=_meta(plan, source), verify_meta=False)


def _open(models: Any, fusion: Fusion) -> _Folders | _Frames:
    """The models, in whatever partitions they come."""
    models = dict(name_models(models))
    if not models:
        fail("there must be at least one model; got none.")
    if fusion.by_row:
        fail(
            "`by_row` must go with tables in memory; got partitions.",
            hint="samples of partitions are matched by id",
        )
    ids = read_id_columns(fusion.id_column, list(models))
    how = [
        Reading(ids.get(model), kind=fusion.kind, normalize=fusion.normalize) for model in models
    ]
    if all(isinstance(given, str | os.PathLike) for given in models.values()):
        return _Folders(
            [
                open_data_set(place, reading, model=model)
                for (model, place), reading in zip(models.items(), how, strict=True)
            ]
        )
    if not all(_is_dask_frame(given) for given in models.values()):
        kinds = ", ".join(type(given).__name__ for given in models.values())
        fail(f"models must be all Dask data frames or all folders; got {kinds}.")
    return _Frames(models, how)


def _is_dask_frame(value: Any) -> bool:
    return type(value).__module__.startswith("dask.dataframe") and hasattr(value, "to_delayed")


class _Frames:
    """Models in Dask data frames."""

    def __init__(self, frames: Mapping[str, Any], readings: Sequence[Reading]) -> None:
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
        self._readings = readings
        self.like_ids = readings[0].id_column
        # The first partition tells the kind; if it is known, no rows are read.
        first = [
            frame.get_partition(0).compute() if readings[0].kind is None else frame._meta
            for frame in frames.values()
        ]
        self.heads = _read_frames(list(frames), first, readings)

    def parts(self, dask: Any) -> dict[str, Any]:
        names = list(self._frames)
        each = [frame.to_delayed() for frame in self._frames.values()]
        return {
            f"partition {place}": dask.delayed(_read_frames)(names, list(part), self._readings)
            for place, part in enumerate(zip(*each, strict=True))
        }

    def check_samples(self, allow_disjoint: bool) -> None:
        check_part_samples([self.heads], allow_disjoint=allow_disjoint)

    def like(self, plan: FusionPlan) -> Any:
        return next(iter(self._frames.values()))._meta


def _read_frames(
    names: Sequence[str], frames: Sequence[Any], readings: Sequence[Reading]
) -> list[Predictions]:
    return list(map(predictions_from_frame, frames, names, readings))


class _Folders:
    """Models in folders of part files."""

    like_ids: str | None = None  # a frame of its own making shows them

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
    predictions = []
    with ExitStack() as stack:
        for reader, name in zip(readers, files, strict=True):
            file = stack.enter_context(reader.open(name))
            predictions.append(next(file.chunks(max(1, file.n_samples))))
    return predictions


@dataclass(frozen=True)
class _FusePart:
    """Fuses the predictions of one partition into a frame."""

    plan: FusionPlan
    kind_is_detected: bool
    samples: Literal["all", "common"]
    like: Any  # a frame of the kind to give
    like_ids: str | None  # its column of ids, if that was named
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
        warn_of_inputs(account.warnings)
        warn_of_ends(account.ends, account.plan.rule.fine_ends)
        consensus = Predictions(
            "consensus", members[0].samples, self.plan.target, chunk.scores, kind=self.plan.kind
        )
        return frame_from_predictions(consensus, self.like, id_column=self.like_ids)


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
    return frame_from_predictions(nothing, source.like(plan), id_column=source.like_ids)


# -- arrays ------------------------------------------------------------------------------


def _are_dask_arrays(predictions: Any) -> bool:
    """Whether predictions are a Dask array, or some of a list of them are; imports nothing."""
    if isinstance(predictions, list | tuple):
        return any(_is_dask_array(each) for each in predictions)
    return _is_dask_array(predictions)


def _fuse_arrays(predictions: Any, fusion: Fusion) -> Any:
    """The consensus as a Dask array, with the blocks of samples of the first model."""
    da = load_extra("dask.array", "scale", purpose="fusing Dask arrays")
    dask = load_extra("dask", "scale", purpose="fusing Dask arrays")
    arrays = [da.asarray(array) for array in predictions]
    for model, array in enumerate(arrays):
        if array.ndim != 2:
            fail(
                "Dask arrays must have shape (n_samples, n_labels), one per model; got"
                f" {array.shape} at model {model}."
            )
    sizes = {len(array) for array in arrays if not np.isnan(array.shape[0])}
    if len(sizes) > 1:
        fail(f"models must have the same samples; got {', '.join(map(str, sorted(sizes)))}.")
    rows = arrays[0].chunks[0]
    arrays = [
        array.rechunk({1: -1} if array.chunks[0] == rows else {0: rows, 1: -1}) for array in arrays
    ]
    first = [np.full((1, a.shape[1]), 1 / a.shape[1], dtype=a.dtype) for a in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tried = _in_short(fusion).fuse(first)  # what does not fit is an error now
    return da.map_blocks(
        _fuse_blocks,
        *arrays,
        # One node of the graph for all blocks: a worker gets the kernel once.
        fusion=dask.delayed(fusion, traverse=False),
        dtype=tried.dtype,
        chunks=(rows, (tried.shape[1],)),
        meta=np.empty((0, 0), dtype=tried.dtype),
    )


def _fuse_blocks(*blocks: np.ndarray, fusion: Fusion) -> Any:
    return fusion.fuse(list(blocks))


def _in_short(fusion: Fusion) -> Fusion:
    """The same in less time."""
    if not isinstance(fusion.rule, Barycenter):
        return fusion
    return fusion.replace(
        rule=replace(fusion.rule, max_sweeps=1, tolerance=None, mixed_precision=False)
    )


def _is_dask_array(value: Any) -> bool:
    return type(value).__module__.startswith("dask.array")
