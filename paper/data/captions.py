"""Pictures with captions: grid features, five captions each, and words with vectors.

Text only goes in and out here; numbering words is the affair of `wassemble.text`.
"""

from __future__ import annotations

import gzip
import json
import zipfile
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from paper.data.files import find_data
from wassemble._checks import fail
from wassemble.inputs.words.embeddings import Embeddings

CONCEPTS = "coco_captions/concepts_int8.npz"
_SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class CaptionsData:
    """Features and reference captions of pictures."""

    image_ids: np.ndarray  # COCO's numbers
    # (n_images, 16, 128), float32: a 4 x 4 grid in rows, top left first; with concepts two
    # rows more, which have the 256 concepts of the picture.
    features: np.ndarray
    captions: list[list[str]]  # five for each image; words parted by blanks

    def __len__(self) -> int:
        return len(self.captions)


def load_captions(split: str, *, with_concepts: bool = False) -> CaptionsData:
    """The images of a split, in the order of their numbers.

    "train", "val" and "test" are 3,000, 700 and 1,300 images of COCO val2017. Concepts are
    what a detector tells of a picture that it has not seen: see `paper.captioners.concepts`.

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
    if with_concepts:
        with np.load(find_data(CONCEPTS)) as arrays:
            concepts = arrays["codes"][rows] * arrays["scale"]
        concepts = concepts.reshape(len(rows), -1, features.shape[2])
        features = np.concatenate([features, concepts], axis=1)
    with gzip.open(find_data("coco_captions/captions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        captions = {entry["image_id"]: entry["captions"] for entry in map(json.loads, lines)}
    return CaptionsData(image_ids, features, [captions[number] for number in image_ids.tolist()])


def load_image_ids() -> np.ndarray:
    """COCO's numbers of the 5,000 images that there are features of, in rising order."""
    with np.load(find_data("coco_captions/grid_pca128_int8.npz")) as arrays:
        return np.asarray(arrays["image_ids"])


def load_caption_words() -> tuple[tuple[str, ...], Embeddings]:
    """Words that come three times or more in the training captions, and their GloVe vectors.

    The most frequent words are first. Vectors have length 1; "a" and a few others have none.

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


_HINT = (
    "numpy.savez(path, image_ids=..., features=...) writes one; features have shape"
    " (n_images, n_cells, n_features)"
)


def read_grid_features(path: str | PathLike[str]) -> tuple[list[str], np.ndarray]:
    """Ids and grid features of pictures, from an ``.npz`` file of ``image_ids`` and ``features``.

    Ids are numbers or text there; features have shape (n_images, n_cells, n_features).
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            image_ids, features = arrays["image_ids"], arrays["features"]
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        fail(f"{path}: must be an .npz file of image_ids and features; {error}.", hint=_HINT)
    if features.ndim != 3 or features.dtype.kind not in "fiu" or 0 in features.shape:
        fail(
            f"{path}: features must be numbers of shape (n_images, n_cells, n_features);"
            f" got {features.dtype} of shape {features.shape}.",
            hint=_HINT,
        )
    if image_ids.shape != features.shape[:1]:
        fail(
            f"{path}: image_ids must have one id for each of the {len(features)} images;"
            f" got shape {image_ids.shape}."
        )
    if not np.isfinite(features).all():
        wrong = int(np.flatnonzero(~np.isfinite(features).all(axis=(1, 2)))[0])
        fail(f"{path}: features must be finite; those of image {image_ids[wrong]} are not.")
    return [str(name) for name in image_ids.tolist()], features.astype(np.float32)
