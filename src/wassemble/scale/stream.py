"""`fuse_stream`: predictions that come in pieces."""

from collections.abc import Iterable, Iterator
from typing import Any

from wassemble._checks import fail
from wassemble.ensemble import Fusion
from wassemble.ensemble.tables import are_named


def fuse_stream(
    chunks: Iterable[Any], fusion: Fusion = Fusion(), *, n_threads: int | None = None
) -> Iterator[Any]:
    """Consensus of each chunk of predictions, one after the other.

    Only one chunk is in memory at a time; chunks may have different numbers of samples.

    Parameters
    ----------
    chunks : iterable
        Each chunk as `fuse` takes it.
    fusion : Fusion
        How to fuse, with its ``kind`` where it would be detected; a kernel that differs per
        sample cannot serve several chunks.
    n_threads : int, optional
        As in `fuse`.

    Yields
    ------
    consensus : array of shape (n_samples, n_target)
        Of each chunk.

    Examples
    --------
    >>> chunks = ([[[0.6, 0.4]], [[0.4, 0.6]]] for _ in range(2))
    >>> for consensus in fuse_stream(chunks, Fusion(kernel=[[1, 0.5], [0.5, 1]])):
    ...     print(consensus.round(2))
    [[0.5 0.5]]
    [[0.5 0.5]]
    """
    for chunk in chunks:
        if fusion.kind is None and are_named(chunk):
            fail(
                "`kind` must be given for a stream: chunks are fused one by one, and each might"
                " look otherwise; got none.",
                hint='kind="multiclass" for histograms, "multilabel" for scores of any mass',
            )
        yield fusion.fuse(chunk, n_threads=n_threads)
