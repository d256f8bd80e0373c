"""Dask clusters of real processes on loopback, and data for them; every process can be killed."""

import hashlib
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from patience import SECONDS

from wassemble import Predictions, write_predictions

ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    # Workers import what tests send, and what these import.
    "PYTHONPATH": os.pathsep.join(
        [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    ),
}
WASSEMBLE = (sys.executable, "-m", "wassemble")
DASK = (sys.executable, "-m", "dask")
# Options of `fuse_partitions` that are none of its fusion.
HOW = ("n_threads", "progress", "scheduler")
LABELS = {"a": ["cat", "dog", "eel"], "b": ["cat", "dog", "lynx", "wolf"]}


def write_parts(folder, n_parts, n_samples=20, *, suffix="parquet", seed=0):
    """Two models over their own labels, in ``n_parts`` parts of the same names."""
    rng = np.random.default_rng(seed)
    for part in range(n_parts):
        samples = [f"{part}-{i}" for i in range(n_samples)]
        for model, labels in LABELS.items():
            scores = rng.dirichlet(np.ones(len(labels)), n_samples)
            given = Predictions(model, samples, labels, scores)
            write_predictions(folder / model / f"part-{part:03}.{suffix}", given)
    return [str(folder / model) for model in LABELS]


def fuse_command(folder, out, *options):
    inputs = [str(folder / model) for model in LABELS]
    return [*WASSEMBLE, "fuse", *inputs, "--out", str(out), *map(str, options)]


def run(command, **options):
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=ENVIRONMENT,
        check=False,
        **options,
    )


@contextmanager
def started(command):
    """A process that is gone at the end, whatever happens."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, stack, folder, n_workers):
        file = folder / f"scheduler-{time.monotonic_ns()}.json"
        self.scheduler = stack.enter_context(
            started(
                [
                    *(*DASK, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
                    *("--scheduler-file", str(file)),
                ]
            )
        )
        # It is there before there is anything in it.
        wait_until(lambda: file.exists() and "}" in file.read_text(), self.scheduler)
        self.address = json.loads(file.read_text())["address"]
        self._stack, self._folder = stack, folder
        self.workers = [self.add_worker() for _ in range(n_workers)]

    def add_worker(self):
        return self._stack.enter_context(
            started(
                [
                    *(*DASK, "worker", self.address, "--nthreads", "1", "--no-nanny"),
                    *("--no-dashboard", "--host", "127.0.0.1"),
                    *("--local-directory", str(self._folder / "scratch")),
                ]
            )
        )


@contextmanager
def cluster(folder, n_workers=2):
    with ExitStack() as stack:
        yield Cluster(stack, folder, n_workers)


def wait_until(is_so, *processes):
    """Wait; the processes must go on meanwhile."""
    give_up = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < give_up
        assert all(process.poll() is None for process in processes)
        time.sleep(0.02)


def parts_of(folder):
    """Digest and time of each finished part."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.glob("*.*")
        if not path.name.startswith(".")
    }


def contents(folder):
    """Every part, byte by byte, and the manifest but for when the parts were written."""
    found = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    found["manifest"] = json.loads((folder / "_wassemble" / "manifest.json").read_text())
    for record in found["manifest"]["partitions"].values():
        assert record.pop("stamp")
        for each in record["inputs"]:
            each.pop("stamp")  # left empty while a file is too young to be sure of
    return found
