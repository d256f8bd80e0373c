"""Next-word models and synonyms, and the experiment on them."""

import numpy as np
import pytest
import scipy.sparse as sp

from paper.words import mapping
from paper.words.models import (
    count_votes,
    draw_contexts,
    load_glove,
    next_words,
    train_models,
)
from wassemble.labels import LabelSpace


@pytest.fixture(scope="module")
def words():
    return load_glove()[0]


@pytest.fixture(scope="module")
def models(words):
    return train_models(words)


def test_models_are_histograms_that_differ_and_know_the_context(words, models):
    contexts = ["a black and white", "a man riding a"]
    histograms = next_words(models, contexts)
    assert histograms.shape == (4, 2, 10_000)
    assert histograms.min() > 0
    np.testing.assert_allclose(histograms.sum(axis=2), 1)
    assert np.abs(histograms[0] - histograms[1]).sum(axis=1).min() > 0.1
    photo, wave = words.place("photo"), words.place("wave")
    assert (histograms[:, 0, photo] > 100 * histograms[:, 1, photo]).all()
    assert (histograms[:, 1].argmax(axis=1) == wave).all()


def test_contexts_are_beginnings_of_test_captions_drawn_by_seed():
    contexts = draw_contexts(20, 0)
    assert contexts == draw_contexts(20, 0) != draw_contexts(20, 1)
    assert min(len(context.split()) for context in contexts) >= 3


def test_votes_count_synsets_and_ppdb_both_ways():
    votes = count_votes(LabelSpace(["car", "auto", "automobile", "photo", "photograph", "dog"]))
    found = {
        (votes.nodes[a], votes.nodes[b]): int(n)
        for a, b, n in zip(votes.starts, votes.ends, votes.weights, strict=True)
    }
    assert found["car", "automobile"] == 2  # a synset, and PPDB
    assert found["car", "auto"] == 1  # the synset alone
    assert not any("dog" in pair for pair in found)
    assert all(found[b, a] == n for (a, b), n in found.items())


def test_three_words_are_chosen_by_rule():
    consensus = np.array([0.4, 0.3, 0.2, 0.1])
    histograms = np.array([[0.6, 0.0, 0.3, 0.1], [0.7, 0.1, 0.2, 0.0]])
    kernel = np.eye(4)
    kernel[0, 1] = kernel[1, 0] = kernel[2, 3] = kernel[3, 2] = 0.5
    chosen = mapping.choose_words(consensus, histograms, sp.csr_array(kernel), n_known=2)
    assert chosen == [0, 1, 2]  # the best; in no model's two best; no synonym of the first


def test_shares_name_the_word_itself_and_its_synonyms():
    found = mapping.run(mapping.Config(n_longer=6))
    (table,) = found.tables
    assert [row[0] for row in table.rows[::5]] == ["photo", "exposure", "cat"]
    shown = {str(cell).split()[0] for row in table.rows[:5] for cell in row[1:] if cell}
    assert shown <= {"photo", "photograph", "photographs", "photography", "photos", "picture",
                     "pictures", "exposure"}  # fmt: skip
    assert all(claim.held for claim in found.claims)
