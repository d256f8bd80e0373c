"""Captions without pictures, and what a detector of concepts would tell of their pictures.

It told something of pictures with like captions, the donors; that is moved by as much as the
captions differ. So the errors are those that the detector makes on such pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.captioners.concepts import Bags, ConceptSpace, fit_concepts
from paper.data.captions import CaptionsData
from paper.data.coco import load_coco_captions, load_coco_words

_N_DONORS = 20  # pictures with the likest captions, of which one is drawn


class Texts:
    """Images of which there are only captions, to learn from.

    ``true`` and ``detected``, (n_pictures, n_concepts), are the concepts of pictures by their
    captions and by the detector.
    """

    def __init__(
        self,
        captions: Sequence[Sequence[str]],
        space: ConceptSpace,
        true: np.ndarray,
        detected: np.ndarray,
    ) -> None:
        self.captions, self._space, self._true, self._detected = captions, space, true, detected
        self._bags = Bags(space.words, captions)
        self._sums = self._bags.sums()
        self._concepts = space.place(self._sums, self._bags.sizes)
        self._slope = _fit_slope(true, detected)
        self._donors = _find_donors(self._concepts, true)

    def __len__(self) -> int:
        return len(self.captions)

    def draw(self, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
        """A caption of each image, and concepts as detected, without that caption's words."""
        sizes = self._bags.sizes
        chosen = rng.integers(sizes)
        others = self._sums - self._bags.counts[np.cumsum(sizes) - sizes + chosen]
        concepts = self._space.place(others, sizes - 1)
        said = [each[place] for each, place in zip(self.captions, chosen, strict=True)]
        return said, self._tell(np.arange(len(self)), concepts, rng)

    def imagine(self, images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Concepts of some images, by their places, as they would be detected."""
        return self._tell(images, self._concepts[images], rng)

    def _tell(
        self, images: np.ndarray, concepts: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        donors = self._donors[images, rng.integers(_N_DONORS, size=len(images))]
        return self._detected[donors] + (concepts - self._true[donors]) @ self._slope


def _fit_slope(true: np.ndarray, detected: np.ndarray) -> np.ndarray:
    """What detection makes of a difference in concepts, (n_concepts, n_concepts)."""
    gram = true.T @ true
    # A tenth of the mean variance: slopes of rare concepts rest on few pictures.
    gram += 0.1 * np.trace(gram) / len(gram) * np.eye(len(gram), dtype=gram.dtype)
    return np.linalg.solve(gram, true.T @ detected)


def _find_donors(concepts: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Places of the pictures with the likest captions, (n_images, _N_DONORS)."""
    directions = true / np.linalg.norm(true, axis=1, keepdims=True)
    blocks = np.array_split(concepts, len(concepts) // 2000 + 1)
    return np.concatenate([_find_largest(block @ directions.T) for block in blocks])


def _find_largest(nearness: np.ndarray) -> np.ndarray:
    return np.argpartition(nearness, -_N_DONORS, axis=1)[:, -_N_DONORS:].astype(np.int32)


def load_texts(pictures: CaptionsData) -> Texts:
    """All COCO captions but those of our images; ``pictures`` have concepts and are the donors."""
    captions = list(load_coco_captions().values())
    space = fit_concepts(load_coco_words(), captions)
    n_concepts = space.axes.shape[1]
    detected = pictures.features.reshape(len(pictures), -1)[:, -n_concepts:]
    return Texts(captions, space, space.place_captions(pictures.captions), detected)
