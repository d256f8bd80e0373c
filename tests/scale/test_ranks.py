"""Models on several ranks: real torchrun processes give the answer of one process, or end."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scale.rank_cases import CASES
from scale.torchruns import WORKER, run_ranks

import wassemble as ws
from wassemble._arrays import detached
from wassemble.solvers.arithmetics import LogSolver
from wassemble.solvers.power_means import log_power_mean

pytest.importorskip("torch")

BETWEEN_LOOKS = 8  # sweeps, at most, from one look at the residual to the next


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
def test_ranks_give_the_answer_of_one_process(name, found, monkeypatch):
    case, ranks = CASES[name](), found(name)
    # Newton's method and leaps take all models in one place: ranks sweep to the end.
    monkeypatch.setattr(LogSolver, "patience", lambda *_: None)
    one = case.solve()
    first, expected = ranks[0], detached(one.barycenter)
    for rank in ranks:
        for what in ("barycenter", "residual", "n_sweeps", "status"):
            np.testing.assert_array_equal(rank[what], first[what])
    np.testing.assert_array_equal(first["status"], one.status)
    assert first["barycenter"].dtype == expected.dtype
    assert all(rank["is_tensor"] == (name == "tensors") for rank in ranks)

    # Ranks add in another order, and each processor rounds sums in its own way: a residual that
    # is the tolerance but for the last bits may end a row at one look or at the next.
    looks_apart = np.abs(first["n_sweeps"] - one.n_sweeps) / BETWEEN_LOOKS
    assert (looks_apart <= (one.problem.tolerance is not None)).all()
    slack = np.where(looks_apart == 0, 10.0**-case.places, 3 * (one.problem.tolerance or 0))
    error = np.abs(first["barycenter"] - expected)
    assert (error <= slack[..., None] * (expected + expected.max())).all()
    apart = np.abs(first["residual"] - one.residual)
    assert (apart <= np.maximum(slack, 1e-11)).all()


@pytest.mark.parametrize("name", ["balanced", "unbalanced in logs", "split with walls"])
def test_the_couplings_of_a_model_are_on_its_ranks(name, found):
    parts = [rank["coupling"] for rank in found(name) if rank["coupling"].size]
    np.testing.assert_allclose(
        np.concatenate(parts), CASES[name]().solve().coupling(0), rtol=1e-6, atol=1e-12
    )


def test_cases_reach_every_solver_and_every_end(monkeypatch):
    monkeypatch.setenv("WASSEMBLE_NATIVE", "0")  # ranks sweep in NumPy
    results = [make().solve() for make in CASES.values()]
    assert {result.solver.name for result in results} == {"plain", "log", "closed form"}
    ends = set(np.concatenate([result.statuses for result in results]).tolist())
    assert ends == {ws.Status.CONVERGED, ws.Status.MAX_SWEEPS, ws.Status.UNREACHABLE_MASS}


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
        ("sums", "must sum to 1 in each row.*; got 2"),
        ("types", "same bytes per number; got 8, 4"),
        ("weights", "`weights` must sum to 1"),
        ("some weights", "on every rank or on none; got none on ranks .1"),
        ("some votes", "`weights` must sum to 1 over the models; got 0.6"),
        ("no votes", "a model of weight above 0; got none"),
        ("negative, split", "must not be negative; got -.* at model 0, sample 0"),
        ("sums, split over some", "must sum to 1 in each row.*; got 2"),
        ("order", "in the order in which they were made"),
        ("sweeps", "same max_sweeps; got 5, 6"),
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


def test_the_script_of_the_guide_runs(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "guides" / "scale.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if "init_process_group" in block)
    (tmp_path / "script.py").write_text(block, encoding="utf-8")
    code, talk = run_ranks(2, str(tmp_path / "script.py"))
    assert code == 0, talk
