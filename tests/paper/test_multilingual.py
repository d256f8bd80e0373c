"""Laws of riddles about hidden senses."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import solve_with

from paper.multilingual import (
    Config,
    Riddles,
    Wordnet,
    choose_riddles,
    lay_out,
    load_wordnets,
    run,
    strike,
)
from wassemble.labels import LabelSpace
from wassemble.solvers import Barycenter, Unbalanced, solve_barycenter


def wordnet(words: list[str], senses: list[list[int]]) -> Wordnet:
    table = sp.csr_array(np.array(senses, dtype=float))
    return Wordnet(LabelSpace(words), table, tuple(f"i{n}" for n in range(table.shape[1])))


# Senses: 0 lawyer, 1 avocado, 2 to defend.
ENGLISH = wordnet(["avocado", "defend", "lawyer"], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
FRENCH = wordnet(["avocat", "poire"], [[1, 1, 0], [0, 1, 0]])
ITALIAN = wordnet(["difensore", "perla"], [[1, 0, 1], [0, 0, 0]])
MASS = Unbalanced(9.0, epsilon=1.0)


@pytest.fixture
def lawyers() -> Riddles:
    """Two riddles, both "lawyer": the second French model is not sure that it heard right."""
    return Riddles(
        senses=np.array([0, 0]),
        words={"French": np.array([0, 0]), "Italian": np.array([0, 0])},
        n_senses=np.full((2, 2), 2),
        histograms={
            "French": sp.csr_array([[1.0, 0.0], [0.7, 0.3]]),
            "Italian": sp.csr_array([[1.0, 0.0], [0.6, 0.4]]),
        },
        is_test=np.array([False, True]),
    )


def lay_out_lawyers(riddles):
    return lay_out(riddles, {"French": FRENCH.senses, "Italian": ITALIAN.senses}, ENGLISH)


def test_the_sense_in_common_is_found_by_what_intersects(lawyers):
    puzzle = lay_out_lawyers(lawyers)
    found = solve_barycenter(puzzle.histograms, puzzle.kernels, Barycenter(MASS)).barycenter
    assert puzzle.hits(found, 1).tolist() == [1, 1]
    for mu, kernel in zip(puzzle.histograms, puzzle.kernels, strict=True):
        image = kernel.apply_transpose(mu / kernel.row_sums)
        # Each language alone: two words tie, or the wrong one leads; the alphabet decides.
        assert puzzle.hits(image, 1).tolist() == [0, 0]
        assert puzzle.hits(image, 2).tolist() == [1, 1]


def test_words_that_the_dictionary_lacks_leave_a_whole_histogram(lawyers):
    puzzle = lay_out_lawyers(lawyers)
    assert puzzle.histograms[1].tolist() == [1, 1]  # "perla" has no sense
    assert puzzle.histograms[0].sum() == pytest.approx(2)


def test_blocks_are_solved_as_if_each_riddle_were_alone(lawyers):
    puzzle = lay_out_lawyers(lawyers)
    options = {"mass": MASS, "max_sweeps": 3, "tolerance": None}
    together = solve_with(puzzle.histograms, puzzle.kernels, **options).barycenter
    alone = solve_with(
        [np.array([[0.7, 0.3]]), np.array([[1.0]])],
        [np.array([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]), np.array([[0.0, 0.5, 0.5]])],
        **options,
    ).barycenter[0]
    second = puzzle.riddle == 1
    assert puzzle.english[second].tolist() == [0, 1, 2]
    assert together[second] == pytest.approx(alone)


def test_an_answer_without_score_is_no_answer(lawyers):
    puzzle = lay_out_lawyers(lawyers)
    assert puzzle.hits(np.zeros(len(puzzle.riddle)), 5).tolist() == [0, 0]


def test_striking_takes_entries_out_and_adds_none(rng):
    left = strike(FRENCH.senses, 0.5, rng)
    assert (left.toarray() <= FRENCH.senses.toarray()).all()
    assert strike(FRENCH.senses, 0.0, rng).nnz == 3
    assert strike(FRENCH.senses, 1.0, rng).nnz == 0


@pytest.fixture(scope="module")
def wordnets():
    return load_wordnets()


def test_wordnets_join_languages_through_the_index(wordnets):
    english, italian = wordnets["English"], wordnets["Italian"]
    dog = italian.senses[[italian.words.place("cane")]] @ english.senses.T
    assert "dog" in {english.words[int(i)] for i in dog.indices}
    assert not {"GAP!", "PSEUDOGAP!"} & set(italian.words)
    assert set(wordnets["French"].senses.data) == {1.0}


def test_models_name_an_ambiguous_word_of_the_hidden_sense(wordnets):
    config = Config(n_senses=30, test_share=0.5, spelling_cutoff=0.9, seed=1)
    riddles = choose_riddles(wordnets, config)
    for name, chosen in riddles.words.items():
        senses, said = wordnets[name].senses, riddles.histograms[name].toarray()
        assert (senses[chosen, riddles.senses] == 1).all()
        assert said.sum(axis=1) == pytest.approx(1)
        assert (said[np.arange(30), chosen] >= 0.6 - 1e-9).all()
    assert (riddles.n_senses >= 2).all()


def test_three_languages_find_more_senses_than_one():
    config = Config(
        n_senses=90, spelling_cutoff=0.9, orders=(0.25,), exponents=(0.9,), kernel_powers=(1.0,)
    )
    findings = run(config)
    whole, gaps = ({row[0]: row[2] for row in t.rows} for t in findings.tables[:2])
    for each in (whole, gaps):
        alone = max(figure.value for name, figure in each.items() if "alone" in name)
        assert each["barycenter"].value > alone
    assert whole["barycenter"].value >= gaps["barycenter"].value
