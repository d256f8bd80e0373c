"""Laws of Algorithms 1 and 2: they hold for every kernel, mass rule and floating type."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from problems import (
    ARITHMETICS,
    MASSES,
    as_low_rank,
    as_sparse,
    cases,
    make_case,
    pose_with,
    rule_with,
    solve_in,
    with_zeros,
)

import wassemble as ws
from wassemble.solvers.arithmetics import LogSolver
from wassemble.solvers.barycenter import solve

pytestmark = pytest.mark.usefixtures("sweeps")

DTYPES = (np.float32, np.float64)
FIXED = {"max_sweeps": 7, "tolerance": None}
UNBALANCED = MASSES[1:]


def check_close(got, expected, dtype=np.float64):
    tolerance = 2e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * 1e-3)


@given(cases(dtypes=DTYPES))
def test_a_batch_equals_its_rows_alone(case):
    whole = case.solve(**FIXED).barycenter
    for sample in range(len(whole)):
        alone = case.but(histograms=[h[sample] for h in case.histograms]).solve(**FIXED)
        assert alone.barycenter.shape == whole.shape[1:]
        check_close(alone.barycenter, whole[sample], case.dtype)


@given(cases())
def test_a_converged_batch_equals_its_rows_alone(case):
    whole = case.solve(tolerance=1e-9, max_sweeps=50_000)
    for sample in range(len(whole.barycenter)):
        alone = case.but(histograms=[h[sample] for h in case.histograms])
        alone = alone.solve(tolerance=1e-9, max_sweeps=50_000)
        # Rounding may make a row stop a look sooner, in float32 and then in float64.
        assert alone.n_sweeps == pytest.approx(whole.n_sweeps[sample], abs=16)
        check_close(alone.barycenter, whole.barycenter[sample])


@given(cases(dtypes=DTYPES), st.integers(0, 100), st.booleans())
def test_every_kind_of_kernel_gives_the_answer_of_its_dense_form(case, seed, zeros):
    if zeros:
        case = with_zeros(case, seed)
    dense = case.solve(**FIXED)
    for kind in (as_sparse, as_low_rank):
        kernels = {id(k): kind(k) for k in case.kernels}
        other = case.but(kernels=[kernels[id(k)] for k in case.kernels]).solve(**FIXED)
        check_close(other.barycenter, dense.barycenter, case.dtype)
        if other.solver.name != "closed form":  # one label: it needs no sweeps
            np.testing.assert_array_equal(other.status, dense.status)


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonal_kernels_give_the_answer_of_their_dense_form(mass, dtype, rng):
    case = make_case(3, n_source=5, n_target=5, mass=mass, dtype=dtype)
    diagonal = rng.uniform(0.1, 1, size=5).astype(dtype)
    options = FIXED if not isinstance(mass, ws.Balanced) else {"tolerance": 1e-4}
    expected = solve_in("log", case.but(kernels=[np.diag(diagonal)] * 3), **options)
    got = case.but(kernels=[ws.kernels.DiagonalKernel(diagonal)] * 3).solve(**options)
    check_close(got.barycenter, expected.barycenter, dtype)


@pytest.mark.parametrize("mass", MASSES)
def test_a_diagonal_per_sample_equals_each_sample_with_its_own(mass, rng):
    case = make_case(4, n_source=5, n_target=5, mass=mass)
    diagonals = rng.uniform(0.1, 1, size=(4, 5))
    for options in (FIXED, {}):
        whole = case.but(kernels=[ws.kernels.DiagonalKernel(diagonals)] * 3).solve(**options)
        for sample, diagonal in enumerate(diagonals):
            alone = case.but(
                kernels=[ws.kernels.DiagonalKernel(diagonal)] * 3,
                histograms=[h[sample] for h in case.histograms],
            )
            check_close(alone.solve(**options).barycenter, whole.barycenter[sample])


@pytest.mark.parametrize("mass", MASSES)
def test_kinds_of_kernels_mix(mass, rng):
    case = make_case(5, n_models=5, n_source=6, n_target=6, mass=mass)
    matrix, diagonals = case.kernels[0], rng.uniform(0.1, 1, size=(4, 6))
    mixed = [
        ws.kernels.IdentityKernel(6),
        ws.kernels.DiagonalKernel(diagonals),
        matrix,
        as_sparse(matrix),
        as_low_rank(matrix),
    ]
    whole = case.but(kernels=mixed).solve(**FIXED)
    for sample in range(4):
        dense = [np.eye(6), np.diag(diagonals[sample]), matrix, matrix, matrix]
        alone = case.but(kernels=dense, histograms=[h[sample] for h in case.histograms])
        expected = alone.solve(**FIXED).barycenter
        check_close(whole.barycenter[sample], expected)


@given(cases(dtypes=DTYPES))
def test_all_arithmetics_agree(case):
    log = solve_in("log", case, **FIXED)
    slack = 1e-4 if case.dtype == np.float32 else 1e-9
    for name in set(ARITHMETICS) - {"log"}:
        other = solve_in(name, case, **FIXED)
        check_close(other.barycenter, log.barycenter, case.dtype)
        assert other.n_log_rows == 0
        np.testing.assert_allclose(other.residual, log.residual, rtol=slack, atol=slack)
        check_close(np.exp(other.log_scalings()), np.exp(log.log_scalings()), case.dtype)


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_models_does_not_matter(case, random):
    order = list(range(len(case.histograms)))
    random.shuffle(order)
    shuffled = case.but(
        histograms=[case.histograms[m] for m in order],
        kernels=[case.kernels[m] for m in order],
        weights=case.weights[order],
    )
    one, other = case.solve(**FIXED), shuffled.solve(**FIXED)
    check_close(other.barycenter, one.barycenter)
    check_close(other.log_scalings(), one.log_scalings()[order])


@given(cases(), st.integers(0, 100))
def test_permuting_labels_permutes_nothing_else(case, seed):
    rng = np.random.default_rng(seed)
    target = rng.permutation(case.kernels[0].shape[1])
    sources = [rng.permutation(k.shape[0]) for k in case.kernels]
    weights = case.weights if case.weights.ndim == 1 else case.weights[:, target]
    permuted = case.but(
        histograms=[h[:, s] for h, s in zip(case.histograms, sources, strict=True)],
        kernels=[k[s][:, target] for k, s in zip(case.kernels, sources, strict=True)],
        weights=weights,
    )
    check_close(permuted.solve(**FIXED).barycenter, case.solve(**FIXED).barycenter[:, target])


@given(cases())
def test_a_model_given_twice_is_its_weight_doubled(case):
    twice = case.but(
        histograms=[case.histograms[0], *case.histograms],
        kernels=[case.kernels[0], *case.kernels],
        weights=np.concatenate([case.weights[:1] / 2, case.weights[:1] / 2, case.weights[1:]]),
    )
    check_close(twice.solve(**FIXED).barycenter, case.solve(**FIXED).barycenter)


@given(cases(), st.booleans())
def test_a_model_of_weight_zero_has_no_effect(case, empty):
    extra = np.zeros_like(case.histograms[0]) if empty else case.histograms[0][:, ::-1]
    silent = case.but(
        histograms=[*case.histograms, extra],
        kernels=[*case.kernels, np.zeros_like(case.kernels[0])],
        weights=np.concatenate([case.weights, np.zeros_like(case.weights[:1])]),
    )
    with_it, without = silent.solve(**FIXED), case.solve(**FIXED)
    np.testing.assert_array_equal(with_it.barycenter, without.barycenter)
    np.testing.assert_array_equal(with_it.residual, without.residual)


@given(cases())
def test_one_weight_per_label_with_equal_columns_is_one_weight_per_model(case):
    weights = case.weights if case.weights.ndim == 1 else case.weights[:, 0]
    columns = np.repeat(weights[:, None], case.kernels[0].shape[1], axis=1)
    one, other = case.but(weights=weights), case.but(weights=columns)
    check_close(other.solve(**FIXED).barycenter, one.solve(**FIXED).barycenter)


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("name", ARITHMETICS)
def test_a_model_without_weight_for_a_label_cannot_vote_it_down(mass, name):
    case = make_case(6, n_models=2, n_source=3, n_target=3, mass=mass)
    kernel = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]])
    weights = np.array([[0.5, 0.5, 1.0], [0.5, 0.5, 0.0]])
    silent = kernel * [1.0, 1.0, 1e-3]  # the second model hardly reaches label 2
    case = case.but(kernels=[kernel, silent], weights=weights)
    silenced = solve_in(name, case, max_sweeps=1, tolerance=None).barycenter
    heard = solve_in(name, case.but(weights=np.full((2, 3), 0.5)), max_sweeps=1, tolerance=None)
    assert (silenced[:, 2] > 1.2 * heard.barycenter[:, 2]).all()
    np.testing.assert_allclose(silenced[:, :2], heard.barycenter[:, :2], rtol=1e-12)


@given(cases(masses=MASSES[:1]), st.floats(1e-6, 1e6))
def test_balanced_consensus_ignores_the_scale_of_the_kernel(case, scale):
    scaled = case.but(kernels=[k * scale for k in case.kernels])
    check_close(scaled.solve(**FIXED).barycenter, case.solve(**FIXED).barycenter)


@given(cases(masses=UNBALANCED), st.floats(1e-3, 1e3))
def test_unbalanced_consensus_scales_with_the_kernel_to_the_power_of_the_order(case, scale):
    distinct = {id(k): k * scale for k in case.kernels}
    scaled = case.but(kernels=[distinct[id(k)] for k in case.kernels])
    expected = scale**case.mass.order * case.solve(**FIXED).barycenter
    check_close(scaled.solve(**FIXED).barycenter, expected)


@given(cases(masses=UNBALANCED), st.floats(1e-3, 1e3))
def test_unbalanced_consensus_scales_with_the_scores_to_the_power_of_the_exponent(case, scale):
    scaled = case.but(histograms=[h * scale for h in case.histograms])
    expected = scale**case.mass.exponent * case.solve(**FIXED).barycenter
    check_close(scaled.solve(**FIXED).barycenter, expected)


@given(cases(masses=MASSES[:1]), st.integers(1, 30))
def test_balanced_mass_never_exceeds_one(case, sweeps):
    weights = case.weights if case.weights.ndim == 1 else case.weights[:, 0]
    result = case.but(weights=weights).solve(max_sweeps=sweeps, tolerance=None)
    assert (result.barycenter.sum(axis=1) <= 1 + 1e-12).all()
    assert (1 - result.barycenter.sum(axis=1) <= result.residual + 1e-12).all()


@given(cases(masses=MASSES[:1]))
def test_one_balanced_model_is_pushed_through_its_kernel(case):
    (histogram, *_), (kernel, *_) = case.histograms, case.kernels
    result = ws.solve_barycenter([histogram], kernel, ws.Barycenter(tolerance=1e-9))
    check_close(result.barycenter, (histogram / kernel.sum(axis=1)) @ kernel)


@given(cases(masses=MASSES[:1]))
def test_a_huge_mass_penalty_gives_the_balanced_consensus(case):
    weights = case.weights if case.weights.ndim == 1 else case.weights[:, 0]
    case = case.but(weights=weights)
    huge = case.but(mass=ws.Unbalanced(1e9, epsilon=1.0))
    expected = case.solve(max_sweeps=50, tolerance=None).barycenter
    got = huge.solve(max_sweeps=50, tolerance=None).barycenter
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@given(cases(masses=UNBALANCED))
def test_a_vanishing_mass_penalty_gives_the_arithmetic_mean_of_the_images(case):
    vanishing = case.but(mass=ws.Unbalanced(1e-9, epsilon=1.0))
    images = np.stack([k.sum(axis=0) for k in case.kernels])
    weights = case.weights if case.weights.ndim == 2 else case.weights[:, None]
    expected = (weights * images).sum(axis=0)
    np.testing.assert_allclose(
        vanishing.solve().barycenter,
        np.broadcast_to(expected, (len(case.histograms[0]), len(expected))),
        rtol=1e-6,
    )


@given(cases())
def test_inputs_are_left_as_they_were(case):
    given_arrays = [*case.histograms, *case.kernels, case.weights]
    before = [array.copy() for array in given_arrays]
    case.solve()
    for old, new in zip(before, given_arrays, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("mass", MASSES)
def test_one_array_for_all_models_equals_a_list(mass):
    case = make_case(7, mass=mass)
    stacked = ws.solve_barycenter(
        np.stack(case.histograms), case.kernels[0], ws.Barycenter(mass), weights=case.weights
    )
    np.testing.assert_array_equal(stacked.barycenter, case.solve().barycenter)


@pytest.mark.parametrize("mass", MASSES)
def test_a_warm_start_ends_at_the_same_place_sooner(mass):
    case = make_case(8, mass=mass, kernel_spread=6.0)
    cold = case.solve(tolerance=1e-9, max_sweeps=20_000)
    warm = case.solve(tolerance=1e-9, max_sweeps=20_000, initial=cold)
    assert (warm.n_sweeps < cold.n_sweeps).all()
    check_close(warm.barycenter, cold.barycenter)


@given(cases(dtypes=DTYPES), st.integers(0, 1000))
def test_zeros_give_zeros_and_a_status_never_nan(case, seed):
    case = with_zeros(case, seed)
    for options in (FIXED, {"max_sweeps": 200}):
        result = case.solve(**options)
        assert np.isfinite(result.barycenter).all()
        assert (result.barycenter >= 0).all()
        assert np.isfinite(result.residual).all()
        votes = case.weights.reshape(len(case.histograms), -1).any(axis=1)
        for sample in range(len(result.barycenter)):
            stuck = any(
                (histogram[sample] > 0)[~kernel.any(axis=1)].any()
                for histogram, kernel, vote in zip(
                    case.histograms, case.kernels, votes, strict=True
                )
                if vote
            )
            has_mass = any(
                h[sample].any() for h, v in zip(case.histograms, votes, strict=True) if v
            )
            if has_mass and not result.barycenter[sample].any():
                assert result.status[sample] == ws.Status.NO_MASS
            elif stuck:
                assert result.status[sample] == ws.Status.UNREACHABLE_MASS


def test_mass_in_an_empty_kernel_row_is_a_status():
    kernel = [[1.0, 0.5], [0.0, 0.0]]
    for mass in MASSES:
        result = ws.solve_barycenter([[0.5, 0.5], [0.5, 0.5]], kernel, ws.Barycenter(mass))
        assert result.status is ws.Status.UNREACHABLE_MASS
        assert np.isfinite(result.barycenter).all()


def test_a_target_label_that_no_model_reaches_gets_nothing():
    kernel = [[1.0, 0.0, 0.5], [0.5, 0.0, 1.0]]
    for mass in MASSES:
        result = ws.solve_barycenter([[0.5, 0.5], [0.1, 0.9]], kernel, ws.Barycenter(mass))
        assert result.barycenter[1] == 0
        assert result.status is ws.Status.CONVERGED


@pytest.mark.parametrize(
    "kernel",
    [
        np.eye(2),
        sp.eye_array(2).tocsr(),
        ws.kernels.IdentityKernel(2),
        ws.kernels.DiagonalKernel([2, 3]),
    ],
)
def test_models_that_cannot_meet_are_told_apart_from_models_that_do_not_converge(kernel):
    result = ws.solve_barycenter([[1.0, 0.0], [0.0, 1.0]], kernel)
    np.testing.assert_array_equal(result.barycenter, [0, 0])
    assert result.status is ws.Status.NO_MASS
    with pytest.warns(ws.ConvergenceWarning, match="meets at no target label"):
        ws.fuse([[1.0, 0.0], [0.0, 1.0]], kernel=kernel, rule=rule_with(mass=ws.Balanced()))


def test_disconnected_labels_converge_to_the_geometric_mean_of_their_masses():
    block = np.array([[1.0, 0.5], [0.5, 1.0]])
    kernel = np.zeros((4, 4))
    kernel[:2, :2] = kernel[2:, 2:] = block
    first, second = np.array([0.3, 0.4, 0.1, 0.2]), np.array([0.2, 0.1, 0.5, 0.2])
    result = ws.solve_barycenter(
        [first, second], kernel, ws.Barycenter(max_sweeps=5000, tolerance=1e-12)
    )
    assert result.converged
    expected = np.sqrt([0.7 * 0.3, 0.3 * 0.7])
    np.testing.assert_allclose(result.barycenter.reshape(2, 2).sum(axis=1), expected)
    for part, share in ((slice(2), 0.7), (slice(2, 4), 0.3)):
        inside = ws.solve_barycenter(
            [first[part] / first[part].sum(), second[part] / second[part].sum()],
            block,
            ws.Barycenter(tolerance=1e-12),
        )
        got = result.barycenter[part] / result.barycenter[part].sum()
        np.testing.assert_allclose(got, inside.barycenter, atol=1e-9)
        assert share


@given(cases(dtypes=DTYPES), st.sampled_from([1e-6, 1e-4, 1e6]))
def test_extreme_epsilon_gives_numbers_and_an_honest_status(case, epsilon):
    rng = np.random.default_rng(0)
    costs = {id(k): rng.uniform(size=k.shape).astype(k.dtype) for k in case.kernels}
    kernels = {key: ws.kernels.from_cost(cost, epsilon) for key, cost in costs.items()}
    result = case.but(kernels=[kernels[id(k)] for k in case.kernels]).solve(max_sweeps=50)
    assert np.isfinite(result.barycenter).all()
    # A consensus too small for its type is none, at rest or not.
    seen = result.barycenter.any(axis=-1)
    honest = (result.residual <= result.problem.tolerance) & seen
    np.testing.assert_array_equal(result.converged, honest)
    np.testing.assert_array_equal(result.status == ws.Status.CONVERGED, honest)


# u and v overflow float32 at 22 sweeps, float64 at 172.
@pytest.mark.parametrize("n_sweeps", [1, 30, 1000, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sweeps_of_an_identity_matrix_stay_the_geometric_mean(dtype, n_sweeps):
    case = make_case(9, n_models=2, n_samples=2, n_source=4, n_target=4, dtype=dtype)
    case = case.but(kernels=[np.eye(4, dtype=dtype)] * 2)
    expected = ws.GEOMETRIC.fuse(case.histograms, weights=case.weights).consensus
    result = case.solve(max_sweeps=n_sweeps, tolerance=None)
    np.testing.assert_allclose(result.barycenter, expected, rtol=1e-5)


def test_ten_thousand_sweeps_of_a_near_identity_kernel_agree_in_both_types():
    single, double = (
        make_case(9, n_models=2, n_samples=2, n_source=4, n_target=4, dtype=dtype)
        .but(kernels=[(np.eye(4) + 1e-30).astype(dtype)] * 2)
        .solve(max_sweeps=10_000, tolerance=None)
        .barycenter
        for dtype in DTYPES
    )
    np.testing.assert_allclose(single, double, rtol=1e-5)


def test_scores_beyond_the_range_of_the_type_are_called_diverged():
    scores = np.full((2, 1, 64), 3e38, dtype=np.float32)
    kernel = np.full((64, 64), 3e38, dtype=np.float32)
    result = ws.solve_barycenter(scores, kernel, ws.Barycenter(ws.Unbalanced(5.0, epsilon=1.0)))
    assert result.status[0] == ws.Status.DIVERGED
    assert not result.converged[0]


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_label_one_model_one_sample(mass, dtype):
    one = np.ones((1, 1, 1), dtype)
    result = ws.solve_barycenter(one, np.ones((1, 1), dtype), ws.Barycenter(mass))
    assert result.barycenter.shape == (1, 1)
    assert result.barycenter.dtype == dtype
    np.testing.assert_allclose(result.barycenter, 1, rtol=1e-5)


def test_no_samples_give_an_empty_result():
    result = ws.solve_barycenter(np.empty((2, 0, 3)), np.ones((3, 4)))
    assert result.barycenter.shape == (0, 4)
    assert result.status.shape == (0,)
    assert "0 samples" in repr(result)


@given(cases(dtypes=(np.float16, np.float32, np.float64)))
def test_the_floating_type_of_the_histograms_is_the_type_of_the_consensus(case):
    result = case.solve(normalize=True)
    assert result.barycenter.dtype == max(case.dtype, np.dtype(np.float32))
    assert result.normalized


@pytest.mark.parametrize("mass", [ws.Balanced(), ws.Unbalanced(3.0, epsilon=0.5)])
def test_the_residual_bounds_the_error_of_the_consensus(mass):
    case = make_case(10, n_samples=20, mass=mass, kernel_spread=5.0)
    exact = case.solve(tolerance=1e-13, max_sweeps=100_000).barycenter
    for sweeps in (5, 20, 80):
        result = case.solve(max_sweeps=sweeps, tolerance=None)
        error = np.abs(result.barycenter - exact).sum(axis=1) / exact.sum(axis=1)
        assert (error <= 3 * result.residual + 1e-12).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("mass", "spread"), [(ws.Balanced(), 30.0), (ws.Unbalanced(60.0, epsilon=1.0), 3.0)]
)
def test_longer_steps_reach_the_same_consensus_in_far_fewer_sweeps(
    mass, spread, dtype, monkeypatch
):
    case = make_case(11, n_models=4, n_samples=30, mass=mass, kernel_spread=spread, dtype=dtype)
    monkeypatch.setattr(LogSolver, "patience", lambda *_: None)  # no Newton's method
    relaxed = case.solve(max_sweeps=50_000, tolerance=1e-7)
    monkeypatch.setattr("wassemble.solvers.arithmetics.Stopping", _never_relaxed)
    plain = case.solve(max_sweeps=50_000, tolerance=1e-7)
    assert relaxed.converged.all()
    assert plain.converged.all()
    assert relaxed.n_sweeps.mean() < plain.n_sweeps.mean() / 2
    slack = 1e-4 if dtype == np.float32 else 1e-5
    np.testing.assert_allclose(relaxed.barycenter, plain.barycenter, rtol=slack, atol=slack)


def _never_relaxed(max_sweeps, tolerance, _, measured):
    from wassemble.solvers.loop import Stopping

    return Stopping(max_sweeps, tolerance, relaxed=False, measured=measured)


@pytest.mark.parametrize("max_sweeps", [17, 24, 28, 40, 5000])
def test_longer_steps_never_make_mass(max_sweeps):
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.full(12, 0.3), size=(3, 300))
    cost = np.subtract.outer(np.arange(12.0), np.arange(12.0)) ** 2 / 121
    for tolerance in (1e-2, 1e-6):
        result = ws.solve_barycenter(
            histograms,
            ws.kernels.from_cost(cost, 0.005),
            ws.Barycenter(max_sweeps=max_sweeps, tolerance=tolerance),
        )
        assert result.barycenter.sum(axis=1).max() <= 1 + 1e-9


def test_convergence_after_longer_steps_is_confirmed_by_a_sweep_as_it_is():
    rng = np.random.default_rng(1)
    histograms = rng.dirichlet(np.full(8, 0.5), size=(3, 100))
    block = np.exp(-np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))) / 0.9)
    kernel = np.kron(np.eye(2), block)
    weights = rng.uniform(0.05, 1, size=(3, 8))
    weights /= weights.sum(axis=0)
    options = {"weights": weights, "tolerance": 1e-8, "max_sweeps": 500}
    problem = pose_with(histograms, kernel, **options)
    problem.has_one_fixed_point = True  # or there would be no longer steps
    result = solve(problem)
    again = ws.solve_barycenter(
        histograms,
        kernel,
        ws.Barycenter(max_sweeps=1, tolerance=None),
        weights=weights,
        initial=result,
    )
    assert result.converged.sum() > 50
    gap = np.abs(again.barycenter - result.barycenter).sum(axis=1)[result.converged]
    assert gap.max() < 1e-6
    assert again.residual[result.converged].max() < 1e-6
