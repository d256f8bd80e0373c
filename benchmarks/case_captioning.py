"""Next words: 10,096 labels, 5 models x 5 beams, 5 sweeps of Algorithm 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

import wassemble as ws
from benchmarks.measure import agree, on_numpy, race


def softmax_words(rng, n_models, n_beams, n_words, spread=2.0):
    """Next-word distributions whose models mostly agree."""
    logits = spread * (
        rng.normal(size=(1, n_beams, n_words)) + 0.3 * rng.normal(size=(n_models, n_beams, n_words))
    )
    words = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (words / words.sum(axis=-1, keepdims=True)).astype(np.float32)


def neighbour_kernel(rng, n_words, n_neighbours, *, reach=None):
    """A synonym-like kernel: each word, and about that many others at random.

    ``reach`` keeps neighbours near in the order of the words, as in a sorted taxonomy.
    """
    rows = np.repeat(np.arange(n_words), n_neighbours - 1)
    columns = rng.integers(n_words, size=len(rows))
    if reach is not None:
        columns = np.clip(rows + columns % (2 * reach) - reach, 0, n_words - 1)
    values = rng.uniform(0.05, 0.5, size=len(rows)).astype(np.float32)
    matrix = sp.csr_array((values, (rows, columns)), shape=(n_words, n_words))
    return ws.kernels.SparseKernel(matrix + sp.eye_array(n_words, dtype=np.float32))


def run(*, quick: bool) -> dict:
    """Seconds of one step of a beam search under each kernel."""
    n_words = 10_096
    rng = np.random.default_rng(0)
    words = softmax_words(rng, 5, 5, n_words)
    sparse = {k: neighbour_kernel(rng, n_words, k) for k in (10, 50)}
    dense = ws.kernels.DenseKernel(sparse[50].to_dense())
    factors = rng.uniform(0.1, 1, size=(2, n_words, 100)).astype(np.float32)
    low_rank = ws.kernels.LowRankKernel(*factors)

    five = ws.Barycenter(max_sweeps=5, tolerance=None)
    of_500 = replace(five, n_top=500)

    def ours(kernel, rule=five):
        return ws.fuse(words, kernel=kernel, rule=rule)

    gap = agree({"sparse": ours(sparse[50]), "dense": ours(dense)}, rtol=1e-3, atol=1e-9)
    few = words[:, :, :2000] / words[:, :, :2000].sum(axis=-1, keepdims=True)
    part = ws.kernels.LowRankKernel(*factors[:, :2000])
    dense_part = np.array(part.to_dense())
    agree(
        {
            "low rank": ws.fuse(few, kernel=part, rule=five, normalize=True),
            "dense": ws.fuse(few, kernel=dense_part, rule=five, normalize=True),
        },
        rtol=1e-3,
    )
    whole, cut = (ws.solve_barycenter(words, dense, rule) for rule in (five, of_500))
    timings = race(
        {
            "arithmetic mean": lambda: ws.ARITHMETIC.fuse(words),
            "geometric mean": lambda: ws.GEOMETRIC.fuse(words),
            "sparse, 10 neighbours": lambda: ours(sparse[10]),
            "sparse, 50 neighbours": lambda: ours(sparse[50]),
            "the same, NumPy alone": lambda: on_numpy(lambda: ours(sparse[50])),
            "low rank 100": lambda: ours(low_rank),
        },
        n_rounds=5,
    )
    timings |= race(
        {
            "dense": lambda: ours(dense),
            "dense, 500 largest words of each model": lambda: _quiet(lambda: ours(dense, of_500)),
        },
        n_rounds=2 if quick else 4,
    )
    return {
        "n_labels": n_words,
        "agreement": {"sparse and its dense form": gap},
        "dropped_mass": float(cut.dropped_mass.max()),
        "status": repr(whole),
        "timings": timings,
    }


def _quiet(call):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ws.ConvergenceWarning)
        return call()
