"""The learned temperature: as sure as the samples allow, and no surer."""

import numpy as np
import pytest

from wassemble import Predictions
from wassemble.ensemble.learning import learn_ensemble
from wassemble.ensemble.learning.temperature import fit_temperature, temper

LABELS = ["cat", "dog", "cow"]


def histograms(rng, truth, strength, scale=1.0):
    logits = rng.normal(size=(len(truth), 3))
    logits[np.arange(len(truth)), truth] += strength
    scores = np.exp(scale * logits)
    return scores / scores.sum(axis=1, keepdims=True)


def log_loss(scores, truth):
    return -np.log(np.maximum(scores[np.arange(len(truth)), truth], 1e-12)).mean()


def test_a_rule_that_is_right_on_all_of_few_samples_does_not_become_certain():
    rng = np.random.default_rng(5)
    truth = rng.integers(3, size=430)
    models = [Predictions(name, range(430), LABELS, histograms(rng, truth, 3)) for name in "ab"]
    known, new = slice(0, 30), slice(30, 430)
    names = [LABELS[i] for i in truth]
    learned = learn_ensemble([m.take(known) for m in models], names[known], time_budget=0)
    assert learned.choice.estimate == 1  # otherwise this shows nothing
    fused = learned.predict([m.take(new) for m in models]).scores
    plain = learned.fitted.fuse([m.take(new) for m in models])
    assert 0.1 < learned.temperature < 1
    assert log_loss(fused, truth[new]) < log_loss(plain, truth[new])
    assert f"temperature: {learned.temperature:.3g}; the consensus is made surer" in learned.report


@pytest.mark.parametrize("scale", [0.5, 1, 3])
@pytest.mark.parametrize("n_known", [10, 30])
def test_a_temperature_from_few_samples_does_no_harm(scale, n_known):
    gains = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        truth = rng.integers(3, size=n_known + 500)
        scores = histograms(rng, truth, 1.5, scale)
        found = fit_temperature(scores[:n_known], truth[:n_known])
        new, true = scores[n_known:], truth[n_known:]
        gains.append(log_loss(new, true) - log_loss(temper(new, found), true))
    assert np.mean(gains) > -0.02
    assert np.min(gains) > -0.2


def test_with_many_samples_the_temperature_is_that_of_least_log_loss():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=20_000)
    # Histograms of these logits are as sure as they should be if the scale is the strength.
    scores = histograms(rng, truth, 1.5, scale=3)
    assert fit_temperature(scores, truth) == pytest.approx(2, rel=0.05)


def test_more_samples_of_the_same_kind_hold_less_back():
    scores = np.array([[0.6, 0.4], [0.7, 0.3]])
    truth = np.array([0, 0])
    found = [
        fit_temperature(np.tile(scores, (times, 1)), np.tile(truth, times)) for times in (1, 10, 99)
    ]
    assert 1 > found[0] > found[1] > found[2]


def test_a_sample_of_weight_2_counts_as_two_and_one_of_weight_0_as_none():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=40)
    scores = histograms(rng, truth, 1.5)
    counts = rng.integers(0, 3, size=40)
    weighted = fit_temperature(scores, truth, counts.astype(float))
    repeated = fit_temperature(np.repeat(scores, counts, axis=0), np.repeat(truth, counts))
    assert weighted == pytest.approx(repeated, rel=1e-4)


@pytest.mark.parametrize(
    "scores", [np.eye(3), np.roll(np.eye(3), 1, axis=0), np.zeros((3, 3)), np.full((3, 3), 1 / 3)]
)
def test_histograms_that_no_temperature_changes_have_the_temperature_1(scores):
    assert fit_temperature(scores, np.arange(3)) == 1


def test_a_true_label_without_mass_does_not_decide():
    scores = np.array([[0.8, 0.2, 0.0]] * 20)
    truth = np.array([0, 1] * 10)
    found = fit_temperature(scores, truth)
    more = np.concatenate([scores, scores[:1]])
    assert fit_temperature(more, np.append(truth, 2)) == pytest.approx(found)
