"""Krippendorff's alpha."""

import numpy as np
import pytest

from wassemble.errors import InvalidInputError
from wassemble.metrics import krippendorff_alpha

# Krippendorff 2011, section E: four observers, twelve units, values 1 to 5, 0 where none is given.
OBSERVED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]


@pytest.mark.parametrize(("is_ordered", "published"), [(False, 0.743), (True, 0.815)])
def test_alpha_is_the_published_one(is_ordered, published):
    counts = [np.bincount(unit, minlength=6)[1:] for unit in np.transpose(OBSERVED)]
    alpha = krippendorff_alpha(counts, is_ordered=is_ordered)
    assert alpha == pytest.approx(published, abs=5e-4)


def test_alpha_of_what_cannot_be_compared_is_nan():
    assert np.isnan(krippendorff_alpha([[1, 0], [0, 1]]))
    assert np.isnan(krippendorff_alpha([[2, 0], [3, 0]]))
    assert krippendorff_alpha([[2, 0], [0, 2]]) == 1
    with pytest.raises(InvalidInputError, match="`counts` must have shape"):
        krippendorff_alpha([1, 2])
