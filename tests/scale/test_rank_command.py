"""`torchrun ... -m wassemble ranks`: what it writes, what it refuses, and ranks that are killed.

One kill at a random moment by default; `WASSEMBLE_LONG=1` (`make test-long`) makes it 5.
"""

import contextlib
import os
import shutil
import signal
import socket
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from patience import SECONDS
from scale.torchruns import WORKER, end, run_ranks, start, start_ranks

import wassemble as ws
from wassemble import LabelledKernel, Predictions, read_predictions, write_predictions
from wassemble.cli import main

pytest.importorskip("torch")

SEEDS = range(5 if os.environ.get("WASSEMBLE_LONG") else 1)
N_SWEEPS = 3000  # long enough for a kill to come in between
TARGET = ["cat", "dog", "eel", "fox"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Four models over their own labels; one is silent, one has everything in another order."""
    folder = tmp_path_factory.mktemp("command")
    rng = np.random.default_rng(0)
    samples, models, kernels = [f"s{i}" for i in range(9)], [], []
    for name, size, dtype in (("a", 3, "f4"), ("b", 5, "f8"), ("c", 4, "f8"), ("d", 3, "f8")):
        labels = [f"{name}{i}" for i in range(size)]
        scores = rng.dirichlet(np.ones(size), len(samples)).astype(dtype)
        models.append(Predictions(name, samples, labels, scores))
        matrix = rng.uniform(0.1, 1, (size, len(TARGET)))
        kernels.append(LabelledKernel(ws.kernels.DenseKernel(matrix), labels, TARGET, "by hand"))
        step = -1 if name == "c" else 1
        turned = LabelledKernel(
            ws.kernels.DenseKernel(matrix[:, ::step]), labels, TARGET[::step], "by hand"
        )
        turned.save(folder / f"kernel_{name}.npz")
        write_predictions(folder / f"{name}.npz", models[-1].take(slice(None, None, step)))
    weights = rng.random((4, len(TARGET)))
    weights[1] = 0
    np.save(folder / "weights.npy", weights / weights.sum(axis=0))
    (folder / "b.npz").unlink()  # nobody asks a model of weight 0
    return folder, models, kernels


@pytest.fixture
def folder(files, tmp_path):
    """The same files, to be changed."""
    return shutil.copytree(files[0], tmp_path / "files")


def command(folder, out, *options, mass=("--mass-penalty", "2", "--epsilon", "0.3")):
    names = "abcd"
    return (
        "ranks",
        *(str(folder / f"{name}.npz") for name in names),
        *(each for name in names for each in ("--kernel", f"{name}={folder}/kernel_{name}.npz")),
        *("--weights", str(folder / "weights.npy"), *mass, "--out", str(out), *options),
    )


def long_command(files, out):
    options = ("--tolerance", "none", "--max-sweeps", str(N_SWEEPS))
    return command(files[0], out, *options)


@pytest.fixture(scope="module")
def undisturbed(files, tmp_path_factory):
    """What the long command wrote and said, and in how many seconds once its ranks had met."""
    out = tmp_path_factory.mktemp("undisturbed") / "fused.npz"
    process, ranks = start_and_meet(files, out)
    started = time.monotonic()
    psutil.wait_procs([rank for rank in ranks if rank is not None], timeout=SECONDS)
    seconds = time.monotonic() - started
    code, talk = end(process)
    assert code == 0, talk
    return SimpleNamespace(out=out, talk=talk, seconds=seconds)


def start_and_meet(files, out):
    """torchrun and its two ranks, as soon as these have met; None for one that has ended."""
    process = start_ranks(2, WORKER, "command", str(out.parent), *long_command(files, out))
    notes = [out.parent / f"{rank}.pid" for rank in (0, 1)]
    give_up = time.monotonic() + SECONDS
    has_ended = False
    while not all(note.exists() for note in notes):
        assert not has_ended, end(process)
        assert time.monotonic() < give_up, end(process, 0)
        time.sleep(0.02)
        has_ended = process.poll() is not None
    ranks = [None, None]
    for rank, note in enumerate(notes):
        with contextlib.suppress(psutil.NoSuchProcess):
            ranks[rank] = psutil.Process(int(note.read_text()))
        note.unlink()
    return process, ranks


def test_the_command_writes_what_one_process_finds(files, undisturbed):
    folder, models, kernels = files
    assert "9 samples fused; 9 stopped after the allowed number of sweeps" in undisturbed.talk
    expected = ws.solve_barycenter(
        [model.scores for model in models],
        [kernel.kernel for kernel in kernels],
        ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=N_SWEEPS, tolerance=None),
        weights=np.load(folder / "weights.npy"),
    )
    fused = read_predictions(undisturbed.out)
    assert fused.samples.tolist() == models[0].samples.tolist()
    assert list(fused.labels) == TARGET
    np.testing.assert_allclose(fused.scores, expected.barycenter, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_whose_rank_is_killed_ends_and_is_done_by_the_same_command(
    seed, files, undisturbed, tmp_path
):
    out = tmp_path / "fused.npz"
    rng = np.random.default_rng(seed)
    which, moment = int(rng.integers(2)), rng.uniform(0, 0.9) * undisturbed.seconds
    code, talk = run_and_kill(files, out, which, moment)
    while code == 0:  # it came too late
        out.unlink()
        moment /= 2
        code, talk = run_and_kill(files, out, which, moment)
    assert "SIGKILL" in talk
    assert not out.exists() or out.read_bytes() == undisturbed.out.read_bytes()
    code, talk = run_ranks(2, "-m", "wassemble", *long_command(files, out))
    assert code == 0, talk
    assert out.read_bytes() == undisturbed.out.read_bytes()


def run_and_kill(files, out, which, moment):
    process, ranks = start_and_meet(files, out)
    time.sleep(moment)
    if ranks[which] is not None:
        with contextlib.suppress(psutil.NoSuchProcess):
            ranks[which].kill()
    return end(process)


def test_more_ranks_than_models_with_a_vote_are_refused(folder):
    np.save(folder / "weights.npy", [1.0, 0, 0, 0])
    out = folder / "fused.npz"
    code, talk = run_ranks(2, "-m", "wassemble", *command(folder, out))
    assert code != 0
    assert "at least one of weight above 0 for each rank; got 1 for 2 ranks." in talk
    assert not out.exists()


def test_the_command_says_what_is_wrong_and_writes_nothing(folder):
    (folder / "kernel_c.npz").unlink()  # of rank 1
    out = folder / "fused.npz"
    code, talk = run_ranks(2, "-m", "wassemble", *command(folder, out))
    assert code != 0
    assert "error: rank 1:" in talk
    assert "kernel_c.npz: must be a file; there is none." in talk
    assert not out.exists()


@pytest.fixture
def alone(monkeypatch):
    """The environment that torchrun gives an only rank."""
    import torch.distributed as dist

    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}  # any that is free
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", **place}.items():
        monkeypatch.setenv(name, value)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_a_score_that_is_missing_is_named_with_its_file(folder, alone, capsys):
    found = read_predictions(folder / "d.npz")
    scores = found.scores.copy()
    scores[2, 1] = np.nan
    write_predictions(folder / "d.npz", Predictions("d", found.samples, found.labels, scores))
    assert main(command(folder, folder / "fused.npz")) == 2
    told = "d.npz: every sample must have a score for each label; got none for sample 's2'"
    assert f"{told} and label 'd1'." in capsys.readouterr().err


def test_a_row_of_zeros_is_named_with_its_file(folder, alone, capsys):
    found = read_predictions(folder / "d.npz")
    scores = found.scores * (np.arange(9) != 4)[:, None]
    write_predictions(folder / "d.npz", Predictions("d", found.samples, found.labels, scores))
    assert main(command(folder, folder / "fused.npz", mass=("--balanced",))) == 2
    told = capsys.readouterr().err
    assert "d.npz: every sample must have some mass" in told
    assert "got a row of zeros for sample 's4'." in told


@pytest.mark.parametrize(("n_gpus", "local_rank"), [(0, 0), (1, 1)])
def test_a_rank_without_a_gpu_says_so(n_gpus, local_rank, folder, alone, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: n_gpus > 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: n_gpus)
    monkeypatch.setenv("LOCAL_RANK", str(local_rank))
    assert main(command(folder, folder / "fused.npz", "--device", "cuda")) == 2
    told = capsys.readouterr().err
    assert f"must have a GPU for each rank of a machine; got {n_gpus} that torch can use" in told


def test_when_a_machine_is_gone_the_others_end_with_one_clear_error(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    out = folder / "fused.npz"
    endless = command(folder, out, "--tolerance", "none", "--max-sweeps", "1000000000")
    # Two machines, as far as torchrun can tell: nobody but the ranks sees the other one end.
    machines = [
        start(
            *("--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(rank)),
            *("--master-addr", "127.0.0.1", "--master-port", port),
            *(WORKER, "command", str(folder), *endless),
        )
        for rank in (0, 1)
    ]
    try:
        wait_for(folder / "0.pid", machines)
        wait_for(folder / "1.pid", machines)
        os.kill(int((folder / "1.pid").read_text()), signal.SIGKILL)
        code, talk = end(machines[0])  # sooner than --timeout, which is for silent ranks
    finally:
        for machine in machines:
            with machine:
                machine.terminate()
    assert code != 0
    assert talk.count("error: rank 0: the exchange with the other ranks broke off") == 1
    assert not out.exists()


def wait_for(path, machines):
    give_up = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < give_up
        assert all(machine.poll() is None for machine in machines)
        time.sleep(0.05)
