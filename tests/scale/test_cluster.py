"""Partitions on a Dask cluster of real processes: the same bits, one kernel each, few tasks."""

import functools
import logging
import pickle
import sys
from contextlib import closing
from types import SimpleNamespace

import psutil
import pytest
from patience import SECONDS
from problems import fusion_with
from scale import counted
from scale.clusters import (
    HOW,
    LABELS,
    Cluster,
    cluster,
    contents,
    fuse_command,
    parts_of,
    run,
    started,
    write_parts,
)

import wassemble as ws
from wassemble.scale import ClusterError, PartitionError, fuse_partitions
from wassemble.scale.folders import cluster as module
from wassemble.scale.folders.worker import Job, PartFile, Partition

distributed = pytest.importorskip("distributed")

N_WORKERS = 2


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("dask"), N_WORKERS) as found:
        yield found


@pytest.fixture
def client(dask):
    with closing(distributed.Client(dask.address, set_as_default=False)) as found:
        found.wait_for_workers(N_WORKERS)
        yield found


def fuse_them(folder, out="fused", **options):
    how = {name: options.pop(name) for name in HOW if name in options}
    models = {model: folder / model for model in LABELS}
    return fuse_partitions(models, folder / out, fusion_with(**options), **how)


def test_a_cluster_writes_the_bits_of_one_process(dask, tmp_path):
    write_parts(tmp_path, 6)
    assert run(fuse_command(tmp_path, tmp_path / "here")).returncode == 0
    done = run(fuse_command(tmp_path, tmp_path / "there", "--scheduler", dask.address))
    assert done.returncode == 0, done.stderr
    assert "120 samples x 5 labels from 2 models" in done.stderr
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    # Nothing is left to do: nobody is asked.
    assert fuse_them(tmp_path, "there", scheduler="tcp://127.0.0.1:1").n_kept == 6


def test_each_worker_gets_the_plan_once_and_tasks_stay_small(client, tmp_path):
    write_parts(tmp_path, 16, 2)

    def count():
        return counted.n_arrived

    before = client.run(count)
    fuse_them(tmp_path, rule=counted.CountedMean(), scheduler=client)
    assert len(parts_of(tmp_path / "fused")) == 16
    after = client.run(count)
    # One that was busy elsewhere may have had no task, and so no need of it.
    assert max(after[worker] - before[worker] for worker in after) == 1
    files = tuple(PartFile("part-000.parquet", "1701 1794809133445426095") for _ in range(8))
    assert len(pickle.dumps(Partition("part-000", files))) < 1000


def test_few_tasks_are_under_way_at_a_time(client, tmp_path, monkeypatch):
    write_parts(tmp_path, 24, 2)
    known, sent = [], []
    send = client.map

    def counted(function, jobs, batch, **options):
        known.append(sum(each.status == "pending" for each in list(client.futures.values())))
        sent.append(len(batch))
        return send(function, jobs, batch, **options)

    monkeypatch.setattr(client, "map", counted)
    fuse_them(tmp_path, scheduler=client)
    assert sum(sent) == 24
    assert sent[0] == 2 * N_WORKERS  # together, two for each thread
    assert max(map(sum, zip(known, sent, strict=True))) <= 2 * N_WORKERS


def test_memory_of_a_worker_stays_flat(client, tmp_path):
    write_parts(tmp_path, 30, 20_000)
    (tmp_path / "few").mkdir()
    for model in LABELS:
        (tmp_path / "few" / model).mkdir()
        for path in sorted((tmp_path / model).iterdir())[:6]:
            (tmp_path / "few" / model / path.name).symlink_to(path)

    def memory():
        return psutil.Process().memory_info().rss

    options = {"rule": ws.ARITHMETIC, "scheduler": client}
    fuse_them(tmp_path / "few", **options)
    after_few = client.run(memory)
    fuse_them(tmp_path, **options)
    after_many = client.run(memory)
    # Thirty partitions have 40 MB of scores, and as much again of ids.
    assert all(after_many[worker] - after_few[worker] < 25e6 for worker in after_few)


def test_bad_parts_are_told_and_the_rest_is_kept(client, tmp_path):
    write_parts(tmp_path, 5)
    (tmp_path / "b" / "part-003.parquet").write_bytes(b"nothing")
    with pytest.raises(PartitionError, match=r"1 of 5 .*\npart-003: model b: part-003.parquet"):
        fuse_them(tmp_path, scheduler=client)
    assert len(parts_of(tmp_path / "fused")) == 4


def test_nothing_goes_on_after_an_error(client, tmp_path):
    write_parts(tmp_path, 12)

    def stop(*_):
        raise RuntimeError("stop")

    # The error's traceback holds what is local to the run: nothing is let go of by itself.
    with pytest.raises(RuntimeError, match="stop") as caught:
        fuse_them(tmp_path, scheduler=client, progress=stop)
    assert len(client.futures) <= 1  # the one that has ended may be on its way out
    assert caught.tb is not None


def test_a_partition_that_ends_its_workers_is_told(client, tmp_path, monkeypatch):
    write_parts(tmp_path, 2)

    def fail_on_the_way(*_):
        raise distributed.KilledWorker("some task", SimpleNamespace(address="tcp://x:1"), 4)

    monkeypatch.setattr(module, "fuse_partition", fail_on_the_way)
    with pytest.raises(PartitionError, match=r"part-000: KilledWorker: .* 5 different workers"):
        fuse_them(tmp_path, scheduler=client)


def test_without_a_scheduler_or_workers_there_is_one_clear_error(tmp_path, monkeypatch):
    write_parts(tmp_path, 2)
    monkeypatch.setattr(module, "_WITHOUT_WORKERS", 1)
    with monkeypatch.context() as hasty:
        hasty.setattr(module, "_TO_CONNECT", 1)
        with pytest.raises(ClusterError, match="no Dask scheduler answers at tcp"):
            fuse_them(tmp_path, scheduler="tcp://127.0.0.1:1")
    with cluster(tmp_path, 0) as empty, pytest.raises(ClusterError, match="no worker for 1 sec"):
        fuse_them(tmp_path, scheduler=empty.address)


def test_an_address_that_is_none_is_an_error_at_once(tmp_path):
    write_parts(tmp_path, 1)
    addresses = ("localhost", "nonsense", "tcp://", "http://x:1", "tls://127.0.0.1:1")
    command = fuse_command(tmp_path, tmp_path / "fused", "--scheduler")[3:]
    calls = [f"assert main({[*command, address]}) == 1" for address in addresses]
    # Longer than `run` waits, lest anything waits for an answer that cannot come.
    patient = [
        "from wassemble.scale.folders import cluster",
        f"cluster._TO_CONNECT = {100 * SECONDS}",
    ]
    script = "\n".join(["from wassemble.cli import main", *patient, *calls])
    done = run([sys.executable, "-c", script])
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert len(said) == 2 * len(addresses)
    for address, line in zip(addresses, said[::2], strict=True):
        assert line.startswith(f"error: no Dask scheduler answers at {address} (")
    assert set(said[1::2]) == {"hint: an address is like tcp://10.0.0.1:8786"}


def test_a_worker_of_another_version_is_refused(client, tmp_path, monkeypatch):
    write_parts(tmp_path, 4)
    other = functools.partial(Job, version="0.0.0")
    monkeypatch.setattr("wassemble.scale.folders.run.Job", other)
    with pytest.raises(ClusterError, match=r"must have wassemble 0\.0\.0; process \d+ of .* has"):
        fuse_them(tmp_path, scheduler=client)
    assert parts_of(tmp_path / "fused") == {}
    assert logging.getLogger("distributed.client").isEnabledFor(logging.ERROR)


def test_workers_may_come_later(tmp_path):
    write_parts(tmp_path, 4)
    with cluster(tmp_path, 0) as empty:
        command = fuse_command(tmp_path, tmp_path / "fused", "--scheduler", empty.address)
        with started(command) as process:
            assert isinstance(empty, Cluster)
            empty.add_worker()
            assert process.wait(SECONDS) == 0
    assert len(parts_of(tmp_path / "fused")) == 4
