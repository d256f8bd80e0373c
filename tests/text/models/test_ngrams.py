"""Kneser-Ney smoothing, against its formula."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from wassemble import InvalidInputError
from wassemble.text import NGramModel, Vocabulary

TEXT = [
    line.split()
    for line in (
        "a cat sleeps",
        "a cat eats a fish",
        "the dog eats",
        "the dog eats a fish",
        "a dog sleeps on the mat",
        "the cat sleeps on a mat",
        "a fish",
    )
]


def log_probabilities(model, words):
    """Log probabilities after the words, from the start of a sentence."""
    vocabulary = model.vocabulary
    state = model.start([None])
    for number in [vocabulary.start_index, *vocabulary.encode(words)]:
        logs, state = model.step(state, np.array([number]))
    return logs[0]


def by_formula(history, word, order, vocabulary):
    """Interpolated Kneser-Ney, written down from the text, one word at a time."""
    pad = ["<start>"] * (order - 1)
    grams = Counter()
    for sentence in TEXT:
        padded = [*pad, *sentence, "<end>"]
        grams.update(tuple(padded[i : i + order]) for i in range(len(padded) - order + 1))
    levels = [grams]
    for _ in range(order - 1):
        before = defaultdict(set)
        for gram in levels[-1]:
            before[gram[1:]].add(gram[0])
        levels.append(Counter({gram: len(seen) for gram, seen in before.items()}))
    found = 1 / (len(vocabulary) - 1)
    history = [*pad, *history]
    for n_back, counts in enumerate(reversed(levels)):
        key = tuple(history[len(history) - n_back :])
        after = {gram[-1]: count for gram, count in counts.items() if gram[:-1] == key}
        if not after:
            break
        once = sum(count == 1 for count in counts.values())
        twice = sum(count == 2 for count in counts.values())
        discount = once / (once + 2 * twice) if once and twice else 0.5
        total = sum(after.values())
        found *= discount * len(after) / total
        if word in after:
            found += (after[word] - discount) / total
    return found


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("history", [[], ["a"], ["the", "dog"], ["mat", "the"], ["lynx", "cat"]])
def test_probabilities_are_those_of_the_formula(order, history):
    model = NGramModel.fit(TEXT, order=order)
    logs = log_probabilities(model, history)
    known = [word if word in model.vocabulary else "<unk>" for word in history]
    for word in model.vocabulary.words:
        if word != "<start>":
            expected = by_formula(known, word, order, model.vocabulary)
            assert np.exp(logs[model.vocabulary.index(word)]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_histograms_sum_to_1_and_only_the_start_is_impossible(order):
    model = NGramModel.fit(TEXT, order=order)
    for history in ([], ["a", "cat"], ["mat", "mat", "mat"]):
        logs = log_probabilities(model, history)
        assert np.exp(logs.astype(np.float64)).sum() == pytest.approx(1, abs=1e-6)
        assert np.flatnonzero(logs == -np.inf).tolist() == [model.vocabulary.start_index]


def test_longer_histories_fit_the_text_better():
    def fit_of(order):
        model = NGramModel.fit(TEXT, order=order)
        return sum(
            log_probabilities(model, words[:i])[model.vocabulary.index(word)]
            for words in TEXT
            for i, word in enumerate([*words, "<end>"])
        )

    assert fit_of(1) < fit_of(2) < fit_of(3)


def test_words_outside_a_given_vocabulary_count_as_unknown():
    vocabulary = Vocabulary(["<start>", "<end>", "<unk>", "a", "the"])
    model = NGramModel.fit(TEXT, order=2, vocabulary=vocabulary)
    assert vocabulary.words[int(log_probabilities(model, ["a"]).argmax())] == "<unk>"


def test_a_file_gives_back_the_same_model(tmp_path):
    model = NGramModel.fit(TEXT, order=3)
    path = tmp_path / "model.npz"
    model.save(path)
    loaded = NGramModel.load(path)
    assert loaded.vocabulary == model.vocabulary
    assert loaded.order == 3
    for history in ([], ["a", "cat"]):
        np.testing.assert_array_equal(
            log_probabilities(loaded, history), log_probabilities(model, history)
        )


def test_another_file_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(InvalidInputError, match="must be an n-gram model's file"):
        NGramModel.load(tmp_path / "other.npz")


def test_rows_are_reordered_with_repeats():
    model = NGramModel.fit(TEXT, order=3)
    vocabulary = model.vocabulary
    state = model.start([None, None])
    _, state = model.step(state, np.full(2, vocabulary.start_index))
    _, state = model.step(state, vocabulary.encode(["a", "the"]))
    again, _ = model.step(model.reorder(state, np.array([1, 1, 0])), vocabulary.encode(["dog"] * 3))
    np.testing.assert_allclose(again[0], again[1], rtol=1e-6)
    np.testing.assert_allclose(again[0], log_probabilities(model, ["the", "dog"]), rtol=1e-6)
    np.testing.assert_allclose(again[2], log_probabilities(model, ["a", "dog"]), rtol=1e-6)


def test_no_sentences_are_refused():
    with pytest.raises(InvalidInputError, match="at least one sentence"):
        NGramModel.fit([])
