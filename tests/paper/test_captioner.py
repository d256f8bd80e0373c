"""A captioner is a next-word model, in memory and from its file."""

import numpy as np
import pytest

from paper.captioners.captioner import Captioner, read_captioner, write_captioner
from paper.captioning import scores as metrics
from paper.data.captions import load_captions
from paper.data.files import find_data
from wassemble import InvalidInputError
from wassemble.text.vocabulary import Vocabulary

torch = pytest.importorskip("torch")

from paper.captioners.network import CaptionerNetwork  # noqa: E402
from paper.captioners.training import generate  # noqa: E402

WORDS = Vocabulary(["<end>", "<unk>", "a", "cat", "dog"])


@pytest.fixture
def captioner():
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        network = CaptionerNetwork(len(WORDS), 3, n_units=8, n_embedding=6, dropout=0.5)
    return Captioner(network, WORDS, {"recipe": {"name": "random"}})


@pytest.fixture
def features(rng):
    return rng.normal(size=(3, 4, 3))


def test_a_step_gives_histograms_without_the_unknown_word(captioner, features):
    scores, _ = captioner.step(captioner.start(features), np.array([0, 2, 3]))
    assert scores.dtype == np.float32
    assert scores.shape == (3, len(WORDS))
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1, rtol=1e-5)
    assert (scores[:, WORDS.unknown_index] == -np.inf).all()


def test_a_step_leaves_its_state_as_it_was(captioner, features):
    state = captioner.start(features)
    first, _ = captioner.step(state, np.array([2, 2, 2]))
    again, _ = captioner.step(state, np.array([2, 2, 2]))
    np.testing.assert_allclose(first, again, rtol=1e-6)


def test_reordered_rows_are_rows_of_their_own(captioner, features):
    words = np.array([0, 2, 3])
    _, state = captioner.step(captioner.start(features), words)
    rows = np.array([2, 0, 2, 2])
    mixed, _ = captioner.step(captioner.reorder(state, rows), words[rows])
    for place, row in enumerate(rows):
        _, alone = captioner.step(captioner.start(features[[row]]), words[[row]])
        np.testing.assert_allclose(
            mixed[[place]], captioner.step(alone, words[[row]])[0], atol=1e-5
        )


def test_the_picture_and_the_words_so_far_matter(captioner, features):
    words = np.array([2, 2, 3])
    same = features[[0, 1, 1]]
    scores, _ = captioner.step(captioner.start(same), words)
    assert np.abs(np.exp(scores[0]) - np.exp(scores[1])).max() > 1e-5  # another picture
    assert np.abs(np.exp(scores[1]) - np.exp(scores[2])).max() > 1e-5  # another word


def test_a_file_gives_the_captioner_back_in_half_precision(captioner, features, tmp_path):
    path = tmp_path / "random.npz"
    write_captioner(captioner, path)
    found = read_captioner(path)
    assert found.account == captioner.account
    assert found.vocabulary == WORDS
    words = np.array([2, 3, 4])
    first, _ = captioner.step(captioner.start(features), words)
    second, _ = found.step(found.start(features), words)
    np.testing.assert_allclose(np.exp(first), np.exp(second), atol=2e-3)
    write_captioner(found, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_features_of_another_kind_are_refused(captioner):
    with pytest.raises(InvalidInputError, match=r"\(n_images, n_cells, 3\); got shape \(2, 3\)"):
        captioner.start(np.zeros((2, 3)))


def test_a_captioner_that_is_told_concepts_wants_them(tmp_path):
    network = CaptionerNetwork(len(WORDS), 0, n_units=8, n_embedding=6, dropout=0.0, n_concepts=6)
    path = tmp_path / "told.npz"
    write_captioner(Captioner(network, WORDS, {}), path)
    captioner = read_captioner(path)
    assert captioner.start(np.zeros((2, 4, 3))).hidden.shape == (2, 8)
    for shape in ((2, 1, 3), (2, 3, 4), (2, 6)):
        with pytest.raises(InvalidInputError, match=r"must have 6 concepts in the last rows"):
            captioner.start(np.zeros(shape))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a file", b"text"])
def test_what_is_no_captioner_is_refused(tmp_path, content):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"(?s)x.npz: must be a captioner file.*hint:"):
        read_captioner(path)


def test_other_arrays_are_no_captioner(tmp_path):
    np.savez(tmp_path / "x.npz", words=np.array(["a"]), account="{}")
    with pytest.raises(InvalidInputError, match=r"must be a captioner file"):
        read_captioner(tmp_path / "x.npz")


def test_the_shipped_tiny_captioner_sees_the_pictures():
    """It scores far better on its own pictures than on those of others."""
    captioner = read_captioner(find_data("captioners/tiny.npz"))
    data = load_captions("val")
    features = torch.from_numpy(data.features[:100])
    said = [" ".join(c) for c in generate(captioner.network, captioner.vocabulary, features)]
    right = metrics.cider(said, data.captions[:100]).value
    wrong = metrics.cider(said[50:] + said[:50], data.captions[:100]).value
    assert right > 2 * wrong
    assert right > 0.1
