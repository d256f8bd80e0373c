"""Real tasks to learn an ensemble on: models, truth, a fixed split, and kernels on offer."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paper.data.files import find_data
from wassemble.inputs import (
    Embeddings,
    Kind,
    Predictions,
    load_animals,
    load_languages,
    read_edges,
)
from wassemble.kernels import (
    LabelledKernel,
    from_attributes,
    from_confusion,
    from_ratings,
    from_tree,
    from_word_vectors,
)
from wassemble.labels import LabelSpace


@dataclass(frozen=True, eq=False)
class Task:
    """Models on samples whose truth is known, split by sample for good.

    Attributes
    ----------
    truth : list of str, or array of shape (n_samples, n_target)
        One label each, or 1, 0 and nan.
    is_test : array of shape (n_samples,)
        False for the samples to learn from.
    kernels : dict of name to kernel
        On offer.
    """

    name: str
    title: str
    models: list[Predictions]
    truth: Any
    is_test: np.ndarray
    target: LabelSpace
    kind: Kind
    kernels: dict[str, LabelledKernel] = field(default_factory=dict)
    texts: dict[str, str] | None = None

    def part(self, is_test: bool) -> tuple[list[Predictions], Any]:
        """Models and truth of one side of the split."""
        return self.take(self.is_test == is_test)

    def take(self, mask: np.ndarray) -> tuple[list[Predictions], Any]:
        """Models and truth of some samples."""
        rows = np.flatnonzero(mask)
        models = [model.take(rows) for model in self.models]
        if isinstance(self.truth, np.ndarray):
            return models, self.truth[rows]
        return models, [self.truth[i] for i in rows]

    def last_of_each(self) -> np.ndarray:
        """The last sample to learn from of each true label, as a mask."""
        last = {name: i for i, name in enumerate(self.truth) if not self.is_test[i]}
        return np.isin(np.arange(len(self.truth)), list(last.values()))

    def weights_by_accuracy(self) -> np.ndarray:
        """In proportion to the models' accuracies on the samples to learn from."""
        models, truth = self.part(False)
        shares = []
        for model in models:
            scores = np.nan_to_num(model.scores)
            answers = np.array(model.labels.names)[scores.argmax(axis=1)]
            shares.append(np.mean((answers == np.array(truth)) & (scores.max(axis=1) > 0)))
        return np.array(shares) / np.sum(shares)

    def kernels_of_mistakes(self, mask: np.ndarray, **options: Any) -> dict[str, LabelledKernel]:
        """A kernel from each model's mistakes on some samples."""
        models, truth = self.take(mask)
        return {
            model.model: from_confusion(model, truth, target=self.target, **options)
            for model in models
        }


def animals() -> Task:
    """Animals from the attributes that two networks see."""
    data = load_animals()
    kernel = from_attributes(data.has_attribute, data.attributes, data.animals)
    return Task(
        "animals",
        "Animals from attributes",
        [
            Predictions(model, range(len(data.truth)), data.attributes, scores, kind="multilabel")
            for model, scores in zip(data.models, data.scores, strict=True)
        ],
        [data.animals[i] for i in data.truth],
        data.is_test,
        LabelSpace(data.animals),
        "multilabel",
        {"attributes": kernel},
    )


def languages() -> Task:
    """Nine language detectors with nine label sets."""
    data = load_languages()
    return Task(
        "languages",
        "Nine language detectors, nine label sets",
        data.models,
        list(data.truth),
        data.is_test,
        LabelSpace(sorted(LabelSpace.union(*(model.labels for model in data.models)))),
        "multiclass",
        texts={str(s): t for s, t in zip(data.models[0].samples, data.texts, strict=True)},
    )


# Two runs of one detector are nearly equal, and one detector lacks two classes.
_VOC_LEFT_OUT = ("yolo2_htt1084_e150", "yolov1_choasup_18cls")


def voc() -> Task:
    """Twenty classes in the VOC 2007 test images, by eight published detectors."""
    with np.load(find_data("voc2007/voc2007_test_scores_10detectors.npz")) as arrays:
        classes = LabelSpace(str(name) for name in arrays["classes"])
        ids, labels = arrays["ids"], arrays["labels"]
        scores = dict(zip((str(m) for m in arrays["models"]), arrays["scores"], strict=True))
    with np.load(find_data("voc2007/voc_cooccurrence.npz")) as arrays:
        together, alone = arrays["adj"], arrays["nums"]
    shares = together / alone[:, None]
    np.fill_diagonal(shares, 1)
    vectors = np.load(find_data("voc2007/voc_glove_300d.npy"))
    return Task(
        "voc",
        "VOC 2007, eight detectors",
        [
            Predictions(name, ids, classes, found, kind="multilabel")
            for name, found in scores.items()
            if name not in _VOC_LEFT_OUT
        ],
        np.where(labels == 0, np.nan, labels == 1),
        _hashed(ids, 1500 / len(ids)),
        classes,
        "multilabel",
        {
            "GloVe": from_word_vectors(classes, embeddings=Embeddings(classes, vectors)),
            "co-occurrence": from_ratings(shares, classes, classes),
        },
    )


def coco() -> Task:
    """Eighty categories in COCO images, by eight heads on frozen features."""
    with np.load(find_data("coco_multilabel/scores_8models_float16.npz")) as arrays:
        models = [str(name) for name in arrays["model_names"]]
        classes = LabelSpace(str(name) for name in arrays["category_names"])
        parts = ("val", "test")
        ids = np.concatenate([arrays[f"{part}_image_ids"] for part in parts])
        scores = np.concatenate([arrays[f"{part}_scores"] for part in parts], axis=1)
        labels = np.concatenate([arrays[f"{part}_labels"] for part in parts])
        is_test = np.arange(len(ids)) >= len(arrays["val_image_ids"])
    with np.load(find_data("coco_multilabel/labels.npz")) as arrays:
        seen = arrays["labels"][arrays["split"] == 0].astype(np.float64)
    with np.load(find_data("coco_multilabel/category_glove100.npz")) as arrays:
        vectors = Embeddings(classes, arrays["vectors"].astype(np.float32))
    together = seen.T @ seen
    shares = together / np.maximum(np.diag(together)[:, None], 1)
    np.fill_diagonal(shares, 1)
    return Task(
        "coco",
        "COCO, eight heads on frozen features",
        [
            Predictions(name, ids, classes, found.astype(np.float32), kind="multilabel")
            for name, found in zip(models, scores, strict=True)
        ],
        labels.astype(np.float64),
        is_test,
        classes,
        "multilabel",
        {
            "GloVe": from_word_vectors(classes, embeddings=vectors),
            "co-occurrence": from_ratings(shares, classes, classes),
        },
    )


def cifar100() -> Task:
    """A hundred classes in CIFAR images, by three networks' twenty best scores."""
    classes = LabelSpace(find_data("cifar100/class_names.txt").read_text().split())
    with np.load(find_data("cifar100/softmax_top20.npz")) as arrays:
        models = [str(name) for name in arrays["models"]]
        images, truth = arrays["images"].astype(int), arrays["truth"]
        best, kept = arrays["classes"].astype(int), arrays["scores"].astype(np.float32)
    members = []
    for name, places, values in zip(models, best, kept, strict=True):
        scores = np.full((len(images), len(classes)), np.nan, dtype=np.float32)
        np.put_along_axis(scores, places, values, axis=1)
        members.append(Predictions(name, images, classes, scores, kind="multiclass"))
    vectors = np.load(find_data("cifar100/class_glove_100d.npy")).astype(np.float32)
    edges = read_edges(find_data("cifar100/tree.txt"))
    return Task(
        "cifar100",
        "CIFAR-100, three networks",
        members,
        [classes[i] for i in truth],
        _hashed(images, 0.4),
        classes,
        "multiclass",
        {
            "GloVe": from_word_vectors(classes, embeddings=Embeddings(classes, vectors)),
            "tree": from_tree(classes, edges=edges),
        },
    )


def _hashed(ids: np.ndarray, share: float) -> np.ndarray:
    """True for all but about ``share`` of the samples, by a hash of their ids."""
    return np.array([zlib.crc32(str(i).encode()) / 2**32 >= share for i in ids])


TASKS: dict[str, Callable[[], Task]] = {
    "animals": animals,
    "languages": languages,
    "voc": voc,
    "coco": coco,
    "cifar100": cifar100,
}
