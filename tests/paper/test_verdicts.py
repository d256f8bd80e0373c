"""Claims that hold, fail, or cannot be decided."""

import numpy as np
import pytest

from paper.record.findings import Claim, Figure
from paper.record.judging import Judge
from paper.record.verdicts import (
    all_hold,
    claim_all,
    claim_gains,
    conclude,
    held,
    is_within,
    share,
    smallest_exception,
    smallest_visible,
)
from wassemble.metrics import MEAN


def gain(value, low, high):
    return Figure(value, low, high, is_gain=True)


@pytest.mark.parametrize(
    ("low", "high", "stated", "expected"),
    [
        (0.01, 0.03, None, True),
        (0.01, 0.03, 0.1, True),  # smaller than the paper's, but a gain
        (-0.03, -0.01, None, False),
        (-0.01, 0.01, None, None),
        (-0.01, 0.01, 0.02, False),  # that much would have been seen
        (-0.01, 0.01, 0.005, None),
        (-0.01, 0.01, 0.011, None),  # that much might have been missed
        (0.0, 0.0, None, None),  # the same answers throughout
    ],
)
def test_a_claim_fails_only_if_what_it_states_would_have_been_seen(low, high, stated, expected):
    assert held(gain((low + high) / 2, low, high), stated) is expected


def test_a_change_whose_interval_has_a_bound_inside_cannot_be_decided():
    assert is_within(Figure(0.0, -0.1, 0.1), -0.2, 0.2) is True
    assert is_within(Figure(0.0, -0.3, 0.1), -0.2, 0.2) is None
    assert is_within(Figure(-0.4, -0.5, -0.3), -0.2, 0.2) is False


def test_one_failure_fails_a_claim_of_several_gains():
    assert all_hold([True, True]) is True
    assert all_hold([True, None]) is None
    assert all_hold([None, False, True]) is False


def test_a_share_is_judged_by_its_interval():
    assert is_within(share(35, 45), 0.9, 1) is False
    assert is_within(share(43, 45), 0.9, 1) is None
    assert is_within(share(450, 450), 0.9, 1) is True


def test_what_holds_in_every_case_seen_may_have_exceptions_that_were_not():
    claim = claim_all("it is convex", "proposition 1", 100, 100, "images")
    assert (claim.held, claim.power) == (True, "1.6 % of images")
    assert claim_all("it is convex", "proposition 1", 99, 100, "images").held is False
    # One that is rarer than what is told is missed more often than once in five times.
    assert 1 - (1 - smallest_exception(100)) ** 100 == pytest.approx(0.8)


def test_an_effect_of_the_smallest_visible_size_is_seen_four_times_out_of_five(rng):
    n_draws, n_samples = 300, 100
    power = smallest_visible(gain(0, -1.96 / np.sqrt(n_samples), 1.96 / np.sqrt(n_samples)))
    n_seen = 0
    for _ in range(n_draws):
        judge = Judge(MEAN, np.zeros(n_samples))
        better = rng.normal(power, 1, size=n_samples)
        n_seen += held(judge.gain(better, np.zeros(n_samples))) is True
    assert 0.7 < n_seen / n_draws < 0.9


def test_a_claim_has_its_gains_the_papers_and_its_power():
    gains = {"a": gain(0.02, 0.01, 0.03), "b": gain(0.0, -0.02, 0.02)}
    claim = claim_gains("it gains", "table 6", gains, stated={"b": 0.01}, beside="more", digits=2)
    assert claim == Claim(
        "it gains",
        "table 6",
        None,
        "+0.02 [+0.01, +0.03] over a, +0.00 [-0.02, +0.02] over b (paper +0.01); more",
        "0.01, 0.03",
    )


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([True], "The paper's claim holds here: few images."),
        ([None, None], "Neither of the paper's 2 claims can be decided here: few images."),
        ([True, True, True], "All 3 of the paper's claims hold here: few images."),
        (
            [True, True, None, False],
            "Of the paper's 4 claims, 2 hold, 1 fails and 1 cannot be decided here: few images.",
        ),
    ],
)
def test_an_experiment_is_summed_up_in_a_sentence(verdicts, expected):
    claims = [Claim("", "", verdict, "") for verdict in verdicts]
    assert conclude(claims, "few images") == expected
    assert "paper" not in conclude(claims, "few images", whose="our")
