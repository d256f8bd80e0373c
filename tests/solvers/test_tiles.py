"""Tiles and threads change nothing but the time; memory stays small."""

import subprocess
import sys
import threading
import time

import numpy as np
import patience
import pytest
from problems import MASSES, make_case
from threadpoolctl import threadpool_info, threadpool_limits

import wassemble as ws
from wassemble import _threads
from wassemble.solvers.native_sweep import find_native
from wassemble.solvers.tiles import run_tiles

pytestmark = pytest.mark.usefixtures("sweeps")


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("options", [{"max_sweeps": 5, "tolerance": None}, {}])
def test_results_do_not_depend_on_the_number_of_threads(mass, options, monkeypatch):
    monkeypatch.setattr("wassemble.solvers.problem.rows_per_tile", lambda *_, **__: 1000)
    case = make_case(1, n_samples=6000, mass=mass, dtype=np.float32)
    one, two = (case.solve(n_threads=n, **options) for n in (1, 2))
    np.testing.assert_array_equal(one.barycenter, two.barycenter)
    np.testing.assert_array_equal(one.n_sweeps, two.n_sweeps)
    np.testing.assert_array_equal(one.log_scalings(), two.log_scalings())


@pytest.mark.parametrize("mass", MASSES)
def test_results_do_not_depend_on_the_size_of_tiles(mass, monkeypatch):
    case = make_case(2, n_samples=700, mass=mass)
    whole = case.solve(tolerance=1e-10)
    monkeypatch.setattr("wassemble.solvers.problem.rows_per_tile", lambda *_, **__: 7)
    small = case.solve(tolerance=1e-10)
    np.testing.assert_allclose(small.barycenter, whole.barycenter, rtol=1e-9)


def test_threads_come_from_the_argument_then_the_environment_then_the_cores(monkeypatch):
    monkeypatch.setenv("WASSEMBLE_NUM_THREADS", "3")
    assert _threads.count_threads(2) == 2
    assert _threads.count_threads(None) == 3
    monkeypatch.delenv("WASSEMBLE_NUM_THREADS")
    assert _threads.count_threads(None) >= 1
    for wrong in ("0", "many", "-1"):
        monkeypatch.setenv("WASSEMBLE_NUM_THREADS", wrong)
        with pytest.raises(ws.InvalidInputError, match="WASSEMBLE_NUM_THREADS"):
            _threads.count_threads(None)


def count_blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def threads_of_blas():
    """How many threads each BLAS has, of which two are given to all: tests start with one."""
    with threadpool_limits(2, user_api="blas"):
        found = count_blas_threads()
        assert set(found) == {2}
        yield found


def test_an_error_in_one_tile_is_raised_and_blas_gets_its_threads_back(threads_of_blas):
    histograms = np.full((2, 200_000, 5), 0.2)
    histograms[1, 199_999] = np.nan
    with pytest.raises(ws.InvalidInputError, match="sample 199999"):
        ws.solve_barycenter(histograms, np.ones((5, 5)), n_threads=2)
    assert count_blas_threads() == threads_of_blas


def test_solves_in_a_users_threads_leave_blas_alone(threads_of_blas, monkeypatch):
    monkeypatch.delenv("WASSEMBLE_NUM_THREADS", raising=False)
    during = []

    def inside():
        assert _threads.count_threads(None) == 1
        with _threads.single_threaded_blas():
            during.append(count_blas_threads())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert during == [threads_of_blas]
    with _threads.single_threaded_blas():
        assert set(count_blas_threads()) == {1}
    assert count_blas_threads() == threads_of_blas


@pytest.mark.parametrize("n_threads", [1, 2, None])
@pytest.mark.parametrize("in_turn", [True, False])
def test_blas_has_one_thread_where_one_was_asked_for(threads_of_blas, n_threads, in_turn):
    during = []
    run_tiles(
        lambda start, stop: during.append(count_blas_threads()), 4, 4, n_threads, in_turn=in_turn
    )
    assert during == [[1] * len(threads_of_blas) if n_threads == 1 else threads_of_blas]
    assert count_blas_threads() == threads_of_blas


def test_a_worker_gets_no_helpers_of_its_own():
    seen = []
    with _threads.limited_threads(1):
        assert _threads.available_threads() == 1
        _threads.share([lambda: seen.append(threading.current_thread())] * 3)
    assert seen == [threading.current_thread()] * 3
    with _threads.limited_threads(2):
        _threads.share([lambda: seen.append(threading.current_thread())] * 2)
    assert threading.current_thread() not in seen[3:]
    with pytest.raises(ZeroDivisionError), _threads.limited_threads(2):
        _threads.share([lambda: None, lambda: 1 / 0])


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_after_an_error_or_an_interrupt_no_shared_call_goes_on(error):
    begun, ended, both = [], [], threading.Barrier(2)

    def endless():
        begun.append(1)
        both.wait(patience.SECONDS)
        try:
            give_up = time.monotonic() + patience.SECONDS
            while time.monotonic() < give_up:
                time.sleep(0.001)
            ended.append("in its own time")
        except Exception:
            ended.append("swallowed")
        finally:
            ended.append("cleaned up")

    def fail():
        both.wait(patience.SECONDS)
        raise error

    with pytest.raises(error), _threads.limited_threads(2):
        _threads.share([fail, endless])
    assert (begun, ended) == ([1], ["cleaned up"])
    # The threads have taken no harm, and are free.
    names = []
    with _threads.limited_threads(2):
        _threads.share([lambda: names.append(threading.current_thread().name)] * 20)
    assert len(names) == 20


def test_calls_that_were_called_off_do_not_begin():
    shared, made = _threads._Shared(), []
    shared.call_off()
    shared.make(lambda: made.append(1))
    assert made == []


def test_large_sparse_products_are_shared_and_stay_the_same(rng):
    import scipy.sparse as sp

    matrix = sp.random_array((3000, 2500), density=0.05, rng=rng, dtype=np.float32)
    kernel, vectors = ws.kernels.SparseKernel(matrix), rng.random((40, 2500), dtype=np.float32)
    with _threads.limited_threads(1):
        alone = kernel.apply(vectors)
    for n_threads in (2, 3):
        with _threads.limited_threads(n_threads):
            np.testing.assert_array_equal(kernel.apply(vectors), alone)
    np.testing.assert_allclose(alone, vectors @ matrix.toarray().T, rtol=1e-4)


_MEMORY = """
import resource
import numpy as np
import wassemble as ws
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
rng = np.random.default_rng(0)
histograms = rng.uniform(size=(8, 35_150, 80)).astype(np.float32)
histograms /= histograms.sum(axis=2, keepdims=True)
cost = rng.uniform(size=(80, 80))
kernel = ws.kernels.from_cost(cost, {epsilon})
before = peak()
result = ws.solve_barycenter(
    histograms, kernel, ws.Barycenter(max_sweeps=2, tolerance=None),
    n_threads=2,  # each has its own tile
)
assert result.solver.name == {name!r}, result.solver
print(peak() - before - result.barycenter.nbytes / 2**20)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "name"), [(1.0, "plain"), (0.01, "plain"), (0.001, "log")])
def test_the_papers_test_set_stays_under_500_megabytes(epsilon, name):
    name = "native" if find_native() else name
    code = _MEMORY.format(epsilon=epsilon, name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 500


def test_progress_is_told_from_the_calling_thread_until_all_is_done():
    calls = []

    def progress(n_done, n_samples):
        assert threading.current_thread() is threading.main_thread()
        calls.append((n_done, n_samples))

    case = make_case(3, n_samples=60_000, dtype=np.float32)  # several tiles of the usual size
    for n_threads in (1, 2):
        calls.clear()
        case.solve(n_threads=n_threads, progress=progress)
        done = [n_done for n_done, _ in calls]
        assert len(done) > 1
        assert done == sorted(done)
        assert calls[-1] == (60_000, 60_000)
    calls.clear()
    make_case(3).solve(progress=progress)
    assert calls == [(4, 4)]


def _fuse(seed):
    case = make_case(seed, n_samples=60_000, dtype=np.float32)
    return ws.fuse(case.histograms, kernel=case.kernels[0], weights=case.weights)


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["threads", "processes", "joblib"])
def test_it_works_inside_a_users_own_pool(pool):
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

    expected = [_fuse(seed) for seed in range(4)]
    if pool == "threads":
        with ThreadPoolExecutor(4) as executor:
            got = list(executor.map(_fuse, range(4)))
    elif pool == "processes":
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=context) as executor:
            got = list(executor.map(_fuse, range(4)))
    else:
        import joblib

        got = joblib.Parallel(n_jobs=2)(joblib.delayed(_fuse)(seed) for seed in range(4))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)  # BLAS may use other threads there
