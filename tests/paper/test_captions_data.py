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


def test_features_and_captions_are_of_the_same_image():
    """A line through the training features tells pizza from the rest on other images."""
    train, other = load_captions("train"), load_captions("val")

    def has_pizza(data):
        return np.array(["pizza" in " ".join(captions).split() for captions in data.captions])

    seen = train.features.mean(axis=1)
    line = np.linalg.lstsq(seen, has_pizza(train).astype(float) - 0.5, rcond=None)[0]
    scores, truth = other.features.mean(axis=1) @ line, has_pizza(other)
    right = scores[truth][:, None] > scores[~truth]
    assert truth.sum() > 10
    assert right.mean() > 0.95


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
