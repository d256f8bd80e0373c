"""`PredictionFile`: predictions that are read in chunks, from whatever format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

import numpy as np

from wassemble._checks import check_count, fail
from wassemble.inputs.predictions import Kind, Predictions, detect_kind, is_near_one
from wassemble.inputs.sources import Source, blame, check_unchanged
from wassemble.inputs.table_doubts import doubt_scores

__all__ = ["PredictionFile"]

# Samples from which the kind is told, and scores that are read for it at most.
_N_FIRST = 1024
_N_SCORES = 1 << 24


class PredictionFile:
    """An open file of predictions; `open_predictions` makes one.

    Attributes
    ----------
    model : str
    labels : LabelSpace
    samples : array of shape (n_samples,)
        Every id.
    kind : {"multiclass", "multilabel"}
    kind_is_detected : bool
        Whether ``kind`` was told from the first samples.
    is_hard : bool
        The labels have no scores.
    is_normalized : bool
        Whether each row is divided by its sum.
    streams : bool
        Whether only a few rows are in memory at a time: so for wide tables in CSV, Parquet
        and Arrow files, wide JSON lines, and ``.npy``. Long tables and ``.npz`` are kept
        in memory as they are in the file.
    origin : Origin
        Where ids were found, and what looked odd.
    """

    def __init__(
        self,
        path: Path,
        source: Source,
        model: str,
        kind: Kind | None,
        *,
        labels_are_declared: bool = False,
        normalize: bool = False,
    ) -> None:
        self.path = path
        self.name = path.name  # as errors call it
        self.model = model
        self.labels = source.labels
        self.samples = source.samples
        self.is_hard = source.is_hard
        self.streams = source.streams
        if normalize:
            kind = "multiclass"
        self.kind_is_detected = kind is None
        self.is_normalized = normalize
        self._source = source
        self._is_open = True
        self._running: WeakSet[Any] = WeakSet()
        self._evidence = np.empty((0, len(self.labels)))
        doubts: list[str] = []
        if kind is None:
            if source.find_telling is not None:
                rows, first = source.find_telling()
            else:
                first = next(source.blocks(_rows_within(len(self.labels))), self._evidence)
                rows = np.arange(len(first))
            kind = Predictions(model, self.samples[rows], self.labels, first).kind
            self._evidence = _find_evidence(first)
            if not (labels_are_declared or source.is_long):
                doubts = doubt_scores(self.labels, first, kind)
        self.kind: Kind = kind
        self.origin = source.origin(path.name, doubts)
        if normalize:
            self.origin = self.origin.of_normalized()

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.samples)

    def chunks(self, n_rows: int) -> Iterator[Predictions]:
        """Consecutive samples, ``n_rows`` at a time and the rest at the end.

        A file without samples has one chunk without samples.

        If ``kind`` was detected and a later sample contradicts it, that is an error, so
        that chunks never say something else than the whole.
        """
        n_rows = check_count(n_rows, "n_rows")
        if not self._is_open:
            fail(f"{self.name}: the file must be open; it has been closed.")
        chunks = self._chunks(n_rows)
        self._running.add(chunks)
        return chunks

    def close(self) -> None:
        """Let go of the file; chunks that are under way end."""
        self._is_open = False
        for chunks in list(self._running):
            chunks.close()

    def _chunks(self, n_rows: int) -> Iterator[Predictions]:
        with blame(self.name, "a whole file"):
            start = 0
            evidence = self._evidence
            groups = _regroup(self._source.blocks(n_rows), n_rows)
            nothing = np.empty((0, len(self.labels)))  # where a format has no types
            for scores in groups if self.n_samples else [next(self._source.blocks(1), nothing)]:
                ids = self.samples[start : start + len(scores)]
                check_unchanged(len(ids), len(scores))
                start += len(scores)
                kind: Kind = "multilabel" if self.is_normalized else self.kind
                chunk = Predictions(
                    self.model, ids, self.labels, scores, kind=kind, is_hard=self.is_hard
                )
                if self.is_normalized:
                    chunk = chunk.normalized()
                chunk.kind_is_detected = self.kind_is_detected
                chunk.origin = self.origin
                if self.kind_is_detected:
                    evidence = _find_evidence(np.vstack([evidence, _find_evidence(scores)]))
                    _check_kind(chunk, evidence)
                yield chunk
            check_unchanged(self.n_samples, start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"PredictionFile({self.name!r}: {self.n_samples:,} samples x"
            f" {len(self.labels):,} labels, {self.kind})"
        )


def _rows_within(n_labels: int) -> int:
    return max(1, min(_N_FIRST, _N_SCORES // n_labels))


def _regroup(blocks: Iterator[np.ndarray], n_rows: int) -> Iterator[np.ndarray]:
    """The same rows, ``n_rows`` at a time."""
    parts: list[np.ndarray] = []
    n_held = 0
    for block in blocks:  # of n_rows at most
        parts.append(block)
        n_held += len(block)
        if n_held >= n_rows:
            held = parts[0] if len(parts) == 1 else np.concatenate(parts)
            yield held[:n_rows]
            parts, n_held = [held[n_rows:]], n_held - n_rows
    if n_held:
        yield np.concatenate(parts)


def _find_evidence(scores: np.ndarray) -> np.ndarray:
    """The few rows from which `detect_kind` tells the same as from all."""
    sums = np.asarray(np.nansum(scores, axis=1, dtype=np.float64))
    off = ~is_near_one(scores, sums)
    telling = (off & (sums > 1), off & (sums < 1) & (sums > 0), np.isnan(scores).any(axis=1))
    return scores[np.concatenate([np.flatnonzero(mask)[:1] for mask in telling])]


def _check_kind(chunk: Predictions, evidence: np.ndarray) -> None:
    """Refuse a chunk after which the kind of all that was read is not the first one's."""
    if detect_kind(evidence) == chunk.kind:
        return
    sums = np.asarray(np.nansum(chunk.scores, axis=1, dtype=np.float64))
    if chunk.kind == "multiclass":
        off = (sums > 0) & ~is_near_one(chunk.scores, sums)
        row = int(np.where(off, np.abs(sums - 1), 0).argmax())
        got = f"a sum of {sums[row]:g}"
    else:
        row = int(np.isnan(chunk.scores).any(axis=1).argmax())
        got = "missing scores, as of histograms,"
    fail(
        f"the kind that the first samples have, {chunk.kind}, must hold for all; got {got} at"
        f" sample {chunk.samples.tolist()[row]!r}.",
        hint='`kind="multilabel"` or `kind="multiclass"` says which it is; `normalize=True` divides'
        " each row by its sum",
    )
