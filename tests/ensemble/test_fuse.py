"""The front door."""

import numpy as np
import pytest
from problems import MASSES, make_case

import wassemble as ws


@pytest.mark.parametrize("mass", MASSES)
def test_fuse_returns_the_barycenter(mass):
    case = make_case(1, n_source=(3, 4, 5), mass=mass)
    consensus = ws.fuse(case.histograms, kernel=case.kernels, weights=case.weights, mass=mass)
    np.testing.assert_array_equal(consensus, case.solve().barycenter)


def test_without_a_kernel_nothing_is_transported():
    case = make_case(2)
    np.testing.assert_allclose(
        ws.fuse(case.histograms), ws.geometric_mean(case.histograms), rtol=1e-12
    )


@pytest.mark.parametrize("rule", [ws.arithmetic_mean, ws.geometric_mean, ws.hellinger_mean])
def test_means_are_rules(rule):
    case = make_case(3)
    np.testing.assert_array_equal(
        ws.fuse(case.histograms, weights=case.weights, rule=rule),
        rule(case.histograms, weights=case.weights),
    )


def test_a_mean_refuses_a_kernel():
    with pytest.raises(
        ws.InvalidInputError, match=r"rule arithmetic_mean, which knows none.*\nhint"
    ):
        ws.fuse([[0.5, 0.5]], kernel=np.eye(2), rule=ws.arithmetic_mean)


def test_different_label_sets_need_kernels():
    with pytest.raises(ws.InvalidInputError, match="must come with a kernel each; got"):
        ws.fuse([[0.5, 0.5], [0.2, 0.3, 0.5]])
    with pytest.raises(ws.InvalidInputError, match="one array per model; got float"):
        ws.fuse(3.0)


def test_rows_that_did_not_converge_are_a_warning():
    case = make_case(4, kernel_spread=8.0)
    with pytest.warns(ws.ConvergenceWarning, match=r"of 4 rows: stopped after max_iterations"):
        ws.fuse(case.histograms, kernel=case.kernels[0], max_iterations=3)


def test_mass_that_cannot_arrive_is_a_warning():
    with pytest.warns(
        ws.ConvergenceWarning, match="1 of 1 rows: some mass has no target label to go to"
    ):
        ws.fuse([[0.5, 0.5]], kernel=[[1.0, 0.0], [0.0, 0.0]])


def test_a_fixed_number_of_sweeps_is_no_warning():
    case = make_case(5)
    consensus = ws.fuse(case.histograms, kernel=case.kernels[0], max_iterations=3, tolerance=None)
    assert consensus.shape == (4, 6)
