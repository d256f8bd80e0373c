"""An automatic epsilon gives the median label the neighbours that were asked for."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

import wassemble as ws
from wassemble.kernels import AutoEpsilon, from_cost_table
from wassemble.kernels.builders.auto_epsilon import choose_epsilon

NAMES = [f"label {k}" for k in range(40)]


@pytest.fixture
def cost(rng):
    points = rng.normal(size=(len(NAMES), 3))
    return np.linalg.norm(points[:, None] - points, axis=-1)


@pytest.mark.parametrize("n_effective", [1.2, 3, 10, 35])
def test_the_median_label_has_the_neighbours_asked_for(cost, n_effective):
    kernel = from_cost_table(cost, NAMES, epsilon=AutoEpsilon(n_effective=n_effective))
    assert_allclose(kernel.account().n_effective[1], n_effective, rtol=1e-3)


def test_auto_means_three_neighbours(cost):
    kernel = from_cost_table(cost, NAMES)
    assert_allclose(kernel.account().n_effective[1], 3, rtol=1e-3)
    assert "(auto: median of 3 effective neighbours)" in kernel.origin


def test_an_entropy_is_the_log_of_a_number_of_neighbours(cost):
    by_entropy = choose_epsilon(AutoEpsilon(target_entropy=math.log(5)), cost.__getitem__, 40)
    assert by_entropy == choose_epsilon(AutoEpsilon(n_effective=5), cost.__getitem__, 40)


def test_two_labels_have_a_closed_form():
    # The row (1, exp(-1 / epsilon)) has 1.5 effective neighbours.
    value, words = choose_epsilon("auto", np.array([[0.0, 1.0], [1.0, 0.0]]).__getitem__, 2)
    share = 1 / (1 + math.exp(-1 / value))
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert_allclose(math.exp(entropy), 1.5, rtol=1e-3)
    assert words == f"epsilon {value:g} (auto: median of 1.5 effective neighbours)"


def test_the_epsilon_that_is_told_makes_the_same_kernel(cost):
    kernel = from_cost_table(cost, NAMES)
    told = float(kernel.origin.split("epsilon ")[1].split()[0])
    again = from_cost_table(cost, NAMES, epsilon=told)
    assert np.array_equal(kernel.to_dense(), again.to_dense())


@given(scale=st.floats(1e-6, 1e6), shift=st.floats(0, 10))
def test_epsilon_goes_with_the_scale_of_costs_and_not_with_their_level(scale, shift):
    points = np.random.default_rng(1).normal(size=(12, 2))
    cost = np.linalg.norm(points[:, None] - points, axis=-1)
    value, _ = choose_epsilon("auto", cost.__getitem__, 12)
    other, _ = choose_epsilon("auto", (scale * (cost + shift)).__getitem__, 12)
    assert_allclose(other, scale * value, rtol=2e-3)


def test_pairs_that_are_never_joined_do_not_count(cost):
    cut = np.where(cost < np.sort(cost, axis=1)[:, [8]], cost, np.inf)
    cut[0] = np.inf
    kernel = from_cost_table(cut, NAMES)
    assert_allclose(kernel.account().n_effective[1], 3, rtol=1e-3)


def test_labels_without_a_choice_take_any_epsilon():
    cost = np.where(np.eye(3), 0, np.inf)
    assert choose_epsilon("auto", cost.__getitem__, 3) == (
        1.0,
        "epsilon 1 (auto: no label has a choice)",
    )
    assert np.array_equal(from_cost_table([[5.0]], ["a"]).to_dense(), [[math.exp(-5)]])


def test_only_some_rows_are_looked_at_in_a_large_table():
    asked = []

    def cost_of(rows):
        asked.append(len(rows))
        return np.abs(rows[:, None] - np.arange(10_000))

    value, words = choose_epsilon("auto", cost_of, 10_000)
    assert asked == [256]
    assert "median of 3 effective" in words
    assert 0.1 < value < 1


@pytest.mark.parametrize("wanted", [1.0, 4.0, 1e9])
def test_a_number_that_cannot_be_reached_is_refused(wanted):
    cost = 1.0 - np.eye(4)
    words = (
        rf"the median label must be able to have {wanted:.4g} effective neighbours; it can have"
        r" more than 1 and fewer than 4.\nhint: give `epsilon` as a number"
    )
    with pytest.raises(ws.InvalidInputError, match=words.replace("+", r"\+")):
        from_cost_table(cost, list("abcd"), epsilon=AutoEpsilon(n_effective=wanted))


def test_equal_costs_everywhere_leave_nothing_to_choose():
    with pytest.raises(ws.InvalidInputError, match="more than 3 and fewer than 3"):
        from_cost_table(np.zeros((3, 3)), list("abc"))


@pytest.mark.parametrize("wrong", ["automatic", 0, -1.0, np.nan, None, True])
def test_an_epsilon_is_a_number_above_0_or_auto(wrong):
    with pytest.raises(
        ws.InvalidInputError, match=r"`epsilon` must be (a number|finite and) above"
    ):
        from_cost_table(np.eye(2), list("ab"), epsilon=wrong)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_effective": 2, "target_entropy": 1}, "two words for one thing; got both"),
        ({"n_effective": 0.5}, "`n_effective` must be finite and at least 1; got 0.5"),
        ({"n_effective": "many"}, "`n_effective` must be"),
        ({"target_entropy": -1.0}, "`target_entropy` must be finite and at least 0"),
    ],
)
def test_what_is_asked_for_is_checked(options, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        AutoEpsilon(**options)
