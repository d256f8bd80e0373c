"""Weights that differ per sample: each sample is as if it were alone with its own."""

from __future__ import annotations

import numpy as np
import pytest
from covering import covering
from problems import (
    ARITHMETICS,
    MASSES,
    SWEEPS,
    as_low_rank,
    as_sparse,
    make_case,
    solve_in,
    solve_with,
)

import wassemble as ws

pytestmark = pytest.mark.usefixtures("sweeps")

MEANS = (ws.ARITHMETIC, ws.GEOMETRIC, ws.HELLINGER)
KINDS = ("dense", "several", "sparse", "low rank", "diagonal", "identity", "mixed")
LIMITS = {np.float64: 1e-9, np.float32: 2e-4}


def make_weights(rng, n_models, n_samples, n_labels, *, silent=False):
    weights = rng.uniform(0.1, 1, size=(n_models, n_samples, n_labels))
    if silent:  # each sample has one model without a say
        weights[rng.integers(n_models, size=n_samples), np.arange(n_samples)] = 0
    return weights / weights.sum(axis=0)


def make_kernels(kind, case, rng):
    matrix = case.kernels[0]
    size, dtype = len(matrix), matrix.dtype
    diagonal = ws.kernels.DiagonalKernel(rng.uniform(0.2, 1, size=size).astype(dtype))
    return {
        "dense": [matrix] * 3,
        "several": [matrix, matrix**0.5, matrix**0.5],
        "sparse": [as_sparse(matrix * (rng.uniform(size=matrix.shape) > 0.3) + np.eye(size))] * 3,
        "low rank": [as_low_rank(matrix)] * 3,
        "diagonal": [diagonal] * 3,
        "identity": [ws.kernels.IdentityKernel(size)] * 3,
        "mixed": [ws.kernels.IdentityKernel(size), diagonal, matrix],
    }[kind]


@covering(
    3,
    kind=KINDS,
    mass=MASSES,
    dtype=[np.float64, np.float32],
    shape=["per sample", "per sample and label"],
    votes=["all vote", "some silent"],
    sweeps=SWEEPS,
)
def test_a_sample_has_the_consensus_of_its_own_weights(kind, mass, dtype, shape, votes, rng):
    case = make_case(3, n_samples=7, n_source=6, n_target=6, mass=mass, dtype=dtype)
    n_labels = 6 if "label" in shape else 1
    weights = make_weights(rng, 3, 7, n_labels, silent=votes == "some silent")
    kernels = make_kernels(kind, case, rng)
    for options in ({"max_sweeps": 5, "tolerance": None}, {"max_sweeps": 400}):
        whole = solve_with(case.histograms, kernels, weights=weights, mass=mass, **options)
        for sample in range(7):
            own = weights[:, sample, 0] if n_labels == 1 else weights[:, sample]
            votes = np.flatnonzero(own.reshape(3, -1).any(axis=1))
            alone = solve_with(
                [case.histograms[m][sample] for m in votes],
                [kernels[m] for m in votes],
                weights=own[votes],
                mass=mass,
                **options,
            )
            limit = LIMITS[dtype] if options["max_sweeps"] == 5 else 1e-3
            np.testing.assert_allclose(
                whole.barycenter[sample], alone.barycenter, rtol=limit, atol=1e-7
            )
            for place, model in enumerate(votes):
                np.testing.assert_allclose(
                    whole.coupling(model, sample), alone.coupling(place), rtol=0.01, atol=1e-5
                )


@pytest.mark.parametrize("name", ARITHMETICS)
@pytest.mark.parametrize("mass", MASSES)
def test_equal_rows_of_weights_are_weights_of_all_samples(name, mass):
    for per_label in (False, True):
        case = make_case(4, mass=mass, per_label=per_label)
        shape = (3, 4, 6) if per_label else (3, 4, 1)
        spread = np.broadcast_to(case.weights.reshape(3, 1, -1), shape)
        one = solve_in(name, case)
        other = solve_in(name, case.but(weights=spread))
        np.testing.assert_allclose(other.barycenter, one.barycenter, rtol=1e-10)
        np.testing.assert_allclose(other.log_scalings(), one.log_scalings(), atol=1e-10)


@pytest.mark.parametrize("mass", MASSES)
def test_a_model_without_a_say_on_a_sample_has_no_effect_there(mass, rng):
    case = make_case(5, n_samples=6, n_source=6, n_target=6, mass=mass)
    matrix = case.kernels[0]
    weights = make_weights(rng, 3, 6, 1)
    weights[2, 2:4], weights[:2, 2:4] = 0, 0.5
    kernels = [ws.kernels.IdentityKernel(6), ws.kernels.IdentityKernel(6), matrix]
    one = ws.solve_barycenter(case.histograms, kernels, ws.Barycenter(mass), weights=weights)
    other_scores = np.array(case.histograms[2])
    other_scores[2] = 0  # no histogram, and nobody asks
    other_scores[3] = [1, 0, 0, 0, 0, 0]
    scores = [*case.histograms[:2], other_scores]
    other = ws.solve_barycenter(scores, kernels, ws.Barycenter(mass), weights=weights)
    np.testing.assert_array_equal(other.barycenter, one.barycenter)
    np.testing.assert_array_equal(other.status, one.status)
    np.testing.assert_array_equal(other.n_sweeps, one.n_sweeps)
    np.testing.assert_array_equal(other.residual, one.residual)
    assert (one.status[2:4] == ws.Status.CONVERGED).all()
    assert not one.mass_sent(0, sample=2)[2].any()
    assert one.transport_cost([1 - np.eye(6)] * 3)[2, 2] == 0
    with pytest.raises(ws.InvalidInputError, match="model 2 has weight 0 on sample 3"):
        one.coupling(2, sample=3)


def test_rows_without_mass_are_fine_for_a_model_without_a_say():
    scores = np.array([[[0.5, 0.5], [0.0, 0.0]], [[0.2, 0.8], [0.3, 0.7]]])
    weights = np.array([[0.5, 0.0], [0.5, 1.0]])[..., None]
    for normalize in (False, True):
        result = ws.solve_barycenter(
            scores, ws.kernels.IdentityKernel(2), weights=weights, normalize=normalize
        )
        np.testing.assert_allclose(result.barycenter[1], [0.3, 0.7])
        assert (result.status == ws.Status.CONVERGED).all()
    weights = np.array([[0.5, 0.1], [0.5, 0.9]])[..., None]
    with pytest.raises(ws.InvalidInputError, match="model 0, sample 1"):
        ws.solve_barycenter(scores, ws.kernels.IdentityKernel(2), weights=weights, normalize=True)


@pytest.mark.parametrize("n_labels", [1, 5])
@pytest.mark.parametrize("mean", MEANS)
def test_means_take_weights_per_sample(mean, n_labels, rng):
    scores = rng.uniform(size=(3, 8, 5)) * (rng.uniform(size=(3, 8, 5)) > 0.2)
    weights = make_weights(rng, 3, 8, n_labels, silent=True)
    whole = mean.fuse(scores, weights=weights).consensus
    for sample in range(8):
        own = weights[:, sample, 0] if n_labels == 1 else weights[:, sample]
        alone = mean.fuse(scores[:, sample], weights=own).consensus
        np.testing.assert_allclose(whole[sample], alone, rtol=1e-12)
    fused = ws.fuse(scores, rule=mean, weights=weights, kind="multilabel")
    np.testing.assert_allclose(fused, whole)


def test_weights_per_sample_do_not_depend_on_tiles(monkeypatch, rng):
    case = make_case(6, n_samples=40, n_source=6, n_target=6)
    weights = make_weights(rng, 3, 40, 6, silent=True)
    whole = ws.fuse(case.histograms, kernel=case.kernels, weights=weights)
    monkeypatch.setattr("wassemble.solvers.problem.rows_per_tile", lambda *_: 3)
    tiled = ws.fuse(case.histograms, kernel=case.kernels, weights=weights)
    np.testing.assert_allclose(tiled, whole, rtol=1e-5)


@pytest.mark.parametrize("mass", MASSES)
def test_torch_takes_weights_per_sample(mass, rng):
    torch = pytest.importorskip("torch")
    case = make_case(7, n_samples=5, n_source=6, n_target=6, mass=mass)
    weights = make_weights(rng, 3, 5, 1, silent=True)
    expected = case.but(weights=weights).solve(tolerance=1e-9).barycenter
    tensors = [torch.tensor(h, requires_grad=True) for h in case.histograms]
    result = ws.solve_barycenter(
        tensors, torch.tensor(case.kernels[0]), ws.Barycenter(mass, tolerance=1e-9), weights=weights
    )
    np.testing.assert_allclose(result.barycenter.detach(), expected, atol=1e-7)
    result.barycenter.sum().backward()
    for model, tensor in enumerate(tensors):
        silent = weights[model, :, 0] == 0
        assert not tensor.grad[silent].any()
        assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 1, 4), (3, 3, 4), (2, 3, 4, 1)])
def test_weights_of_another_shape_are_refused(shape):
    scores = np.full((2, 3, 4), 0.25)
    with pytest.raises(ws.InvalidInputError, match=r"per sample: \(2, 3, 1\) or \(2, 3, 4\)"):
        ws.fuse(scores, kernel=np.ones((4, 4)), weights=np.full(shape, 0.5))


def test_weights_that_do_not_sum_to_one_are_found_by_sample():
    scores = np.full((2, 3, 4), 0.25)
    weights = np.full((2, 3, 4), 0.5)
    weights[0, 1, 2] = 0.6
    with pytest.raises(ws.InvalidInputError, match=r"got 1\.1 at sample 1, target label 2"):
        ws.fuse(scores, kernel=np.ones((4, 4)), weights=weights)


def test_no_samples_may_have_weights_per_sample():
    assert ws.fuse(np.ones((2, 0, 3)), weights=np.ones((2, 0, 1))).shape == (0, 3)
