"""One partition: the part of every model in, a part of the consensus out."""

import os
import platform
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from threadpoolctl import ThreadpoolController

from wassemble import __version__
from wassemble._checks import fail
from wassemble.ensemble import FusionAccount, FusionPlan
from wassemble.errors import WassembleError, option, speaking, spoken_flags
from wassemble.inputs import PredictionFile
from wassemble.inputs.folders import Folder, Found
from wassemble.inputs.part_files import PartFile, PartReader
from wassemble.inputs.predictions.overlap import count_shared, pick_ids
from wassemble.labels import enumerate_names
from wassemble.scale.files import fuse_by_plan
from wassemble.scale.folders.manifest import (
    RUN,
    counts_of,
    describe_input,
    digest_file,
    find_record,
    is_as_recorded,
    is_same_input,
    read_record,
    write_record,
)


@dataclass(frozen=True)
class Job:
    """What all partitions have in common: sent to each worker once."""

    plan: FusionPlan
    kind_is_detected: bool
    samples: Literal["all", "common"]
    readers: tuple[PartReader, ...]
    out: Folder
    request: str
    run: str
    id_column: str | None
    n_threads: int | None = None
    version: str = __version__
    flags: Mapping[str, tuple[str, str]] = field(default_factory=spoken_flags)


@dataclass(frozen=True)
class Partition:
    """The files of one partition, one per model."""

    name: str
    files: tuple[PartFile, ...]

    @property
    def out_file(self) -> str:
        """Its name in the folder of the consensus: that of the first model's file."""
        return self.files[0].file

    def is_same(self, readers: Sequence[PartReader], inputs: Sequence[Mapping[str, str]]) -> bool:
        """Whether its files are those that a record tells of."""
        return len(inputs) == len(self.files) and all(
            is_same_input(reader.folder, part, before)
            for reader, part, before in zip(readers, self.files, inputs, strict=True)
        )


@dataclass(frozen=True)
class Outcome:
    """How a partition ended: with a record, or with an error in words."""

    name: str
    record: dict[str, Any] | None
    error: str | None = None


def fuse_partition(job: Job, partition: Partition) -> Outcome:
    """Fuse a partition and write it; what goes wrong is told and does not stop others.

    Raises
    ------
    WassembleError
        If this process has another version: none of its answers would be right.
    """
    if job.version != __version__:
        raise WassembleError(
            f"every worker must have wassemble {job.version}; process {os.getpid()} of"
            f" {platform.node()} has {__version__}.\nhint: install it there, or stop that worker"
        )
    try:
        with _one_blas_thread(), speaking(job.flags):
            return Outcome(partition.name, _fuse(job, partition))
    except Exception as error:
        return Outcome(partition.name, None, in_words(error))


def in_words(error: BaseException) -> str:
    """What a person should know of an error."""
    if isinstance(error, WassembleError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror.lower()}."
    if isinstance(error, MemoryError):
        return "memory ran out."
    return f"{type(error).__name__}: {error}"


def _fuse(job: Job, partition: Partition) -> dict[str, Any]:
    asked = {"request": job.request, "file": partition.out_file}
    # Dask may do a task again whose worker died after it.
    before = read_record(job.out, partition.name)
    if (
        before is not None
        and asked.items() <= before.items()
        and partition.is_same(job.readers, before["inputs"])
        and is_as_recorded(job.out, before, job.out.look(partition.out_file))
    ):
        return before
    account = FusionAccount.of(job.plan, kind_is_detected=job.kind_is_detected)
    versions = _look(job, partition)
    with ExitStack() as stack:
        files = [
            stack.enter_context(reader.open(part.file))
            for reader, part in zip(job.readers, partition.files, strict=True)
        ]
        _check(job, files)
        for model in account.models:
            model.id_column = job.id_column
        shared = count_shared(files).counts
        some_ids = pick_ids(files)
        out = stack.enter_context(job.out.store(partition.out_file, durable=True))
        fuse_by_plan(account, files, out, samples=job.samples, n_threads=job.n_threads)
        inputs = [
            describe_input(version, file.path)
            for version, file in zip(versions, files, strict=True)
            if version is not None
        ]
        _refuse_changed(job, partition, versions)
        n_bytes, digest = out.stat().st_size, digest_file(out)
        # A task that outlives its run must not write into what has replaced it.
        _refuse_replaced(job)
    try:
        _refuse_replaced(job)  # sending to a store takes a while
    except WassembleError:
        record = find_record(job.out, partition.name)
        if record is None or record["sha256"] != digest:
            job.out.remove(partition.out_file)
        raise
    written = job.out.look(partition.out_file)
    if written is None:
        fail(f"{partition.out_file}: was removed as soon as it was written.")
    record = asked | {
        "inputs": inputs,
        "n_bytes": n_bytes,
        "stamp": written.stamp,
        "sha256": digest,
        "counts": counts_of(account),
        "shared": {str(bits): n for bits, n in sorted(shared.items())},
        "some_ids": some_ids,
    }
    write_record(job.out, partition.name, record)
    return record


def _look(job: Job, partition: Partition) -> list[Found | None]:
    """The versions of the files of a partition now."""
    pairs = zip(job.readers, partition.files, strict=True)
    return [reader.folder.look(part.file) for reader, part in pairs]


def _refuse_changed(job: Job, partition: Partition, before: list[Found | None]) -> None:
    """Refuse files that were written while they were read: what was fused may be of both."""
    after = _look(job, partition)
    for reader, part, was, now in zip(job.readers, partition.files, before, after, strict=True):
        if was is None or now is None or was.stamp != now.stamp:
            fail(
                f"model {reader.model}: {part.file}: the file must not change while it is read; it"
                " did."
            )


def _refuse_replaced(job: Job) -> None:
    if job.out.read(RUN) != job.run:
        fail(f"{job.out}: one run at a time may write here; another has begun since.")


def _check(job: Job, files: list[PredictionFile]) -> None:
    """Refuse parts that are not like those from which the plan was made."""
    for file, member in zip(files, job.plan.members, strict=True):
        if file.labels != member.labels:
            strange = [label for label in file.labels if label not in member.labels]
            missing = [label for label in member.labels if label not in file.labels]
            got = "another order"
            if strange or missing:
                both = ("besides", strange), ("without", missing)
                got = " and ".join(f"{word} {enumerate_names(n)}" for word, n in both if n)
            fail(
                f"{file.name}: every part must have the labels that most of the first have; got"
                f" {got}.",
                hint=f"{option('labels')} says which labels to read, or which a long table has",
            )
        if job.kind_is_detected and file.n_samples and file.kind != job.plan.kind:
            fail(
                f"{file.name}: the kind that most of the first parts have,"
                f" {job.plan.kind}, must hold for all; got {file.kind}.",
                hint=f"{option('kind')} says which it is",
            )


_blas_lock = threading.Lock()
_blas_limits: list[Any] = []  # of the first user, kept until the last has gone
_n_blas_users = 0


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """BLAS kept to one thread while any partition is fused in this process.

    So the last bits do not depend on how many threads a machine has, and threads of a worker
    do not fight for its cores.
    """
    global _n_blas_users  # noqa: PLW0603 - the setting belongs to the process
    with _blas_lock:
        if _n_blas_users == 0:
            _blas_limits.append(ThreadpoolController().limit(limits=1, user_api="blas"))
        _n_blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _n_blas_users -= 1
            if _n_blas_users == 0:
                _blas_limits.pop().restore_original_limits()
