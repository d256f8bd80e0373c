"""The leaderboard and the jury."""

import json

import numpy as np
import pytest
from simulated_models import LABELS, draw_answers, draw_models, draw_truth

import wassemble as ws
from wassemble.cli import main
from wassemble.ensemble.without_truth import Verdict, hear_jury, read_verdicts


def draw_verdicts(rng, accuracies, n_items=200, n_grades=4):
    truth = draw_truth(rng, n_items, n_grades)
    return truth, [
        Verdict(f"j{judge}", str(item), int(grade))
        for judge, accuracy in enumerate(accuracies)
        for item, grade in enumerate(draw_answers(rng, truth, accuracy, n_grades))
    ]


def test_models_are_ranked_as_they_deserve(rng):
    truth = draw_truth(rng, 800)
    models = draw_models(rng, truth, [0.5, 0.9, 0.7, 0.6])
    ranking = ws.rank_models(models)
    assert [each.model for each in ranking.models] == ["m1", "m2", "m3", "m0"]
    for each, true in zip(ranking.models, (0.9, 0.7, 0.6, 0.5), strict=True):
        assert each.accuracy == pytest.approx(true, abs=0.06)
        assert each.low < each.accuracy < each.high
        assert each.coverage == 1
    assert ranking.agreement.shape == (4, 4)
    np.testing.assert_allclose(ranking.confusions["m1"].sum(axis=0), 1)
    assert json.dumps(ranking.to_dict(), allow_nan=False)


def test_relatives_are_named_and_share_their_vote(rng):
    truth = draw_truth(rng, 400)
    models = draw_models(rng, truth, [0.8, 0.7, 0.6])
    ranking = ws.rank_models([*models, models[2].replace(model="copy")])
    by_name = {each.model: each for each in ranking.models}
    assert by_name["copy"].relative == "m2"
    assert by_name["copy"].share == pytest.approx(0.5)
    assert ranking.n_effective == pytest.approx(3)


def test_silence_and_conflict_are_counted(rng):
    truth = draw_truth(rng, 100)
    models = draw_models(rng, truth, [1.0, 1.0, 1.0])
    models[0].scores[:25] = np.nan  # asked, and said nothing
    models[1] = models[1].take(slice(0, 50))  # asked half as often
    wrong = (truth + 1) % 3
    models.append(ws.Predictions("wrong", range(100), LABELS, np.eye(3)[wrong]))
    by_name = {each.model: each for each in ws.rank_models(models).models}
    assert (by_name["m0"].coverage, by_name["m0"].silence) == (0.75, 0.25)
    assert (by_name["m1"].coverage, by_name["m1"].silence) == (0.5, 0)
    assert by_name["wrong"].conflict == 1
    assert by_name["wrong"].accuracy < 0.05


def test_gold_tells_the_accuracy(rng):
    truth = draw_truth(rng, 300)
    wrong = np.where(truth == 0, 1, truth)
    models = draw_models(rng, wrong, [0.95, 0.95, 0.95])
    gold = {i: LABELS[truth[i]] for i in range(300)}
    blind, told = ws.rank_models(models), ws.rank_models(models, gold=gold)
    assert blind.models[0].accuracy > 0.9
    assert told.models[0].accuracy < 0.75


def test_scores_of_any_mass_may_be_divided_by_their_sums(rng):
    truth = draw_truth(rng, 60)
    models = draw_models(rng, truth, [0.9, 0.8, 0.7])
    halves = [
        ws.Predictions(m.model, m.samples, LABELS, m.scores / 2, kind="multilabel") for m in models
    ]
    with pytest.raises(ws.InvalidInputError, match="normalize=True divides each row"):
        ws.rank_models(halves)
    whole, divided = ws.rank_models(models), ws.rank_models(halves, normalize=True)
    np.testing.assert_allclose(divided.consensus.scores, whole.consensus.scores)


def test_samples_to_ask_about_are_drawn_from_each_label_in_turn(rng):
    truth = np.where(np.arange(100) < 90, 0, rng.integers(1, 3, size=100))  # two labels are rare
    ranking = ws.rank_models(draw_models(rng, truth, [0.9, 0.9, 0.9]))
    drawn = ranking.draw_samples(9)
    assert len(set(drawn)) == 9
    assert drawn == ranking.draw_samples(9)
    assert drawn != ranking.draw_samples(9, seed=1)
    believed = ranking.consensus.scores[drawn].argmax(axis=1)
    assert np.bincount(believed).tolist() == [3, 3, 3]
    assert sorted(ranking.draw_samples(500)) == list(range(100))
    worst = ranking.disputed(5)
    assert ranking.quality[worst[0]] == ranking.quality.min()


def test_a_jury_is_heard(rng):
    truth, verdicts = draw_verdicts(rng, [0.9, 0.6, 0.5, 0.4])
    jury = hear_jury(verdicts)
    assert jury.ranking.models[0].model == "j0"
    answers = [int(top.label) for top in jury.consensus.top()]
    assert np.mean(answers == truth) > 0.85
    assert 0 < jury.alpha < 1


def test_judges_may_have_other_scales(rng):
    truth, verdicts = draw_verdicts(rng, [0.9, 0.6, 0.5], n_items=100)
    verdicts += [
        Verdict("strict", str(i), "pass" if x >= 2 else "fail") for i, x in enumerate(truth)
    ]
    scale = ["0", "1", "2", "3"]
    jury = hear_jury(verdicts, scale=scale, scales={"strict": ["fail", "pass"]})
    assert jury.consensus.labels.names == tuple(scale)
    answers = np.array([int(top.label) for top in jury.consensus.top()])
    without = hear_jury(verdicts[:300], scale=scale)
    plain = np.array([int(top.label) for top in without.consensus.top()])
    assert np.mean((answers >= 2) == (truth >= 2)) > np.mean((plain >= 2) == (truth >= 2))
    marks = verdicts[:300] + [
        Verdict("strict", v.item, "1" if v.verdict == "pass" else "2") for v in verdicts[300:]
    ]
    named = hear_jury(marks, scale=scale, scales={"strict": ["2", "1"]})  # the best mark is 1
    np.testing.assert_allclose(named.consensus.scores, jury.consensus.scores)
    with pytest.raises(ws.InvalidInputError, match="must go with `scale`"):
        hear_jury(verdicts, scales={"strict": ["fail", "pass"]})
    with pytest.raises(ws.InvalidInputError, match="must be of those who voted; got 'nobody'"):
        hear_jury(verdicts, scale=scale, scales={"nobody": ["fail", "pass"]})
    with pytest.raises(ws.InvalidInputError, match="a vote of 'strict' must be one of"):
        hear_jury(verdicts, scale=scale)


def test_a_scale_may_have_positions_in_any_order(rng):
    _, verdicts = draw_verdicts(rng, [0.9, 0.6, 0.5], n_items=60)
    mixed = ws.LabelSpace(["2", "0", "3", "1"], positions=[2, 0, 3, 1])
    jury, in_order = (hear_jury(verdicts, scale=each) for each in (mixed, ["0", "1", "2", "3"]))
    assert jury.alpha == pytest.approx(in_order.alpha)
    assert jury.alpha != pytest.approx(hear_jury(verdicts, scale=list(mixed)).alpha)
    assert jury.consensus.labels.positions == mixed.positions
    # A judge whose 1 is lower than the others' has the same names at other positions.
    low = ws.LabelSpace(mixed, positions=[1, -1, 2, 0])
    moved = hear_jury(verdicts, scale=mixed, scales={"j0": low})
    assert not np.allclose(moved.consensus.scores, jury.consensus.scores)


def test_two_of_three_models_cannot_tell_who_agrees_more(rng):
    truth = rng.integers(3, size=300)
    answers = [np.where(rng.random(300) < p, truth, rng.integers(3, size=300)) for p in (0.9, 0.6)]
    models = [
        ws.Predictions(f"m{n}", range(300), ["a", "b", "c"], np.eye(3)[answers[min(n, 1)]])
        for n in range(3)
    ]
    models[2] = models[2].replace(scores=np.eye(3)[rng.integers(3, size=300)])
    reason = ws.rank_models(models).reasons[0]
    assert reason.startswith("weights by agreement against equal weights: they foretell the same")


def test_models_on_a_line_are_ranked_on_it(rng):
    line = ws.LabelSpace(["2", "0", "1"], positions=[2, 0, 1])
    models = [
        ws.Predictions(name, range(40), line.names, rng.dirichlet(np.ones(3), 40)) for name in "abc"
    ]
    ranking = ws.rank_models(models, target=line)
    assert ranking.consensus.labels.positions == line.positions


def test_verdicts_may_be_distributions_flags_or_nothing():
    said = [{"pass": 0.7, "fail": 0.3}, True, False, None]
    verdicts = [Verdict(f"j{i}", "x", each) for i, each in enumerate(said)]
    jury = hear_jury(verdicts)
    assert jury.consensus.labels.names == ("fail", "pass")
    by_name = {each.model: each for each in jury.ranking.models}
    assert by_name["j3"].silence == 1
    assert jury.consensus.scores[0].argmax() == 1


def test_the_commands_tell_who_is_right(tmp_path, monkeypatch, capsys, rng):
    monkeypatch.chdir(tmp_path)
    truth = draw_truth(rng, 200)
    for model in draw_models(rng, truth, [0.9, 0.6, 0.5]):
        ws.write_predictions(f"{model.model}.csv", model)
    assert main(["rank", "m0.csv", "m1.csv", "m2.csv", "--out", "c.csv"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].startswith("m0\t0.")
    assert "believed of each model: " in printed.err
    assert ws.read_predictions("c.csv").n_samples == 200
    assert main(["rank", "m0.csv", "m1.csv", "m2.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"][0]["model"] == "m0"
    _, verdicts = draw_verdicts(rng, [0.9, 0.6, 0.5], n_items=60)
    lines = [f"{each.judge},{each.item},{each.verdict}" for each in verdicts]
    (tmp_path / "v.csv").write_text("\n".join(["worker,sample,label", *lines]))
    (tmp_path / "gold.csv").write_text("sample,label\n0,1\n1,2\n")
    assert main(["jury", "v.csv", "--scale", "0,1,2,3", "--gold", "gold.csv"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].startswith("j0\t")
    assert "Krippendorff's alpha: 0." in printed.err


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"judge": "a", "item": 1}\n', "must have a column verdict or label"),
        ('{"judge": "a", "item": 1, "verdict": 2}\n{', "line 2: must be JSON"),
        ('{"judge": "", "item": 1, "verdict": 2}\n', "must name a judge and an item"),
        ("[1]\n", "must be an object"),
    ],
)
def test_odd_files_of_verdicts_are_refused(tmp_path, text, match):
    path = tmp_path / "v.jsonl"
    path.write_text(text)
    with pytest.raises(ws.InvalidInputError, match=match):
        list(read_verdicts(path))
    with pytest.raises(ws.InvalidInputError, match=r"must be in a file that ends in"):
        list(read_verdicts(tmp_path / "v.txt"))


def test_verdicts_that_are_no_label_are_refused_and_none_is_lost(rng):
    verdicts = [Verdict(judge, str(i), 0.5 * (i % 3)) for judge in "abc" for i in range(9)]
    heard = hear_jury(verdicts)
    assert heard.consensus.labels.names == ("0", "0.5", "1")
    assert all(each.silence == 0 for each in heard.ranking.models)
    with pytest.raises(ws.InvalidInputError, match=r"or a whole number; got \['good'\]"):
        hear_jury([*verdicts, Verdict("a", "9", ["good"])])
    silent = hear_jury([*verdicts, Verdict("a", "9", float("nan"))])
    assert {x.model: x.silence for x in silent.ranking.models} == {"a": 0.1, "b": 0, "c": 0}
    with pytest.raises(ws.InvalidInputError, match="cannot outvote each other; got 2 judges"):
        hear_jury([verdict for verdict in verdicts if verdict.judge != "c"])


def test_gold_of_items_that_nobody_judged_is_refused():
    verdicts = [Verdict(judge, "1", "good") for judge in "abc"]
    with pytest.raises(ws.InvalidInputError, match="items that were judged, such as '1'; got 'x'"):
        hear_jury(verdicts, gold={"x": "good"})


def test_several_verdicts_on_one_item_and_spellings_of_one_verdict_are_told():
    said = {"a": "good bad", "b": "good bad", "c": "good Bad"}
    verdicts = [
        Verdict(judge, str(item), verdict)
        for judge, each in said.items()
        for item, verdict in enumerate(each.split())
    ]
    with pytest.warns(ws.InputWarning, match="'Bad' and 'bad' differ only in how they are written"):
        hear_jury(verdicts)
    again = Verdict("a", "1", "good")
    with pytest.warns(ws.InputWarning, match="share one vote: 1 time, such as of 'a' on '1'"):
        hear_jury([*verdicts[:-1], Verdict("c", "1", "bad"), again])
