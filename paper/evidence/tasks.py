"""Real tasks to learn an ensemble on: models, truth, a fixed split, and kernels on offer."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from paper.data.files import data_folder, find_data
from wassemble.inputs import (
    Aliases,
    Embeddings,
    Kind,
    Predictions,
    load_animals,
    load_languages,
    read_aliases,
    read_edges,
    read_predictions,
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
    aliases, other
        What labels of models stand for; see `Fusion`.
    groups : list of str, or None
        Samples of one group stand and fall together: a bootstrap draws whole groups.
    is_split_by_group : bool
        Whether samples of one group must be on one side of a split.
    has_been_seen : bool
        Whether figures on its test samples were in view while learning was designed. They
        cannot judge it alone, so that new splits are drawn, too.
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
    aliases: Aliases = field(default_factory=Aliases)
    other: Mapping[str, str] = field(default_factory=dict)
    groups: list[str] | None = None
    is_split_by_group: bool = False
    has_been_seen: bool = False

    @property
    def n_samples(self) -> int:
        """Samples of both sides of the split."""
        return len(self.truth)

    @property
    def meanings(self) -> dict[str, Any]:
        """Target, kind and what labels stand for, as `Fusion` and `learn_ensemble` take them."""
        return {
            "target": self.target,
            "kind": self.kind,
            "aliases": self.aliases,
            "other": dict(self.other) or None,
        }

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
    """Nine language detectors with nine label sets; wanted are the 211 languages of the texts."""
    data = load_languages()
    return Task(
        "languages",
        "Nine language detectors, nine label sets",
        data.models,
        list(data.truth),
        data.is_test,
        LabelSpace(sorted(set(data.truth))),
        "multiclass",
        texts={str(s): t for s, t in zip(data.models[0].samples, data.texts, strict=True)},
        groups=list(data.truth),
        has_been_seen=True,
    )


def every_language() -> Task:
    """The same; wanted are the 306 languages that some detector declares."""
    task = languages()
    declared = LabelSpace.union(*(model.labels for model in task.models))
    return replace(task, target=LabelSpace(sorted(declared)))


def encodings() -> Task:
    """Eleven detectors of character encodings, each with its own names."""
    return _from_folder("encodings", "Eleven encoding detectors")


_KNOWS_ALL = "chardet_7"


def encodings_without_best() -> Task:
    """The ten detectors beside the one that knows every encoding."""
    task = encodings()
    models = [model for model in task.models if model.model != _KNOWS_ALL]
    kept = Aliases(row for row in task.aliases.rows if row[0] != _KNOWS_ALL)
    title = f"Ten encoding detectors, without {_KNOWS_ALL}"
    return replace(task, name="encodings-without-best", title=title, models=models, aliases=kept)


def part_of_speech() -> Task:
    """Seven taggers with four tag sets; wanted are Penn tags."""
    task = _from_folder("part_of_speech", "Seven taggers, four tag sets")
    return replace(task, name="part-of-speech", is_split_by_group=True)


def _from_folder(name: str, title: str) -> Task:
    """A task whose files `wassemble fit` reads as they are."""
    folder = data_folder() / name
    target = find_data(f"{name}/target.txt").read_text(encoding="utf-8").split()
    known, test = (_read_side(name, part) for part in ("validation", "test"))
    truth, groups = known[1] + test[1], known[2] + test[2]
    return Task(
        name,
        title,
        [_join(*pair) for pair in zip(known[0], test[0], strict=True)],
        truth,
        np.arange(len(truth)) >= len(known[1]),
        LabelSpace(target),
        known[0][0].kind,
        aliases=read_aliases(folder / "aliases.csv"),
        groups=groups,
        has_been_seen=True,
    )


def _read_side(name: str, part: str) -> tuple[list[Predictions], list[str], list[str]]:
    """Models, true labels and groups of a folder."""
    with find_data(f"{name}/{part}/truth.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    models = [
        read_predictions(path) for path in sorted((data_folder() / name / part).glob("*.npz"))
    ]
    return models, [row["label"] for row in rows], [row["group"] for row in rows]


def _join(first: Predictions, second: Predictions) -> Predictions:
    """One model on the samples of both."""
    samples = np.concatenate([first.samples, second.samples])
    scores = np.concatenate([first.scores, second.scores])
    return Predictions(
        first.model, samples, first.labels, scores, kind=first.kind, is_hard=first.is_hard
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


def strong_networks() -> Task:
    """The two strong networks of the three, which are equally good: a mean is all they need."""
    task = cifar100()
    title = "CIFAR-100, the two strong networks"
    return replace(task, name="strong-networks", title=title, models=task.models[1:])


# Images that classifiers of digits are fitted on, and the share of the others to learn from.
_N_FITTING = 200
_SHARE = 0.4


def digits() -> Task:
    """Five classifiers of handwritten digits that do not speak of the same labels.

    One knows all ten, one 0 to 4 and "other", one odd and even, one all ten again, one 5 to 9
    and "none".
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    images, truth = _load_digits()
    names, number = np.array(truth), np.array(truth).astype(int)
    wanted: dict[str, tuple[Any, np.ndarray]] = {
        "forest": (RandomForestClassifier(random_state=0), names),
        "low": (LogisticRegression(max_iter=1000), np.where(number < 5, names, "other")),
        "parity": (KNeighborsClassifier(), np.where(number % 2 == 1, "odd", "even")),
        "numbers": (DecisionTreeClassifier(random_state=0), names),
        "high": (GaussianNB(), np.where(number >= 5, names, "none")),
    }
    parity = [("parity", "odd" if int(d) % 2 else "even", d) for d in _DIGITS]
    return replace(
        _fit_digits(images, truth, wanted),
        aliases=Aliases(parity),
        other={"low": "other", "high": "none"},
    )


_DIGITS = [str(digit) for digit in range(10)]


def _load_digits() -> tuple[np.ndarray, list[str]]:
    """Images of scikit-learn's digits, from 0 to 1, and what they show."""
    from sklearn import datasets

    images, numbers = datasets.load_digits(return_X_y=True)
    return images / 16, [str(number) for number in numbers]


def _fit_digits(
    images: np.ndarray, truth: list[str], wanted: Mapping[str, tuple[Any, np.ndarray]]
) -> Task:
    """What classifiers say of the images that they were not fitted on."""
    order = np.random.default_rng(0).permutation(len(truth))
    fitting, others = order[:_N_FITTING], np.sort(order[_N_FITTING:])
    models = []
    for model, (classifier, labels) in wanted.items():
        with threadpool_limits(1):  # the same to the last bit on any number of cores
            fitted = classifier.fit(images[fitting], labels[fitting])
            scores = fitted.predict_proba(images[others])
        models.append(
            Predictions(model, others, fitted.classes_.tolist(), scores, kind="multiclass")
        )
    return Task(
        "digits",
        "Digits, five label sets",
        models,
        [truth[i] for i in others],
        _hashed(others, _SHARE),
        LabelSpace(_DIGITS),
        "multiclass",
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
    "encodings": encodings,
    "encodings-without-best": encodings_without_best,
    "part-of-speech": part_of_speech,
    "digits": digits,
    "strong-networks": strong_networks,
}
