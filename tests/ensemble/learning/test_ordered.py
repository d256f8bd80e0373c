"""Learning where labels have an order: exact barycenters are tried, and seen by the stack."""

from dataclasses import replace

import numpy as np
import pytest

import wassemble as ws
from wassemble.ensemble.learning.recipes import list_recipes, read_rules
from wassemble.ensemble.learning.stacks import Stacker
from wassemble.ensemble.learning.trial import read_trial
from wassemble.solvers import StackedConsensus
from wassemble.solvers.rules import Rule

GRADES = ["1", "2", "3", "4", "5"]


@pytest.fixture
def task(rng):
    """Two models that are near, one too low and one too high: between them lies the truth."""
    truth = rng.integers(1, 4, size=150)
    models = []
    for name, shift in (("low", -1), ("high", 1)):
        centre = truth + shift + rng.normal(scale=0.2, size=150)
        scores = np.exp(-3 * (np.arange(5) - centre[:, None]) ** 2)
        scores /= scores.sum(axis=1, keepdims=True)
        models.append(ws.Predictions(name, range(150), GRADES, scores))
    return models, {str(i): GRADES[place] for i, place in enumerate(truth)}


def lines_of(recipes):
    return [r for r in recipes if isinstance(r.rule, ws.LineBarycenter)]


def test_the_mean_of_quantiles_is_found_where_it_is_right(task):
    models, truth = task
    learned = ws.learn_ensemble(models, truth, metric="rps", target=GRADES, n_folds=3, seed=0)
    tried = {line.recipe.rule: line.score for line in learned.leaderboard}
    assert tried[ws.LineBarycenter(2)] > tried[ws.ARITHMETIC] + 0.1
    fused = ws.LineBarycenter(2).fuse([model.scores for model in models]).scores
    places = np.array([GRADES.index(truth[str(i)]) for i in range(150)])
    expected = -ws.metrics.ranked_probability_score(fused, places)
    assert tried[ws.LineBarycenter(2)] == pytest.approx(expected, abs=1e-6)


def test_rules_on_offer_are_tried_beside_the_usual_ones(task):
    models, truth = task
    trial = read_trial(models, truth)
    rules = read_rules(
        [ws.LineBarycenter(2), lambda target: ws.TreeBarycenter([5] * 5 + [-1])], trial.target
    )
    recipes = list_recipes(trial, {}, rules)
    assert {recipe.rule for recipe in set(recipes) - set(list_recipes(trial, {}))} == set(rules)


@pytest.mark.parametrize("wrong", [ws.Single("low"), "line", StackedConsensus("multiclass")])
def test_what_is_no_rule_to_try_is_refused(task, wrong):
    with pytest.raises(ws.InvalidInputError, match="must be rules that need no fit"):
        ws.learn_ensemble(*task, rules=[wrong])


def test_rules_are_tried_with_truth_alone(task):
    with pytest.raises(ws.InvalidInputError, match="`rules` must go with `truth`"):
        ws.learn_ensemble(task[0], rules=[ws.LineBarycenter(1)])


def test_labels_without_an_order_are_not_put_on_a_line(task):
    models, truth = task
    trial = read_trial(models, truth)
    assert not lines_of(list_recipes(trial, {}))
    ordered = [r for r in list_recipes(_in_order(trial), {}) if not r.is_stacked]
    assert len(lines_of(ordered)) == 6  # two rules by three ways to weigh models
    assert {r.tier for r in lines_of(ordered)} == {2}


def _in_order(trial):
    return replace(trial, target=trial.target.on_line())


def test_a_stacked_consensus_sees_both_barycenters(task):
    models, truth = task
    trial = _in_order(read_trial(models, truth))
    (whole, less) = [r for r in list_recipes(trial, {}) if r.tier == 5]
    assert "order" in whole.rule.sees
    assert "order" not in less.rule.sees
    fusion = Stacker(trial, trial.folds(3, 0), {}).fit(whole.rule)
    plan = fusion.plan(trial.models)
    names = [f.name for f, _ in plan.rule.contributions(plan.look_at(trial.models, 0))]
    assert {"median on a line", "mean of quantiles"} <= set(names)
    back = Rule.from_dict(plan.rule.to_dict(), plan.rule.arrays)
    assert isinstance(back, StackedConsensus)
    assert back.knowledge.positions.tolist() == [0, 1, 2, 3, 4]
