"""Rules side by side on the same samples."""

import numpy as np
import pytest

from paper.record.findings import Figure
from paper.record.judging import Judge, simple_rules, tune
from wassemble.metrics import ACCURACY, MEAN


def test_a_paired_gain_is_surer_than_the_figures(rng):
    truth = rng.integers(2, size=400)
    good, better = np.eye(2)[truth], np.eye(2)[truth]
    good[:100] = good[:100, ::-1]
    better[:80] = better[:80, ::-1]
    judge = Judge(ACCURACY, truth)
    own, gain = judge.figure(better), judge.gain(better, good)
    assert own.value == 0.8
    assert gain.value == pytest.approx(0.05)
    assert gain.low > 0
    assert gain.high - gain.low < (own.high - own.low) / 1.5
    assert judge.gain(good, good) == type(gain)(0, 0, 0, is_gain=True)


def test_samples_of_a_group_stand_and_fall_together():
    truth = np.zeros(100, dtype=int)
    scores = np.eye(2)[np.repeat([0, 1], 50)]
    alone = Judge(ACCURACY, truth).figure(scores)
    whole = Judge(ACCURACY, truth, groups=np.repeat(["a", "b"], 50)).figure(scores)
    assert 0.35 < alone.low < alone.high < 0.65
    assert (whole.low, whole.high) == (0, 1)


def test_rules_are_compared_on_the_same_samples():
    judge = Judge(MEAN, np.zeros(4), groups=["a", "a", "b", "b"])
    good, bad = np.ones(4), np.array([1.0, 1.0, 0.0, 0.0])
    found = judge.compare({"good": good, "bad": bad, "both": (good + bad) / 2}, "bad")
    assert found["good"] == [Figure(1, 1, 1), Figure(0.5, 0, 1, is_gain=True)]  # drawn whole
    assert found["bad"][1] is None
    assert found["both"][0].value == 0.75


def test_the_first_of_the_best_settings_is_chosen_with_its_consensus():
    steps = []
    setting, consensus = tune(
        [1, 2, 3, 4],
        lambda setting: np.array([float(setting)]),
        lambda consensus: -abs(consensus[0] - 2.5),
        lambda *step: steps.append(step),
    )
    assert (setting, consensus.tolist()) == (2, [2.0])
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_simple_rules_are_chosen_away_from_the_test_samples(rng):
    truth = rng.integers(3, size=300)
    is_test = np.arange(300) % 2 == 0
    right, wrong = 0.05 + np.eye(3)[truth], 0.05 + np.eye(3)[(truth + 1) % 3]
    models = {
        "good on validation": np.where(is_test[:, None], wrong, right),
        "good on test": np.where(is_test[:, None], right, wrong),
    }
    found = simple_rules(models, truth, is_test, ACCURACY, carry=lambda scores: 2 * scores)
    single, arithmetic, geometric, power = found
    assert single == "best single model (good on validation)"
    assert (arithmetic, geometric) == ("arithmetic mean", "geometric mean")
    assert power.startswith("power mean (order ")
    np.testing.assert_allclose(found["arithmetic mean"], right + wrong)
    np.testing.assert_allclose(found["geometric mean"], 2 * np.sqrt(right * wrong))
