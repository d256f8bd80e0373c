"""Native sweeps: the answers of the others, at every level of processors."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from kernels.factories import every_kernel
from patience import SECONDS
from problems import MASSES, Case, make_case, solve_in, solve_with

import wassemble as ws
from wassemble.solvers import native_sweep, power_means

pytestmark = pytest.mark.usefixtures("native")

DTYPES = (np.float32, np.float64)
# How far native sweeps may be from the others, where both have all their digits.
LIMITS = {np.float32: 5e-6, np.float64: 1e-12}
FIXED = {"max_sweeps": 5, "tolerance": None}


@pytest.fixture(params=["baseline", "avx2", "avx512"])
def level(request, native, monkeypatch):
    """Each level that was built and that this processor has."""
    if request.param not in native.levels():
        pytest.skip(f"{request.param} is not built, or not in this processor")
    monkeypatch.setenv("WASSEMBLE_NATIVE", request.param)
    forget_level(native)
    yield request.param
    monkeypatch.undo()
    forget_level(native)


def forget_level(native):
    for cached in (native.library.level, native.library.n_lanes, native.library.function):
        cached.cache_clear()
    native_sweep._packed.clear()


def squared_distances(rng, n_labels=80):
    vectors = rng.normal(size=(n_labels, 50))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.square(vectors[:, None] - vectors).sum(axis=2)


def draw(rng, mass, shape):
    scores = rng.uniform(0.001, 1, size=shape)
    return scores / scores.sum(axis=-1, keepdims=True) if mass.order == 0 else scores


@pytest.mark.parametrize("epsilon", [0.3, 0.05, 0.01])
@pytest.mark.parametrize("dtype", DTYPES)
def test_small_epsilons_cost_no_digits(level, epsilon, dtype, rng):
    for mass in (ws.Balanced(), ws.Unbalanced(2.0, epsilon=epsilon)):
        scores, cost = draw(rng, mass, (8, 20, 80)), squared_distances(rng)
        wide = solve_in(
            "log",
            Case(list(scores), [np.exp(-cost / epsilon)] * 8, np.full(8, 1 / 8), mass),
            **FIXED,
        )
        result = solve_with(
            scores.astype(dtype),
            ws.kernels.from_cost(cost, epsilon),
            mass=mass,
            normalize=mass.order == 0,
            **FIXED,
        )
        assert result.solver.name == "native"
        assert level in result.solver.reason
        assert result.n_log_rows == 0
        seen = wide.barycenter > 1e-6
        limit = {np.float32: 3e-6, np.float64: 1e-11}[dtype]
        np.testing.assert_allclose(result.barycenter[seen], wide.barycenter[seen], rtol=limit)


@pytest.mark.parametrize("order", [0.9, 0.3, 0.1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_order_of_the_mean_has_all_its_digits(level, order, dtype):
    mass = ws.Unbalanced(1 / order - 1, epsilon=1.0)
    case = make_case(3, n_models=5, n_source=9, n_target=11, mass=mass, per_label=True)
    expected = solve_in("log", case, **FIXED).barycenter
    single = case.but(histograms=[h.astype(dtype) for h in case.histograms])
    got = solve_in("native", single, **FIXED)
    assert got.n_log_rows == 0
    limit = {np.float32: 3e-6, np.float64: 1e-9 if order < 1e-3 else 1e-11}[dtype]
    np.testing.assert_allclose(got.barycenter, expected, rtol=limit)


@every_kernel(where=lambda case: not case.in_torch and case.kernel.n_samples is None)
@pytest.mark.parametrize("mass", MASSES)
def test_every_kernel_gives_the_answer_of_its_logs(case, mass, rng):
    histograms = draw(rng, mass, (3, 4, case.kernel.shape[0])).astype(case.dtype)
    histograms[0, 1, 1:] = 0
    problem = Case(list(histograms), [case.kernel] * 3, np.array([0.2, 0.3, 0.5]), mass)
    options = {"normalize": mass.order == 0, **FIXED}
    log, native = (solve_in(name, problem, **options) for name in ("log", "native"))
    np.testing.assert_array_equal(native.status, log.status)
    limit = LIMITS[case.dtype]
    np.testing.assert_allclose(native.barycenter, log.barycenter, rtol=limit, atol=limit * 1e-6)
    np.testing.assert_allclose(native.residual, log.residual, rtol=1e-3, atol=10 * limit)
    scalings = np.isfinite(log.log_scalings())
    np.testing.assert_array_equal(np.isfinite(native.log_scalings()), scalings)


@pytest.mark.parametrize("seed", range(40))
def test_shapes_and_strides_do_not_matter(level, seed):
    rng = np.random.default_rng(seed)
    n_models, n_rows, n_target = rng.integers(1, [6, 40, 70])
    dtype, mass = DTYPES[seed % 2], MASSES[seed % 3]
    sizes = (
        rng.integers(1, 50, size=n_models)
        if rng.random() < 0.5
        else [rng.integers(1, 70)] * n_models
    )
    histograms = [strided(rng, draw(rng, mass, (n_rows, n)).astype(dtype)) for n in sizes]
    made = {n: any_kernel(rng, n, n_target, dtype) for n in set(sizes)}
    shapes = [(n_models, 1, 1), (n_models, 1, n_target), (n_models, n_rows, 1)]
    weights = rng.uniform(size=[*shapes, (n_models, n_rows, n_target)][rng.integers(4)])
    weights = weights / weights.sum(axis=0)
    if weights.shape[1] == 1:  # the same for all samples: one axis less
        weights = weights[:, 0, 0] if weights.shape[2] == 1 else weights[:, 0]
    weights = np.asfortranarray(weights) if rng.random() < 0.5 else weights
    case = Case(histograms, [made[n] for n in sizes], weights, mass)
    options = {"normalize": mass.order == 0, **FIXED}
    native, log = (solve_in(name, case, **options) for name in ("native", "log"))
    np.testing.assert_allclose(native.barycenter, log.barycenter, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(native.status, log.status)


def strided(rng, values):
    """The same numbers, laid out in another way."""
    room = np.zeros((2 * values.shape[0], 3 * values.shape[1]), values.dtype)
    views = [values, np.asfortranarray(values), values[::-1, ::-1].copy()[::-1, ::-1]]
    room[::2, ::3] = values
    return [*views, room[::2, ::3]][rng.integers(4)]


def any_kernel(rng, n_source, n_target, dtype):
    matrix = np.exp(-rng.uniform(0, 30, size=(n_source, n_target))).astype(dtype)
    kind = rng.integers(4)
    if kind == 0:
        return ws.kernels.LowRankKernel(
            rng.uniform(0.1, 1, (n_source, 5)).astype(dtype),
            rng.uniform(0.1, 1, (n_target, 5)).astype(dtype),
        )
    if kind == 1:
        matrix[rng.uniform(size=matrix.shape) < 0.6] = 0
        return sp.csr_array(matrix)
    return strided(rng, matrix)


@pytest.mark.parametrize("order", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 17), (8, 4, 80)])
def test_means_are_those_of_numpy(level, native, order, dtype, shape, rng):
    values = 10.0 ** rng.uniform(-30, 3, size=shape).astype(dtype)
    values[rng.uniform(size=shape) < 0.1] = 0
    for weight_shape in ((shape[0], 1, 1), (shape[0], 1, shape[2]), shape):
        weights = rng.uniform(0.1, 1, size=weight_shape)
        weights /= weights.sum(axis=0)
        apart = np.zeros((2 * shape[0], *shape[1:]), dtype)
        apart[::2] = values
        for given in (values, apart[::2], np.asfortranarray(values)):
            found = native.take_means(given, weights, order=order, exponent=1.3)
            with np.errstate(divide="ignore"):
                wide = values.astype(np.float64)
                if order == 0:
                    expected = np.exp((weights * np.log(wide)).sum(axis=0))
                else:
                    expected = (weights * wide**order).sum(axis=0) ** 1.3
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=LIMITS[dtype])


@pytest.mark.parametrize("order", [0.01, 0.465, 1.0])
@pytest.mark.parametrize("shape", [(8, 4, 80), (3, 5, 17)])
def test_powers_from_a_table_are_those_of_numpy(level, native, order, shape, rng):
    values = rng.uniform(0, 1.9, size=shape) ** rng.choice([1, 5], size=shape)
    values = np.maximum(values, 2.0**-29).astype(np.float32)
    values[rng.uniform(size=shape) < 0.1] = 0
    weights = rng.dirichlet(np.ones(shape[0]), size=shape[2]).T[:, None]
    found = native.take_means(values, weights, order=order, exponent=1.0)
    expected = (weights * values.astype(np.float64) ** order).sum(axis=0)
    np.testing.assert_allclose(found, expected, rtol=5e-7)


def test_means_of_numbers_below_the_normal_ones_are_left_to_others(native):
    values = np.full((2, 3, 4), 0.5, np.float32)
    values[1, 2, 3] = 1e-40
    assert native.take_means(values, np.full((2, 1, 1), 0.5), order=0.0, exponent=1.0) is None
    for wrong in (np.ones((3, 1, 1)), np.ones((2, 2, 1)), np.ones((2, 1))):
        with pytest.raises(ValueError, match="weights must"):
            native.take_means(values, wrong, order=0.0, exponent=1.0)


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_formulas_are_native_where_numpy_is_slower(native, mass, dtype, rng, monkeypatch):
    case = make_case(3, n_source=5, n_target=5, mass=mass, dtype=dtype)
    diagonal = ws.kernels.DiagonalKernel(np.array([1.0, 0.5, 0.2, 0.0, 2.0], dtype))
    rule = ws.Barycenter(mass)
    found, taken = [], []
    with_native = native.take_means
    for functions in ((np.log2, np.exp2), (np.log, np.exp)):
        taken.append(Mock(side_effect=with_native))
        monkeypatch.setattr(native, "take_means", taken[-1])
        monkeypatch.setattr(power_means, "log_and_exp", lambda _, functions=functions: functions)
        found.append(rule.fuse(case.histograms, diagonal, weights=case.weights).scores)
    np.testing.assert_allclose(*found, rtol=LIMITS[dtype])
    has_table = dtype == np.float32 and isinstance(mass, ws.Unbalanced)
    assert [mock.called for mock in taken] == [has_table, True]


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_levels_agree(native, mass, dtype, rng, monkeypatch):
    histograms = draw(rng, mass, (4, 30, 17)).astype(dtype)
    kernel = np.exp(-rng.uniform(0, 20, size=(17, 23)))
    found = []
    for name in native.levels():
        monkeypatch.setenv("WASSEMBLE_NATIVE", name)
        forget_level(native)
        result = solve_with(histograms, kernel, mass=mass, normalize=mass.order == 0, **FIXED)
        assert f"({name})" in result.solver.reason
        found.append(result.barycenter)
    monkeypatch.undo()
    forget_level(native)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=LIMITS[dtype])


@pytest.mark.parametrize("share", [1.0, 0.4], ids=["dense", "sparse"])
def test_a_batch_equals_its_rows_alone_to_the_last_bit(share, rng):
    histograms = rng.uniform(0.01, 1, size=(3, 37, 29)).astype(np.float32)
    kernel = np.exp(-rng.uniform(0, 5, size=(29, 31)))
    if share < 1:
        kernel = sp.csr_array(np.where(rng.uniform(size=kernel.shape) < share, kernel, 0))
    options = {"mass": MASSES[1], **FIXED}
    whole = solve_with(histograms, kernel, **options).barycenter
    for row in (0, 17, 36):
        alone = solve_with(histograms[:, row : row + 1], kernel, **options).barycenter
        np.testing.assert_array_equal(alone[0], whole[row])


def test_samples_that_share_the_way_of_large_kernels_equal_their_rows_alone(rng):
    scores = draw(rng, ws.Balanced(), (3, 60, 200))
    kernels = [rng.uniform(0.1, 1, size=(200, 210)) for _ in scores]
    options = {"mass": ws.Balanced(), **FIXED}
    whole = solve_with(scores, kernels, **options).barycenter
    for row in (0, 47, 48, 59):
        alone = solve_with(scores[:, row], kernels, **options).barycenter
        np.testing.assert_array_equal(alone, whole[row])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("entry", [np.nan, np.inf, -np.inf, -1e-3])
def test_rows_of_what_is_no_number_are_not_trusted(level, native, entry, dtype, rng):
    histograms = rng.uniform(0.1, 1, size=(2, 3, 40)).astype(dtype)
    histograms[1, 2, 39] = entry
    kernel = native.PackedKernel([np.exp(-rng.uniform(size=(40, 40)))], dtype)
    tile = native.NativeTile(
        [kernel], [histograms], np.full((2, 1, 1), 0.5), order=0.1, exponent=0.9
    )
    assert tile.consensus_after(3) is None
    assert tile.untrusted.tolist() == [False, False, True]
    tile.histograms[0][1, 2, 39] = 0.5
    found = tile.consensus_after(3)
    tile.restart()
    tile.sweep(3)
    np.testing.assert_array_equal(found, tile.consensus)


@pytest.mark.parametrize("is_open", [True, False], ids=["every label open", "one ruled out"])
def test_mass_under_an_empty_row_is_found_with_and_without_a_product(is_open, rng):
    kernel = np.where(rng.uniform(size=(40, 40)) < 0.2, 1.0, 0) + np.eye(40)
    kernel[7] = 0
    if not is_open:
        kernel[:, 3] = 0
    histograms = rng.uniform(0.1, 1, size=(2, 3, 40))
    histograms[:, :2, 7] = 0
    result = solve_with(histograms, sp.csr_array(kernel), mass=MASSES[1], **FIXED)
    assert result.status.tolist() == [1, 1, 2]


def test_rows_go_from_float32_to_float64_to_logs():
    # With the identity matrix v grows by the models' disagreement in every sweep.
    kernel = np.eye(3, dtype=np.float32)
    first = np.array([[0.35, 0.32, 0.33], [1 - 2e-6, 1e-6, 1e-6]], dtype=np.float32)
    second = np.array([[0.34, 0.33, 0.33], [1e-6, 1e-6, 1 - 2e-6]], dtype=np.float32)
    problem = Case([first, second], [kernel] * 2, np.full(2, 0.5), ws.Balanced())
    expected = ws.GEOMETRIC.fuse([first, second]).consensus
    for n_sweeps, n_single, n_log in ((3, 0, 0), (30, 1, 0), (1000, 1, 1)):
        options = {"max_sweeps": n_sweeps, "tolerance": None}
        alone = solve_in("native", problem, **options)  # float32 hands over to logs
        assert alone.n_log_rows == n_single
        result = problem.solve(**options)
        assert result.n_log_rows == n_log
        np.testing.assert_allclose(result.barycenter, expected, rtol=1e-5)


def test_the_choice_says_which_level_and_type():
    case = make_case(dtype=np.float32)
    assert "native sweeps (" in case.solve(**FIXED).solver.reason
    assert "float32" in case.solve(**FIXED).solver.reason
    wide = np.eye(5) + np.diag(np.full(4, 1e-60), 1)  # zeros, and what float32 takes for some
    far = make_case(n_target=5, dtype=np.float32).but(kernels=[wide] * 3)
    assert "float64" in far.solve(**FIXED).solver.reason


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"kernels": ws.kernels.IdentityKernel(5)}, "closed form"),
        (
            {"debias": True, "kernels": ws.kernels.DenseKernel(np.eye(5) + 0.1, symmetric=True)},
            "log",
        ),
        (
            {"kernels": ws.kernels.DiagonalKernel(np.full((4, 5), 0.5)), "mass": MASSES[1]} | FIXED,
            "plain",
        ),
    ],
    ids=["a formula", "debiased", "a kernel per sample"],
)
def test_what_is_not_native_is_known_beforehand(change, name):
    case = make_case(n_target=5, mass=change.pop("mass", MASSES[0]))
    case = case.but(kernels=change.pop("kernels"))
    assert case.solve(**change).solver.name == name


def test_large_dense_kernels_are_left_to_blas(monkeypatch):
    monkeypatch.setattr(native_sweep, "_LARGE", 29)
    assert make_case().solve().solver.name == "plain"


def test_it_can_be_switched_off(monkeypatch, capsys):
    ws.show_versions()
    assert "native, " in capsys.readouterr().out
    monkeypatch.setenv("WASSEMBLE_NATIVE", "0")
    assert make_case().solve().solver.name == "plain"
    ws.show_versions()
    assert "WASSEMBLE_NATIVE=0" in capsys.readouterr().out


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_consensus_below_the_normal_numbers_is_given_as_it_is(level, dtype):
    info = np.finfo(dtype)
    case = make_case(3, n_target=40, dtype=dtype)
    # Labels that are harder and harder to reach, until the type ends.
    reach = np.geomspace(1, float(info.smallest_subnormal) * 50, 40)
    case = case.but(kernels=[np.random.default_rng(0).uniform(0.5, 1, (5, 40)) * reach] * 3)
    options = {"max_sweeps": 1, "tolerance": None}
    native, log = (solve_in(name, case, **options) for name in ("native", "log"))
    slack = 2 * float(info.smallest_subnormal)
    np.testing.assert_allclose(native.barycenter, log.barycenter, rtol=1e-5, atol=slack)
    assert (native.barycenter[:, -1] > 0).all()
    assert (native.barycenter[:, -1] < info.smallest_normal).all()


def test_numbers_below_the_normal_ones_are_themselves_again_afterwards():
    make_case().solve()
    tiny = np.full(1000, 1e-40, np.float32)
    assert (tiny * np.float32(2) > 0).all()


def test_arrays_that_do_not_fit_are_refused(native, rng):
    kernel = native.PackedKernel([np.ones((3, 4))], np.float32)
    good = {
        "kernels": [kernel],
        "histograms": [np.ones((2, 5, 3))],
        "weights": np.ones((2, 1, 1)) / 2,
    }
    wrong = [
        {"histograms": [np.ones((2, 5, 4))]},
        {"histograms": [np.ones((2, 3))]},
        {"histograms": []},
        {"weights": np.ones((3, 1, 1))},
        {"weights": np.ones((2, 4, 1))},
        {"weights": np.ones((2, 1, 3))},
        {"log_v": np.zeros((2, 5, 3))},
        {"components": np.zeros(3, int), "by_component": True},
        {"components": np.full(4, -1), "by_component": True},
        {"kernels": [kernel, native.PackedKernel([np.ones((3, 4))], np.float64)]},
    ]
    for change in wrong:
        with pytest.raises(ValueError, match=r"must fit each other|`log_v` must have shape"):
            native.NativeTile(**good | change, order=0.5, exponent=0.5)
    tile = native.NativeTile(**good, order=0.5, exponent=0.5)
    with pytest.raises(ValueError, match="omega"):
        tile.relax(np.ones(5))
    for factors in ([], [np.ones((2, 3))] * 2, [np.ones((2, 3))] * 3):
        with pytest.raises(ValueError, match=r"one or two factors|must fit each other"):
            native.PackedKernel(factors, np.float32)
    with pytest.raises(ValueError, match="float32 or float64"):
        native.PackedKernel([np.ones((2, 3))], np.float16)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_models", [1, 3])
def test_leaps_lead_to_the_fixed_point(n_models, dtype, mass, rng):
    scores = draw(rng, mass, (n_models, 40, 11)).astype(dtype)
    kernel = np.exp(-rng.uniform(0, 6, size=(11, 13))).astype(dtype)
    options = {"mass": mass, "max_sweeps": 5000, "normalize": mass.order == 0}
    found = solve_with(scores, kernel, tolerance=1e-6, **options)
    expected = solve_in(
        "log",
        Case(
            [*scores.astype(np.float64)], [kernel] * n_models, np.full(n_models, 1 / n_models), mass
        ),
        tolerance=1e-12,
        max_sweeps=5000,
        normalize=mass.order == 0,
    )
    assert found.converged.all()
    assert (found.residual <= found.problem.tolerance).all()
    np.testing.assert_allclose(found.barycenter, expected.barycenter, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("n_labels", [7, 80])
def test_a_converged_batch_equals_its_rows_alone_to_the_last_bit(n_labels, rng):
    # More samples than are swept together: some come when others have left.
    scores = rng.dirichlet(np.full(n_labels, 0.5), size=(4, 130))
    kernel = np.exp(-squared_distances(rng, n_labels) / 0.2)
    whole = solve_with(scores, kernel, tolerance=1e-6)
    assert len(np.unique(whole.n_sweeps)) > 3
    for row in (0, 60, 129):
        alone = solve_with(scores[:, row], kernel, tolerance=1e-6)
        np.testing.assert_array_equal(alone.barycenter, whole.barycenter[row])
        assert alone.n_sweeps == whole.n_sweeps[row]


def test_leaps_spare_most_sweeps_where_mass_is_slow_to_settle(rng):
    mass = ws.Unbalanced(2000.0, epsilon=0.3)
    scores = rng.uniform(0.01, 1, size=(4, 20, 30))
    kernel = np.exp(-squared_distances(rng, 30) / 0.3)
    found = solve_with(scores, kernel, mass=mass)
    assert found.converged.all()
    assert found.n_sweeps.max() < 200
    slow = solve_with(scores, kernel, mass=mass, tolerance=None, max_sweeps=200)
    assert (slow.residual > 1e-4).all()


@pytest.mark.parametrize("share", [1e-30, 1e-60, 1e-200])
def test_mass_too_small_for_the_first_sweeps_is_mass(share, rng):
    mass = ws.Unbalanced(2.0, epsilon=0.3)
    scores = rng.uniform(0.1, 1, size=(3, 4, 6))
    kernel = np.exp(-rng.uniform(0, 3, size=(6, 6)))
    whole = solve_with(scores, kernel, mass=mass, tolerance=1e-9)
    tiny = solve_with(share * scores, kernel, mass=mass, tolerance=1e-9)
    assert tiny.converged.all()
    np.testing.assert_allclose(tiny.barycenter, whole.barycenter * share**mass.exponent, rtol=1e-6)
    mixed = scores * np.where(np.arange(6) < 3, share, 1)
    expected = solve_with(mixed, kernel, mass=mass, tolerance=None, max_sweeps=5000)
    found = solve_with(mixed, kernel, mass=mass, tolerance=1e-9)
    np.testing.assert_allclose(found.barycenter, expected.barycenter, rtol=1e-6)


@pytest.mark.parametrize("max_sweeps", [1, 2, 3, 5, 6, 7, 9, 30])
def test_no_row_has_more_sweeps_than_are_allowed(max_sweeps, rng):
    scores = rng.dirichlet(np.ones(9), size=(3, 25))
    kernel = np.exp(-rng.uniform(0, 30, size=(9, 9)))
    found = solve_with(scores, kernel, max_sweeps=max_sweeps, tolerance=1e-9)
    assert found.n_sweeps.max() == max_sweeps
    stopped = found.status == ws.Status.MAX_SWEEPS
    assert stopped.any()
    assert (found.n_sweeps[stopped] == max_sweeps).all()
    assert (found.residual[~stopped] <= 1e-9).all()


def test_rows_that_an_approach_does_not_bring_near_start_again(native, rng):
    kernel = native.PackedKernel([np.exp(-rng.uniform(0, 400, size=(9, 9)))], np.float64)
    tile = native.NativeTile(
        [kernel],
        [rng.dirichlet(np.ones(9), size=(3, 5))],
        np.full((3, 1, 1), 1 / 3),
        order=0,
        exponent=1,
    )
    n_sweeps, rows = np.zeros(5, np.int64), np.array([True, True, False, True, True])
    arrived = tile.approach(rows, n_sweeps, 1e-12, 40, 1000)
    assert not arrived.any()
    assert n_sweeps[~rows] == 0
    assert (n_sweeps[rows] % 4 == 0).all()
    assert (n_sweeps[rows] > 0).all()
    assert n_sweeps.max() <= 40
    fresh = tile.take(np.arange(5))
    fresh.restart()
    tile.start_again(rows)
    np.testing.assert_array_equal(tile.sweep(3, watch=True), fresh.sweep(3, watch=True))


_LONG = """
import signal, numpy as np, wassemble as ws
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
rng = np.random.default_rng(0)
scores = rng.uniform(0.01, 1, size=(8, 2000, 80))
print("started", flush=True)
rule = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=10**7, tolerance=None)
ws.solve_barycenter(scores, np.exp(-rng.uniform(size=(80, 80))), rule, n_threads=1)
"""


def test_an_interrupt_is_heard_in_the_middle_of_the_sweeps():
    with subprocess.Popen(
        [sys.executable, "-c", _LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "started\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
    assert "KeyboardInterrupt" in errors


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_small_order_takes_a_label_that_one_model_reaches_out_of_range(dtype):
    """Such a consensus is below every exponent, and not 0: another arithmetic knows it."""
    kernel = np.array([[1, 0], [1, 0], [0, 1]], dtype)
    histograms = np.array([[[1, 0, 0]], [[0, 0, 1]]], dtype)
    mass = ws.Unbalanced(2.0, epsilon=1e-6 if dtype == np.float32 else 1e-12)
    result = solve_with(histograms, kernel, mass=mass, max_sweeps=3, tolerance=None)
    np.testing.assert_allclose(result.barycenter, 0.25, rtol=1e-3)
    assert result.status == ws.Status.MAX_SWEEPS
