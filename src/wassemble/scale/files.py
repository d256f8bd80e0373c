"""`fuse_files`: prediction files in, one file out, in flat memory where formats allow it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import numpy as np

from wassemble._checks import fail
from wassemble._files import refuse_overwriting
from wassemble.ensemble import Fusion, FusionAccount
from wassemble.ensemble.tables import align_samples, check_inputs, warn_of_inputs
from wassemble.inputs import PredictionFile, Predictions, PredictionWriter
from wassemble.inputs.formats.sources import blame, check_memory
from wassemble.inputs.predictions.overlap import common_row_ids
from wassemble.inputs.predictions.value import Origin, have_numbers

# Scores of all models that are in memory at a time.
_CHUNK_SCORES = 2**23


def fuse_files(
    files: Sequence[PredictionFile],
    out: str | Path | None,
    fusion: Fusion = Fusion(),
    *,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    receive: Callable[[Predictions], None] | None = None,
) -> FusionAccount:
    """Fuse open prediction files by name into the file ``out``.

    Samples are taken in the order of the first file, then what only later files have. Files
    whose samples come in that order are fused chunk by chunk; if one does not, or if
    only common samples are wanted and they differ, all scores are put into memory. The ids of all
    files are always in memory, and so is what long tables list and ``.npz`` files hold.

    Parameters
    ----------
    files : sequence of PredictionFile
        From `open_predictions`.
    out : path or None
        Where the consensus goes; its suffix says the format. It appears whole or not at
        all.
    fusion : Fusion
        How to fuse. Rows that are to be normalised are so from `open_predictions` on.
    n_threads : int, optional
        Threads for large batches; $WASSEMBLE_NUM_THREADS or all cores if not given.
    progress : callable, optional
        Called as ``progress(n_done, n_samples)``.
    receive : callable, optional
        Called with each chunk of the consensus, beside or instead of ``out``.
    """
    if not files:
        fail("there must be at least one file; got none.")
    if fusion.normalize and not all(file.is_normalized for file in files):
        fail(
            "files must be opened with normalize=True if the fusion says so; got others.",
            hint="open_predictions(path, normalize=True)",
        )
    if out is not None:
        refuse_overwriting(out, [file.path for file in files])
    if not any(file.n_samples for file in files):
        names = ", ".join(file.name for file in files)
        fail(f"some file must have samples; got no rows in {names}.")
    if fusion.by_row:
        ids = common_row_ids(files)
        for file in files:
            file.samples = ids
    account = fusion.open_account(files)
    how_matched: Any = {"samples": fusion.samples, "allow_disjoint": fusion.allow_disjoint}
    check_inputs(account, files, fusion.kernel, **how_matched)
    how: Any = {"n_threads": n_threads, "progress": progress, "receive": receive}
    fuse_by_plan(account, files, out, samples=fusion.samples, **how)
    account.note_counted()
    warn_of_inputs(account.warnings)
    return account


def fuse_by_plan(
    account: FusionAccount,
    files: Sequence[PredictionFile],
    out: Path | str | None,
    *,
    samples: Literal["all", "common"] = "all",
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    receive: Callable[[Predictions], None] | None = None,
) -> None:
    """Fuse files as the account's plan says, and count them in the account; see `fuse_files`.

    If parts of models have nothing in common, other parts may: the consensus has no rows.
    """
    n_samples, chunks = _chunks(files, samples)
    plan = account.plan
    id_column = account.id_column
    n_done = 0
    with ExitStack() as stack:
        write = None
        if out is not None:
            writer = PredictionWriter(out, plan.target, id_column=id_column)
            write = stack.enter_context(writer).write
        for members in chunks:
            chunk = plan.fuse(members, n_threads=n_threads)
            account.add(members, chunk)
            account.compare()  # while the chunk is here
            consensus = Predictions(
                "consensus", members[0].samples, plan.target, chunk.scores, kind=plan.kind
            )
            consensus.origin = Origin(id_column=id_column)
            if write is not None:
                write(consensus)
            if receive is not None:
                receive(consensus)
            n_done += consensus.n_samples
            if progress is not None:
                progress(n_done, n_samples)


def _chunks(
    files: Sequence[PredictionFile], samples: Literal["all", "common"]
) -> tuple[int, Iterator[list[Predictions]]]:
    """Number of samples, and the models' predictions on some of them at a time."""
    first = files[0].samples
    ids = [file.samples for file in files]
    if all(each.dtype == first.dtype and np.array_equal(each, first) for each in ids):
        step = _rows_per_chunk(sum(len(file.labels) for file in files))
        together = zip(*(file.chunks(step) for file in files), strict=True)
        return len(first), map(list, together)
    by_text = not have_numbers(files)
    names = [list(map(str, each)) if by_text else each.tolist() for each in ids]
    order = {s: i for i, s in enumerate(dict.fromkeys(s for each in names for s in each))}
    places = [np.array([order[s] for s in each], dtype=np.int64) for each in names]
    in_order = all((np.diff(p) > 0).all() for p in places)
    if in_order and samples == "all":
        ordered = np.empty(len(order), dtype=object if by_text else np.int64)
        ordered[:] = list(order)
        return len(order), _streamed(files, places, ordered)
    for file in files:
        with blame(file.name, "a file that can be read"):
            check_memory(len(order), len(file.labels))
    whole = align_samples([file.read() for file in files], samples)
    return whole[0].n_samples, _sliced(whole)


def _rows_per_chunk(n_labels: int) -> int:
    return max(1, _CHUNK_SCORES // max(1, n_labels))


def _sliced(whole: list[Predictions]) -> Iterator[list[Predictions]]:
    step = _rows_per_chunk(sum(len(p.labels) for p in whole))
    for start in range(0, max(1, whole[0].n_samples), step):
        yield [p.take(slice(start, start + step)) for p in whole]


def _streamed(
    files: Sequence[PredictionFile], places: list[np.ndarray], names: np.ndarray
) -> Iterator[list[Predictions]]:
    """Chunks of the common order; every file is read forwards, once."""
    step = _rows_per_chunk(sum(len(file.labels) for file in files))
    readers = [_Forward(file, where, step) for file, where in zip(files, places, strict=True)]
    for start in range(0, max(1, len(names)), step):  # nothing has types too
        stop = min(start + step, len(names))
        yield [reader.read(names[start:stop], start) for reader in readers]


class _Forward:
    """Rows of one file by their place in the common order, which only grows."""

    def __init__(self, file: PredictionFile, places: np.ndarray, step: int) -> None:
        self._places = places
        self._chunks = file.chunks(step)
        self._n_read = 0  # rows of the file handed out
        self._rest = next(self._chunks)
        self._dtype = self._rest.scores.dtype
        self._file = file

    def read(self, names: np.ndarray, start: int) -> Predictions:
        """The samples ``names``, whose places begin at ``start``; nan where there is no row."""
        stop = start + len(names)
        n_rows = int(np.searchsorted(self._places, stop)) - self._n_read
        where = self._places[self._n_read : self._n_read + n_rows] - start
        scores = np.full((len(names), len(self._file.labels)), np.nan, dtype=self._dtype)
        filled = 0
        while filled < n_rows:
            if self._rest.n_samples == 0:
                self._rest = next(self._chunks)
            part = self._rest.take(slice(0, n_rows - filled))
            self._rest = self._rest.take(slice(part.n_samples, None))
            scores[where[filled : filled + part.n_samples]] = part.scores
            filled += part.n_samples
        self._n_read += n_rows
        return Predictions(
            self._file.model,
            names,
            self._file.labels,
            scores,
            kind=self._file.kind,
            is_hard=self._file.is_hard,
        )
