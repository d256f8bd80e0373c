"""Stacked rules: what they are fitted to, and what they make of models that are not there."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import wassemble as ws
from wassemble import InvalidInputError, Predictions
from wassemble.ensemble.learning.stacks import (
    Stacker,
    fit_stacking,
    kernel_of,
    likelihood,
    log_frequencies,
)
from wassemble.ensemble.learning.trial import read_trial
from wassemble.solvers import LogisticStacking, Rule, StackedConsensus
from wassemble.solvers.stacked import GROUPS, Parameters, mark_best

LABELS = ["cat", "lynx", "dog", "wolf"]


def noisy(rng, truth, n_labels, strength):
    scores = np.exp(rng.normal(size=(len(truth), n_labels)) + strength * np.eye(n_labels)[truth])
    return scores / scores.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def trial():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=160)
    scores = noisy(rng, truth, 4, 1.5)
    scores[::7] = np.nan  # did not answer
    models = [
        Predictions("wild", range(160), LABELS, scores),
        Predictions("kinds", range(160), ["feline", "canine"], noisy(rng, truth // 2, 2, 3.0)),
    ]
    return read_trial(models, [LABELS[i] for i in truth], target=ws.LabelSpace(LABELS))


@pytest.fixture(scope="module")
def stacker(trial):
    return Stacker(trial, trial.folds(4, 0), {})


@pytest.fixture(scope="module", params=[LogisticStacking(), StackedConsensus()], ids=str)
def fitted(request, stacker):
    return stacker.fit(request.param)


def test_a_fitted_rule_gives_histograms_and_beats_its_models(trial, fitted):
    scores = fitted.plan(trial.models).fuse(trial.models).scores
    np.testing.assert_allclose(scores.sum(axis=1), 1)
    right = (scores.argmax(axis=1) == trial.truth).mean()
    alone = np.nan_to_num(trial.models[0].scores).argmax(axis=1) == trial.truth
    assert right > alone.mean() + 0.1


def test_what_labels_of_other_names_mean_is_learned(stacker, trial):
    scores = stacker.predict(StackedConsensus())
    feline = scores[:, :2].sum(axis=1) > 0.5
    assert (feline == (trial.truth < 2)).mean() > 0.9


def test_a_batch_is_its_rows_alone(trial, fitted):
    plan = fitted.plan(trial.models)
    together = plan.fuse(trial.models).scores
    for row in (0, 1, 7, 20):
        alone = plan.fuse([model.take(slice(row, row + 1)) for model in trial.models]).scores
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-9, atol=1e-12)


def test_a_model_that_is_absent_everywhere_is_one_of_weight_nothing(trial, fitted):
    plan = fitted.plan(trial.models)
    silent = trial.models[1].replace(scores=np.full_like(trial.models[1].scores, np.nan))
    absent = plan.fuse([trial.models[0], silent]).scores
    weightless = fitted.replace(weights={"wild": 1.0, "kinds": 0.0}).plan(trial.models)
    there = trial.models[0].answered
    np.testing.assert_allclose(absent[there], weightless.fuse(trial.models).scores[there])


def test_a_fitted_fusion_is_saved_and_loaded(trial, fitted, tmp_path):
    fitted.save(tmp_path)
    loaded = ws.Fusion.load(tmp_path)
    assert loaded == fitted
    assert hash(loaded) == hash(fitted)
    again = loaded.plan(trial.models).fuse(trial.models).scores
    np.testing.assert_array_equal(again, fitted.plan(trial.models).fuse(trial.models).scores)


def test_fitted_rules_differ_by_their_numbers(fitted):
    arrays = dict(fitted.rule.arrays)
    other = fitted.rule.with_parameters(arrays | {"coefficients": arrays["coefficients"] * 2})
    assert other != fitted.rule
    assert fitted.rule.with_parameters(arrays) == fitted.rule
    assert Parameters(arrays) == Parameters(dict(reversed(arrays.items())))


def test_a_rule_that_is_not_fitted_says_so():
    with pytest.raises(InvalidInputError, match="must be fitted before it fuses"):
        StackedConsensus().fuse([[[0.5, 0.5]]], [np.eye(2)])


def test_parameters_must_be_those_that_the_rule_was_fitted_to(fitted):
    entries, arrays = fitted.rule.to_dict(), dict(fitted.rule.arrays)
    assert Rule.from_dict(entries, arrays) == fitted.rule
    for wrong in ({}, arrays | {"coefficients": arrays["coefficients"] + 1}):
        with pytest.raises(InvalidInputError, match="the parameters that it was fitted to"):
            Rule.from_dict(entries, wrong)


def test_other_models_than_those_fitted_on_are_refused(fitted):
    with pytest.raises(InvalidInputError, match="fitted on"):
        fitted.rule.fuse([[[0.5, 0.5]]], [np.ones((2, 4))])


def test_features_of_a_fold_do_not_know_its_truth(trial, stacker):
    inside = stacker.folds == 1
    changed = trial.truth.copy()
    changed[inside] = (changed[inside] + 1) % 4
    other = Stacker(type(trial)(trial.models, trial.target, trial.kind, changed), stacker.folds, {})
    seen, same = stacker._seen, other._seen
    blind = ~seen.of(["frequencies"])
    np.testing.assert_array_equal(
        seen.values[inside][:, :, blind], same.values[inside][:, :, blind]
    )
    assert (seen.values[~inside] != same.values[~inside]).any()


def test_a_model_given_five_times_more_does_not_hurt(trial):
    copies = [trial.models[1].replace(model=f"copy {i}") for i in range(5)]
    many = read_trial(
        [*trial.models, *copies], [trial.target[i] for i in trial.truth], target=trial.target
    )
    folds = trial.folds(4, 0)
    once = Stacker(trial, folds, {}).predict(StackedConsensus()).argmax(axis=1) == trial.truth
    often = Stacker(many, folds, {}).predict(StackedConsensus()).argmax(axis=1) == trial.truth
    assert often.mean() > once.mean() - 0.03


def test_contributions_add_up_to_the_margins(trial, fitted):
    if not isinstance(fitted.rule, StackedConsensus):
        return
    plan = fitted.plan(trial.models)
    sight = plan.look_at(trial.models, 3)
    total = sum(values for _, values in fitted.rule.contributions(sight))
    np.testing.assert_allclose(total, fitted.rule.margins(sight))
    assert {feature.group for feature, _ in fitted.rule.contributions(sight)} <= set(GROUPS)


def test_an_explanation_names_models_and_features(trial, stacker):
    result = stacker.fit(StackedConsensus()).run(trial.models)
    told = ws.explain(result, "3", n_largest=50)
    names = {each.model for each in told.contributions}
    assert {"wild", "kinds", "all models"} <= names
    assert sum(max(each.percent, 0) for each in told.contributions) == pytest.approx(100)
    assert "logit" in str(told)


@given(st.lists(st.integers(0, 40), min_size=2, max_size=12).filter(any), st.randoms())
def test_frequencies_are_a_law_that_follows_the_counts(counts, random):
    counts = np.array(counts)
    frequencies = log_frequencies(counts)
    assert np.exp(frequencies).sum() == pytest.approx(1)
    assert (np.diff(frequencies[np.argsort(counts)]) >= -1e-12).all()
    # No further apart than the counts themselves.
    assert np.ptp(np.exp(frequencies)) <= np.ptp(counts / counts.sum()) + 1e-12
    order = random.sample(range(len(counts)), len(counts))
    np.testing.assert_allclose(log_frequencies(counts[order]), frequencies[order], rtol=1e-6)


def test_frequencies_do_not_tell_labels_with_one_sample_from_those_with_none():
    frequencies = np.exp(log_frequencies(np.repeat([1, 0], [30, 180])))
    assert np.ptp(frequencies) < 1e-4 * frequencies.mean()


def test_likelihoods_are_of_labels_given_the_truth():
    chances = likelihood(np.array([[9.0, 1.0], [1.0, 0.0]]), np.eye(2), prior=0.5)
    np.testing.assert_allclose(chances.sum(axis=0), 1)
    assert chances[0, 0] > 0.8
    # A label that is twice as frequent says no more by that.
    twice = likelihood(np.array([[18.0, 1.0], [2.0, 0.0]]), np.zeros((2, 2)), prior=0.0)
    once = likelihood(np.array([[9.0, 1.0], [1.0, 0.0]]), np.zeros((2, 2)), prior=0.0)
    np.testing.assert_allclose(kernel_of(twice), kernel_of(once), atol=0.02)


def test_equally_good_answers_share_the_vote():
    np.testing.assert_array_equal(
        mark_best(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.1, 0.2, 0.3]])),
        [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
    )


@pytest.mark.parametrize(
    "truth", [np.array([0, 1, 1, 1]), np.array([[0.0, 1.0]] * 3 + [[1.0, 0.0]])]
)
def test_scores_that_never_vary_leave_the_frequencies_to_stacking(truth):
    task = "multiclass" if truth.ndim == 1 else "multilabel"
    rule = fit_stacking(LogisticStacking(task), np.full((4, 3), 0.5), truth, 2)
    margins = np.full((1, 3), 0.5) @ rule.arrays["coefficients"].T + rule.arrays["intercepts"]
    assert rule.to_scores(margins)[0, 1] > 0.6
