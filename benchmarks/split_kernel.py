"""Sparse kernels split by rows over ranks: seconds per sweep and memory of each rank.

    torchrun --standalone --nproc-per-node 2 -m benchmarks.split_kernel

Each rank draws its own rows and solves with the others; no process holds a whole kernel. When
that is measured, rank 0 draws all rows and solves alone: the answers must agree. Writes
results/split_kernel.json, from which `make docs` fills docs/guides/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch.distributed as dist

from benchmarks.measure import agree, describe
from wassemble import Barycenter, Unbalanced, solve_barycenter
from wassemble._files import write_whole
from wassemble.scale import RowBlockKernel, solve_barycenter_distributed
from wassemble.scale.ranks.exchange import Ranks

OUT = Path(__file__).parent / "results" / "split_kernel.json"


def main() -> None:
    """Measure, compare, write down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-labels", type=int, default=200_000)
    parser.add_argument("--n-neighbors", type=int, default=50)
    parser.add_argument("--n-samples", type=int, default=4)
    parser.add_argument("--n-models", type=int, default=2)
    parser.add_argument("--n-sweeps", type=int, default=10)
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    dist.init_process_group("gloo")
    rank, n_ranks = dist.get_rank(), dist.get_world_size()
    scores, blocks = _draw(asked, rank, n_ranks)
    kernels = [RowBlockKernel(block) for block in blocks]
    dist.barrier()
    started = time.perf_counter()
    shared = solve_barycenter_distributed(scores, kernels, **_options(asked))
    seconds = (time.perf_counter() - started) / asked.n_sweeps
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # of kilobytes
    measured = Ranks().gather(np.array([seconds, memory]))
    dist.destroy_process_group()
    if rank == 0:
        alone = _solve_alone(asked, n_ranks)
        answers = {"one process": alone.pop("barycenter"), "ranks": shared.barycenter}
        record = {
            **vars(asked),
            "ranks": [{"seconds_per_sweep": s, "gibibytes": m} for s, m in measured.tolist()],
            "alone": alone,
            "gap": agree(answers, rtol=1e-9),
            "load": load,
            "machine": describe(),
        }
        write_whole(OUT, json.dumps(record, indent=2) + "\n")
        print(json.dumps(record, indent=2))


def _options(asked: argparse.Namespace) -> dict[str, Any]:
    return {
        "rule": Barycenter(Unbalanced(2.0, epsilon=0.3), max_sweeps=asked.n_sweeps, tolerance=None),
        "n_threads": 1,  # of each rank; ranks share the cores of a machine
    }


def _draw(
    asked: argparse.Namespace, rank: int, n_ranks: int
) -> tuple[list[np.ndarray], list[sp.csr_array]]:
    """Scores and kernels of every model, of the rows of a rank."""
    rng = np.random.default_rng(rank)
    rows = np.array_split(np.arange(asked.n_labels), n_ranks)[rank]
    blocks = [_draw_block(rng, rows, asked) for _ in range(asked.n_models)]
    return [rng.random((asked.n_samples, len(rows))) for _ in blocks], blocks


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


def _solve_alone(asked: argparse.Namespace, n_ranks: int) -> dict[str, Any]:
    """The same problem in this process, which holds everything."""
    parts = [_draw(asked, rank, n_ranks) for rank in range(n_ranks)]
    scores = [np.hstack(each) for each in zip(*(part[0] for part in parts), strict=True)]
    kernels = [sp.vstack(each) for each in zip(*(part[1] for part in parts), strict=True)]
    started = time.perf_counter()
    result = solve_barycenter(scores, kernels, **_options(asked))
    seconds = (time.perf_counter() - started) / asked.n_sweeps
    return {"barycenter": result.barycenter, "seconds_per_sweep": seconds}


if __name__ == "__main__":
    main()
