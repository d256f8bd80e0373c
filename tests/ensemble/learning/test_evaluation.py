"""Held-out samples: every rule judged on them, and what follows."""

import json
from dataclasses import replace

import numpy as np
import pytest
from report.trials import animals, breeds, choose_instead, tags
from sklearn.linear_model import LogisticRegression

from wassemble import InvalidInputError, Predictions
from wassemble.ensemble.learning import FittedRecipe, learn_ensemble
from wassemble.ensemble.learning.evaluation import evaluate_ensemble, read_held_out
from wassemble.ensemble.learning.stacks import fit_stacking
from wassemble.metrics import accuracy, mean_average_precision, precision_recall_f1
from wassemble.solvers import LogisticStacking, PowerMean


@pytest.fixture(scope="module")
def case():
    return breeds()


@pytest.fixture(scope="module")
def found(case):
    return evaluate_ensemble(case.learned, case.models, case.truth)


def test_the_chosen_rule_and_every_rival_are_judged_best_first(case, found):
    assert len(found.outcomes) == 1 + len(case.learned.rivals)
    assert found.chosen.recipe == case.learned.fitted.recipe
    scores = [each.score for each in found.outcomes]
    assert scores == sorted(scores, reverse=True)
    others = [each for each in found.outcomes if each.is_simple and not each.is_chosen]
    assert found.best_simple.score == max(each.score for each in others)
    assert found.best_single.recipe.model is not None
    assert found.n_samples == len(case.truth)


def test_scores_are_those_of_what_predict_returns(case, found):
    consensus = case.learned.predict(case.models)
    right = np.array(consensus.labels)[consensus.scores.argmax(axis=1)] == case.truth
    assert found.chosen.score == pytest.approx(right.mean())
    assert found.chosen.figures["accuracy"] == pytest.approx(right.mean())
    truth = case.learned.target.places(case.truth)
    assert found.sharpened["accuracy"] == pytest.approx(accuracy(consensus.scores, truth))
    assert found.sharpened["log_loss"] <= found.chosen.figures["log_loss"] + 0.1


def test_differences_are_paired_and_belong_to_the_scores(found):
    assert found.chosen.against_chosen is None
    for each in found.outcomes:
        assert each.low <= each.score <= each.high
        assert each.standard_error > 0
        assert each.microseconds > 0
        if not each.is_chosen:
            gap = each.against_chosen
            assert gap.difference == pytest.approx(each.score - found.chosen.score)
            assert gap.low <= gap.difference <= gap.high


@pytest.mark.parametrize("make", [breeds, tags, animals])
def test_stacking_is_judged_as_fitted_on_all_validation_samples(make):
    case = make()
    found = evaluate_ensemble(case.learned, case.models, case.truth)
    stacked = next(e for e in found.outcomes if isinstance(e.recipe.rule, LogisticStacking))
    assert stacked.name == "logistic-regression stacking (C = 3)"
    assert not stacked.is_simple
    trial = read_held_out(case.learned, case.models, case.truth)
    chance = 1 / len(trial.target) if trial.task == "multiclass" else trial.truth.mean()
    assert stacked.score > chance + 0.1


def test_stacking_gives_what_scikit_learns_model_gives(case):
    trial = read_held_out(case.learned, case.models, case.truth)
    n_target = len(trial.target)
    features = np.hstack([model.scores for model in trial.models])
    for few in (trial, trial.take(trial.truth < 2), trial.take(trial.truth > 1)):
        model = LogisticRegression(C=10.0, max_iter=100, tol=1e-3)
        own = np.hstack([each.scores for each in few.models])
        model.fit(own, few.truth)
        rule = fit_stacking(LogisticStacking(strength=10.0), own, few.truth, n_target)
        margins = features @ rule.arrays["coefficients"].T + rule.arrays["intercepts"]
        scores = rule.to_scores(margins)
        np.testing.assert_allclose(scores[:, model.classes_], model.predict_proba(features))
        assert np.delete(scores, model.classes_, axis=1).sum() == 0


def test_the_best_simple_rule_is_compared_with_the_chosen_one(case):
    worst = case.learned.leaderboard[-1].recipe
    learned = choose_instead(case.learned, lambda recipe: recipe == worst)
    found = evaluate_ensemble(learned, case.models, case.truth)
    assert found.gain.difference == pytest.approx(found.chosen.score - found.best_simple.score)
    assert found.gain.difference < 0
    assert found.is_worse_than_simple
    assert found.verdict == "worse, by more than one standard error"
    best = evaluate_ensemble(
        choose_instead(case.learned, lambda recipe: recipe == found.best_simple.recipe),
        case.models,
        case.truth,
    )
    assert best.best_simple.name != best.chosen.name  # the next best, not itself
    assert best.gain.difference >= 0
    assert not best.is_worse_than_simple


def test_a_simple_rule_may_have_learned_weights_and_a_plain_one_none(case):
    mean = next(rule for rule in case.learned.rivals if isinstance(rule.recipe.rule, PowerMean))
    alone = choose_instead(case.learned, lambda recipe: recipe.model is not None)
    weights = {"one": 0.6, "two": 0.3, "three": 0.1}
    weighted = FittedRecipe.of(replace(mean.recipe, weights="metric"), mean.fusion, weights)
    learned = replace(alone, rivals=(weighted,))
    found = evaluate_ensemble(learned, case.models, case.truth)
    assert found.best_simple.recipe == weighted.recipe
    assert found.best_plain is found.chosen
    assert found.gain.difference == pytest.approx(found.chosen.score - found.best_simple.score)
    by_name = {each.name: each for each in found.outcomes}
    assert by_name[weighted.recipe.name].is_simple
    assert not by_name[weighted.recipe.name].is_plain
    assert found.chosen.is_plain


def test_without_another_simple_rule_nothing_is_compared(case):
    alone = choose_instead(case.learned, lambda recipe: recipe.model is not None)
    found = evaluate_ensemble(replace(alone, rivals=()), case.models, case.truth)
    assert found.best_simple is None
    assert found.to_dict()["best_simple"] is None
    assert not found.is_worse_than_simple
    assert found.verdict == "there is no other simple rule"
    assert "best simple rule" not in "\n".join(found.lines())


def test_models_come_in_any_order_of_models_samples_and_labels(case, found, rng):
    order = rng.permutation(len(case.truth))
    turned = [
        Predictions(m.model, m.samples[order], list(m.labels)[::-1], m.scores[order, ::-1])
        for m in reversed(case.models)
    ]
    truth = dict(zip(case.models[0].samples.tolist(), case.truth, strict=True))
    again = evaluate_ensemble(case.learned, {m.model: m for m in turned}, truth)
    expected = {each.recipe: each.score for each in found.outcomes}
    assert {each.recipe: each.score for each in again.outcomes} == pytest.approx(expected)


def test_the_seed_decides_the_bootstrap(case, found):
    again = evaluate_ensemble(case.learned, case.models, case.truth)
    other = evaluate_ensemble(case.learned, case.models, case.truth, seed=1)
    errors = [each.standard_error for each in found.outcomes]
    assert [each.standard_error for each in again.outcomes] == errors
    assert [each.standard_error for each in other.outcomes] != errors
    assert [each.score for each in other.outcomes] == [each.score for each in found.outcomes]


def test_sample_weights_count_samples_more_than_once(case):
    weight = np.zeros(len(case.truth))
    weight[:50] = 2
    found = evaluate_ensemble(case.learned, case.models, case.truth, sample_weight=weight)
    half = evaluate_ensemble(
        case.learned, [m.take(slice(50)) for m in case.models], case.truth[:50]
    )
    assert found.chosen.score == pytest.approx(half.chosen.score)
    assert found.chosen.figures == pytest.approx(half.chosen.figures)
    assert "calibration_error" in found.chosen.figures


def test_multi_label_rules_are_compared_without_thresholds():
    case = tags()
    found = evaluate_ensemble(case.learned, case.models, case.truth)
    scores = case.learned.predict(case.models).scores
    truth = np.array([[name in row for name in case.learned.target] for row in case.truth]) * 1
    assert found.metric == "mAP"
    assert found.sharpened is None
    assert found.chosen.score == pytest.approx(mean_average_precision(scores, truth))
    top = precision_recall_f1(scores, truth, top_k=3)
    assert found.chosen.figures["top_3_f1_overall"] == pytest.approx(top.f1_overall)
    decided = precision_recall_f1(scores, truth, threshold=case.learned.thresholds)
    assert found.decided["f1_per_class"] == pytest.approx(decided.f1_per_class)


def test_labels_of_models_and_consensus_may_differ():
    case = animals()
    found = evaluate_ensemble(case.learned, case.models, case.truth)
    assert found.task == "multiclass"
    assert found.chosen.score > 0.4
    assert "top_5_accuracy" not in found.chosen.figures  # there are four animals


def test_what_is_found_goes_into_json_and_a_table(case, found):
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["chosen"] == found.chosen.name
    assert record["outcomes"][0]["score"] == found.outcomes[0].score
    assert {row["rule"] for row in found.rows} == {each.name for each in found.outcomes}
    text = "\n".join(found.lines())
    assert f"* {found.chosen.score:.4f}" in text
    assert f"best simple rule beside the chosen one: {found.best_simple.name}" in text


def test_a_missing_model_or_label_is_named(case):
    with pytest.raises(InvalidInputError, match="three is missing"):
        evaluate_ensemble(case.learned, case.models[:2], case.truth)
    first = case.models[0]
    less = Predictions("one", first.samples, list(first.labels)[:5], first.scores[:, :5])
    with pytest.raises(InvalidInputError, match="labels of 'one' must be those"):
        evaluate_ensemble(case.learned, [less, *case.models[1:]], case.truth)
    lists = [[name] for name in case.truth]
    with pytest.raises(InvalidInputError, match="truth must be multiclass"):
        evaluate_ensemble(case.learned, case.models, lists)


def test_a_metric_of_ones_own_is_given_again():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=40)
    model = Predictions("a", range(40), ["cat", "dog"], np.eye(2)[truth] * 0.6 + 0.2)
    names = [["cat", "dog"][i] for i in truth]

    def share_right(scores, truth):
        return (scores.argmax(axis=1) == truth).mean()

    learned = learn_ensemble([model], names, metric=share_right, n_folds=2)
    with pytest.raises(InvalidInputError, match="must be given again"):
        evaluate_ensemble(learned, [model], names)
    found = evaluate_ensemble(learned, [model], names, metric=share_right)
    assert (found.metric, found.chosen.score) == ("share_right", 1.0)
