"""Rows whose models' mass meets nowhere: a status of their own."""

from __future__ import annotations

import numpy as np
import pytest
from problems import MASSES, as_sparse

import wassemble as ws

pytestmark = pytest.mark.usefixtures("sweeps")

APART = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
NOWHERE = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    "kernel",
    [
        ws.kernels.IdentityKernel(2),
        ws.kernels.DiagonalKernel([1.0, 0.5]),
        np.eye(2),
        as_sparse(np.eye(2)),
        [ws.kernels.IdentityKernel(2), as_sparse(np.eye(2))],
    ],
    ids=["identity", "diagonal", "dense", "sparse", "two kinds"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("tolerance", [None, 1e-6])
def test_models_that_rule_out_each_others_labels_leave_no_mass(kernel, dtype, tolerance):
    result = ws.solve_barycenter(APART.astype(dtype), kernel, ws.Barycenter(tolerance=tolerance))
    assert result.status[0] == ws.Status.NO_MASS
    assert result.status[1] in (ws.Status.CONVERGED, ws.Status.MAX_SWEEPS)
    assert not result.barycenter[0].any()


def test_fuse_says_how_many_rows_have_no_mass_and_the_remedy():
    with pytest.warns(ws.ConvergenceWarning, match="1 of 2 rows: the models' mass meets at no"):
        fused = ws.fuse(APART, rule=ws.Barycenter())
    assert not fused[0].any()
    with pytest.warns(ws.ConvergenceWarning, match=r"meet, and rule=Barycenter\(Unbalanced"):
        ws.fuse(APART, rule=ws.Barycenter())


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("form", [np.asarray, as_sparse], ids=["dense", "sparse"])
def test_mass_that_leads_nowhere_at_all_is_no_mass(mass, form):
    scores = np.array([[[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]] * 2)
    result = ws.solve_barycenter(scores, form(NOWHERE), ws.Barycenter(mass))
    assert list(result.status) == [ws.Status.NO_MASS, ws.Status.UNREACHABLE_MASS]


@pytest.mark.parametrize("kernel", [np.full((2, 2), 0.5), np.eye(2), ws.kernels.IdentityKernel(2)])
@pytest.mark.parametrize("mass", MASSES[1:])
def test_models_that_say_nothing_are_no_mass_that_was_lost(kernel, mass):
    result = ws.solve_barycenter(np.zeros((2, 3, 2)), kernel, ws.Barycenter(mass))
    assert (result.status == ws.Status.CONVERGED).all()
    assert not result.barycenter.any()


def test_mass_of_a_model_without_weight_is_not_counted():
    scores = np.array([[[0.0, 0.0]], [[1.0, 0.0]]])
    result = ws.solve_barycenter(
        scores, np.eye(2), ws.Barycenter(ws.Unbalanced(1.0, epsilon=1.0)), weights=[1.0, 0.0]
    )
    assert result.status == ws.Status.CONVERGED


@pytest.mark.parametrize("kernel", [np.eye(2), ws.kernels.IdentityKernel(2)])
def test_mass_too_small_for_the_type_has_left_its_range(kernel):
    scores = np.full((2, 1, 2), 1e-40, dtype=np.float32)
    kernel = kernel * np.float32(1e-30) if isinstance(kernel, np.ndarray) else kernel
    result = ws.solve_barycenter(scores, kernel, ws.Barycenter(ws.Unbalanced(0.1, epsilon=1.0)))
    assert result.status == ws.Status.DIVERGED or result.barycenter.any()


def test_torch_knows_rows_without_mass():
    torch = pytest.importorskip("torch")
    result = ws.solve_barycenter(torch.tensor(APART), torch.eye(2, dtype=torch.float64))
    assert result.status[0] == ws.Status.NO_MASS
