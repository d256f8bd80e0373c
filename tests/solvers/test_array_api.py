"""What is written once for all array libraries asks nothing of them beyond the array API."""

import numpy as np
import pytest

from wassemble._arrays import log_of, log_quotient, namespace
from wassemble.solvers.power_means import log_power_mean

strict = pytest.importorskip("array_api_strict")

SCORES = np.random.default_rng(0).dirichlet(np.ones(5), (3, 4))
SCORES[0, 0, 0] = 0


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
