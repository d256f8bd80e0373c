"""Five best of 1,000 ImageNet classes by eight networks, and the WordNet tree of the classes."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from paper.data.files import find_data
from wassemble.inputs import Edges, read_edges
from wassemble.labels import LabelSpace


class ImageNet(NamedTuple):
    """What the networks say of 50,000 images."""

    classes: LabelSpace
    tree: Edges
    best: dict[str, np.ndarray]  # by network: (n_images, 5), places of classes
    truth: np.ndarray  # (n_images,)


def load_imagenet() -> ImageNet:
    """Every image."""
    index = json.loads(find_data("imagenet/imagenet_class_index.json").read_text())
    classes = LabelSpace(index[str(number)][0] for number in range(len(index)))
    tree = read_edges(find_data("imagenet/wordnet.parent-child.mintree.txt"))
    with np.load(find_data("imagenet/top5_8models.npz")) as arrays:
        best = dict(zip(map(str, arrays["models"]), arrays["top5"].astype(int), strict=True))
        return ImageNet(classes, tree, best, arrays["truth"].astype(int))


def score_ranks(
    best: np.ndarray, truth: np.ndarray, fitting: np.ndarray, kept: np.ndarray, n_classes: int
) -> np.ndarray:
    """Scores of the images ``kept``: a rank has the share of images ``fitting`` that it is true of.

    -1 among the best is no class; classes that are not among them have nan.
    """
    at_rank = (best[fitting] == truth[fitting, None]).mean(axis=0)
    scores = np.full((len(kept), n_classes + 1), np.nan, dtype=np.float32)
    np.put_along_axis(scores, best[kept], at_rank[None], axis=1)
    return scores[:, :-1]
