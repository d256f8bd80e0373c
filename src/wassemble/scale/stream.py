"""`fuse_stream`: predictions that come in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from wassemble._arrays import Array
from wassemble._checks import fail
from wassemble.ensemble import fuse

__all__ = ["fuse_stream"]


def fuse_stream(chunks: Iterable[Any], **options: Any) -> Iterator[Array]:
    """Consensus of each chunk of predictions, one after the other.

    Only one chunk is in memory at a time; chunks may have different numbers of samples.

    Parameters
    ----------
    chunks : iterable
        Each chunk as `fuse` takes it.
    **options
        As in `fuse`, without ``out``; a kernel that differs per sample cannot serve several
        chunks.

    Yields
    ------
    consensus : array of shape (n_samples, n_target)
        Of each chunk.

    Examples
    --------
    >>> chunks = ([[[0.6, 0.4]], [[0.4, 0.6]]] for _ in range(2))
    >>> for consensus in fuse_stream(chunks, kernel=[[1, 0.5], [0.5, 1]]):
    ...     print(consensus.round(2))
    [[0.5 0.5]]
    [[0.5 0.5]]
    """
    if "out" in options:
        fail("`out` must be left out of a stream; each chunk would overwrite the last one.")
    for chunk in chunks:
        yield fuse(chunk, **options)
