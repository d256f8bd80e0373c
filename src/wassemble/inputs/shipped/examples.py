"""The shipped examples: animals by attributes that networks see, and nine language detectors."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files

import numpy as np

from wassemble.inputs.files import read_predictions
from wassemble.inputs.predictions.value import Predictions

# Most labels first.
_DETECTORS = (
    *("heliport", "lid176", "cld2", "py3langid", "cld3"),
    *("langid", "lingua", "eld", "langdetect"),
)
# Score of each rank of a network's five best classes.
_RANK_SCORES = (0.7, 0.15, 0.07, 0.05, 0.03)


@dataclass(frozen=True)
class AnimalsData:
    """Attribute scores of two networks, and the animals they should point to."""

    models: tuple[str, ...]
    attributes: tuple[str, ...]
    animals: tuple[str, ...]
    scores: np.ndarray  # (n_models, n_samples, n_attributes)
    named: np.ndarray  # (n_models, n_samples, n_animals): what they are made from
    has_attribute: np.ndarray  # (n_attributes, n_animals), 0 or 1
    truth: np.ndarray  # (n_samples,), index of the animal
    is_test: np.ndarray  # (n_samples,), False for validation


def load_animals(*, unseen: Sequence[str] = ()) -> AnimalsData:
    """Attribute scores of ResNet-18 and ResNet-34 on 2,350 images of 36 animals.

    The attribute scores are derived from predicted classes: rank r of a network's five
    best classes scores (.7, .15, .07, .05, .03)[r]; a class that belongs to one of the
    animals adds its score times that animal's attributes, any other class its score
    times the mean animal's. Scores are clipped to [1e-6, 1], attributes that no animal
    has are dropped, and a hash of the image number puts half of the images aside for
    test. So the scores know of an image what its predicted classes say, ``named``, and no
    more: to go from attributes to animals is to undo the map that made them.

    Parameters
    ----------
    unseen : sequence of str, optional
        Animals that the networks are made not to know: their classes are struck from the
        predictions and the ranks behind move up, so that attributes come from what else
        an image looked like.

    Examples
    --------
    >>> load_animals().scores.shape
    (2, 2350, 83)
    """
    folder = files("wassemble.inputs") / "shipped/data/animals"
    all_animals = _names((folder / "classes.txt").read_text())
    attributes = _names((folder / "predicates.txt").read_text())
    table = np.loadtxt((folder / "predicate-matrix-binary.txt").read_text().splitlines())
    classes_of = json.loads((folder / "awa_to_imagenet.json").read_text())
    with (folder / "imagenet_top5.npz").open("rb") as file, np.load(file) as arrays:
        models = tuple(str(name) for name in arrays["models"])
        image, truth, top5 = arrays["image"], arrays["truth"], arrays["top5"]

    animals = tuple(animal for animal in all_animals if animal in classes_of)
    rows = table[[all_animals.index(animal) for animal in animals]]
    known = np.flatnonzero(rows.any(axis=0))
    rows = rows[:, known]
    animal_of = np.full(1000, len(animals))  # the last row stands for any other class
    for index, animal in enumerate(animals):
        animal_of[[each["cid"] for each in classes_of[animal]]] = index
    hidden = [index for index, animal in enumerate(animals) if animal in set(unseen)]
    predicted = animal_of[top5]
    is_struck = np.isin(predicted, hidden)
    kept_first = np.argsort(is_struck, axis=2, kind="stable")
    predicted = np.take_along_axis(predicted, kept_first, axis=2)
    # What was struck moved behind, where it says as little as any other class.
    predicted[np.take_along_axis(is_struck, kept_first, axis=2)] = len(animals)
    known_rows = np.delete(rows, hidden, axis=0)
    seen = np.vstack([rows, known_rows.mean(axis=0)])[predicted]
    scores = np.einsum("r,msra->msa", _RANK_SCORES, seen)
    named = np.einsum("r,msra->msa", _RANK_SCORES, np.eye(len(animals) + 1)[predicted])
    return AnimalsData(
        models=models,
        attributes=tuple(attributes[index] for index in known),
        animals=animals,
        scores=np.clip(scores, 1e-6, 1),
        named=named[..., :-1],
        has_attribute=rows.T,
        truth=animal_of[truth],
        is_test=np.array([zlib.crc32(str(number).encode()) % 2 == 0 for number in image]),
    )


def _names(text: str) -> list[str]:
    """Names of a numbered list, with spaces for the file's plus signs kept as they are."""
    return [line.split()[1] for line in text.splitlines() if line.strip()]


@dataclass(frozen=True)
class LanguagesData:
    """What nine detectors answered, and the languages the texts are in."""

    models: list[Predictions]  # on the same texts, in the same order
    texts: tuple[str, ...]
    truth: tuple[str, ...]  # ISO 639-3
    is_test: np.ndarray  # (n_samples,), False for validation
    names: dict[str, str]  # of labels, in English, where there is one


def load_languages() -> LanguagesData:
    """Answers of nine language detectors to 1,477 short texts in 211 languages.

    Examples
    --------
    >>> [len(model.labels) for model in load_languages().models]
    [222, 176, 163, 140, 103, 96, 75, 60, 54]
    """
    folder = files("wassemble.inputs") / "shipped/data/languages"
    models = []
    for name in _DETECTORS:
        with as_file(folder / f"{name}.npz") as path:
            models.append(read_predictions(path))
    lines = (folder / "texts.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    assert [row[0] for row in rows] == models[0].samples.tolist(), "texts and scores differ"
    return LanguagesData(
        models=models,
        texts=tuple(row[3] for row in rows),
        truth=tuple(row[1] for row in rows),
        is_test=np.array([row[2] == "test" for row in rows]),
        names=_read_pairs((folder / "names.tsv").read_text(encoding="utf-8")),
    )


def _read_pairs(text: str) -> dict[str, str]:
    """A table of two columns, without its head."""
    return dict(line.split("\t") for line in text.splitlines()[1:])
