"""Samples in cache-sized tiles, tiles on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

from wassemble._threads import count_threads, limited_threads, single_threaded_blas

__all__ = ["rows_per_tile", "run_tiles"]

# Numbers in one array of a tile: small enough for the caches, large enough that threads
# spend their time inside NumPy and not waiting for the interpreter. What passes over its
# numbers only once has less to gain from the caches.
_TILE_SIZE = 2**19
_ONE_PASS_SIZE = 2**20
# Rows times models below which a matrix product wastes its kernel's trip through the cache.
_PRODUCT_ROWS = 64


def rows_per_tile(n_models: int, n_labels: int, *, one_pass: bool = False) -> int:
    """Samples in a tile; depends on the problem alone, so that results do not depend on threads."""
    size = _ONE_PASS_SIZE if one_pass else _TILE_SIZE
    return max(1, size // (n_models * n_labels), _PRODUCT_ROWS // n_models)


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
    if in_turn:
        for start in range(0, n_samples, n_rows):
            stop = min(start + n_rows, n_samples)
            with limited_threads(n_threads):
                solve(start, stop)
            if progress is not None:
                progress(stop, n_samples)
        return
    if n_samples <= n_rows:  # one product at a time may use all threads
        if n_samples:
            with limited_threads(n_threads):
                solve(0, n_samples)
        if progress is not None:
            progress(n_samples, n_samples)
        return
    n_threads = count_threads(n_threads)
    tiles = [(start, min(start + n_rows, n_samples)) for start in range(0, n_samples, n_rows)]
    # Threads over tiles and threads inside BLAS would fight for the same cores.
    with single_threaded_blas():
        n_done = 0
        for start, stop in _solved(solve, tiles, n_threads):
            n_done += stop - start
            if progress is not None:
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
