"""The tests' own choice of cases."""

from itertools import combinations, product
from math import prod

import pytest
from covering import cover


@pytest.mark.parametrize("strength", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(5, 8, 4, 2, 2), (7, 3, 2, 2, 2, 2), (2, 6, 3, 2), (1, 4, 1, 3)])
def test_any_few_values_meet_in_some_case(sizes, strength):
    cases = cover(strength, sizes)
    assert len(set(cases)) == len(cases)
    assert len(cases) <= 1.5 * prod(sorted(sizes)[-strength:])
    for axes in combinations(range(len(sizes)), strength):
        found = {tuple(case[axis] for axis in axes) for case in cases}
        assert found == set(product(*(range(sizes[axis]) for axis in axes)))
