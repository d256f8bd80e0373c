"""Words by number."""

import numpy as np
import pytest

from wassemble import InvalidInputError
from wassemble.text import Vocabulary

WORDS = ["<start>", "<end>", "<unk>", "a", "cat"]


def test_decoding_undoes_encoding():
    vocabulary = Vocabulary(WORDS)
    assert vocabulary.decode(vocabulary.encode(["cat", "a", "<end>"])) == ["cat", "a", "<end>"]


def test_words_that_are_not_there_become_the_unknown_word():
    numbers = Vocabulary(WORDS).encode(["lynx", "cat"])
    np.testing.assert_array_equal(numbers, [2, 4])
    assert numbers.dtype == np.int64


def test_without_an_unknown_word_a_strange_word_is_an_error():
    with pytest.raises(InvalidInputError, match="got 'cats'"):
        Vocabulary(["<end>", "cat"]).encode(["cats"])


def test_a_vocabulary_without_a_start_word_starts_where_a_sentence_ended():
    vocabulary = Vocabulary(["cat", "<end>"])
    assert vocabulary.start_index == vocabulary.end_index == 1
    assert vocabulary.unknown_index is None
    assert vocabulary.special == {"<end>"}


def test_a_vocabulary_must_have_a_word_that_ends_a_sentence():
    with pytest.raises(InvalidInputError, match="`end` must be one of the vocabulary's words"):
        Vocabulary(["cat"])


def test_one_text_is_not_a_list_of_words():
    with pytest.raises(InvalidInputError, match="one text"):
        Vocabulary(WORDS).encode("cat")


def test_vocabularies_with_the_same_words_are_equal():
    assert Vocabulary(WORDS) == Vocabulary(WORDS)
    assert Vocabulary(WORDS) != Vocabulary(WORDS, unknown=None)
