"""Longer steps only where they keep the answer: relaxed = plain sweeps, alone = in a batch."""

from __future__ import annotations

import numpy as np
import pytest
from covering import covering
from problems import SWEEPS, as_low_rank, as_sparse, pose_with, solve_with

import wassemble as ws
from wassemble.solvers.barycenter import solve
from wassemble.solvers.problem import BarycenterProblem

pytestmark = pytest.mark.usefixtures("sweeps")

HISTOGRAMS = np.array(
    [
        [0.2681, 0.3375, 0.0936, 0.0967, 0.2041],
        [0.1018, 0.4089, 0.0480, 0.1831, 0.2582],
        [0.0726, 0.1220, 0.1434, 0.2166, 0.4455],
    ]
)
HISTOGRAMS /= HISTOGRAMS.sum(axis=1, keepdims=True)
WEIGHTS = np.array(
    [
        [0.1591, 0.3526, 0.2882, 0.5343, 0.5139],
        [0.5231, 0.1074, 0.6404, 0.0743, 0.0955],
        [0.3177, 0.54, 0.0714, 0.3914, 0.3907],
    ]
)
WEIGHTS /= WEIGHTS.sum(axis=0)
LINE = np.exp(-np.abs(np.arange(5)[:, None] - np.arange(5)) / 4 * 30)

MASSES = (
    ws.Balanced(),
    ws.Unbalanced(0.3, epsilon=1.0),
    ws.Unbalanced(2.0, epsilon=1.0),
    ws.Unbalanced(2.0, epsilon=0.3),
    ws.Unbalanced(20.0, epsilon=0.3),
)
SHAPES = ("per model", "per label", "per sample", "per sample and label")
KINDS = ("dense", "several", "sparse", "low rank", "zeros", "diagonal", "identity", "mixed")
N_SAMPLES, N_LABELS = 6, 5


@pytest.mark.parametrize("tolerance", [1e-5, 1e-8, 1e-11])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_balanced_sweeps_with_weights_per_label_end_where_algorithm_1_ends(tolerance, dtype):
    result = ws.solve_barycenter(
        HISTOGRAMS.astype(dtype),
        LINE,
        ws.Barycenter(max_sweeps=20_000, tolerance=tolerance),
        weights=WEIGHTS,
    )
    assert result.converged
    expected = [0.106, 0.212, 0.241, 0.196, 0.246]
    np.testing.assert_allclose(result.barycenter, expected, atol=2e-3)


def test_equal_weights_at_every_label_are_one_weight_per_model():
    one = ws.solve_barycenter(HISTOGRAMS, LINE, weights=WEIGHTS[:, 0])
    spread = np.broadcast_to(WEIGHTS[:, :1], (3, 5))
    assert BarycenterProblem(HISTOGRAMS, LINE, weights=spread).has_one_fixed_point
    other = ws.solve_barycenter(HISTOGRAMS, LINE, weights=spread)
    assert other.n_sweeps == pytest.approx(one.n_sweeps, abs=8)


def make_problem(rng, kind, shape, mass, dtype):
    """Histograms, kernels and weights, some of which make sweeps slow."""
    matrix = np.exp(-rng.choice([4, 12]) * rng.random((N_LABELS, N_LABELS)) ** 2).astype(dtype)
    np.fill_diagonal(matrix, 1)
    diagonal = ws.kernels.DiagonalKernel(rng.uniform(0.2, 1, N_LABELS).astype(dtype))
    cut = np.where(rng.random(matrix.shape) < 0.3, 0, matrix).astype(dtype)
    np.fill_diagonal(cut, 1)
    kernels = {
        "dense": [matrix] * 3,
        "several": [matrix, matrix.T.copy(), matrix.T.copy()],
        "sparse": [as_sparse(cut)] * 3,
        "low rank": [as_low_rank(matrix)] * 3,
        "zeros": [cut] * 3,
        "diagonal": [diagonal] * 3,
        "identity": [ws.kernels.IdentityKernel(N_LABELS)] * 3,
        "mixed": [matrix, as_sparse(cut), diagonal],
    }[kind]
    histograms = rng.dirichlet(np.ones(N_LABELS), size=(3, N_SAMPLES))
    if not isinstance(mass, ws.Balanced):
        histograms *= rng.uniform(0.5, 2, size=(3, N_SAMPLES, 1))
    size = (3, N_SAMPLES if "sample" in shape else 1, N_LABELS if "label" in shape else 1)
    weights = rng.uniform(0.05, 1, size=size)
    weights /= weights.sum(axis=0)
    if "sample" not in shape:
        weights = weights[:, 0] if "label" in shape else weights[:, 0, 0]
    return histograms.astype(dtype), kernels, weights


def seed_of(*words):
    return [sum(word.encode()) for word in map(str, words)]


@covering(3, mass=MASSES, kind=KINDS, shape=SHAPES, dtype=[np.float64, np.float32], sweeps=SWEEPS)
def test_relaxed_sweeps_are_plain_sweeps_and_a_batch_is_its_samples(mass, kind, shape, dtype):
    rng = np.random.default_rng(seed_of(mass, kind, shape))
    histograms, kernels, weights = make_problem(rng, kind, shape, mass, dtype)
    tolerance = 1e-10 if dtype == np.float64 else 1e-6
    options = {"mass": mass, "tolerance": tolerance, "max_sweeps": 500}
    whole = solve_with(histograms, kernels, weights=weights, **options)
    plain = pose_with(histograms, kernels, weights=weights, **options)
    plain.has_one_fixed_point = False
    plain = solve(plain)
    done = (whole.status == ws.Status.CONVERGED) & (plain.status == ws.Status.CONVERGED)
    limit = 1e-6 if dtype == np.float64 else 5e-3
    np.testing.assert_allclose(whole.barycenter[done], plain.barycenter[done], atol=limit)
    for sample in np.flatnonzero(done)[:2]:
        own = weights
        if "sample" in shape:
            own = weights[:, sample] if "label" in shape else weights[:, sample, 0]
        alone = solve_with(histograms[:, sample], kernels, weights=own, **options)
        # Where mass hardly meets, residuals wander at the level of rounding, some 1e-8 here,
        # whatever the number of sweeps, and chance decides whether the tolerance is met.
        assert alone.status == ws.Status.CONVERGED or alone.residual < limit
        np.testing.assert_allclose(alone.barycenter, whole.barycenter[sample], atol=limit)


def test_half_precision_is_refused_where_its_rounding_would_choose_the_answer():
    torch = pytest.importorskip("torch")
    given = torch.tensor(HISTOGRAMS), torch.tensor(LINE)
    with pytest.raises(ws.InvalidInputError, match="several fixed points"):
        ws.solve_barycenter(*given, rule=ws.Barycenter(mixed_precision=True), weights=WEIGHTS)
    ws.solve_barycenter(*given, rule=ws.Barycenter(mixed_precision=True), weights=WEIGHTS[:, 0])
