"""Captions of all COCO images are those of the wheel, without our own."""

import json
import zipfile

import numpy as np
import pytest

from paper.data import coco
from paper.data.captions import load_captions, load_image_ids
from wassemble.errors import MissingExtraError

pytest.importorskip("pycocoevalcap")


@pytest.fixture(scope="module")
def everything():
    return coco.read_jar(coco._find_jar())


def test_our_images_have_our_captions(everything):
    """So words are split as those that the pictures have, and images are numbered alike."""
    for split in ("train", "val", "test"):
        data = load_captions(split)
        for image, captions in zip(data.image_ids.tolist(), data.captions, strict=True):
            assert list(everything[image][:5]) == captions


def test_our_images_are_held_out(everything):
    others = coco.load_coco_captions()
    assert len(everything) == 123_287
    assert everything.keys() - others.keys() == set(load_image_ids().tolist())
    assert sum(map(len, others.values())) == 591_753


def test_words_come_by_frequency():
    words = coco.load_coco_words()
    assert len(words) == len(set(words)) == 10_192
    assert words[:3] == ("a", "on", "of")
    text = " ".join(
        caption for captions in coco.load_coco_captions().values() for caption in captions
    )
    counts = [f" {text} ".count(f" {word} ") for word in (words[100], words[5000], words[-1])]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == coco.MIN_USES


def test_vectors_of_words_that_may_stand_for_each_other_are_near():
    vectors = coco.load_coco_vectors()
    assert vectors.words == coco.load_coco_words()
    np.testing.assert_allclose(np.linalg.norm(vectors.vectors, axis=1), 1, rtol=1e-5)

    def nearest(word):
        nearness = vectors.vectors @ vectors.vectors[vectors.find(word)]
        return vectors.words[int(np.argsort(nearness)[-2])]

    assert [nearest(word) for word in ("couch", "red", "two")] == ["sofa", "yellow", "three"]


def write_jar(path, train, val):
    with zipfile.ZipFile(path, "w") as jar:
        for part, annotations in (("train", train), ("val", val)):
            text = json.dumps({"annotations": annotations})
            jar.writestr(f"coco/annotations/captions_{part}2014.json", text)


@pytest.fixture
def jar(tmp_path, monkeypatch):
    """A jar of two images and three captions, which are all that there are."""
    monkeypatch.setattr(coco, "N_IMAGES", 2)
    monkeypatch.setattr(coco, "N_CAPTIONS", 3)
    first = {"image_id": 7, "id": 2, "caption": "A dog's bone."}
    second = {"image_id": 7, "id": 1, "caption": "Two dogs"}
    third = {"image_id": 3, "id": 9, "caption": "A caf\u00e9, isn't it?"}
    write_jar(tmp_path / "x.jar", [first, third], [second])
    return tmp_path / "x.jar"


def test_captions_of_both_parts_come_in_the_order_of_their_numbers(jar):
    found = coco.read_jar(jar)
    assert found == {3: ("a cafe isnt it",), 7: ("two dogs", "a dog s bone")}
    assert list(found) == [3, 7]


def test_a_jar_that_is_not_whole_is_refused(jar, monkeypatch):
    monkeypatch.setattr(coco, "N_CAPTIONS", 4)
    with pytest.raises(MissingExtraError, match=r"(?s)4 captions of 2 COCO.*got 3 of 2\.\nhint:"):
        coco.read_jar(jar)


@pytest.mark.parametrize("content", [None, b"", b"text"])
def test_what_is_no_such_jar_is_refused(tmp_path, content):
    path = tmp_path / "x.jar"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MissingExtraError, match=r"(?s)x.jar: must hold 616,767.*\nhint: pip inst"):
        coco.read_jar(path)


def test_a_jar_without_captions_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.jar", "w") as jar:
        jar.writestr("COPYING", "GPL")
    with pytest.raises(MissingExtraError, match=r"captions_train2014.json"):
        coco.read_jar(tmp_path / "x.jar")
