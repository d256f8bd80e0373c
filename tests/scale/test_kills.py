"""A run that is killed at any moment is finished by the same command, bit for bit.

Five kills by default; `WASSEMBLE_LONG=1` (`make test-long`) makes it 30.
"""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from patience import SECONDS
from scale.clusters import (
    ENVIRONMENT,
    cluster,
    contents,
    fuse_command,
    parts_of,
    run,
    started,
    wait_until,
    write_parts,
)

pytest.importorskip("distributed")

N_PARTS = 12
SEEDS = range(6 if os.environ.get("WASSEMBLE_LONG") else 1)
# Long enough for a kill to come in between.
SLOW = ("--tolerance", "none", "--max-sweeps", "60", "--mass-penalty", "2", "--epsilon", ".3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("kills")
    write_parts(found, N_PARTS)
    return found


@pytest.fixture(scope="module")
def undisturbed(folder):
    out = folder / "undisturbed"
    done = run(fuse_command(folder, out, *SLOW))
    assert done.returncode == 0, done.stderr
    return contents(out)


def wait_for_a_moment(out, seed, kind, process):
    """Until some parts are finished, perhaps all, and a little longer; drawn for each kill."""
    rng = np.random.default_rng([seed, kind])
    n_finished = int(rng.integers(0, N_PARTS + 1))
    give_up = time.monotonic() + SECONDS
    while process.poll() is None and len(list(out.glob("*.*"))) < n_finished:
        assert time.monotonic() < give_up
        time.sleep(0.001)
    # Mostly very little: after the last part, the end is near.
    time.sleep(0.3 * rng.uniform() ** 3)


def finished(out):
    """Digest and time of each part that has a record; one that was killed before it has none."""
    records = [path.stem for path in (out / "_wassemble" / "partitions").glob("*.json")]
    manifest = out / "_wassemble" / "manifest.json"
    if manifest.exists():
        records += json.loads(manifest.read_text())["partitions"]
    return {name: about for name, about in parts_of(out).items() if Path(name).stem in records}


def finish(folder, out, undisturbed, *options):
    """The same command again: keeps what is there, and ends as if nothing had happened."""
    before = finished(out)
    done = run(fuse_command(folder, out, *SLOW, *options))
    assert done.returncode == 0, done.stderr
    told = re.search(rf"{N_PARTS} partitions, (\d+) of an earlier run", done.stderr)
    # Workers of a client that was killed may finish what they have begun.
    assert int(told[1]) >= len(before)
    after = parts_of(out)
    assert {name: after[name] for name in before} == before
    wait_until(lambda: not list(out.glob(".*")))  # tasks of a client that was killed end, too
    assert contents(out) == undisturbed


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_run_without_a_cluster_is_finished(seed, folder, undisturbed, tmp_path):
    out = tmp_path / "fused"
    with started(fuse_command(folder, out, *SLOW)) as client:
        wait_for_a_moment(out, seed, 2, client)
        client.kill()
    finish(folder, out, undisturbed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_goes_on_when_a_worker_is_killed(seed, folder, undisturbed, tmp_path):
    out = tmp_path / "fused"
    with cluster(tmp_path) as dask:
        command = fuse_command(folder, out, *SLOW, "--scheduler", dask.address)
        with started(command) as client:
            wait_for_a_moment(out, seed, 1, client)
            dask.workers[seed % 2].kill()
            assert client.wait(SECONDS) == 0
    assert contents(out) == undisturbed
    assert not list(out.glob(".*"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_waits_for_another_worker_when_the_only_one_is_killed(
    seed, folder, undisturbed, tmp_path
):
    out = tmp_path / "fused"
    with cluster(tmp_path, 1) as dask:
        command = fuse_command(folder, out, *SLOW, "--scheduler", dask.address)
        with started(command) as client:
            wait_for_a_moment(out, seed, 3, client)
            dask.workers[0].kill()
            dask.add_worker()
            assert client.wait(SECONDS) == 0
    assert contents(out) == undisturbed


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_whose_client_is_killed_is_finished(seed, folder, undisturbed, tmp_path):
    out = tmp_path / "fused"
    with cluster(tmp_path) as dask:
        options = ("--scheduler", dask.address)
        with started(fuse_command(folder, out, *SLOW, *options)) as client:
            wait_for_a_moment(out, seed, 0, client)
            client.kill()
            client.wait()
        if seed % 2:  # else at once, while its tasks are still under way
            time.sleep(1)
            wait_until(lambda: not list(out.glob(".unfinished-*")))
        finish(folder, out, undisturbed, *options)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_whose_scheduler_is_killed_says_so_and_is_finished(
    seed, folder, undisturbed, tmp_path
):
    out = tmp_path / "fused"
    with cluster(tmp_path) as dask:
        command = fuse_command(folder, out, *SLOW, "--scheduler", dask.address)
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
        ) as client:
            wait_for_a_moment(out, seed, 4, client)
            dask.scheduler.kill()
            _, talk = client.communicate(timeout=SECONDS)
        if client.returncode == 1:
            # Lost on the way, or before the command had reached it.
            lost = r"error: the Dask scheduler at \S+ was lost; what is finished is kept\.\n"
            assert re.match(rf"{lost}|error: no Dask scheduler answers at", talk)
            assert len(talk.splitlines()) == 2
        else:  # all was done by then
            assert client.returncode == 0
            assert contents(out) == undisturbed
        for worker in dask.workers:
            worker.kill()
            worker.wait()
    with cluster(tmp_path) as dask:
        finish(folder, out, undisturbed, "--scheduler", dask.address)
