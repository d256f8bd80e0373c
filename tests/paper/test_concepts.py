"""Concepts of captions, of features, and of pictures that are not there."""

import numpy as np
import pytest

from paper.captioners.concepts import Bags, ConceptSpace, detect, detect_out_of_fold, fit_concepts
from paper.captioners.texts import Texts
from paper.data.captions import load_caption_words, load_captions

WORDS = ("a", "cat", "dog")
CAPTIONS = [["a cat", "the cat and a cat"], ["a dog", "dog", "two dogs"], ["a cat", "a dog"]]


def test_a_word_counts_once_in_a_caption():
    bags = Bags(WORDS, CAPTIONS)
    np.testing.assert_array_equal(bags.sums().toarray(), [[2, 2, 0], [1, 0, 2], [2, 1, 1]])
    np.testing.assert_array_equal(bags.sizes, [2, 3, 2])


def test_concepts_have_variance_one_and_are_not_correlated():
    words, _ = load_caption_words()
    captions = load_captions("train").captions
    space = fit_concepts(words[:300], captions, n_concepts=20)
    concepts = space.place_captions(captions)
    np.testing.assert_allclose(concepts.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(np.cov(concepts.T), np.eye(20), atol=2e-3)


def test_a_detector_learns_what_no_line_can(rng):
    pictures = rng.uniform(-1, 1, size=(400, 2))
    concepts = np.abs(pictures[:, :1])
    found = detect(pictures[:300], concepts[:300], pictures[300:])
    assert np.corrcoef(found[:, 0], concepts[300:, 0])[0, 1] > 0.95


def test_out_of_fold_nothing_is_learned_from_the_picture_itself(rng):
    pictures, noise = rng.normal(size=(200, 5)), rng.normal(size=(200, 1))
    seen, unseen = detect(pictures, noise, pictures), detect_out_of_fold(pictures, noise)
    assert np.corrcoef(seen[:, 0], noise[:, 0])[0, 1] > 0.5
    assert np.corrcoef(unseen[:, 0], noise[:, 0])[0, 1] < 0.25


@pytest.fixture
def space():
    return ConceptSpace(WORDS, np.zeros(3), np.eye(3, dtype=np.float32))


def test_a_drawn_caption_says_nothing_of_its_own_concepts(space, rng):
    """A detector that halves everything halves what the other captions say."""
    true = rng.normal(size=(500, 3)).astype(np.float32)
    texts = Texts(CAPTIONS, space, true, true / 2)
    said, concepts = texts.draw(rng)
    for caption, each, found in zip(said, CAPTIONS, concepts, strict=True):
        others = [text for text in each if text is not caption]
        assert len(others) == len(each) - 1
        expected = space.place_captions([others])[0] / 2
        np.testing.assert_allclose(found, expected, atol=0.15)


def test_what_is_imagined_of_an_image_goes_by_all_of_its_captions(space, rng):
    true = rng.normal(size=(500, 3)).astype(np.float32)
    texts = Texts(CAPTIONS, space, true, true / 2)
    found = texts.imagine(np.array([2, 0]), rng)
    expected = space.place_captions([CAPTIONS[2], CAPTIONS[0]]) / 2
    np.testing.assert_allclose(found, expected, atol=0.15)


def test_errors_are_those_of_pictures_with_like_captions(space, rng):
    """The detector is wrong on dogs alone: so are the pictures that it is asked to imagine."""
    is_dog = np.arange(400) % 2 == 1
    true = np.where(is_dog[:, None], [0.5, 0, 1], [0.5, 1, 0]).astype(np.float32)
    wrong = (true + is_dog[:, None] * rng.normal(size=(400, 3))).astype(np.float32)
    cats, dogs = [["a cat", "cat"]] * 50, [["a dog", "dog"]] * 50
    texts = Texts(cats + dogs, space, true, wrong)
    _, concepts = texts.draw(rng)
    assert concepts[:50].std(axis=0).max() < 0.6
    assert concepts[50:].std(axis=0).min() > 0.8
