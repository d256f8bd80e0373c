"""What a kernel joins and what looks wrong about it, in figures and names."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble.kernels.base import Kernel, distance_to_identity
from wassemble.labels import LabelSpace, enumerate_names

# Pairs of different names that are shown.
_N_PAIRS = 10
# A hub receives this many times what the median target label receives, and at least the
# whole of this many source labels.
_HUB_FACTOR = 5.0
_HUB_LABELS = 3.0
# Entries of one block of logs.
_BLOCK = 2**21


@dataclass(frozen=True)
class KernelAccount:
    """What a kernel joins, made by `LabelledKernel.account`.

    The effective number of target labels of a source label that goes somewhere is the
    exponential of the entropy of its row divided by its sum: 1 is one neighbour, n are n equal
    ones. Hubs are target labels that receive suspiciously much. Let each source label hand out 1
    in the proportions of its row: a hub receives more than 5 times what the median reached label
    receives, and the whole of 3 source labels or more.
    """

    kind: str  # class of the kernel
    n_source: int
    n_target: int
    n_entries: int  # pairs of labels with a similarity above 0
    source_coverage: float  # share of source labels that go somewhere
    target_coverage: float  # share of target labels that are reached
    n_effective: tuple[float, float, float]  # least, median, largest; 0 if none goes anywhere
    distance_to_identity: float | None  # the paper's ||K - I||_F; None unless labels are the same
    lost_source: tuple[str, ...]  # source labels that go nowhere
    unreached_target: tuple[str, ...]  # target labels that no source label reaches
    # The ten strongest between different names, each once: source, target, and the similarity
    # relative to the largest of the source label's row.
    strongest_pairs: tuple[tuple[str, str, float], ...]
    hubs: tuple[tuple[str, float], ...]  # target label and what it receives, largest first
    origin: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, numbers and texts, for JSON."""
        n_effective = dict(zip(("min", "median", "max"), self.n_effective, strict=True))
        entries: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # lists of tuples
        return entries | {"n_effective": n_effective}

    def __str__(self) -> str:
        least, median, most = self.n_effective
        distance = self.distance_to_identity
        rows = [
            ("origin", self.origin),
            ("kernel", f"{self.kind}, {self.n_source:,} source x {self.n_target:,} target labels"),
            ("pairs joined", f"{self.n_entries:,}"),
            ("source coverage", _share(self.source_coverage, self.lost_source, "go nowhere")),
            ("target coverage", _share(self.target_coverage, self.unreached_target, "unreached")),
            ("neighbours", f"median {median:.3g} (from {least:.3g} to {most:.3g}), effective"),
            ("from identity", "spaces differ" if distance is None else f"{distance:.4g}"),
            ("hubs", ", ".join(f"{name!r} ({n:.3g})" for name, n in self.hubs[:6]) or "none"),
        ]
        lines = [f"{title:<16} {text}" for title, text in rows]
        lines += [f"{'note':<16} {note}" for note in self.notes]
        if self.strongest_pairs:
            lines.append("strongest pairs between different names, 1 for the largest of a row")
            lines += [f"  {value:.3f}  {a!r} -> {b!r}" for a, b, value in self.strongest_pairs]
        return "\n".join(lines)


def make_account(
    kernel: Kernel, source: LabelSpace, target: LabelSpace, origin: str, notes: tuple[str, ...]
) -> KernelAccount:
    """The account of ``kernel``, a few rows at a time."""
    n_source, n_target = kernel.shape
    goes, reached = np.zeros(n_source, dtype=bool), np.zeros(n_target, dtype=bool)
    n_effective, received = np.zeros(n_source), np.zeros(n_target)
    pairs = _Pairs(source, target)
    n_entries = 0
    for start, rows, linked in _relative_rows(kernel):
        some = slice(start, start + rows.shape[0])
        if isinstance(rows, np.ndarray):
            n_entries += int(np.count_nonzero(linked))
            goes[some], reached[linked.any(axis=0)] = linked.any(axis=1), True
        else:
            n_entries += rows.nnz
            goes[some], reached[rows.indices] = np.diff(rows.indptr) > 0, True
        sums = np.asarray(rows.sum(axis=1))
        parts = 1 / np.where(sums > 0, sums, 1)
        received += rows.T @ parts
        n_effective[some] = np.exp(np.log(np.where(sums > 0, sums, 1)) - _log_sums(rows) * parts)
        pairs.add(start, rows)
    somewhere = n_effective[goes] if goes.any() else np.zeros(1)
    return KernelAccount(
        kind=type(kernel).__name__,
        n_source=n_source,
        n_target=n_target,
        n_entries=n_entries,
        source_coverage=float(goes.mean()),
        target_coverage=float(reached.mean()),
        n_effective=(float(somewhere.min()), float(np.median(somewhere)), float(somewhere.max())),
        distance_to_identity=_distance(kernel, source, target),
        lost_source=_names(source, ~goes),
        unreached_target=_names(target, ~reached),
        strongest_pairs=pairs.named(source, target),
        hubs=_find_hubs(received, reached, target),
        origin=origin,
        notes=notes,
    )


def _relative_rows(kernel: Kernel) -> Iterator[tuple[int, np.ndarray | sp.csr_array, np.ndarray]]:
    """First place, entries over the largest of their row, and which dense ones are above 0."""
    if kernel.keeps_logs:  # entries that underflow still are neighbours of one another
        logs, step = kernel.to_log_dense(), max(1, _BLOCK // kernel.shape[1])
        for start in range(0, len(logs), step):
            some = logs[start : start + step].astype(np.float64)
            tops = some.max(axis=1, keepdims=True)
            tops[np.isneginf(tops)] = 0
            yield start, np.exp(some - tops), ~np.isneginf(some)
        return
    for start, rows in kernel.blocks():
        if isinstance(rows, np.ndarray):
            tops = rows.max(axis=1, keepdims=True)
            tops[tops == 0] = 1
            yield start, (rows / tops).astype(np.float64), rows > 0
        else:
            csr = sp.csr_array(rows, dtype=np.float64, copy=True)
            tops = csr.max(axis=1).toarray().ravel()
            csr.data /= np.repeat(tops, np.diff(csr.indptr))
            yield start, csr, csr.data


def _log_sums(rows: np.ndarray | sp.csr_array) -> np.ndarray:
    """Sum of x log x over each row."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    products = np.log(values, out=np.zeros_like(values), where=values > 0)
    products *= values
    if isinstance(rows, np.ndarray):
        return np.asarray(products.sum(axis=1))
    places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(places, weights=products, minlength=rows.shape[0])


class _Pairs:
    """The strongest pairs of different names so far; ties go to the labels that come first."""

    def __init__(self, source: LabelSpace, target: LabelSpace) -> None:
        self.both_ways = set(source) == set(target)
        self.itself = source.match(target).places  # the target label of the same name
        # A pair may be met twice, once from either side.
        self.n_kept = 2 * _N_PAIRS
        self.found: list[tuple[float, int, int]] = []

    def add(self, start: int, rows: np.ndarray | sp.csr_array) -> None:
        full = len(self.found) == self.n_kept
        least = self.found[-1][0] if full else 0.0
        if isinstance(rows, np.ndarray):
            places, columns = np.nonzero(rows > least)
            values = rows[places, columns]
        else:
            kept = np.flatnonzero(rows.data > least)
            places = np.searchsorted(rows.indptr, kept, side="right") - 1
            columns, values = rows.indices[kept], rows.data[kept]
        places = places + start
        different = np.flatnonzero(columns != self.itself[places])
        if len(different) > self.n_kept:
            level = np.partition(values[different], -self.n_kept)[-self.n_kept]
            above = different[values[different] > level]
            ties = different[values[different] == level][: self.n_kept]
            different = np.concatenate([above, ties])
        parts = (values[different], places[different], columns[different])
        self.found += zip(*(part.tolist() for part in parts), strict=True)
        self.found = sorted(self.found, key=lambda pair: (-pair[0], *pair[1:]))[: self.n_kept]

    def named(self, source: LabelSpace, target: LabelSpace) -> tuple[tuple[str, str, float], ...]:
        pairs: dict[tuple[str, ...], tuple[str, str, float]] = {}
        for value, row, column in self.found:
            a, b = source[row], target[column]
            key = tuple(sorted((a, b))) if self.both_ways else (a, b)
            pairs.setdefault(key, (a, b, value))
        return tuple(pairs.values())[:_N_PAIRS]


def _distance(kernel: Kernel, source: LabelSpace, target: LabelSpace) -> float | None:
    if set(source) != set(target):
        return None
    if source != target:
        kernel = kernel.select(None, target.places(source))
    return float(distance_to_identity(kernel))


def _find_hubs(
    received: np.ndarray, reached: np.ndarray, target: LabelSpace
) -> tuple[tuple[str, float], ...]:
    if not reached.any():
        return ()
    limit = max(_HUB_FACTOR * float(np.median(received[reached])), math.nextafter(_HUB_LABELS, 0))
    order = np.argsort(-received, kind="stable")
    return tuple((target[j], float(received[j])) for j in order.tolist() if received[j] > limit)


def _names(space: LabelSpace, mask: np.ndarray) -> tuple[str, ...]:
    return tuple(space[place] for place in np.flatnonzero(mask).tolist())


def _share(share: float, missing: tuple[str, ...], words: str) -> str:
    text = f"{100 * share:.4g} %"
    if not missing:
        return text
    return f"{text}; {len(missing):,} {words}: {enumerate_names(missing)}"
