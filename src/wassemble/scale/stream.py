"""`fuse_stream`: predictions that come in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from wassemble._arrays import Array
from wassemble._checks import fail
from wassemble.ensemble import fuse
from wassemble.ensemble.fuse import are_named
from wassemble.solvers import Unbalanced

__all__ = ["fuse_stream"]


def fuse_stream(chunks: Iterable[Any], **options: Any) -> Iterator[Array]:
    """Consensus of each chunk of predictions, one after the other.

    Only one chunk is in memory at a time; chunks may have different numbers of samples.

    Parameters
    ----------
    chunks : iterable
        Each chunk as `fuse` takes it.
    **options
        As in `fuse`, without ``out``, and with ``kind`` where it would be detected; a kernel
        that differs per sample cannot serve several chunks.

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
    is_told = options.get("kind") is not None
    for chunk in chunks:
        if not is_told and (isinstance(options.get("mass"), Unbalanced) or are_named(chunk)):
            fail(
                "`kind` must be given for a stream: chunks are fused one by one, and each might"
                " look otherwise; got none.",
                hint='kind="multiclass" for histograms, "multilabel" for scores of any mass',
            )
        yield fuse(chunk, **options)
