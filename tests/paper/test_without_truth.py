"""The page without truth is made of what its command finds."""

import numpy as np
import pytest

from paper.commands import main
from paper.without_truth import sets
from paper.without_truth.judge import judge_set
from paper.without_truth.page import to_markdown
from wassemble.ensemble.without_truth import Votes


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
    page = to_markdown({"bluebird": found})
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
