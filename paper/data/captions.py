"""Pictures with captions: grid features, five captions each, and words with vectors.

Text only goes in and out here; numbering words is the affair of `wassemble.text`.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass

import numpy as np

from paper.data.files import find_data
from wassemble._checks import fail
from wassemble.inputs.words.embeddings import Embeddings

_SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class CaptionsData:
    """Features and reference captions of pictures."""

    image_ids: np.ndarray  # COCO's numbers
    features: np.ndarray  # (n_images, 16, 128), float32: a 4 x 4 grid in rows, top left first
    captions: list[list[str]]  # five for each image; words parted by blanks

    def __len__(self) -> int:
        return len(self.captions)


def load_captions(split: str) -> CaptionsData:
    """The images of a split, in the order of their numbers.

    Parameters
    ----------
    split : {"train", "val", "test"}
        3,000, 700 and 1,300 images of COCO val2017.

    Examples
    --------
    >>> data = load_captions("val")
    >>> data.features.shape
    (700, 16, 128)
    >>> data.captions[0][0]
    'a woman holding a hello kitty phone on her hands'
    """
    if split not in _SPLITS:
        fail(f"`split` must be one of {', '.join(_SPLITS)}; got {split!r}.")
    with np.load(find_data("coco_captions/grid_pca128_int8.npz")) as arrays:
        rows = np.flatnonzero(arrays["split"] == _SPLITS.index(split))
        image_ids = arrays["image_ids"][rows]
        features = arrays["codes"][rows] * arrays["scale"]
    with gzip.open(find_data("coco_captions/captions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        captions = {entry["image_id"]: entry["captions"] for entry in map(json.loads, lines)}
    return CaptionsData(image_ids, features, [captions[number] for number in image_ids.tolist()])


def load_caption_words() -> tuple[tuple[str, ...], Embeddings]:
    """Words that come three times or more in the training captions, and their GloVe vectors.

    Returns
    -------
    words : tuple of str
        2,504, the most frequent first.
    embeddings : Embeddings
        Unit vectors of the 2,480 of them that have one; "a" and a few others have none.

    Examples
    --------
    >>> words, embeddings = load_caption_words()
    >>> words[:3], len(words), len(embeddings)
    (('a', 'on', 'of'), 2504, 2480)
    """
    with np.load(find_data("coco_captions/vocabulary_glove100_int8.npz")) as arrays:
        words = tuple(arrays["words"].tolist())
        has_vector = arrays["has_vector"]
        vectors = (arrays["codes"] * arrays["scale"][:, None])[has_vector]
    known = [word for word, has in zip(words, has_vector, strict=True) if has]
    return words, Embeddings(known, vectors, origin="GloVe vectors of caption words")
