"""All samples at once: figures are the metrics', lists what they say, the map is the kernel's."""

from dataclasses import replace

import numpy as np
import pytest
from web.explorer.small import LABELS, ask, from_vectors, histograms, make_case, scores

import wassemble as ws
from wassemble import metrics
from wassemble.inputs import Embeddings
from wassemble.web.explorer.answers import get_ranking, rank_samples
from wassemble.web.explorer.judging import KEPT, confuse, find_best_model, judge, list_rows
from wassemble.web.explorer.label_map import map_labels
from wassemble.web.explorer.present import list_as_csv, present_board
from wassemble.web.explorer.view import View

N = 60
TRUE = np.random.default_rng(5).integers(4, size=N)
TRUTH = {f"s{i}": (LABELS[true],) for i, true in enumerate(TRUE)}


def models():
    """Three models that know something of the truth."""
    rng = np.random.default_rng(6)
    found = []
    for model in histograms(3, N):
        known = np.eye(len(LABELS))[np.where(rng.random(N) < 0.6, TRUE, 4)]
        found.append(model.replace(scores=0.5 * known + 0.5 * model.scores))
    return found


@pytest.fixture(scope="module")
def case():
    return make_case(models(), from_vectors(), truth=TRUTH)


def test_figures_are_those_of_the_metrics(case):
    judged = judge(case, View())
    mean = np.mean([model.scores for model in models()], axis=0)
    figures = judged.rule("arithmetic mean").figures
    assert figures["accuracy"] == metrics.accuracy(mean, TRUE)
    assert figures["log-loss"] == pytest.approx(metrics.log_loss(mean, TRUE))
    wanted = metrics.expected_calibration_error(mean, TRUE)
    assert figures["calibration error"] == pytest.approx(wanted)
    own = metrics.accuracy(models()[1].scores, TRUE)
    assert judged.rule("model 1").figures["accuracy"] == own


def test_answers_are_those_of_each_sample(case):
    judged = judge(case, View(epsilon=0.2))
    for row in range(0, N, 7):
        [(best, _)] = ask(case, row, epsilon=0.2).consensus.top(1)
        assert case.target[int(judged.rule("consensus").answers[row])] == best


def test_the_best_model_is_right_most_often(case):
    right = {m.model: metrics.accuracy(m.scores, TRUE) for m in models()}
    assert right[find_best_model(case)] == max(right.values())
    assert find_best_model(make_case(models())) == ""


def test_filters_list_what_they_say(case):
    consensus = judge(case, View()).rule("consensus")
    mean = judge(case, View()).rule("arithmetic mean")
    assert consensus.right.any()
    assert not consensus.right.all()
    wanted = {
        "gained": consensus.right & ~mean.right,
        "lost": ~consensus.right & mean.right,
        "right": consensus.right,
        "wrong": ~consensus.right,
        "missed": ~mean.right,
        "apart": consensus.answers != mean.answers,
    }
    for show, is_listed in wanted.items():
        assert sorted(list_rows(case, View(show=show))) == np.flatnonzero(is_listed).tolist()
        assert present_board(case, View())["counts"][show] == is_listed.sum()
    about = list_rows(case, View(about="dog"))
    assert sorted(about) == np.flatnonzero(LABELS.index("dog") == TRUE).tolist()
    assert list_rows(case, View(search="S17")) == [17]


def test_disputed_samples_are_listed_alone(case):
    disagreement = get_ranking(case).disagreement
    for each in present_board(case, View())["disputes"]:
        listed = list_rows(case, View(dispute=each["value"]))
        assert sorted(listed) == np.flatnonzero(disagreement >= each["value"]).tolist()
        assert len(listed) == each["n"] < N
    both = list_rows(case, View(dispute=each["value"], show="wrong"))
    assert set(both) == set(listed) & set(list_rows(case, View(show="wrong")))
    assert len(list_as_csv(case, View(dispute=each["value"])).splitlines()) == 1 + len(listed)
    own = present_board(case, View(dispute=0.001))["disputes"]
    assert own[0] == {"value": 0.001, "words": "more disputed, from 0.001", "n": N}


def test_samples_that_were_not_compared_are_not_disputed():
    case = make_case(histograms(2, 4))
    some = replace(rank_samples(case), disagreement=np.array([0.1, 0.3, np.nan, np.nan]))
    case.rankings.get("ranking", lambda: some)
    assert list_rows(case, View(dispute=0.2)) == [1]
    assert len(list_rows(case, View())) == 4
    case = make_case(histograms(2, 4))
    case.rankings.get("ranking", lambda: replace(some, disagreement=np.full(4, np.nan)))
    assert present_board(case, View())["disputes"] == []


def test_reliability_diagrams_are_the_bins_of_the_metrics(case):
    drawn = {each["name"]: each for each in present_board(case, View())["calibration"]}
    assert list(drawn) == [rule.name for rule in judge(case, View()).rules]
    bins = metrics.calibration_bins(models()[1].scores, TRUE, n_bins=10)
    kept = bins.count >= 5
    assert [each["n"] for each in drawn["model 1"]["points"]] == bins.count[kept].tolist()
    wanted = [f"{100 * right:.0f}" for right in bins.accuracy[kept]]
    assert [each["right"] for each in drawn["model 1"]["points"]] == wanted
    error = metrics.expected_calibration_error(models()[1].scores, TRUE)
    assert float(drawn["model 1"]["error"]) == pytest.approx(error, abs=5e-4)


def test_a_diagram_of_few_samples_has_dots_too():
    few = make_case(models(), truth={"s0": ("cat",), "s1": ("dog",)})
    assert all(each["points"] for each in present_board(few, View())["calibration"])


def test_lists_are_sorted(case):
    shares = judge(case, View()).rule("consensus").shares
    sure = list_rows(case, View(sort="sure"))
    assert shares[sure].tolist() == sorted(shares.tolist(), reverse=True)
    assert list_rows(case, View(sort="unsure")) != sure
    assert list_rows(case, View(sort="sample")) == list(range(N))
    truth = [TRUTH[f"s{row}"] for row in list_rows(case, View(sort="truth"))]
    assert truth == sorted(truth)
    for sort in ("consensus", "mean"):
        assert sorted(list_rows(case, View(sort=sort))) == list(range(N))


def test_two_rules_are_compared_sample_by_sample(case):
    judged = judge(case, View())
    found = confuse(case, judged, "consensus", "model 0", 3)
    one, two = judged.rule("consensus"), judged.rule("model 0")
    assert found.both + found.first_alone == one.right.sum()
    assert found.both + found.second_alone == two.right.sum()
    assert found.both + found.first_alone + found.second_alone + found.neither == N
    assert found.n_same == (one.answers == two.answers).sum()
    counts = [n for *_, n in found.pairs]
    assert counts == sorted(counts, reverse=True)
    with pytest.raises(ws.InvalidInputError, match="a rule must be one of 'consensus'"):
        confuse(case, judged, "nobody", "consensus", 3)


def test_settings_that_were_kept_stand_beside_those_of_the_sliders(case):
    before = View(epsilon=0.05, weight=(1.0, 0.0, 0.0))
    both = judge(case, View(epsilon=1.0, than=before.settings))
    alone = judge(case, before).rule("consensus")
    np.testing.assert_array_equal(both.rule(KEPT).answers, alone.answers)
    assert both.rule("consensus").answers.tolist() != alone.answers.tolist()
    usual = judge(case, View(epsilon=1.0, than=View().settings)).rule(KEPT)
    np.testing.assert_array_equal(usual.shares, judge(case, View()).rule("consensus").shares)


@pytest.mark.parametrize("than", ["epsilon=-1", "colour=red", "weight=much"])
def test_settings_that_are_none_are_refused(case, than):
    with pytest.raises(ws.InvalidInputError, match="a view must be the query"):
        judge(case, View(than=than))


def test_samples_of_unknown_truth_count_nowhere(case):
    some = {sample: true for sample, true in TRUTH.items() if sample < "s3"}
    part = make_case(models(), from_vectors(), truth=some)
    board = present_board(part, View())
    known = [int(sample[1:]) for sample in some]
    assert board["n_known"] == len(known)
    mean = np.mean([model.scores for model in models()], axis=0)[known]
    own = judge(part, View()).rule("arithmetic mean").figures["accuracy"]
    assert own == metrics.accuracy(mean, TRUE[known])


def test_a_truth_outside_the_labels_is_never_right():
    case = make_case(models(), truth={"s0": ("okapi",), "s1": ("cat",)})
    judged = judge(case, View())
    assert not any(rule.right[0] for rule in judged.rules)


def test_several_true_labels_have_their_own_figures():
    case = make_case(
        scores(2, 3), from_vectors(), truth={"0": ("cat", "dog"), "1": (), "2": ("bus",)}
    )
    assert list(judge(case, View()).rules[0].figures) == ["first label right", "mAP"]
    assert present_board(case, View())["calibration"] == []


def test_without_truth_there_are_answers_and_no_figures():
    board = present_board(make_case(models(), from_vectors()), View())
    assert board["columns"] == []
    assert board["table"]["n"] == N


def test_the_list_as_csv_is_what_is_filtered(case):
    text = list_as_csv(case, View(show="wrong"))
    lines = text.splitlines()
    assert lines[0].startswith("sample,text,truth,consensus,consensus share,consensus verdict,")
    assert len(lines) - 1 == len(list_rows(case, View(show="wrong")))
    assert list_as_csv(case, View(search="nothing")) == "sample,text,truth,disagreement\n"


def test_the_list_as_csv_has_labels_and_names():
    case = make_case(models(), truth=TRUTH, names={"cat": "house cat"})
    lines = list_as_csv(case, View(about="cat")).splitlines()
    assert lines[0].startswith("sample,text,truth,truth name,consensus,consensus name,")
    assert all(",cat,house cat," in line for line in lines[1:])


def test_label_sets_that_are_cut_are_judged_sample_by_sample():
    names = [f"w{i}" for i in range(1200)]
    vectors = Embeddings(names, np.random.default_rng(3).normal(size=(1200, 8)))
    case = make_case(histograms(2, 3, names), from_vectors(vectors), truth={"s1": ("w5",)})
    judged = judge(case, View())
    for row in range(3):
        [(best, _)] = ask(case, row).consensus.top(1)
        assert case.target[int(judged.rule("consensus").answers[row])] == best


def test_similar_labels_lie_close_together(case):
    points = {point.label: point for point in map_labels(case, judge(case, View()), 0.3)}

    def distance(one, two):
        return np.hypot(points[one].x - points[two].x, points[one].y - points[two].y)

    assert distance("cat", "dog") < distance("cat", "bus")
    assert distance("car", "bus") < distance("dog", "car")
    assert all(0 <= p.x <= 1 and 0 <= p.y <= 1 for p in points.values())
    assert points["cat"].n_samples == (TRUE == 0).sum()


def test_names_alone_make_no_map():
    case = make_case(models(), truth=TRUTH)
    assert map_labels(case, judge(case, View()), 0.3) == []
