"""Pictures with captions are whole, in step with each other, and split for good."""

import numpy as np
import pytest

from paper.data.captions import load_caption_words, load_captions
from wassemble import InvalidInputError

SPLITS = {"train": 3000, "val": 700, "test": 1300}


def test_splits_have_their_sizes_and_share_no_image():
    splits = [load_captions(split) for split in SPLITS]
    assert [len(data) for data in splits] == list(SPLITS.values())
    assert len(np.unique(np.concatenate([data.image_ids for data in splits]))) == 5000
    for data in splits:
        assert data.features.shape == (len(data), 16, 128)
        assert data.features.dtype == np.float32
        assert {len(captions) for captions in data.captions} == {5}


def has_pizza(data):
    return np.array(["pizza" in " ".join(captions).split() for captions in data.captions])


def share_right(train, seen, other, seen_of_other):
    """A line through what is seen of some images tells pizza from the rest on others."""
    mean = seen.mean(axis=0)
    line = np.linalg.lstsq(seen - mean, has_pizza(train).astype(float), rcond=None)[0]
    scores, truth = (seen_of_other - mean) @ line, has_pizza(other)
    assert truth.sum() > 10
    return (scores[truth][:, None] > scores[~truth]).mean()


def test_features_and_captions_are_of_the_same_image():
    train, other = load_captions("train"), load_captions("val")
    seen = (data.features.mean(axis=1) for data in (train, other))
    assert share_right(train, next(seen), other, next(seen)) > 0.95


def test_concepts_are_in_two_more_rows_and_of_the_same_image():
    train, other = (load_captions(split, with_concepts=True) for split in ("train", "val"))
    assert train.features.shape == (3000, 18, 128)
    np.testing.assert_array_equal(other.features[:, :16], load_captions("val").features)
    concepts = (data.features[:, 16:].reshape(len(data), -1) for data in (train, other))
    assert share_right(train, next(concepts), other, next(concepts)) > 0.95


def test_concepts_of_training_images_are_as_good_as_those_of_others():
    """Detected out of fold: a detector that had seen them would tell more of them."""
    spread = [load_captions(split, with_concepts=True).features[:, 16:] for split in SPLITS]
    sizes = [np.square(concepts).mean() for concepts in spread]
    assert max(sizes) < 1.1 * min(sizes)


def test_words_come_by_frequency_and_their_vectors_have_meaning():
    words, embeddings = load_caption_words()
    counted = dict.fromkeys(words, 0)
    for captions in load_captions("train").captions:
        for word in " ".join(captions).split():
            if word in counted:
                counted[word] += 1
    counts = list(counted.values())
    assert min(counts) == 3
    assert counts == sorted(counts, reverse=True)

    def similarity(first, second):
        return (
            embeddings.vectors[embeddings.find(first)] @ embeddings.vectors[embeddings.find(second)]
        )

    assert "a" not in embeddings
    assert similarity("cat", "cat") == pytest.approx(1, abs=0.01)
    assert similarity("cat", "dog") > similarity("cat", "pizza") + 0.2


def test_an_unknown_split_is_refused():
    with pytest.raises(InvalidInputError, match=r"must be one of train, val, test; got 'dev'"):
        load_captions("dev")
