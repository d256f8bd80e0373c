"""Krippendorff's alpha beside the package of that name."""

import numpy as np
import pytest

from wassemble.errors import InvalidInputError
from wassemble.metrics import krippendorff_alpha


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_alpha_is_that_of_the_package(rng, level):
    krippendorff = pytest.importorskip("krippendorff")
    counts = rng.poisson(1.0, size=(40, 4))
    counts[:, 1] += 2
    expected = krippendorff.alpha(
        value_counts=counts, value_domain=range(4), level_of_measurement=level
    )
    positions = None if level == "nominal" else np.arange(4)
    assert krippendorff_alpha(counts, positions) == pytest.approx(expected)


def test_alpha_of_what_cannot_be_compared_is_nan():
    assert np.isnan(krippendorff_alpha([[1, 0], [0, 1]]))
    assert np.isnan(krippendorff_alpha([[2, 0], [3, 0]]))
    assert krippendorff_alpha([[2, 0], [0, 2]]) == 1
    with pytest.raises(InvalidInputError, match="`counts` must have shape"):
        krippendorff_alpha([1, 2])
