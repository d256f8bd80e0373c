"""Models on several ranks: real torchrun processes give the answer of one process, or end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scale.rank_cases import CASES

import wassemble as ws
from wassemble import LabelledKernel, Predictions, read_predictions, write_predictions
from wassemble._arrays import detached
from wassemble.solvers.power_means import log_power_mean

pytest.importorskip("torch")

WORKER = str(Path(__file__).parent / "rank_worker.py")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")
SECONDS = 240  # for ranks that should end; a machine may be busy


def start(*arguments, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "WASSEMBLE_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*TORCHRUN, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def end(process, seconds=SECONDS):
    """Exit code and standard error; nothing is left behind."""
    with process:
        try:
            _, talk = process.communicate(timeout=seconds)
        finally:
            process.terminate()  # torchrun passes it on to its ranks
    return process.returncode, talk


def run_ranks(n_ranks, *arguments):
    return end(start("--standalone", "--nproc-per-node", str(n_ranks), *arguments))


@pytest.fixture(scope="module", params=[2, 3], ids="{} ranks".format)
def found(request, tmp_path_factory):
    """What each rank found in each case, solved by real ranks in one go."""
    folder = tmp_path_factory.mktemp("ranks")
    code, talk = run_ranks(request.param, WORKER, "cases", str(folder))
    assert code == 0, talk

    def read(name):
        archives = [folder / f"{name}.{rank}.npz" for rank in range(request.param)]
        return [dict(np.load(archive)) for archive in archives]

    read.mistakes = [
        json.loads((folder / f"mistakes.{rank}.json").read_text()) for rank in range(request.param)
    ]
    return read


@pytest.mark.parametrize("name", CASES)
def test_ranks_give_the_answer_of_one_process(name, found):
    case, ranks = CASES[name](), found(name)
    one = case.solve()
    expected = detached(one.barycenter)
    tolerance = 10.0**-case.places
    for rank in ranks:
        np.testing.assert_array_equal(rank["barycenter"], ranks[0]["barycenter"])
        np.testing.assert_array_equal(rank["residual"], ranks[0]["residual"])
        np.testing.assert_array_equal(rank["n_iterations"], one.n_iterations)
        np.testing.assert_array_equal(rank["status"], one.status)
    assert ranks[0]["barycenter"].dtype == expected.dtype
    assert all(rank["is_tensor"] == (name == "tensors") for rank in ranks)
    np.testing.assert_allclose(
        ranks[0]["barycenter"], expected, rtol=tolerance, atol=tolerance * expected.max()
    )
    np.testing.assert_allclose(ranks[0]["residual"], one.residual, atol=max(tolerance, 1e-11))


@pytest.mark.parametrize("name", ["balanced", "unbalanced in logs", "split with walls"])
def test_the_couplings_of_a_model_are_on_its_ranks(name, found):
    parts = [rank["coupling"] for rank in found(name) if rank["coupling"].size]
    np.testing.assert_allclose(
        np.concatenate(parts), CASES[name]().solve().coupling(0), rtol=1e-6, atol=1e-12
    )


def test_cases_reach_every_solver_and_every_end():
    results = [make().solve() for make in CASES.values()]
    assert {result.solver.name for result in results} == {"plain", "log", "closed form"}
    ends = set(np.concatenate([result.statuses for result in results]).tolist())
    assert ends == {ws.Status.CONVERGED, ws.Status.MAX_ITERATIONS, ws.Status.UNREACHABLE_MASS}


@pytest.mark.parametrize("how", ["", " in logs", ", balanced"])
def test_one_exchange_for_each_sweep(how, found):
    for few, many in zip(found(f"5 sweeps{how}"), found(f"15 sweeps{how}"), strict=True):
        assert many["n_exchanges"] - few["n_exchanges"] == 10


def test_a_poor_guess_of_the_mean_is_not_used(rng):
    log_images, weights = rng.normal(size=(3, 4, 5)), np.full((3, 1, 1), 1 / 3)
    for order in (0.5, 1e-4):
        exact = log_power_mean(log_images, weights, order=order)
        for guess in (exact + 1, exact + 2000 / order, exact - 2000 / order):
            found = log_power_mean(log_images, weights, order=order, log_guess=guess)
            np.testing.assert_allclose(found, exact, atol=1e-11)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("samples", "same number of samples; got 7, 6"),
        ("negative", "must not be negative; got -.* at model 0, sample 0"),
        ("sums", "must sum to 1 in each row .*; got 2"),
        ("types", "same bytes per number; got 8, 4"),
        ("weights", "`weights` must sum to 1"),
        ("some weights", "on every rank or on none; got none on ranks .1"),
        ("some votes", "`weights` must sum to 1 over the models; got 0.6"),
        ("no votes", "a model of weight above 0; got none"),
        ("order", "in the order in which they were made"),
        ("sweeps", "same max_iterations; got 5, 6"),
    ],
)
def test_a_mistake_on_one_rank_ends_them_all(mistake, message, found):
    heard = [rank[mistake] for rank in found.mistakes]
    for words in heard:
        assert words.startswith(("InvalidInputError", "RankError: another rank refused its share"))
    with pytest.raises(ws.InvalidInputError, match=message):
        raise ws.InvalidInputError(heard[1])  # rank 1 has made it


def test_without_a_group_there_is_one_clear_error():
    from wassemble.scale import solve_barycenter_distributed

    with pytest.raises(ws.InvalidInputError, match="must be initialised"):
        solve_barycenter_distributed([[0.5, 0.5]], [[1.0, 0.5], [0.5, 1.0]])


@pytest.fixture
def files(tmp_path, rng):
    """Three models over their own labels, and kernels whose target labels come in any order."""
    samples, target = [f"s{i}" for i in range(9)], ["cat", "dog", "eel", "fox"]
    models, kernels = [], []
    for name, size, dtype in (("a", 3, np.float32), ("b", 5, np.float64), ("c", 4, np.float64)):
        labels = [f"{name}{i}" for i in range(size)]
        scores = rng.dirichlet(np.ones(size), len(samples)).astype(dtype)
        models.append(Predictions(name, samples, labels, scores))
        kernel = ws.DenseKernel(rng.uniform(0.1, 1, (size, len(target))))
        kernels.append(LabelledKernel(kernel, labels, target, "by hand"))
        kernels[-1].save(tmp_path / f"kernel_{name}.npz")
    turned = ws.DenseKernel(kernels[1].to_dense()[:, ::-1])
    labels = kernels[1].source
    LabelledKernel(turned, labels, target[::-1], "by hand").save(tmp_path / "kernel_b.npz")
    for model in models:
        rows = slice(None, None, -1) if model.model == "c" else slice(None)
        write_predictions(tmp_path / f"{model.model}.npz", model.take(rows))
    return tmp_path, models, kernels


def command(folder, *options):
    names = "abc"
    return (
        *("--models", *(str(folder / f"{name}.npz") for name in names)),
        *("--kernels", *(str(folder / f"kernel_{name}.npz") for name in names)),
        *("--out", str(folder / "fused.npz"), *options),
    )


def test_the_command_writes_what_one_process_finds(files, rng):
    folder, models, kernels = files
    weights = rng.dirichlet(np.ones(3), 4).T
    np.save(folder / "weights.npy", weights)
    options = ("--weights", str(folder / "weights.npy"), "--mass-penalty", "2", "--epsilon", "0.3")
    code, talk = run_ranks(2, "-m", "wassemble.scale", *command(folder, *options))
    assert code == 0, talk
    assert "9 samples fused; 9 converged" in talk
    expected = ws.solve_barycenter(
        [model.scores for model in models],
        [kernel.kernel for kernel in kernels],
        weights=weights,
        mass=ws.Unbalanced(2.0, epsilon=0.3),
    )
    fused = read_predictions(folder / "fused.npz")
    assert fused.samples.tolist() == models[0].samples.tolist()
    assert list(fused.labels) == ["cat", "dog", "eel", "fox"]
    np.testing.assert_allclose(fused.scores, expected.barycenter, rtol=1e-12)


def test_the_script_of_the_guide_runs(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "guides" / "scale.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if "init_process_group" in block)
    (tmp_path / "script.py").write_text(block, encoding="utf-8")
    code, talk = run_ranks(2, str(tmp_path / "script.py"))
    assert code == 0, talk


def test_the_command_says_what_is_wrong_and_writes_nothing(files):
    folder, _, _ = files
    (folder / "kernel_b.npz").unlink()  # of rank 1
    code, talk = run_ranks(2, "-m", "wassemble.scale", *command(folder))
    assert code != 0
    assert "error: rank 1:" in talk
    assert "kernel_b.npz: must be a file; there is none." in talk
    assert not (folder / "fused.npz").exists()


def test_when_a_rank_is_killed_the_others_end_with_one_clear_error(files):
    folder, _, _ = files
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    endless = command(folder, "--tolerance", "none", "--max-iterations", "1000000000")
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
        killed = time.monotonic()
        code, talk = end(machines[0], seconds=60)
        assert time.monotonic() - killed < 30
    finally:
        for machine in machines:
            with machine:
                machine.terminate()
    assert code != 0
    assert talk.count("error: rank 0: the exchange with the other ranks broke off") == 1
    assert not (folder / "fused.npz").exists()


def wait_for(path, machines):
    give_up = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < give_up
        assert all(machine.poll() is None for machine in machines)
        time.sleep(0.05)
