"""Samples in cache-sized tiles, tiles on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wassemble._arrays import Array, detached
from wassemble._threads import count_threads, limited_threads, single_threaded_blas
from wassemble.kernels import Kernel
from wassemble.solvers.exchange import ALONE, Exchange
from wassemble.solvers.weights import take_rows

# Numbers in one array of a tile: small enough for the caches (of float64 fewer fit), large enough
# that threads spend their time inside NumPy and not waiting for the interpreter. What passes over
# its numbers only once has less to gain from the caches; native sweeps stay in them anyway, and
# wait for the interpreter only between tiles. Where rows leave as they finish, those that go on are
# copied each time, which is cheaper in the caches too.
SWEPT = 2**19
SWEPT_FLOAT64 = 2**17
ONE_PASS = 2**20
NATIVE = 2**18
NATIVE_LEAVING = 2**16
# Rows times models below which a matrix product wastes its kernel's trip through the cache; a
# native sparse one takes a vector of rows at once, and more would only crowd the cache.
PRODUCT_ROWS = 64
NATIVE_SPARSE_ROWS = 16


@dataclass
class Group:
    """Models of a tile that share a kernel: their products are one product."""

    kernel: Kernel
    histograms: Array  # (n_models of the group, n_rows, n_source)
    models: slice  # their place among the models of the tile

    def take(self, rows: Any) -> Group:
        """The group for the samples ``rows`` of the tile."""
        return Group(self.kernel.take(rows), self.histograms[:, rows], self.models)


@dataclass
class Tile:
    """Some samples of a problem, ready to be swept; models are ordered by kernel."""

    groups: list[Group]
    models: list[int]  # their places in the problem
    samples: slice | np.ndarray  # their places in the problem
    dropped_mass: np.ndarray | None  # (n_rows,), where labels were dropped
    weights: Array  # (n_models, 1 or n_rows, 1 or n_target)
    log_v: Array | None  # where to start, (n_models, n_rows, n_target); None starts at v = 1
    exchange: Exchange = ALONE  # with ranks that hold other models of the same samples
    n_before: np.ndarray | None = None  # (n_rows,): of the sweeps allowed, those they have had
    # Refuses entries that are negative or not finite, if nobody has looked yet.
    check: Callable[[], None] | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return int(self.groups[0].histograms.shape[1])

    @property
    def n_models(self) -> int:
        """Number of models that vote."""
        return int(self.weights.shape[0])

    def take(self, rows: Any) -> Tile:
        """The tile of the samples ``rows``."""
        return replace(
            self,
            groups=[group.take(rows) for group in self.groups],
            samples=self.places(rows),
            dropped_mass=None,
            weights=take_rows(self.weights, rows),
            log_v=None if self.log_v is None else self.log_v[:, rows],
            n_before=None if self.n_before is None else self.n_before[rows],
        )

    def convert(self, dtype: Any, convert: Callable[[Kernel], Kernel]) -> Tile:
        """The tile in another floating type of NumPy; ``convert`` gives its kernels in it."""
        groups = [
            Group(convert(group.kernel), group.histograms.astype(dtype), group.models)
            for group in self.groups
        ]
        return replace(self, groups=groups)

    def places(self, rows: slice | np.ndarray) -> slice | np.ndarray:
        """Places in the problem of the samples ``rows`` of the tile."""
        if isinstance(rows, slice):  # all of them
            return self.samples
        if isinstance(self.samples, slice):
            return self.samples.start + rows
        return np.asarray(self.samples[rows])

    def split_by_vote(self) -> list[Tile]:
        """Tiles whose models vote on every sample; this one, if that is what it is.

        A model that has no say on a sample takes no part in it, not even in when it stops.
        """
        if self.weights.shape[1] == 1:
            return [self]
        votes = (detached(self.weights) > 0).any(axis=2)  # (n_models, n_rows)
        if votes.all():
            return [self]
        patterns, pattern_of = np.unique(votes, axis=1, return_inverse=True)
        return [
            self.take(np.flatnonzero(pattern_of.ravel() == number))._of_models(voting)
            for number, voting in enumerate(patterns.T)
        ]

    def _of_models(self, voting: np.ndarray) -> Tile:
        """The tile of the models ``voting`` alone, by mask."""
        groups, first = [], 0
        for group in self.groups:
            own = np.flatnonzero(voting[group.models])
            if len(own):
                models = slice(first, first + len(own))
                groups.append(Group(group.kernel, group.histograms[own], models))
                first = models.stop
        return replace(
            self,
            groups=groups,
            models=[model for model, votes in zip(self.models, voting, strict=True) if votes],
            weights=self.weights[np.flatnonzero(voting)],
            log_v=None if self.log_v is None else self.log_v[np.flatnonzero(voting)],
        )


def rows_per_tile(
    n_models: int, n_labels: int, size: int = SWEPT, product_rows: int = PRODUCT_ROWS
) -> int:
    """Samples in a tile; depends on the problem alone, so that results do not depend on threads."""
    return max(1, size // (n_models * n_labels), product_rows // n_models)


def run_tiles(
    solve: Callable[[int, int], None],
    n_samples: int,
    n_rows: int,
    n_threads: int | None,
    progress: Callable[[int, int], None] | None = None,
    *,
    in_turn: bool = False,
) -> None:
    """Call ``solve(start, stop)`` for every tile, on threads if there is more than one.

    ``progress(n_done, n_samples)`` is called from the calling thread. Tiles ``in_turn``
    leave the threads to the products of each.
    """
    progress = progress or (lambda n_done, n_samples: None)
    tiles = [(start, min(start + n_rows, n_samples)) for start in range(0, n_samples, n_rows)]
    if in_turn or len(tiles) <= 1:  # one product at a time may use all threads
        blas = single_threaded_blas() if n_threads == 1 else nullcontext()
        with blas:
            for start, stop in tiles:
                with limited_threads(n_threads):
                    solve(start, stop)
                progress(stop, n_samples)
        if not tiles:
            progress(0, 0)
        return
    n_threads = count_threads(n_threads)
    # Threads over tiles and threads inside BLAS would fight for the same cores.
    with single_threaded_blas():
        n_done = 0
        for start, stop in _solved(solve, tiles, n_threads):
            n_done += stop - start
            progress(n_done, n_samples)


def _solved(
    solve: Callable[[int, int], None], tiles: list[tuple[int, int]], n_threads: int
) -> Iterator[tuple[int, int]]:
    """Tiles in the order in which they are solved."""
    if n_threads == 1:
        for tile in tiles:
            with limited_threads(1):
                solve(*tile)
            yield tile
        return

    def solve_alone(start: int, stop: int) -> None:
        with limited_threads(1):
            solve(start, stop)

    pool = ThreadPoolExecutor(min(n_threads, len(tiles)))
    try:
        pending = {pool.submit(solve_alone, *tile): tile for tile in tiles}
        for done in as_completed(pending):
            done.result()
            yield pending[done]
    finally:  # an error or an interrupt leaves no tile waiting
        pool.shutdown(cancel_futures=True)
