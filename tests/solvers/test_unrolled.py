"""Rules as straight computations, on NumPy's own arrays: they give what `fuse` gives."""

import numpy as np
import pytest
import scipy.sparse as sp

import wassemble as ws
from wassemble.kernels import (
    DenseKernel,
    DiagonalKernel,
    IdentityKernel,
    LowRankKernel,
    MatchKernel,
    SparseKernel,
)
from wassemble.solvers.unrolled import multiply

RNG = np.random.default_rng(5)
ENTRIES = np.exp(-2 * RNG.random((6, 5)))
SPARSE = sp.csr_array(np.where(ENTRIES > 0.4, ENTRIES, 0))
KERNELS = {
    "dense": DenseKernel(ENTRIES),
    "sparse": SparseKernel(SPARSE),
    "nothing": SparseKernel(sp.csr_array((6, 5))),
    "rows of all lengths": SparseKernel(sp.csr_array(np.tri(40, 30, 0) * RNG.random((40, 30)))),
    "low rank": LowRankKernel(RNG.random((6, 2)), RNG.random((5, 2))),
    "diagonal": DiagonalKernel([0.0, 0.5, 1.0]),
    "identity": IdentityKernel(4),
    "match": MatchKernel([2, -1, 0, 3], n_target=5),
}
RULES = [
    ws.ARITHMETIC,
    ws.GEOMETRIC,
    ws.PowerMean(1e-4),
    ws.GatedMean(0.5, n_top=2, floor=0.7),
    ws.GatedBarycenter(0.75, n_top=2, floor=0.7),
    ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None),
    ws.Barycenter(max_sweeps=7, tolerance=None),
]


@pytest.mark.parametrize("name", KERNELS)
def test_products_are_those_of_the_kernel(name):
    for kernel in (KERNELS[name], KERNELS[name].T):
        v = RNG.random((3, 2, kernel.shape[1]))
        np.testing.assert_allclose(multiply(kernel, v), kernel.apply(v), rtol=1e-12)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", ["dense", "sparse", "low rank"])
def test_a_rule_unrolled_gives_what_it_gives_when_it_fuses(rule, name):
    kernel = KERNELS[name]
    histograms = RNG.dirichlet(np.ones(6), size=(3, 8))
    weights = RNG.dirichlet(np.ones(3))
    expected = rule.fuse(histograms, kernel, weights=weights, holds="histograms").scores
    found = rule.unroll(list(histograms), [kernel] * 3, weights[:, None, None], keeps_mass=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("rule", RULES[-2:], ids=str)
@pytest.mark.parametrize("n_target", [1, 5])
def test_quick_sweeps_are_the_same_where_no_similarity_is_zero(rule, n_target):
    histograms = list(RNG.dirichlet(np.ones(6), size=(3, 8)))
    weights = np.moveaxis(RNG.dirichlet(np.ones(3), size=(8, n_target)), 2, 0)
    # The first and the last model share a kernel: they are swept together.
    kernels = [KERNELS["dense"], KERNELS["low rank"], KERNELS["dense"]]
    exact, quick = (
        rule.unroll(histograms, kernels, weights, keeps_mass=True, exact=exact)
        for exact in (True, False)
    )
    np.testing.assert_allclose(quick, exact, rtol=1e-10)


def test_quick_sweeps_know_labels_out_of_reach_of_each_other():
    rule, kernel = RULES[-2], KERNELS["rows of all lengths"]
    scores = RNG.random((2, 3, 40)) * (RNG.random((2, 3, 40)) > 0.7)
    weights = np.full((2, 1, 1), 0.5)
    expected = rule.fuse(scores, kernel, holds="scores").scores
    with np.errstate(divide="ignore"):
        found = rule.unroll(list(scores), [kernel] * 2, weights, keeps_mass=False, exact=False)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_quick_sweeps_know_models_that_say_none():
    rule = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None)
    scores = RNG.random((2, 3, 6))
    scores[0, 0] = 0  # one model
    scores[:, 1] = 0  # all of them
    expected = rule.fuse(scores, KERNELS["dense"], holds="scores").scores
    with np.errstate(divide="ignore"):  # log 0 is what 0 means
        found = rule.unroll(
            list(scores),
            [KERNELS["dense"]] * 2,
            np.full((2, 1, 1), 0.5),
            keeps_mass=False,
            exact=False,
        )
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert not found[1].any()
