"""Large label sets: whole where a formula needs no cut, and said to be cut where one is."""

import json
import subprocess
import sys

import numpy as np
import pytest
from web.explorer.small import ask, from_vectors, histograms, make_case

from wassemble import read_predictions, write_predictions
from wassemble.inputs import Embeddings
from wassemble.web.explorer.library import Library
from wassemble.web.explorer.present import present_answer
from wassemble.web.explorer.questions import Question, answer_question
from wassemble.web.explorer.view import View
from wassemble.web.settings import Settings

NAMES = [f"w{i}" for i in range(2000)]


@pytest.fixture
def folder(tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        [model] = histograms(1, 3, NAMES, seed)
        write_predictions(tmp_path / f"{name}.csv", model.replace(model=name))
    return tmp_path


def test_equal_names_give_what_the_command_gives(folder):
    command = [sys.executable, "-m", "wassemble", "fuse", "a.csv", "b.csv", "--out", "both.csv"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    wanted = read_predictions(folder / "both.csv")
    library = Library(Settings(folder=folder))
    for row, sample in enumerate(wanted.samples.tolist()):
        view = View(file=("a.csv", "b.csv"), sample=str(sample))
        found = json.loads(answer_question(library, Question(what="json", view=view)).body)
        consensus = found["histograms"][0]
        assert consensus["labels"] == list(wanted.labels)
        np.testing.assert_allclose(consensus["scores"], wanted.scores[row], atol=1e-9)
        assert found["dropped_mass"] == 0


def test_equal_names_of_two_thousand_labels_are_exact(folder):
    library = Library(Settings(folder=folder))
    question = Question(what="answer", view=View(file=("a.csv", "b.csv")))
    shown = json.loads(answer_question(library, question).body)
    assert shown["status"] == "Exact: found by a formula."
    assert "without" not in shown["chips"][0]["score"]


def test_a_cut_is_said_beside_the_number():
    vectors = Embeddings(NAMES, np.random.default_rng(3).normal(size=(len(NAMES), 8)))
    case = make_case(histograms(3, 2, NAMES), from_vectors(vectors))
    answer = ask(case, epsilon=0.1)
    shown = present_answer(case, answer, View(epsilon=0.1))
    words = f" (without up to {100 * answer.cut.dropped:.2g} % of a model's mass)"
    assert [chip["score"].endswith(words) for chip in shown["chips"]] == [True, False, False]
    assert "Exact" not in shown["status"]
