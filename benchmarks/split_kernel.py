"""One sparse kernel, split by rows over ranks: seconds per sweep and memory of each rank.

    torchrun --nproc-per-node 2 benchmarks/split_kernel.py

Each rank draws its own rows; no process ever holds the whole kernel.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import scipy.sparse as sp
import torch.distributed as dist

from wassemble import Unbalanced
from wassemble.scale import RowBlockKernel, solve_barycenter_distributed


def main() -> None:
    """Solve, and print a line for each rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-labels", type=int, default=200_000)
    parser.add_argument("--n-neighbors", type=int, default=50)
    parser.add_argument("--n-samples", type=int, default=4)
    parser.add_argument("--n-models", type=int, default=2)
    parser.add_argument("--n-sweeps", type=int, default=10)
    asked = parser.parse_args()
    dist.init_process_group("gloo")
    rank, n_ranks = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(rank)
    rows = np.array_split(np.arange(asked.n_labels), n_ranks)[rank]
    blocks = [_draw_block(rng, rows, asked) for _ in range(asked.n_models)]
    kernels = [RowBlockKernel(block) for block in blocks]
    scores = [rng.random((asked.n_samples, len(rows))) for _ in blocks]
    dist.barrier()
    start = time.perf_counter()
    shared = solve_barycenter_distributed(
        scores,
        kernels,
        mass=Unbalanced(2.0, epsilon=0.3),
        tolerance=None,
        max_iterations=asked.n_sweeps,
    )
    seconds = (time.perf_counter() - start) / asked.n_sweeps
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # of kilobytes
    print(
        f"rank {rank} of {n_ranks}: {sum(block.nnz for block in blocks):,} entries here,"
        f" {seconds:.3f} s per sweep, {memory:.2f} GiB at most,"
        f" residual {np.max(shared.residual):.2g}",
        flush=True,
    )
    dist.destroy_process_group()


def _draw_block(
    rng: np.random.Generator, rows: np.ndarray, asked: argparse.Namespace
) -> sp.csr_array:
    """The kernel's rows ``rows``: each label, and some others at random."""
    n_entries = len(rows) * asked.n_neighbors
    columns = rng.integers(asked.n_labels, size=(len(rows), asked.n_neighbors))
    columns[:, 0] = rows
    similarity = rng.uniform(0.05, 1, size=n_entries)
    starts = np.arange(0, n_entries + 1, asked.n_neighbors)
    return sp.csr_array((similarity, columns.ravel(), starts), shape=(len(rows), asked.n_labels))


if __name__ == "__main__":
    main()
