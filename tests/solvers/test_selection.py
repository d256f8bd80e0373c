"""Which arithmetic runs, and why; and that it is the right one."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from problems import make_case, pose_with, solve_in, with_zeros

import wassemble as ws


def choose(case, **options):
    problem = pose_with(
        case.histograms, case.kernels, weights=case.weights, mass=case.mass, **options
    )
    return ws.solvers.select_solver(problem)


UNBALANCED = ws.Unbalanced(2.0, epsilon=0.3)
pytestmark = pytest.mark.usefixtures("only_numpy")  # native ones: test_native.py


@pytest.mark.parametrize(
    ("case", "options", "name", "words"),
    [
        (make_case(), {}, "plain", "every kernel entry is above 0 and a number in float64"),
        (make_case(dtype=np.float32), {}, "plain", "float32"),
        (with_zeros(make_case(n_source=30), 0), {}, "plain", "kernels with zeros"),
        (make_case().but(kernels=[np.eye(5, 6)] * 3), {}, "log", "row or a column of zeros"),
        (make_case(kernel_spread=745.0), {}, "log", "too far apart .* float64"),
        (make_case(kernel_spread=200.0), {}, "plain", ""),
        (make_case(kernel_spread=20.0, dtype=np.float32), {}, "plain", "float32"),
        (make_case(kernel_spread=100.0, dtype=np.float32), {}, "plain", "float64"),
        (make_case(mass=ws.Unbalanced(1e9, epsilon=1.0)), {}, "log", "too small for powers"),
        (
            make_case(mass=ws.Unbalanced(50.0, epsilon=1.0), dtype=np.float32),
            {},
            "plain",
            "float32",
        ),
        (
            make_case().but(kernels=ws.kernels.IdentityKernel(5)),
            {},
            "closed form",
            "geometric mean at once",
        ),
        (
            make_case(mass=UNBALANCED).but(kernels=ws.kernels.IdentityKernel(5)),
            {},
            "closed form",
            "formula",
        ),
        (
            make_case(mass=UNBALANCED).but(kernels=sp.eye_array(5, 6, k=1)),
            {},
            "closed form",
            "one-to-one kernels",
        ),
        (
            make_case(mass=UNBALANCED).but(kernels=ws.kernels.IdentityKernel(5)),
            {"tolerance": None},
            "plain",
            "kernels with zeros",
        ),
        (
            make_case().but(kernels=ws.kernels.IdentityKernel(5)),
            {"debias": True},
            "log",
            "debiased",
        ),
        (
            make_case().but(histograms=[torch.full((1, 5), 0.2)] * 3),
            {},
            "plain",
            "every kernel entry is above 0",
        ),
        (
            make_case().but(
                histograms=[torch.full((1, 5), 0.2)] * 3,
                kernels=ws.kernels.LowRankKernel(np.ones((5, 2)), np.ones((5, 2))),
            ),
            {},
            "log",
            "torch tensors",
        ),
    ],
)
def test_the_choice_comes_with_its_reason(case, options, name, words):
    import re

    choice = choose(case, **options)
    assert choice.name == name
    assert re.search(words, choice.reason)


def test_rows_that_outgrow_plain_arithmetic_are_solved_in_logs():
    # With the identity matrix v grows by the models' disagreement in every sweep.
    kernel = np.eye(3, dtype=np.float32)
    first = np.array([[1 - 2e-6, 1e-6, 1e-6], [0.35, 0.32, 0.33]], dtype=np.float32)
    second = np.array([[1e-6, 1e-6, 1 - 2e-6], [0.34, 0.33, 0.33]], dtype=np.float32)
    result = ws.solve_barycenter(
        [first, second], kernel, ws.Barycenter(max_sweeps=40, tolerance=None)
    )
    assert result.solver.name == "plain"
    assert result.n_log_rows == 1
    double = ws.solve_barycenter(
        [first.astype(float), second.astype(float)],
        kernel.astype(float),
        ws.Barycenter(max_sweeps=40, tolerance=None),
        normalize=True,
    )
    np.testing.assert_allclose(result.barycenter, double.barycenter, rtol=1e-4)


def test_rows_with_zeros_under_a_kernel_with_zeros_are_solved_in_logs(rng):
    kernel = np.eye(4) + np.eye(4, k=1) + np.eye(4, k=-1)
    histograms = rng.dirichlet(np.ones(4), size=(2, 3))
    histograms[:, 1] = [0.5, 0.5, 0, 0]
    result = ws.solve_barycenter(histograms, kernel, ws.Barycenter(max_sweeps=5, tolerance=None))
    assert result.solver.name == "plain"
    assert result.n_log_rows == 1
    from problems import Case

    case = Case(list(histograms), [kernel] * 2, np.full(2, 0.5), ws.Balanced())
    expected = solve_in("log", case, max_sweeps=5, tolerance=None)
    np.testing.assert_allclose(result.barycenter, expected.barycenter, rtol=1e-10)


def test_entries_too_small_for_float32_count(rng):
    histograms = rng.dirichlet(np.ones(2), size=(2, 1)).astype(np.float32)
    kernel = np.array([[1.0, 1e-60], [1e-60, 1.0]])
    single = ws.solve_barycenter(histograms, kernel, ws.Barycenter(max_sweeps=500, tolerance=None))
    double = ws.solve_barycenter(
        histograms.astype(float),
        kernel,
        ws.Barycenter(max_sweeps=500, tolerance=None),
        normalize=True,
    )
    assert single.barycenter.dtype == np.float32
    np.testing.assert_allclose(single.barycenter, double.barycenter, rtol=1e-5)
