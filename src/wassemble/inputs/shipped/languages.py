"""The shipped example: nine language detectors that know nine different sets of languages."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files

import numpy as np

from wassemble.inputs.files import read_predictions
from wassemble.inputs.predictions.value import Predictions

# Most labels first.
_DETECTORS = (
    "heliport",
    "lid176",
    "cld2",
    "py3langid",
    "cld3",
    "langid",
    "lingua",
    "eld",
    "langdetect",
)


@dataclass(frozen=True)
class LanguagesData:
    """What nine detectors answered, and the languages the texts are in."""

    models: list[Predictions]  # on the same texts, in the same order
    texts: tuple[str, ...]
    truth: tuple[str, ...]  # ISO 639-3
    is_test: np.ndarray  # (n_samples,), False for validation


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
    )
