"""Diversity of texts: by hand, and beside pycocoevalcap."""

import math

import numpy as np
import pytest

from paper.captioning.scores import distinct_n, self_bleu, vocabulary_size
from paper.data.captions import load_captions
from wassemble import InvalidInputError


def test_distinct_n_counts_ngrams_once():
    texts = ["a cat sat", "a cat ran", "a cat sat"]
    assert distinct_n(texts, 1) == pytest.approx(4 / 9)
    assert distinct_n(texts, 2) == pytest.approx(3 / 6)
    assert distinct_n(texts, 3) == pytest.approx(2 / 3)
    assert math.isnan(distinct_n(texts, 4))


def test_vocabulary_size_counts_words_once():
    assert vocabulary_size(["a cat sat", "the cat", ""]) == 4


@pytest.mark.parametrize("n", [1, 2, 4])
def test_self_bleu_is_the_bleu_against_the_others(n):
    module = pytest.importorskip("pycocoevalcap.bleu.bleu")
    texts = [captions[0] for captions in load_captions("val").captions[:40]]
    texts += ["a cat a cat a cat on a mat", "a cat a cat on a mat", texts[0]]
    others = {place: texts[:place] + texts[place + 1 :] for place in range(len(texts))}
    each = {place: [text] for place, text in enumerate(texts)}
    _, theirs = module.Bleu(4).compute_score(others, each, verbose=0)
    # pycocoevalcap smooths by 1e-15, which a fourth root makes visible where nothing is shared.
    assert self_bleu(texts, n) == pytest.approx(np.mean(theirs[n - 1]), abs=2e-4)


def test_self_bleu_of_unlike_texts_is_zero_and_of_one_text_is_refused():
    assert self_bleu(["a b c d e", "f g h i j"]) == 0
    with pytest.raises(InvalidInputError, match=r"at least two, to compare; got 1"):
        self_bleu(["a b c"])
