"""`fuse_partitions`: folders of part files in, a folder out, in runs that may be cut off."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from wassemble._checks import fail
from wassemble.ensemble import Fusion, FusionAccount
from wassemble.ensemble.label_overlap import check_labels
from wassemble.ensemble.tables import warn_of_inputs
from wassemble.errors import WassembleError, option
from wassemble.inputs.folders import Folder, open_folder
from wassemble.inputs.part_files import DataSet, common_parts, open_data_set, open_parts
from wassemble.inputs.predictions.overlap import SharedSamples, check_part_samples, tell_repeated
from wassemble.inputs.reading import Reading
from wassemble.scale.folders.cluster import run_on_cluster
from wassemble.scale.folders.manifest import (
    LOCK,
    Manifest,
    add_counts,
    describe_request,
    refuse_foreign,
)
from wassemble.scale.folders.worker import Job, Partition, fuse_partition

# Errors that are told one by one.
_N_TOLD = 10


class PartitionError(WassembleError):
    """Some partitions could not be fused; the others are finished."""


@dataclass(frozen=True)
class PartitionedFusion:
    """What a run did."""

    account: FusionAccount  # of all partitions, those of earlier runs included
    n_partitions: int
    n_kept: int  # of them, those that an earlier run had finished
    n_changed: int  # finished from files that have changed since, and made again


def fuse_partitions(
    models: Mapping[str, str | os.PathLike[str]] | Sequence[DataSet],
    out: str | os.PathLike[str],
    fusion: Fusion = Fusion(),
    *,
    n_threads: int | None = None,
    scheduler: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> PartitionedFusion:
    """Fuse folders of part files by name, part by part, into the folder ``out``.

    Parts belong together by their names, samples within them by their ids. Each part of the
    consensus has the name of the first model's and appears whole. A run that was cut off,
    whatever was killed, is continued by the same call: parts that are there are kept, and the
    folder is in the end what it would have been; so are parts whose files have changed made
    again. A folder with parts of another request is refused, and so is one that another run
    is writing to.

    Parameters
    ----------
    models : dict of name to folder, or sequence of DataSet
        Folders on this machine or at any URL that fsspec knows; `open_data_set` has more to
        say about how they are read.
    out : str or path
        A folder or URL, new or begun by the same call.
    fusion : Fusion
        How to fuse. Unless it allows models without a sample in common, it is an error if
        they have none in any of the first five parts.
    n_threads : int, optional
        Threads for large parts; $WASSEMBLE_NUM_THREADS or all cores if not given.
    scheduler : str or distributed.Client, optional
        Address of a Dask scheduler whose workers do the work, such as
        ``tcp://10.0.0.1:8786``; they must see the same paths. Without it, this process does
        it, one part after the other.
    progress : callable, optional
        Called as ``progress(n_done, n_partitions)``.

    Raises
    ------
    PartitionError
        If partitions failed, naming each; every other partition is finished first.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from wassemble import Predictions, write_predictions
    >>> folder = mkdtemp()
    >>> for model, score in (("a", 0.9), ("b", 0.7)):
    ...     for part in range(2):
    ...         some = Predictions(model, [part], ["cat", "dog"], [[score, 1 - score]])
    ...         write_predictions(f"{folder}/{model}/part-{part}.csv", some)
    >>> models = {name: f"{folder}/{name}" for name in "ab"}
    >>> fuse_partitions(models, f"{folder}/fused").account.n_samples
    2
    >>> fuse_partitions(models, f"{folder}/fused").n_kept
    2
    """
    sets = _open(models, fusion)
    folder = open_folder(out)
    for each in sets:
        _refuse_nested(folder, each)
    names = common_parts(sets)
    plan = fusion.plan(sets)
    if any(member.kernel.n_samples is not None for member in plan.members):
        fail("a kernel that differs per sample cannot serve several partitions.")
    account = fusion.open_account(sets)
    account.read_from([each.origin for each in sets])
    account.warnings += check_labels(plan, sets, fusion.kernel)
    check_part_samples(open_parts(sets), allow_disjoint=fusion.allow_disjoint)
    partitions = {name: Partition(name, tuple(each.parts[name] for each in sets)) for name in names}
    request = describe_request(sets, names, fusion)
    readers = tuple(each.reader for each in sets)
    refuse_foreign(folder)
    with folder.lock(LOCK):
        manifest = Manifest(folder, request)
        folder.sweep()
        job = Job(
            plan,
            account.kind_is_detected,
            fusion.samples,
            readers,
            folder,
            manifest.digest,
            manifest.run,
            account.id_column,
            n_threads,
        )
        records, changed = manifest.find_done(
            {name: partial(part.is_same, readers) for name, part in partitions.items()},
            [part.out_file for part in partitions.values()],
        )
        n_kept = len(records)
        missing = [partitions[name] for name in names if name not in records]
        run = (fuse_partition(job, each) for each in missing)
        if scheduler is not None:
            run = run_on_cluster(scheduler, job, missing)
        errors = {}
        with closing(run):  # nothing may go on when the lock is gone
            for n_ended, outcome in enumerate(run, start=n_kept + 1):
                if outcome.record is None:
                    errors[outcome.name] = outcome.error or ""
                else:
                    records[outcome.name] = outcome.record
                if progress is not None:
                    progress(n_ended, len(names))
        if errors:
            raise PartitionError(_tell(errors, len(records), str(folder)))
        manifest.finish(records)
        folder.sweep()  # what killed workers left
    account.is_by_part = fusion.samples == "all"
    shared = SharedSamples([each.model for each in sets])
    for name in names:  # in their order: sums are the same whoever came first
        add_counts(account, records[name]["counts"])
        shared.add({int(bits): n for bits, n in records[name]["shared"].items()})
    account.warnings += [] if fusion.allow_disjoint else shared.warnings()
    account.warnings += tell_repeated({name: records[name]["some_ids"] for name in names})
    account.note_counted()
    warn_of_inputs(account.warnings)
    if fusion.samples == "common" and account.n_samples == 0:
        fail("models must have samples in common, in parts of the same name; got none.")
    return PartitionedFusion(account, len(names), n_kept, len(changed))


def _open(
    models: Mapping[str, str | os.PathLike[str]] | Sequence[DataSet], fusion: Fusion
) -> list[DataSet]:
    if fusion.by_row:
        fail(
            f"{option('by_row')} must go with files; got folders of part files.",
            hint="samples of part files are matched by id",
        )
    if isinstance(models, Mapping):
        reading = Reading(kind=fusion.kind, normalize=fusion.normalize)
        return [open_data_set(place, reading, model=name) for name, place in models.items()]
    if not models or not all(isinstance(each, DataSet) for each in models):
        fail("models must be a dict of names to folders, or data sets; got something else or none.")
    if fusion.normalize and not all(each.reader.reading.normalize for each in models):
        fail(
            f"data sets must be opened with {option('normalize', True)} if the fusion says so; got"
            " others.",
            hint=f"open_data_set(folder, {option('normalize', True)})",
        )
    return list(models)


def _refuse_nested(out: Folder, given: DataSet) -> None:
    """Refuse to write where a model is read, or above or below."""
    places = sorted([f"{out}/", f"{given.reader.folder}/"], key=len)
    if places[1].startswith(places[0]):
        fail(
            f"{out}: the consensus must go to a folder of its own, neither above nor below that of"
            f" a model; {given.model} is in {given.reader.folder}."
        )


def _tell(errors: Mapping[str, str], n_finished: int, out: str) -> str:
    told = []
    hints: dict[str, None] = {}  # what many have in common is said once
    for name, error in sorted(errors.items()):
        what, sign, hint = error.partition("\nhint: ")
        told.append(f"{name}: {what}")
        if sign:
            hints[f"hint: {hint}"] = None
    if len(told) > _N_TOLD:
        told[_N_TOLD:] = [f"... and {len(told) - _N_TOLD:,} more"]
    return "\n".join(
        [
            f"{len(errors):,} of {len(errors) + n_finished:,} partitions could not be fused; the"
            f" others are in {out}.",
            *told,
            *hints,
            "hint: the same call again does only what is missing",
        ]
    )
