"""Words that never move, whatever the kernel says."""

import numpy as np
import pytest
import scipy.sparse as sp

from wassemble import InvalidInputError, LabelledKernel
from wassemble.kernels import DenseKernel, IdentityKernel, LowRankKernel, SparseKernel
from wassemble.text import Vocabulary, keep_apart
from wassemble.text.kernels import has_letters, matched_words, word_kernel, words_to_read

WORDS = Vocabulary(["<start>", "<end>", "<unk>", "cat", "dog", "2", "...", "okapi"])
APART = [0, 1, 2, 5, 6]


def full(kind):
    table = np.random.default_rng(0).uniform(0.2, 1, (8, 3))
    if kind == "low rank":
        return LowRankKernel(table)
    dense = table @ table.T
    if kind == "sparse":
        return SparseKernel(sp.csr_array(dense), symmetric=True)
    return DenseKernel(dense, symmetric=True)


@pytest.mark.parametrize("kind", ["dense", "sparse", "low rank"])
def test_special_words_digits_and_punctuation_keep_to_themselves(kind):
    kernel = full(kind)
    apart = keep_apart(LabelledKernel(kernel, WORDS.words, WORDS.words, "x"), WORDS, WORDS)
    assert type(apart) is type(kernel)
    assert apart.is_symmetric
    expected = kernel.to_dense().copy()
    expected[APART], expected[:, APART] = 0, 0
    expected[APART, APART] = 1
    np.testing.assert_allclose(apart.to_dense(), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse", "low rank"])
def test_special_words_match_by_their_part_and_others_by_name(kind):
    target = Vocabulary(["dog", "lynx", "</s>", "2", "cat"], end="</s>", unknown=None)
    table = np.random.default_rng(1).uniform(0.2, 1, (8, 2))
    other = np.random.default_rng(2).uniform(0.2, 1, (5, 2))
    kernel = {
        "dense": DenseKernel(table @ other.T),
        "sparse": SparseKernel(sp.csr_array(table @ other.T)),
        "low rank": LowRankKernel(table, other),
    }[kind]
    named = LabelledKernel(kernel, WORDS.words, target.words, "x")
    apart = keep_apart(named, WORDS, target).to_dense()
    assert apart[1].tolist() == [0, 0, 1, 0, 0]
    assert apart[5].tolist() == [0, 0, 0, 1, 0]
    assert not apart[[0, 2, 6]].any()
    np.testing.assert_allclose(apart[3, [0, 1, 4]], (table @ other.T)[3, [0, 1, 4]], rtol=1e-12)
    assert not apart[[3, 4, 7]][:, [2, 3]].any()


def test_words_that_the_kernel_does_not_know_keep_to_themselves():
    known = LabelledKernel(DenseKernel(np.full((2, 2), 0.5)), ["cat", "dog"], ["cat", "dog"], "x")
    apart = keep_apart(known, WORDS, WORDS).to_dense()
    expected = np.eye(8)
    expected[3:5, 3:5] = 0.5
    np.testing.assert_array_equal(apart, expected)


def test_a_kernel_of_equal_words_stays_the_identity():
    assert isinstance(word_kernel(None, WORDS, WORDS), IdentityKernel)


def test_a_kernel_without_names_must_fit_the_vocabularies():
    with pytest.raises(InvalidInputError, match=r"must have shape \(8, 8\)"):
        word_kernel(np.eye(3), WORDS, WORDS)


def test_a_word_that_both_starts_and_ends_is_matched_as_the_end():
    both = Vocabulary(["<|text|>", "cat"], start="<|text|>", end="<|text|>")
    np.testing.assert_array_equal(matched_words(both, WORDS), [1, 3])


def test_models_read_the_word_itself_else_the_most_similar_else_the_unknown():
    target = Vocabulary(["<start>", "<end>", "<unk>", "cat", "lynx", "quark"])
    kernel = LabelledKernel(
        DenseKernel([[1.0, 0.8], [0.1, 0.1]]), ["cat", "dog"], ["cat", "lynx"], "x"
    )
    own = word_kernel(kernel, WORDS, target)
    np.testing.assert_array_equal(words_to_read(own, WORDS, target), [0, 1, 2, 3, 3, 2])


def test_a_word_that_a_model_cannot_read_is_an_error():
    source = Vocabulary(["<end>", "cat"], unknown=None)
    target = Vocabulary(["<end>", "cat", "quark"], unknown=None)
    with pytest.raises(InvalidInputError, match="one has none for 'quark'"):
        words_to_read(word_kernel(None, source, target), source, target)


@pytest.mark.parametrize("marked", ["Ġ{}", "▁{}", "##{}", "{}@@", "{}</w>", "Ċ{}", "čĊ{}", "{}"])
def test_marks_of_tokenizers_are_no_letters(marked):
    pieces = ["cat", "été", "кот", "2", ",", ""]
    found = [has_letters(marked.format(piece)) for piece in pieces]
    assert found == [True, True, True, False, False, False]


def test_bytes_of_tokenizers_are_the_characters_that_they_spell():
    assert not any(map(has_letters, ["âĢĵ", "ĠâĢľ", "Â½", "<0x0A>"]))  # dash, quote, half, line end
    assert all(map(has_letters, ["Ã©", "ĠÐ¿", "à", "čaj"]))  # é п, and words as they are


def test_pieces_of_digits_and_punctuation_keep_to_themselves():
    pieces = Vocabulary(["<end>", "Ġcat", "Ġdog", "Ġ2", "Ġ,", "Ċ"], unknown=None)
    apart = word_kernel(np.full((6, 6), 0.5), pieces, pieces).to_dense()
    expected = np.eye(6)
    expected[1:3, 1:3] = 0.5
    np.testing.assert_array_equal(apart, expected)
