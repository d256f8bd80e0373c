"""The page without truth is made of what its command finds."""

import numpy as np
import pytest

from paper.commands import main
from paper.without_truth import gold, sets, speed
from paper.without_truth.judge import judge_set
from paper.without_truth.page import tell_gold, tell_sets
from wassemble.ensemble.without_truth import Votes
from wassemble.inputs import Predictions


def small_set(rng):
    truth = rng.integers(2, size=120)
    rows = [
        (f"w{worker}", item, str(truth[item] if rng.random() < accuracy else 1 - truth[item]))
        for worker, accuracy in enumerate((0.9, 0.7, 0.6, 0.55))
        for item in range(120)
    ]
    votes = Votes.of_table(*zip(*rows, strict=True))
    return sets.VoteSet(votes, truth, np.arange(120))


def test_a_set_is_judged_and_shown(rng):
    found = judge_set("small", small_set(rng))
    assert found["n_tested"] == 120
    assert found["accuracy"][found["chosen"]] >= found["accuracy"]["majority"]
    page = tell_sets({"bluebird": found})
    assert "| bluebird |" in page
    assert "Not judged in this run: adult_content2, rte" in page


def test_sets_that_are_not_here_are_skipped_in_words(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(sets.CHECKING, raising=False)
    assert main(["without-truth", "bluebird", "llm_judges", "--out", str(tmp_path)]) == 0
    assert "bluebird: skipped, for $WASSEMBLE_CHECKING_DATA" in capsys.readouterr().err
    assert not (tmp_path / "without-truth.json").exists()


def test_shipped_votes_are_whole():
    given = sets.load_set("adult_content2")
    assert given is not None
    assert (given.votes.n_samples, given.votes.n_models) == (11_040, 825)
    assert given.votes.n_answers.sum() == pytest.approx(89_799)
    assert len(given.tested) == 333


def test_gold_is_tried_on_samples_that_nobody_asked_about(rng, monkeypatch):
    truth = rng.integers(2, size=120)
    labels = ["no", "yes"]

    def answer(accuracy):
        return np.eye(2)[np.where(rng.random(120) < accuracy, truth, 1 - truth)]

    models = [
        Predictions(f"m{place}", range(120), labels, answer(accuracy), kind="multiclass")
        for place, accuracy in enumerate((0.95, 0.7, 0.6))
    ]
    given = models, [labels[i] for i in truth], {}
    monkeypatch.setattr(gold, "read_task", lambda name: given)
    for name, value in {"_N_GOLD": (12,), "_N_ASKED": 20, "_SEEDS": (0,)}.items():
        monkeypatch.setattr(gold, name, value)
    found = gold.try_gold("small")
    assert [line["n_gold"] for line in found["gold"]] == [0, 12]
    assert found["n_tested"] == 60
    assert min(scores[0] for scores in found["asked"].values()) > 0.6
    page = tell_gold({"small": found})
    assert "the most disputed | 0." in page
    half = gold._Trial(*given).halve(0)
    for ask in gold.WAYS.values():
        assert set(ask(half, 20).tolist()) <= set(half.askable.tolist())
    assert not set(half.askable.tolist()) & set(half.tested.tolist())


def test_speed_is_measured_from_few_votes_to_many(monkeypatch):
    monkeypatch.setattr(speed, "_N_VOTES", (900, 1800))
    monkeypatch.setattr(speed, "_N_VOTERS", 20)
    few, many = speed.measure_speed()
    assert (few["n_votes"], many["n_samples"]) == (900, 200)
    assert many["gigabytes"] >= few["gigabytes"] > 0
