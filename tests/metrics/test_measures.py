"""Measures: direction, what they need, and resamples beside the drawn samples."""

import numpy as np
import pytest

from wassemble import InvalidInputError, metrics
from wassemble.metrics import Measure, Resamples, measure

MULTICLASS = ("accuracy", "top_5_accuracy", "log_loss", "brier_score", "calibration_error")


@pytest.fixture
def case(rng):
    """Scores for 60 samples and 7 labels, one of them without an answer, and the truth."""
    truth = rng.integers(7, size=60)
    scores = rng.dirichlet(np.ones(7), size=60) + 0.3 * np.eye(7)[truth]
    scores[3] = 0
    return scores, truth


@pytest.mark.parametrize("name", MULTICLASS)
def test_the_truth_itself_has_the_best_score(case, name):
    scores, truth = case
    found = measure(name)
    perfect = np.eye(7)[truth]
    assert found.score(perfect, truth) > found.score(scores, truth)
    assert found.is_loss == (found.value(perfect, truth) < found.value(scores, truth))
    best = max({"right": perfect, "noisy": scores}.items(), key=lambda x: found.score(x[1], truth))
    assert best[0] == "right"
    assert found.value(perfect, truth) == (0 if found.is_loss else 1)
    assert str(found.score(perfect, truth)) in ("0.0", "1.0")  # never -0.0


def test_mean_average_precision_is_higher_for_the_truth(rng):
    truth = (rng.uniform(size=(40, 3)) < 0.4).astype(float)
    assert not measure("mAP").is_loss
    assert measure("mAP").score(truth, truth) == 1 > measure("mAP").score(1 - truth, truth)
    assert measure("mAP").value(truth, np.zeros_like(truth)) == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MULTICLASS)
def test_a_measure_is_the_function_of_that_name(case, name, weighted):
    scores, truth = case
    weight = np.arange(60.0) if weighted else None
    functions = {
        "top_5_accuracy": metrics.top_k_accuracy,
        "calibration_error": metrics.expected_calibration_error,
    }
    expected = functions.get(name, getattr(metrics, name, None))(scores, truth, weight)
    assert measure(name).value(scores, truth, weight) == pytest.approx(expected, rel=1e-12)
    nothing = np.where(scores.any(axis=1, keepdims=True), scores, np.nan)
    assert measure(name).value(nothing, truth, weight) == pytest.approx(expected, rel=1e-12)


def test_a_mean_average_precision_is_the_function_of_that_name(rng):
    truth = (rng.uniform(size=(40, 3)) < 0.4).astype(float)
    truth[rng.uniform(size=truth.shape) < 0.2] = np.nan
    scores, weight = rng.uniform(size=(40, 3)), rng.integers(3, size=40).astype(float)
    for each in (None, weight):
        found = metrics.MEAN_AVERAGE_PRECISION.value(scores, truth, each)
        assert found == pytest.approx(metrics.mean_average_precision(scores, truth, each))


@pytest.mark.parametrize("name", [*MULTICLASS, "f1_macro", "neg_log_loss", "mean", "mAP"])
def test_resampled_scores_are_those_of_the_drawn_samples(case, name):
    scores, truth = case
    found = metrics.MEAN if name == "mean" else measure(name)
    if name == "mean":
        scores = scores[:, 0]
    if name == "mAP":
        truth = np.eye(7)[truth]
        truth[0, 1] = np.nan
    for groups in ((), (np.arange(60) % 9,)):
        resamples = Resamples.draw(60, *groups, n_resamples=3)
        drawn = found.resampled(scores, truth, resamples)
        [counts] = resamples.blocks()
        for value, times in zip(drawn, counts.astype(int), strict=True):
            rows = np.repeat(np.arange(60), times)
            assert value == pytest.approx(found.score(scores[rows], truth[rows]), rel=1e-5)


def test_scikit_learn_scorers_and_functions_are_measures(case):
    from sklearn.metrics import accuracy_score, make_scorer

    scores, truth = case
    scores[3, 0] = 1
    expected = (scores.argmax(axis=1) == truth).mean()
    for metric in (
        "accuracy",
        "ACCURACY",
        metrics.ACCURACY,
        make_scorer(accuracy_score),
        lambda s, t: (s.argmax(1) == t).mean(),
    ):
        assert measure(metric, "multiclass").score(scores, truth) == pytest.approx(expected)
    assert 0.5 < measure("roc_auc_ovr", "multiclass").score(scores, truth) < 1
    many = (scores > 0.3).astype(float)
    assert measure("f1_micro", "multilabel").score(many, many) == 1
    with pytest.raises(InvalidInputError, match="need to know every label"):
        measure("f1_micro").score(many, np.where(many > 0, np.nan, 0))


def test_a_scorer_of_two_labels_says_which_ones_take_more(case):
    scores, truth = case
    for name, others in (("f1", "f1_macro, f1_micro, f1_weighted"), ("roc_auc", "roc_auc_ovo")):
        with pytest.raises(InvalidInputError, match=f"says of '{name}'.*\nhint: .*{others}"):
            measure(name, "multiclass").score(scores, truth)
    with pytest.raises(InvalidInputError, match=r"of 'f1_samples': [^\n]*$"):
        measure("f1_samples", "multiclass").score(scores, truth)
    assert measure("roc_auc", "multiclass").score(np.eye(2)[truth % 2], truth % 2) == 1


def test_scorers_of_probabilities_take_labels_that_never_occur(case):
    scores, truth = case
    found = measure("roc_auc_ovr", "multiclass")
    wide = np.hstack([scores, np.zeros((len(scores), 2))])
    assert found.score(wide, truth) == pytest.approx(found.score(scores, truth))
    # A label that takes an answer from the others still makes it wrong.
    sure = np.eye(9)[np.full(len(truth), 8)]
    assert measure("balanced_accuracy", "multiclass").score(sure, truth) == 0


def test_a_resample_without_a_value_counts_for_nothing():
    scores, truth = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]), np.array([0, 1, 1])
    resamples = Resamples(3, (np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 1.0]]),), (None,))
    drawn = measure("roc_auc", "multiclass").resampled(scores, truth, resamples)
    assert drawn[0] == 1
    assert np.isnan(drawn[1])


def test_a_measure_of_ones_own_has_a_direction():
    losses, truth = np.array([1.0, 3.0]), np.zeros(2)
    found = Measure("steps", lambda values, _: values, is_loss=True)
    assert (found.value(losses, truth), found.score(losses, truth)) == (2, -2)
    assert found == measure(found, "multilabel")
    first, second = losses, losses + 1
    assert metrics.compare(first, second, truth, measure=found).difference == 1
    assert metrics.compare(first, second).difference == -1


def test_a_cost_of_one_for_each_mistake_is_one_less_accuracy(case):
    scores, truth = case
    found = metrics.cost_measure(1 - np.eye(7))
    assert found.value(scores, truth) == pytest.approx(1 - metrics.accuracy(scores, truth))
    assert found.value(scores, truth) == metrics.mean_cost(scores, truth, 1 - np.eye(7))
    with pytest.raises(InvalidInputError, match="'mean_cost' is not for multilabel tasks"):
        measure(found, "multilabel")


@pytest.mark.parametrize(
    ("metric", "task", "message"),
    [
        ("mAP", "multiclass", "is not for multiclass tasks"),
        (metrics.ACCURACY, "multilabel", "is not for multilabel tasks"),
        ("best", "multiclass", "log_loss, .* a scikit-learn scorer or a function; got 'best'"),
        (3, "multiclass", "got 3"),
    ],
)
def test_wrong_measures_are_refused(metric, task, message):
    with pytest.raises(InvalidInputError, match=message):
        measure(metric, task)
