"""CIDEr-D prepared once is pycocoevalcap's."""

import numpy as np
import pytest

from paper.captioning.scores import CiderD, Frequencies, cider, count_frequencies
from paper.data.captions import load_captions

SENTENCES = (
    *("a", "", "a a a a", "cat", "a cat on a mat", "the very same cat on the very same mat"),
    *("a man riding a wave on top of a surfboard", "on mat cat a a", "words never seen before"),
)


@pytest.fixture(scope="module")
def references():
    return [captions[1:] for captions in load_captions("val").captions[:60]]


def score_both(captions, references):
    reference = pytest.importorskip("pycocoevalcap.cider.cider")
    _, theirs = reference.Cider().compute_score(
        dict(enumerate(references)), {image: [text] for image, text in enumerate(captions)}
    )
    scorer = CiderD([[text.split() for text in texts] for texts in references])
    return [scorer.score(image, text.split()) for image, text in enumerate(captions)], theirs


def test_real_captions_score_as_in_pycocoevalcap(references):
    captions = [captions[0] for captions in load_captions("val").captions[:60]]
    mine, theirs = score_both(captions, references)
    np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert np.mean(mine) > 0.5


@pytest.mark.parametrize("caption", SENTENCES)
def test_odd_captions_score_as_in_pycocoevalcap(references, caption):
    odd = [["a", "a cat"], ["", "a cat on a mat"], *references]
    mine, theirs = score_both([caption] * len(odd), odd)
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-15)


def test_a_reference_itself_scores_highest(references):
    scorer = CiderD([[texts[0].split()] for texts in references])
    assert scorer.score(3, references[3][0].split()) == pytest.approx(10)
    assert scorer.score(3, references[4][0].split()) < 3


def test_frequencies_of_other_images_say_what_is_rare(references):
    """As pycocoevalcap scores among those images, if the references are among them."""
    captions = [texts[0] for texts in load_captions("val").captions[:20]]
    split = [[text.split() for text in texts] for texts in references]
    found = cider(captions, references[:20], frequencies=count_frequencies(split))
    _, theirs = score_both([*captions, *["a"] * 40], references)
    np.testing.assert_allclose(found.per_image, theirs[:20], rtol=1e-12)
    assert found.value != cider(captions, references[:20]).value


def test_an_ngram_of_every_image_counts_nothing():
    references = [[["a", "cat"]], [["a", "dog"]]]
    assert CiderD(references).score(0, ["a"]) == 0
    many = Frequencies(8, {("a",): 2})
    assert CiderD(references, many).score(0, ["a"]) > 0


def test_ngrams_of_one_image_are_not_kept():
    found = count_frequencies([[["a", "cat"], ["a", "cat", "on", "a", "mat"]], [["a", "dog"]]])
    assert (found.n_images, found.n_images_with) == (2, {("a",): 2})
