"""Numbers near the end of their type's range: right, or a status."""

from __future__ import annotations

import numpy as np
import pytest
from covering import covering
from problems import SWEEPS
from solvers.reference import Reference, log_of

import wassemble as ws
from wassemble.solvers.loop import Stopping, run
from wassemble.solvers.power_means import log_power_mean
from wassemble.solvers.sweeps import Rows

pytestmark = pytest.mark.usefixtures("sweeps")

SUBNORMAL = {np.float32: 1e-42, np.float64: 1e-315}


def expected_of(scores, kernel, mass, *n_sweeps):
    """The barycenter after so many sweeps, after each number of them."""
    weights = np.full((len(scores), scores.shape[1], kernel.shape[1]), 1 / len(scores))
    reference = Reference(
        [log_of(s) for s in scores], [log_of(kernel)] * len(scores), weights, mass.order
    )
    return [reference.run(more) for more in np.diff(n_sweeps, prepend=0)]


@covering(
    3,
    penalty=[0.02, 0.2, 2.0, 20.0],
    dtype=[np.float32, np.float64],
    subnormal=["some", "all"],
    sweeps=SWEEPS,
)
def test_subnormal_scores_keep_what_they_have_to_say(penalty, dtype, subnormal, rng):
    mass = ws.Unbalanced(penalty, epsilon=1.0)
    scores = rng.uniform(0.1, 1, size=(2, 8, 6))
    small = rng.random(scores.shape) < (2 if subnormal == "all" else 0.5)
    scores = np.where(small, scores * SUBNORMAL[dtype], scores).astype(dtype)
    kernel = rng.uniform(0.5, 3, size=(6, 5)).astype(dtype)
    fixed = ws.solve_barycenter(scores, kernel, ws.Barycenter(mass, max_sweeps=5, tolerance=None))
    converged = ws.solve_barycenter(scores, kernel, ws.Barycenter(mass, max_sweeps=10_000))
    assert (converged.status == ws.Status.CONVERGED).all()
    both = expected_of(scores, kernel, mass, 5, 1000)
    for result, expected in zip((fixed, converged), both, strict=True):
        np.testing.assert_allclose(result.barycenter, expected.astype(float), rtol=2e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_subnormal_kernel_entries_are_entries(dtype):
    kernel = np.array([[1.0, SUBNORMAL[dtype]], [SUBNORMAL[dtype], 1.0]], dtype=dtype)
    scores = np.array([[[1.0, 0.0]], [[0.0, 1.0]]], dtype=dtype)
    result = ws.solve_barycenter(scores, kernel, ws.Barycenter(max_sweeps=3, tolerance=None))
    (expected,) = expected_of(scores, kernel, ws.Balanced(), 3)
    np.testing.assert_allclose(result.barycenter, expected.astype(float), rtol=1e-4)
    assert result.barycenter.any()


class _Broken:
    """A sweep whose residual of the first row is no number."""

    hopeless = False

    def step(self, n_sweeps=1, *, watch):
        return np.array([np.nan, 0.0]) if watch else None

    def untrusted(self):
        return np.zeros(2, dtype=bool)

    def relax(self, omega):
        pass

    def keep(self, rows):
        raise AssertionError("every row has finished")

    def read(self, rows, *, keep_scalings):
        return Rows(np.ones((2, 3))[rows], None, None)


@pytest.mark.parametrize("tolerance", [None, 1e-6])
@pytest.mark.parametrize("max_sweeps", [1, 5])
def test_a_residual_that_is_no_number_is_a_status(tolerance, max_sweeps):
    stopping = Stopping(max_sweeps, tolerance, relaxed=True, measured=True)
    endings = []
    assert not len(run(_Broken(), 2, stopping, endings.append, keep_scalings=False))
    fine = ws.Status.MAX_SWEEPS if tolerance is None else ws.Status.CONVERGED
    assert endings[0].status.tolist() == [ws.Status.DIVERGED, fine]


@pytest.mark.parametrize("mass", [ws.Balanced(), ws.Unbalanced(1.0, epsilon=1.0)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("libraries", ["numpy", "torch"])
def test_a_diagonal_of_zeros_and_subnormals_is_a_kernel(mass, dtype, libraries):
    scores = np.array([[[0.2, 0.3, 0.5]], [[0.4, 0.3, 0.3]]], dtype=dtype)
    given = scores
    if libraries == "torch":
        torch = pytest.importorskip("torch")
        given = torch.tensor(scores)
    nothing = ws.solve_barycenter(
        given, ws.kernels.DiagonalKernel(np.zeros(3)), ws.Barycenter(mass)
    )
    assert nothing.status == ws.Status.NO_MASS
    assert not np.asarray(nothing.barycenter).any()
    for kind in (np.float32, np.float64):
        diagonal = np.array([0.0, SUBNORMAL[kind], 1.0], dtype=kind)
        result = ws.solve_barycenter(
            given, ws.kernels.DiagonalKernel(diagonal), ws.Barycenter(mass)
        )
        f = mass.exponent
        power = f / (1 + f)
        if isinstance(mass, ws.Balanced):
            expected = np.sqrt(scores[0, 0] * scores[1, 0]) * (diagonal > 0)
        else:
            expected = diagonal ** (1 - f) * np.mean(scores[:, 0] ** power, axis=0) ** (1 + f)
        np.testing.assert_allclose(
            np.asarray(result.barycenter)[0], expected, rtol=1e-3, atol=1e-45
        )
        assert result.status == ws.Status.UNREACHABLE_MASS


@pytest.mark.parametrize("n_models", [1, 3, 10])  # weights of 1 / 10 sum to less than 1
def test_a_label_that_no_model_reaches_is_no_warning_where_powers_are_small(n_models, recwarn):
    scores = np.full((n_models, 1, 2), [1e13, 1e-222])
    kernel = np.array([[0, 0, 0, 1e-191], [1e-279, 0, 0, 0]])
    mass = ws.Unbalanced(1e4, epsilon=0.01)
    result = ws.solve_barycenter(scores, kernel, ws.Barycenter(mass, max_sweeps=3, tolerance=None))
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
    assert (result.barycenter[:, 1:3] == 0).all()


@pytest.mark.parametrize("total", [1 - 2**-50, 1.0, 1 + 2**-50])
def test_weights_that_sum_to_1_but_for_rounding_warn_of_nothing(total, recwarn):
    logs = np.full((2, 1, 3), -np.inf)
    logs[:, :, 0] = 0.5
    weights = np.array([0.25, total - 0.25])[:, None, None]
    found = log_power_mean(logs, weights, order=1e-4)
    assert not recwarn.list
    np.testing.assert_allclose(found, [[0.5, -np.inf, -np.inf]], rtol=1e-9)
