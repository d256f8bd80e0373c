"""The cost of answers, by hand and at its limits."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from wassemble import InvalidInputError
from wassemble.metrics import accuracy, mean_cost, mean_cost_of_mistakes

STEPS = [[0, 2, 4], [3, 0, 4], [5, 4, 0]]  # husky, beagle, car; not symmetric


def test_rows_are_the_truth_and_columns_the_answers():
    scores = [[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]
    assert mean_cost(scores, [0, 1, 2], STEPS) == 1
    assert mean_cost_of_mistakes(scores, [0, 1, 2], STEPS) == 3
    assert mean_cost([0, 0, 2], [0, 1, 2], STEPS) == 1
    assert mean_cost_of_mistakes([1, 0, 2], [0, 1, 2], STEPS) == 2.5


def test_no_answer_costs_as_much_as_the_worst():
    assert mean_cost([[np.nan] * 3], [1], STEPS) == 4
    assert mean_cost([-1], [2], STEPS) == 5
    assert mean_cost_of_mistakes([[0, 0, 0], [1, 0, 0]], [2, 0], STEPS) == 5


def test_without_mistakes_their_cost_is_nan():
    assert math.isnan(mean_cost_of_mistakes(np.eye(3), [0, 1, 2], STEPS))


def test_answers_may_be_more_than_the_labels():
    to_nodes = [[0, 2, 1], [2, 0, 1]]  # husky, beagle, "some dog"
    assert mean_cost([2, 1], [0, 1], to_nodes) == 0.5


@given(st.integers(0, 2**16), st.integers(1, 5))
def test_cost_1_for_each_mistake_is_one_minus_accuracy(seed, n_labels):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(n_labels), size=9) * (rng.uniform(size=(9, 1)) > 0.2)
    truth = rng.integers(n_labels, size=9)
    cost = 1 - np.eye(n_labels)
    if n_labels > 1:
        assert mean_cost(scores, truth, cost) == pytest.approx(1 - accuracy(scores, truth))
    mistakes = mean_cost_of_mistakes(scores, truth, cost + 1)
    assert math.isnan(mistakes) or mistakes == (2 if n_labels > 1 else 1)


def test_bad_costs_are_named():
    with pytest.raises(InvalidInputError, match=r"`cost` must be a matrix.*got shape \(2,\)"):
        mean_cost([[1, 0]], [0], [0, 1])
    with pytest.raises(InvalidInputError, match="each of the 3 columns of `cost`; got 2 labels"):
        mean_cost([[1, 0]], [0], STEPS)
    with pytest.raises(InvalidInputError, match="`truth` must be from 0 to 2; got 3 at sample 0"):
        mean_cost([1], [3], STEPS)
    with pytest.raises(InvalidInputError, match="from 0 to 2, or -1 for none; got 3 at sample 0"):
        mean_cost([3], [1], STEPS)
    with pytest.raises(InvalidInputError, match="must not be negative; got -1 at row 0, column 1"):
        mean_cost([1], [0], [[0, -1], [1, 0]])
    with pytest.raises(InvalidInputError, match=r"`cost` must be square.*got shape \(1, 2\)"):
        mean_cost_of_mistakes([1], [0], [[0, 1]])
