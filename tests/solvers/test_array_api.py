"""Arrays of other libraries: what is written once for all of them, and what NumPy reads."""

import array_api_strict as strict
import numpy as np
import pytest
from kernels.factories import BUILDERS
from problems import MASSES, make_case

import wassemble as ws
from wassemble._arrays import log_of, log_quotient, namespace
from wassemble.solvers.power_means import log_power_mean

SCORES = np.random.default_rng(0).dirichlet(np.ones(5), (3, 4))
SCORES[0, 0, 0] = 0
SIMILAR = np.exp(-np.abs(np.subtract.outer(np.arange(5.0), np.arange(5))))
TRUTH = np.array([0, 3, 3, 1])
RULES = (
    ws.USUAL_RULE,
    ws.Barycenter(debias=True, max_sweeps=20, tolerance=None),
    ws.GEOMETRIC,
    ws.GatedMean(0.5, n_top=2, floor=0.7),
    ws.GatedBarycenter(0.75, n_top=2, floor=0.7),
    ws.Single(1),
    ws.LineBarycenter(1),
    ws.LineBarycenter(2),
    ws.TreeBarycenter((5, 5, 6, 6, 6, 6, -1)),
)
# What takes arrays, as a function of one of them.
TAKERS = {
    "histograms": lambda array: ws.fuse([array, array], kernel=SIMILAR),
    "kernel": ws.kernels.DenseKernel,
    "left": ws.kernels.LowRankKernel,
    "diagonal": ws.kernels.DiagonalKernel,
    "weights": lambda array: ws.fuse([SCORES[0]] * 4, weights=array),
    "cost": lambda array: ws.kernels.from_cost(array, epsilon=0.3),
    "v": lambda array: ws.kernels.DenseKernel(SIMILAR).apply(array),
    "scores": lambda array: ws.metrics.accuracy(array, TRUTH),
    "truth": lambda array: ws.metrics.accuracy(SCORES[0], array),
    "scores of m": lambda array: ws.Predictions("m", list("abcd"), list("vwxyz"), array),
}


@pytest.mark.parametrize("order", [0, 1e-4, 0.3, 1])
def test_power_means_need_the_array_api_alone(order):
    def mean(scores):
        weights = namespace(scores).asarray([[[0.2]], [[0.3]], [[0.5]]], dtype=scores.dtype)
        return log_power_mean(log_of(scores), weights, order=order)

    found = mean(strict.asarray(SCORES))
    assert namespace(found) is strict
    np.testing.assert_allclose(np.asarray(found), mean(SCORES), rtol=1e-12)


def test_logarithms_need_the_array_api_alone():
    def quotient(scores):
        return log_quotient(log_of(scores), log_of(scores[::-1, ...]))

    found = quotient(strict.asarray(SCORES))
    assert namespace(found) is strict
    np.testing.assert_allclose(np.asarray(found), quotient(SCORES), rtol=1e-12)


# -- the answer is that of NumPy, in an array of NumPy ---------------------------------


def assert_same(found, expected):
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_barycenters_are_those_of_numpy(mass, dtype):
    case = make_case(1, n_source=(3, 4, 5), mass=mass, dtype=dtype)
    read = case.but(
        histograms=[strict.asarray(each) for each in case.histograms],
        kernels=[strict.asarray(each) for each in case.kernels],
        weights=strict.asarray(case.weights),
    )
    assert_same(read.solve().barycenter, case.solve().barycenter)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("axes", [2, 3])
def test_rules_fuse_as_they_fuse_arrays_of_numpy(rule, axes):
    scores = SCORES[:, 1] if axes == 2 else SCORES
    kernel = ws.kernels.DenseKernel(SIMILAR, symmetric=True) if rule.transports else None
    expected = rule.fuse(scores, kernel, normalize=True).consensus
    assert_same(rule.fuse(strict.asarray(scores), kernel, normalize=True).consensus, expected)


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("product", ["apply", "apply_transpose", "log_apply"])
def test_products_are_those_of_numpy(name, product):
    kernel, _ = BUILDERS[name](np.random.default_rng(7), np.float64)
    vectors = np.random.default_rng(0).random((3, kernel.shape[product != "apply_transpose"]))
    apply = getattr(kernel, product)
    assert_same(apply(strict.asarray(vectors)), apply(vectors))


@pytest.mark.parametrize("name", ["accuracy", "log_loss", "brier_score"])
def test_measures_are_those_of_numpy(name):
    measure = getattr(ws.metrics, name)
    assert measure(strict.asarray(SCORES[1]), strict.asarray(TRUTH)) == measure(SCORES[1], TRUTH)


@pytest.mark.parametrize("name", TAKERS)
def test_an_array_that_numpy_cannot_read_is_refused_by_name(name):
    # As the memory of a graphics card, for CuPy and JAX.
    far = strict.asarray(SCORES[0], device=strict.Device("device1"))
    words = f"`{name}` must be an array that NumPy can read, .*; got an array of array_api_strict"
    with pytest.raises(ws.InvalidInputError, match=words):
        TAKERS[name](far)
