"""A time budget, by a clock that runs when the tests say so: no machine is too slow for it."""

import numpy as np
import pytest

import wassemble as ws
from wassemble import Predictions
from wassemble.ensemble.learning import learn_ensemble
from wassemble.ensemble.learning.clock import Clock
from wassemble.ensemble.learning.fitting import Fitter
from wassemble.ensemble.learning.recipes import list_recipes
from wassemble.ensemble.learning.search import Search
from wassemble.ensemble.learning.trial import read_trial
from wassemble.metrics import ACCURACY
from wassemble.solvers import LogisticStacking, StackedConsensus

LABELS = ["cat", "dog", "cow"]


class Hands:
    """Seconds that pass as they are told to, of the clock and of the processor."""

    def __init__(self):
        self.seconds = self.work = 0.0

    def monotonic(self):
        return self.seconds

    def process_time(self):
        return self.work

    def take(self, seconds):
        self.seconds += seconds
        self.work += seconds


@pytest.fixture
def hands(monkeypatch):
    """The hands of every clock of learning."""
    hands = Hands()
    monkeypatch.setattr("wassemble.ensemble.learning.clock.time", hands)
    return hands


@pytest.fixture
def case(rng):
    """Two models of three labels, and the truth of 90 samples."""
    truth = rng.integers(3, size=90)
    scores = [rng.dirichlet(np.ones(3), 90) + s * np.eye(3)[truth] for s in (0.4, 0.8)]
    scores = [each / each.sum(axis=1, keepdims=True) for each in scores]
    models = [Predictions(f"m{i}", range(90), LABELS, each) for i, each in enumerate(scores)]
    return models, [LABELS[i] for i in truth]


@pytest.mark.parametrize("budget", [1, 5, 20])
@pytest.mark.parametrize("seconds", [0.0005, 0.002, 0.005])
def test_a_slow_metric_keeps_to_the_budget(hands, case, budget, seconds):
    def slow(scores, truth):
        hands.take(seconds)
        return (scores.argmax(axis=1) == truth).mean()

    learned = learn_ensemble(*case, metric=slow, n_folds=2, time_budget=budget)
    assert hands.seconds <= 1.1 * budget
    # Time that is there is used: for trying, or for as many resamples as are usual.
    assert hands.seconds > 0.4 * budget or "the time was over" not in learned.report
    assert len(learned.leaderboard) >= 4


def test_a_rule_that_takes_too_long_is_given_up(hands, case, monkeypatch):
    original = Fitter.fit

    def slow(self, recipe):
        hands.take(0.4 if recipe.weights == "greedy" else 0.001)
        return original(self, recipe)

    monkeypatch.setattr(Fitter, "fit", slow)
    learned = learn_ensemble(*case, n_folds=5, time_budget=1)
    assert hands.seconds <= 1.1 + 0.4  # the fold that was begun is finished
    assert learned.fitted.recipe.weights != "greedy"
    assert "the time was over before every rule was tried" in learned.report


def test_only_slow_metrics_have_fewer_resamples(hands, case):
    trial = read_trial(*case)
    search = Search(trial, ACCURACY, {}, n_folds=2, clock=Clock(0.0))
    search.run(list_recipes(trial, {}))
    assert len(search.bootstrap.resamples) == 1000
    assert search.judging_seconds() == 0


def test_a_stacked_consensus_has_a_smaller_form_where_time_is_short(hands, case):
    trial = read_trial(*case)
    recipes = list_recipes(trial, {})

    def tried(budget):
        search = Search(trial, ACCURACY, {}, n_folds=2, clock=Clock(budget))
        return [each.recipe.rule for each in search.run(recipes) if each.recipe.is_stacked]

    stacker = Search(trial, ACCURACY, {}, n_folds=2).stacker
    whole = stacker.expected_seconds()
    stacker.leave_out_regressions()
    small = stacker.expected_seconds()
    assert small < whole
    assert any(isinstance(rule, LogisticStacking) for rule in tried(2 * whole))
    between = tried((whole + small) / 1.2)
    assert between
    for rule in between:
        assert isinstance(rule, StackedConsensus)
        assert "stacking" not in rule.sees
    assert tried(small) == []


def test_a_busy_machine_is_expected_to_stay_busy(hands, case):
    clock = Clock(10.0)
    assert clock.slowness == 1
    hands.take(1.0)
    assert clock.slowness == 1
    hands.seconds += 2.0  # in which others worked
    assert clock.slowness == pytest.approx(3)
    stackers = [
        Search(read_trial(*case), ACCURACY, {}, 2, clock=each).stacker for each in (clock, Clock())
    ]
    busy, idle = (stacker.expected_seconds() for stacker in stackers)
    assert busy == pytest.approx(3 * idle)


def test_the_smaller_form_is_saved_and_loaded(hands, case, tmp_path):
    trial = read_trial(*case)
    search = Search(trial, ACCURACY, {}, n_folds=2)
    search.stacker.leave_out_regressions()
    recipe = next(r for r in list_recipes(trial, {}) if r.tier == 5).without("stacking")
    fitted = search.fitter.fit(recipe).fusion
    fitted.save(tmp_path)
    expected = fitted.fuse(trial.models).scores
    np.testing.assert_allclose(ws.Fusion.load(tmp_path).fuse(trial.models).scores, expected)
    assert expected.shape == (90, 3)
