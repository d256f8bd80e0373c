"""What a result tells: couplings, contributions, costs, statuses."""

import numpy as np
import pytest
from hypothesis import given
from problems import MASSES, cases, make_case

import wassemble as ws

pytestmark = pytest.mark.usefixtures("sweeps")

TIGHT = {"tolerance": 1e-11, "max_sweeps": 50_000}


@given(cases(masses=MASSES[:1]))
def test_balanced_couplings_have_the_model_and_the_consensus_as_marginals(case):
    weights = case.weights if case.weights.ndim == 1 else case.weights[:, 0]
    case = case.but(weights=weights)
    result = case.solve(**TIGHT)
    for model, histogram in enumerate(case.histograms):
        for sample in range(len(histogram)):
            coupling = result.coupling(model, sample)
            assert (coupling >= 0).all()
            np.testing.assert_allclose(coupling.sum(axis=1), histogram[sample], atol=1e-12)
            np.testing.assert_allclose(coupling.sum(axis=0), result.barycenter[sample], atol=1e-9)


@given(cases(masses=MASSES[1:]))
def test_unbalanced_couplings_add_up_to_the_consensus(case):
    weights = case.weights if case.weights.ndim == 1 else case.weights[:, 0]
    result = case.but(weights=weights).solve(**TIGHT)
    for sample in range(len(result.barycenter)):
        total = sum(
            weight * result.coupling(model, sample).sum(axis=0)
            for model, weight in enumerate(weights)
        )
        np.testing.assert_allclose(total, result.barycenter[sample], rtol=1e-7)


def test_couplings_before_convergence_are_off_by_about_the_residual():
    case = make_case(1, kernel_spread=6.0)
    result = case.solve(max_sweeps=3, tolerance=None)
    for sample in range(4):
        worst = max(
            np.abs(result.coupling(m, sample).sum(axis=0) - result.barycenter[sample]).sum()
            for m in range(3)
        )
        assert 1e-6 < worst < 3 * result.residual[sample]


def test_contributions_are_shares_of_the_columns_of_the_couplings():
    case = make_case(2, n_source=(3, 4, 5))
    result = case.solve(**TIGHT)
    for label in range(6):
        shares = result.contributions(label, sample=2)
        assert [len(share) for share in shares] == [3, 4, 5]
        for model, share in enumerate(shares):
            column = result.coupling(model, 2)[:, label]
            np.testing.assert_allclose(share, 100 * column / column.sum())


def test_a_model_of_weight_zero_contributes_nothing_and_has_no_coupling():
    case = make_case(3).but(weights=np.array([0.5, 0.0, 0.5]))
    result = case.solve()
    assert result.contributions(0)[1].tolist() == [0] * 5
    assert result.transport_cost(np.ones((5, 6)))[1].tolist() == [0] * 4
    with pytest.raises(ws.InvalidInputError, match="model 1 has weight 0"):
        result.coupling(1)


def test_contributions_to_a_label_out_of_reach_are_zero():
    result = ws.solve_barycenter([[0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]])
    assert result.contributions(1)[0].tolist() == [0, 0]


@pytest.mark.parametrize("mass", MASSES)
def test_transport_cost_is_the_cost_of_each_coupling(mass, rng):
    case = make_case(4, n_source=(3, 4), n_models=2, mass=mass)
    result = case.solve()
    costs = [rng.uniform(size=(3, 6)), rng.uniform(size=(4, 6))]
    got = result.transport_cost(costs)
    assert got.shape == (2, 4)
    for model in range(2):
        for sample in range(4):
            expected = (costs[model] * result.coupling(model, sample)).sum()
            assert got[model, sample] == pytest.approx(expected)


def test_transport_cost_works_for_every_kind_of_kernel(rng):
    import scipy.sparse as sp

    case = make_case(5, n_models=5, n_samples=2, n_source=4, n_target=4)
    kernel = case.kernels[0]
    kernels = [
        ws.kernels.IdentityKernel(4),
        ws.kernels.DiagonalKernel(rng.uniform(0.5, 1, size=(2, 4))),
        kernel,
        ws.kernels.SparseKernel(sp.csr_array(kernel)),
        ws.kernels.LowRankKernel(kernel, np.eye(4)),
    ]
    result = case.but(kernels=kernels).solve(tolerance=1e-8, max_sweeps=5000)
    cost = rng.uniform(size=(4, 4))
    got = result.transport_cost(cost)
    for model in range(5):
        for sample in range(2):
            coupling = result.coupling(model, sample)
            assert coupling.shape == (4, 4)
            assert got[model, sample] == pytest.approx((cost * coupling).sum())
            np.testing.assert_allclose(coupling.sum(axis=1), case.histograms[model][sample])


def test_a_single_sample_drops_its_axis_everywhere():
    case = make_case(6)
    single = case.but(histograms=[h[1] for h in case.histograms]).solve()
    assert single.barycenter.shape == (6,)
    assert single.status is ws.Status.CONVERGED
    assert single.converged is True
    assert isinstance(single.residual, float)
    assert isinstance(single.n_sweeps, int)
    assert single.transport_cost(np.ones((5, 6))).shape == (3,)
    np.testing.assert_allclose(single.transport_cost(np.ones((5, 6))), 1)


def test_the_result_says_how_every_row_ended():
    case = make_case(7, kernel_spread=8.0)
    result = case.solve(max_sweeps=10)
    assert "max_sweeps" in repr(result)
    assert result.solver.name in repr(result)
    assert (result.status == ws.Status.MAX_SWEEPS).any()
    np.testing.assert_array_equal(result.converged, result.residual <= result.problem.tolerance)
    assert len({status.message for status in ws.Status}) == len(ws.Status)


def test_finished_rows_leave_the_batch_at_their_own_time():
    easy, hard = make_case(8, n_samples=1), make_case(9, n_samples=1, kernel_spread=9.0)
    same = [np.stack([e[0], e[0]]) for e in easy.histograms]
    same[0][1] = same[1][1] = same[2][1]  # all models agree: one sweep less to go
    result = hard.but(histograms=same).solve(max_sweeps=5000)
    assert result.n_sweeps[1] != result.n_sweeps[0]
    assert result.converged.all()


def test_tolerance_is_raised_to_what_the_type_resolves_and_says_so():
    single = make_case(10, dtype=np.float32).solve(tolerance=1e-12)
    assert single.problem.tolerance == pytest.approx(16 * np.finfo(np.float32).eps)
    assert single.converged.all()
    assert make_case(10).solve(tolerance=1e-12).problem.tolerance == 1e-12


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: r.coupling(3), "`model` must be from 0 to 2; got 3"),
        (lambda r: r.coupling(-1), "`model` must be from 0 to 2; got -1"),
        (lambda r: r.coupling(0, 4), "`sample` must be from 0 to 3; got 4"),
        (lambda r: r.contributions("cat"), "`label` must be a whole number, .*; got 'cat'"),
        (lambda r: r.contributions(1.5), "`label` must be a whole number, .*; got 1.5"),
        (lambda r: r.coupling(0.0), "`model` must be a whole number"),
        (lambda r: r.contributions(6), "`label` must be from 0 to 5; got 6"),
        (lambda r: r.contributions(0, sample=9), "`sample` must be from 0 to 3; got 9"),
        (lambda r: r.transport_cost(np.ones((6, 5))), r"shape of its kernel, \(5, 6\)"),
        (lambda r: r.transport_cost([np.ones((5, 6))]), "one array for all 3 models"),
        (lambda r: r.transport_cost(-np.ones((5, 6))), "`costs` must not be negative; got -1"),
    ],
)
def test_questions_that_make_no_sense_get_a_clear_error(call, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        call(make_case(11).solve())


def test_a_result_without_scalings_says_so():
    from wassemble.solvers.barycenter import solve
    from wassemble.solvers.problem import BarycenterProblem

    case = make_case(12)
    problem = BarycenterProblem(case.histograms, case.kernels)
    with pytest.raises(ws.InvalidInputError, match="without its scalings"):
        solve(problem, keep_scalings=False).coupling(0)
