"""Metrics of one true label per sample: by hand, beside scikit-learn, and their laws."""

import math
import subprocess
import sys

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, strategies as st

from wassemble import InvalidInputError
from wassemble.metrics import accuracy, brier_score, log_loss, top_k_accuracy

METRICS = [accuracy, log_loss, brier_score, top_k_accuracy]


def draw_case(seed, n_samples=30, n_labels=7):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.full(n_labels, 0.5), size=n_samples)
    return scores, rng.integers(n_labels, size=n_samples), rng.uniform(size=n_samples)


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_equal_those_of_scikit_learn(weighted):
    scores, truth, weight = draw_case(0)
    weight = weight if weighted else None
    names = np.arange(7)
    expected = {
        accuracy: sklearn.metrics.accuracy_score(
            truth, scores.argmax(axis=1), sample_weight=weight
        ),
        log_loss: sklearn.metrics.log_loss(truth, scores, labels=names, sample_weight=weight),
        top_k_accuracy: sklearn.metrics.top_k_accuracy_score(
            truth, scores, k=5, labels=names, sample_weight=weight
        ),
        brier_score: sklearn.metrics.brier_score_loss(
            truth, scores, labels=names, sample_weight=weight, scale_by_half=False
        ),
    }
    for metric, value in expected.items():
        assert metric(scores, truth, weight) == pytest.approx(value, rel=1e-12), metric.__name__


def test_closed_forms_of_two_samples():
    scores, truth = [[0.5, 0.5], [0.25, 0.75]], [1, 1]
    assert accuracy(scores, truth) == 0.5  # the first of equal scores answers
    assert log_loss(scores, truth) == pytest.approx((math.log(2) + math.log(4 / 3)) / 2)
    assert brier_score(scores, truth) == pytest.approx((0.5 + 0.125) / 2)
    assert accuracy(scores, truth, [1, 3]) == 0.75


@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0, 0.0], [np.nan] * 4])
def test_a_row_without_an_answer_is_wrong_and_uniform(row):
    assert accuracy([row], [0]) == 0
    assert top_k_accuracy([row], [0], top_k=4) == 0
    assert log_loss([row], [0]) == pytest.approx(math.log(4))
    assert brier_score([row], [0]) == pytest.approx(0.75**2 + 3 * 0.25**2)


def test_a_true_label_of_score_0_costs_the_floor():
    assert log_loss([[1, 0]], [1]) == pytest.approx(-math.log(np.finfo(float).eps))
    assert log_loss([[1, 0]], [1], floor=1e-3) == pytest.approx(math.log(1000))
    assert log_loss([[1, 0]], [1], floor=0) == math.inf
    assert log_loss([[1, 0], [1, 0]], [1, 0], [0, 1], floor=0) == 0


def test_answers_can_be_given_by_their_places():
    assert accuracy(np.array([2, 0, -1]), [2, 1, 0]) == pytest.approx(1 / 3)


def test_one_label_is_always_right():
    assert accuracy([[0.3]], [0]) == top_k_accuracy([[0.3]], [0], top_k=1) == 1
    assert log_loss([[0.3]], [0]) == brier_score([[0.3]], [0]) == 0


def test_torch_tensors_and_float32_are_read():
    torch = pytest.importorskip("torch")
    scores, truth, _ = draw_case(1)
    tensor = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
    for metric in METRICS:
        found = metric(tensor, torch.tensor(truth))
        assert found == pytest.approx(metric(scores, truth), rel=1e-5)


@given(st.integers(0, 2**16), st.integers(1, 6), st.integers(1, 8))
def test_bounds_scale_and_order_of_samples(seed, n_labels, n_samples):
    scores, truth, weight = draw_case(seed, n_samples, n_labels)
    top_k = min(3, n_labels)
    assert accuracy(scores, truth) == top_k_accuracy(scores, truth, top_k=1)
    assert accuracy(scores, truth) <= top_k_accuracy(scores, truth, top_k=top_k) <= 1
    assert top_k_accuracy(scores, truth, top_k=n_labels) == 1
    assert log_loss(scores, truth) >= 0
    assert 0 <= brier_score(scores, truth) <= 2
    order = np.random.default_rng(seed).permutation(n_samples)
    for metric in (accuracy, log_loss, brier_score):
        value = metric(scores, truth, weight)
        assert metric(1e-200 * scores, truth, weight) == pytest.approx(value, rel=1e-9)
        assert metric(scores[order], truth[order], weight[order]) == pytest.approx(value)


@given(st.integers(0, 2**16))
def test_equal_scores_count_in_the_order_of_labels(seed):
    rng = np.random.default_rng(seed)
    scores, truth = rng.integers(1, 3, size=(5, 4)), rng.integers(4, size=5)
    for top_k in range(1, 5):
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
        expected = (order == truth[:, None]).any(axis=1).mean()
        assert top_k_accuracy(scores, truth, top_k=top_k) == expected


def test_importing_metrics_does_not_import_scikit_learn():
    script = "import sys, wassemble.metrics; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("scores", "truth", "words"),
    [
        ([0.5, 0.5], [0], r"must have shape \(n_samples, n_labels\).*got shape \(2,\)"),
        (np.zeros((0, 2)), [], r"at least one of each; got shape \(0, 2\)"),
        ([[0.5, -0.5]], [0], r"not be negative; got -0.5 at sample 0, label 1.\nhint: a softmax"),
        ([[1, 1], [np.nan, 1]], [0, 0], "everywhere or nowhere; got nan at sample 1, label 0 only"),
        ([[1, np.inf]], [0], "must be finite; got inf at sample 0, label 1"),
        ([[1, 1]], [2], "`truth` must be from 0 to 1; got 2 at sample 0"),
        ([[1, 1]], [-1], "`truth` must be from 0 to 1; got -1 at sample 0"),
        ([[1, 1]], [0, 1], r"one label for each of the 1 samples; got shape \(2,\)"),
        ([[1, 1]], [0.0], "must be whole numbers.*got an array of dtype float64.\nhint: `LabelSp"),
        ([[1, 1]], ["cat"], "must be whole numbers"),
    ],
)
def test_bad_scores_and_truth_are_named(scores, truth, words):
    for metric in (accuracy, log_loss, brier_score):
        with pytest.raises(InvalidInputError, match=f"(?s){words}"):
            metric(scores, truth)


def test_bad_settings_are_named():
    with pytest.raises(InvalidInputError, match="at most the number of labels, 2; got 3"):
        top_k_accuracy([[1, 0]], [0], top_k=3)
    with pytest.raises(InvalidInputError, match="`floor` must be finite and at least 0; got -1"):
        log_loss([[1, 0]], [0], floor=-1)
    with pytest.raises(InvalidInputError, match=r"for each of the 1 samples; got shape \(2,\)"):
        accuracy([[1, 0]], [0], [1, 1])
    with pytest.raises(InvalidInputError, match="above 0 for some sample; got 0 for all"):
        accuracy([[1, 0]], [0], [0])
    with pytest.raises(InvalidInputError, match="`sample_weight` must not be negative; got -1"):
        accuracy([[1, 0]], [0], [-1])
    with pytest.raises(InvalidInputError, match="or -1 for none; got -2 at sample 1"):
        accuracy([0, -2], [0, 0])
    with pytest.raises(InvalidInputError, match="`truth` must be at least 0; got -1 at sample 0"):
        accuracy([0], [-1])
    with pytest.raises(InvalidInputError, match="at least one sample; got none"):
        accuracy(np.zeros(0, dtype=int), np.zeros(0, dtype=int))
