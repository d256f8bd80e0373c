"""A Dask cluster of 1, 2 and 4 worker processes on this machine: `make bench-cluster`.

Measures throughput, memory of each worker and what starting costs, then works out from the
rates how 1e9 samples would go on 100 workers, and where adding workers would stop to help.
Writes results/cluster.json, from which `make docs` fills docs/guides/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import distributed
import numpy as np
import psutil

from benchmarks.cluster_sheet import work_out
from benchmarks.measure import describe
from wassemble import Barycenter, LabelledKernel, Predictions, Unbalanced, write_predictions
from wassemble._files import write_whole
from wassemble.ensemble import Fusion
from wassemble.inputs.part_files import PartFile
from wassemble.kernels import DenseKernel
from wassemble.scale import fuse_partitions
from wassemble.scale.folders import cluster
from wassemble.scale.folders.worker import Outcome, Partition

N_MODELS, N_LABELS = 8, 80
LABELS = [f"label {i}" for i in range(N_LABELS)]
# The paper's setting (6.1): 5 sweeps of Algorithm 2.
RULE = Barycenter(Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None)
N_TINY = 50
# Partitions that do nothing, and threads of the worker that does it.
N_EMPTY, N_THREADS = 2000, 100
OUT = Path(__file__).parent / "results" / "cluster.json"


def main() -> None:
    """Measure, work out, write down."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--n-samples", type=int, default=20_000, help="in a partition")
    parser.add_argument("--n-partitions", type=int, default=12)
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernel = _write_inputs(folder, asked.n_samples, asked.n_partitions)
        rows = [_measure(folder, asked, kernel, n_workers) for n_workers in (1, 2, 4)]
        n_bytes = sum(p.stat().st_size for p in (folder / "many").glob("*/part-0000.parquet"))
        n_out = next((folder / "fused-4-many").glob("part-*")).stat().st_size
        record: dict[str, Any] = {
            "n_models": N_MODELS,
            "n_labels": N_LABELS,
            "n_samples": asked.n_samples,
            "n_partitions": asked.n_partitions,
            "n_bytes_in": n_bytes,
            "n_bytes_out": n_out,
            "workers": rows,
            "telling": _measure_telling(folder),
            "load": load,
            "machine": describe(),
        }
    record["sheet"] = work_out(record)
    write_whole(OUT, json.dumps(record, indent=2) + "\n")
    for row in rows:
        print({name: round(value, 4) for name, value in row.items()})
    for what, value, why in record["sheet"]:
        print(f"{what}: {value} ({why})")


def _write_inputs(folder: Path, n_samples: int, n_partitions: int) -> LabelledKernel:
    """Parts of real size, ``few`` and ``many``, which share their bytes; parts of one sample."""
    rng = np.random.default_rng(0)
    for model in range(N_MODELS):
        scores = rng.random((n_samples, N_LABELS), dtype=np.float32)
        sizes = (n_samples, "few", 3), (n_samples, "many", n_partitions), (1, "tiny", N_TINY)
        for size, name, n_parts in sizes:
            given = Predictions(f"m{model}", range(size), LABELS, scores[:size])
            first = folder / name / f"m{model}" / "part-0000.parquet"
            write_predictions(first, given)
            for part in range(1, n_parts):
                first.with_name(f"part-{part:04}.parquet").hardlink_to(first)
    vectors = rng.normal(size=(N_LABELS, 20))
    costs = ((vectors[:, None] - vectors) ** 2).sum(axis=-1) / 40
    matrix = np.exp(-costs / 0.3).astype(np.float32)
    return LabelledKernel(DenseKernel(matrix, symmetric=True), LABELS, LABELS, "random vectors")


def _measure(
    folder: Path, asked: argparse.Namespace, kernel: LabelledKernel, n_workers: int
) -> dict[str, float]:
    def fuse(name: str) -> float:
        models = {f"m{model}": folder / name / f"m{model}" for model in range(N_MODELS)}
        started = time.perf_counter()
        out = folder / f"fused-{n_workers}-{name}"
        fusion = Fusion(RULE, kernel, kind="multilabel")
        fuse_partitions(models, out, fusion, scheduler=client)
        return time.perf_counter() - started

    started = time.perf_counter()
    with _cluster(folder, n_workers) as (_, client):
        start_up = time.perf_counter() - started
        first_tiny = fuse("tiny")  # workers import, too
        (folder / f"fused-{n_workers}-tiny").rename(folder / f"was-{n_workers}-tiny")
        tiny = fuse("tiny")
        fuse("few")
        memory_few = max(client.run(_memory).values())
        many = fuse("many")
        memory_many = max(client.run(_memory).values())
    return {
        "n_workers": n_workers,
        "start_up_seconds": start_up,
        "first_use_seconds": max(0.0, first_tiny - tiny),
        "seconds_per_tiny_partition": tiny / N_TINY,
        "samples_per_second": asked.n_samples * asked.n_partitions / many,
        "megabytes_after_few": memory_few / 2**20,
        "megabytes_after_all": memory_many / 2**20,
    }


def _measure_telling(folder: Path) -> dict[str, float]:
    """What sending a partition and hearing of it costs, whoever does it and however fast.

    Client, scheduler and worker share the cores of this machine.
    """
    files = tuple(
        PartFile("part-0000.parquet", "520000 1794809133445426095") for _ in range(N_MODELS)
    )
    empty = [Partition(f"part-{number:04}", files) for number in range(N_EMPTY)]
    with (
        _cluster(folder, 1, N_THREADS) as (scheduler, client),
        mock.patch.object(cluster, "fuse_partition", _nothing),
    ):
        list(cluster.run_on_cluster(client, None, empty[:N_THREADS]))
        busy, started = _busy(scheduler), time.perf_counter()
        n_ended = sum(1 for _ in cluster.run_on_cluster(client, None, empty))
        seconds = time.perf_counter() - started
        return {
            "client_seconds_per_partition": seconds / n_ended,
            "scheduler_seconds_per_partition": (_busy(scheduler) - busy) / n_ended,
        }


def _nothing(_: None, partition: Partition) -> Outcome:
    return Outcome(partition.name, {})


def _busy(process: psutil.Process) -> float:
    cpu = process.cpu_times()
    return cpu.user + cpu.system


def _memory() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def _cluster(
    folder: Path, n_workers: int, n_threads: int = 1
) -> Iterator[tuple[psutil.Process, Any]]:
    """A scheduler's process, and a client that knows all of its workers."""
    dask = [sys.executable, "-m", "dask"]
    file = folder / f"scheduler-{n_workers}-{n_threads}.json"
    here = ["--host", "127.0.0.1", "--no-dashboard"]

    def start(*words: str) -> subprocess.Popen:
        return subprocess.Popen([*dask, *words, *here], stderr=subprocess.DEVNULL)

    processes = [start("scheduler", "--port", "0", "--scheduler-file", str(file))]
    try:
        while not (file.exists() and "}" in file.read_text()):
            time.sleep(0.02)
        address = json.loads(file.read_text())["address"]
        alone = [
            "--nthreads",
            str(n_threads),
            "--no-nanny",
            "--local-directory",
            str(folder / "scratch"),
        ]
        processes += [start("worker", address, *alone) for _ in range(n_workers)]
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(n_workers)
            yield psutil.Process(processes[0].pid), client
    finally:
        for process in processes:  # workers that lose their scheduler take their time
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
