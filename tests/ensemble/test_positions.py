"""Labels whose positions on a line are known: rules, metrics and files find them there."""

import numpy as np
import pandas as pd
import pytest

import wassemble as ws
from wassemble.ensemble.learning import LearnedEnsemble
from wassemble.ensemble.learning.evaluation import score_predictions
from wassemble.ensemble.learning.recipes import list_recipes
from wassemble.ensemble.learning.trial import read_trial
from wassemble.kernels import from_scales

NAMES = ["good", "bad", "fair"]
LINE = ws.LabelSpace(NAMES, positions=[10, 0, 2])


@pytest.fixture
def models(rng):
    return [ws.Predictions(name, range(30), NAMES, rng.dirichlet(np.ones(3), 30)) for name in "ab"]


@pytest.mark.parametrize("power", [1, 2])
def test_a_target_on_a_line_needs_no_other_order(models, power):
    fused = ws.Fusion(ws.LineBarycenter(power), target=LINE).fuse(models)
    order = [1, 2, 0]
    expected = ws.LineBarycenter(power, [0, 2, 10]).fuse([m.scores[:, order] for m in models])
    np.testing.assert_allclose(fused.scores[:, order], expected.scores, atol=1e-9)
    assert fused.labels.positions == LINE.positions


def test_models_that_know_positions_need_no_target(models):
    known = [model.replace(labels=LINE) for model in models]
    fused = ws.Fusion(ws.LineBarycenter(2)).fuse(known)
    expected = ws.Fusion(ws.LineBarycenter(2), target=LINE).fuse(models)
    np.testing.assert_allclose(fused.scores, expected.scores)
    # The same names elsewhere on the line are another plan.
    fusion = ws.Fusion(ws.LineBarycenter(2))
    elsewhere = [
        model.replace(labels=ws.LabelSpace(NAMES, positions=[2, 1, 0])) for model in models
    ]
    assert not np.allclose(fusion.fuse(known).scores, fusion.fuse(elsewhere).scores)


def test_the_usual_rule_does_not_change_with_positions(models):
    plain, known = ws.Fusion(target=NAMES), ws.Fusion(target=LINE)
    np.testing.assert_array_equal(plain.fuse(models).scores, known.fuse(models).scores)
    assert plain != known


def test_label_sets_that_disagree_about_positions_are_refused(models):
    moved = models[0].replace(labels=ws.LabelSpace(NAMES, positions=[1, 2, 3]))
    for fusion in (ws.Fusion(), ws.Fusion(target=LINE)):
        with pytest.raises(ws.InvalidInputError, match="agree about where 'good' lies"):
            fusion.fuse([moved, models[1].replace(labels=LINE)])


@pytest.mark.parametrize("others", [["1", "2", "4"], ws.LabelSpace(["4"], positions=[1])])
def test_positions_of_some_labels_alone_say_no_line(others):
    some = ws.LabelSpace(["1", "2"], positions=[1, 5])
    given = [
        ws.Predictions(name, ["x"], labels, np.eye(len(labels))[:1])
        for name, labels in (("a", some), ("b", others))
    ]
    with pytest.raises(ws.InvalidInputError, match="must be known of all labels, and differ"):
        ws.Fusion(ws.LineBarycenter(2)).fuse(given)


def test_a_rule_has_no_positions_of_labels_that_have_names(models):
    with pytest.raises(ws.InvalidInputError, match="labels with names must have their positions"):
        ws.Fusion(ws.LineBarycenter(2, [0, 1, 2]), target=NAMES).fuse(models)


def test_a_grade_that_nobody_gave_leaves_a_gap():
    said = [
        ws.Predictions("a", ["x"], ["1", "2", "3", "5"], [[1.0, 0, 0, 0]]),
        ws.Predictions("b", ["x"], ["1", "2", "3", "5"], [[0, 0, 0, 1.0]]),
    ]
    fused = ws.Fusion(ws.LineBarycenter(2)).fuse(said)
    assert fused.labels.positions == (1, 2, 3, 5)
    assert fused.scores.tolist() == [[0, 0, 1, 0]]


def test_scales_with_the_same_names_are_joined_by_where_they_lie():
    """A 1 of 0 to 3 is no 1 of 1 to 5; pass and fail are its ends."""
    spaces = {
        "short": ws.LabelSpace(["0", "1", "2", "3"], positions=np.linspace(1, 5, 4)),
        "ends": ws.LabelSpace(["pass", "fail"], positions=[5, 1]),
    }
    target = ws.LabelSpace(["1", "2", "3", "4", "5"], positions=[1, 2, 3, 4, 5])
    given = [
        ws.Predictions("short", ["x"], spaces["short"], [[0, 0, 0, 1.0]]),
        ws.Predictions("ends", ["x"], spaces["ends"], [[1.0, 0]]),
        ws.Predictions("five", ["x"], target, [[0, 0, 0, 0, 1.0]]),
    ]
    fused = ws.Fusion(ws.LineBarycenter(1), from_scales, target=target).fuse(given)
    assert fused.top()[0].label == "5"
    with pytest.raises(ws.InvalidInputError, match=r"where '1' lies.*\n?.*from_scales"):
        ws.Fusion(ws.LineBarycenter(1), target=target).fuse(given)


def test_what_is_learned_keeps_positions(models, tmp_path):
    truth = [NAMES[i] for i in models[0].scores.argmax(axis=1)]
    learned = ws.learn_ensemble(models, truth, target=LINE, metric="rps", n_folds=2)
    learned.save(tmp_path)
    loaded = LearnedEnsemble.load(tmp_path)
    assert loaded.target.positions == LINE.positions
    fused, again = learned.predict(models), loaded.predict(models)
    np.testing.assert_array_equal(fused.scores, again.scores)
    fusion = ws.Fusion(ws.LineBarycenter(2), target=LINE)
    fusion.save(tmp_path / "fusion")
    assert ws.Fusion.load(tmp_path / "fusion") == fusion


def test_any_metric_learns_on_a_line_that_is_known(models):
    truth = [NAMES[i] for i in models[0].scores.argmax(axis=1)]
    for target, n_lines in ((NAMES, 0), (LINE, 6)):
        trial = read_trial(models, truth, target=ws.LabelSpace(target))
        lines = [r for r in list_recipes(trial, {}) if isinstance(r.rule, ws.LineBarycenter)]
        assert len(lines) == n_lines


def test_scores_count_distances(models):
    model = models[0].replace(labels=LINE)
    places = np.arange(30) % 3
    truth = [NAMES[i] for i in places]
    found = score_predictions(model, truth, metrics=["rps", "quadratic_kappa"])
    scores, line = model.scores, LINE.positions
    expected = ws.metrics.ranked_probability_score(scores, places, positions=line)
    assert found[0].value == pytest.approx(expected)
    below = np.column_stack([scores[:, 1], scores[:, 1] + scores[:, 2]])
    is_below = np.column_stack([places == 1, places != 0])
    assert expected == pytest.approx((((below - is_below) ** 2) @ [2, 8]).mean() / 5)
    kappa = ws.metrics.quadratic_kappa(scores, places, positions=line)
    assert found[1].value == pytest.approx(kappa)
    answers, true = np.array(line)[scores.argmax(axis=1)], np.array(line)[places]
    chance = np.subtract.outer(answers, true) ** 2
    assert kappa == pytest.approx(1 - ((answers - true) ** 2).mean() / chance.mean())


def test_positions_of_a_metric_are_those_of_all_labels():
    for score in (ws.metrics.ranked_probability_score, ws.metrics.quadratic_kappa):
        with pytest.raises(ws.InvalidInputError, match="for each of the 3"):
            score(np.eye(3), [0, 1, 2], positions=[0, 1])


def test_a_data_frame_is_fused_on_the_line():
    frames = {
        "a": pd.DataFrame({"good": [1.0], "fair": [0.0], "bad": [0.0]}, index=["x"]),
        "b": pd.DataFrame({"good": [0.0], "fair": [0.0], "bad": [1.0]}, index=["x"]),
    }
    fused = ws.Fusion(ws.LineBarycenter(2), target=LINE, kind="multiclass").fuse(frames)
    np.testing.assert_allclose(fused[NAMES], [[0.375, 0, 0.625]])
