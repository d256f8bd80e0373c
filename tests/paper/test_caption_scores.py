"""Scores of captions: by hand, beside other solvers, and what is said when a part is missing."""

import shutil
from itertools import permutations

import numpy as np
import pytest

from paper.captioning import scores as metrics
from paper.data.captions import load_caption_words, load_captions
from wassemble import InvalidInputError, MissingExtraError
from wassemble.inputs.words.embeddings import Embeddings
from wassemble.metrics import wasserstein_distance

SCORES = [metrics.cider, metrics.bleu, metrics.meteor, metrics.spice]


@pytest.fixture(scope="module")
def val():
    captions = load_captions("val").captions[:40]
    return [texts[0] for texts in captions], [texts[1:] for texts in captions]


@pytest.mark.parametrize("score", [metrics.cider, metrics.bleu])
def test_people_score_far_above_captions_of_other_images(val, score):
    captions, references = val
    right, wrong = score(captions, references), score(captions[1:] + captions[:1], references)
    assert right.per_image.shape == (40,)
    assert right.value > 3 * wrong.value


def test_cider_is_the_mean_of_its_images(val):
    score = metrics.cider(*val)
    assert score.value == pytest.approx(score.per_image.mean())


def test_bleu_by_hand():
    """Four of five words and two of four pairs are right, and no word is missing."""
    score = metrics.bleu(["a cat on the mat"], [["a cat in the mat", "a dog"]], n=2)
    assert score.value == pytest.approx(np.sqrt(4 / 5 * 2 / 4), abs=1e-6)
    assert metrics.bleu(["a cat"], [["a cat in it"]], n=1).value == pytest.approx(np.exp(1 - 2))


@pytest.mark.skipif(shutil.which("java") is None, reason="no Java")
def test_meteor_knows_stems_and_synonyms():
    captions = ["a cat sits on it", "a cat sits on it", "the sky"]
    references = [["a cat sits on it"], ["a cat sat on it"], ["a cat sits on it"]]
    score = metrics.meteor(captions, references)
    assert score.per_image[0] == pytest.approx(1)
    assert 0.3 < score.per_image[1] < 1
    assert score.per_image[2] == pytest.approx(0)


@pytest.mark.parametrize("score", [metrics.meteor, metrics.spice])
def test_without_java_the_error_says_so(val, score, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs Java, which is not installed\.\nhint:"):
        score(*val)


def test_spice_without_its_parser_says_how_to_get_it(val, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: "java")
    monkeypatch.setattr(metrics, "_PARSER", "no-such-parser.jar")
    with pytest.raises(MissingExtraError, match=r"(?s)parser no-such-parser.*get_stanford"):
        metrics.spice(*val)


def test_word_movers_distance_is_exact(val):
    """As by linear programming, over all words at once."""
    captions, references = val[0][:6], val[1][:6]
    words = sorted(set(" ".join([*captions, *(t for texts in references for t in texts)]).split()))
    _, known = load_caption_words()
    words = [word for word in words if word in known]
    embeddings = Embeddings(words, [known.vectors[known.find(word)] for word in words])
    score = metrics.word_movers_distance(captions, references, embeddings)
    cost = np.linalg.norm(embeddings.vectors[:, None] - embeddings.vectors, axis=2)

    def histogram(text):
        counts = np.zeros(len(embeddings))
        for word in text.split():
            if word in embeddings:
                counts[embeddings.find(word)] += 1
        return counts

    for caption, texts, found in zip(captions, references, score.per_image, strict=True):
        exact = [wasserstein_distance(histogram(caption), histogram(t), cost) for t in texts]
        assert found == pytest.approx(min(exact), abs=1e-6)
    assert score.value == pytest.approx(score.per_image.mean())


def test_word_movers_distance_has_no_order_and_takes_the_nearest_reference():
    _, embeddings = load_caption_words()
    words = ["cat", "on", "mat"]
    for order in permutations(words):
        score = metrics.word_movers_distance(
            [" ".join(order)], [["two dogs", "cat on mat"]], embeddings
        )
        assert score.value == pytest.approx(0, abs=1e-6)


def test_word_movers_distance_may_be_the_mean_over_references():
    vectors = Embeddings(["cat", "dog", "mat"], [[1, 0], [0.6, 0.8], [0, 1]])
    references = [["dog", "mat", "unknown"]]
    each = [
        metrics.word_movers_distance(["cat"], [[text]], vectors).value for text in ("dog", "mat")
    ]
    found = metrics.word_movers_distance(["cat"], references, vectors, to_nearest=False)
    assert found.value == pytest.approx(np.mean(each))
    assert metrics.word_movers_distance(["cat"], references, vectors).value == pytest.approx(
        min(each)
    )


def test_word_movers_distance_leaves_out_what_it_is_told_to():
    embeddings = Embeddings(["the", "cat", "dog"], [[1, 0], [0, 1], [0.6, 0.8]])
    captions, references = ["the cat"], [["dog"]]
    with_stop_word = metrics.word_movers_distance(captions, references, embeddings).value
    without = metrics.word_movers_distance(captions, references, embeddings, leave_out={"the"})
    assert without.value == pytest.approx(np.hypot(0.6, 0.2))
    assert with_stop_word == pytest.approx((np.hypot(0.6, 0.2) + np.hypot(0.4, 0.8)) / 2)


def test_a_caption_without_known_words_has_no_distance():
    embeddings = Embeddings(["cat", "dog"], [[1, 0], [0, 1]])
    score = metrics.word_movers_distance(["zzz", "cat"], [["cat"], ["zzz", "dog"]], embeddings)
    assert np.isnan(score.per_image[0])
    assert score.value == score.per_image[1] == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("score", SCORES)
def test_captions_and_references_must_match(score):
    with pytest.raises(InvalidInputError, match=r"one caption, and a list.*2 captions and 1 lists"):
        score(["a", "b"], [["a"]])
    with pytest.raises(InvalidInputError, match=r"got one text and 1 lists"):
        score("a", [["a"]])
    with pytest.raises(InvalidInputError, match=r"a list of captions for each image; got 'b'"):
        score(["a"], ["b"])
