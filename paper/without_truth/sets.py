"""Votes to learn from without truth, and the truth to test on afterwards."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paper.data.files import find_data
from wassemble.ensemble.without_truth import Votes
from wassemble.ensemble.without_truth.learn import hear
from wassemble.inputs import Predictions
from wassemble.labels import LabelSpace

CHECKING = "WASSEMBLE_CHECKING_DATA"
"""Names a folder with the sets that may not be shipped: ``crowds/`` and ``llm_judges/``."""

CROWDS = ("adult_content2", "bluebird", "rte", "trec_relevance", "dog", "web")
FUNCTIONS = ("wrench_youtube", "wrench_sms", "wrench_trec", "wrench_semeval")
TASKS = ("languages", "encodings", "part-of-speech", "digits")
JUDGES = "llm_judges"
GRADES = {"adult_content2": ("G", "P", "R", "X"), "web": range(1, 6), JUDGES: range(4)}
"""Labels that have an order, from the lowest."""
NAMES = (*CROWDS, *FUNCTIONS, JUDGES, *TASKS)


@dataclass(frozen=True, eq=False)
class VoteSet:
    """Votes, and the truth of some samples.

    Attributes
    ----------
    truth : array of shape (n_samples,)
        Place of the true label; -1 where it is not known.
    groups : array of shape (n_samples,)
        Samples of one group stand and fall together.
    """

    votes: Votes
    truth: np.ndarray
    groups: np.ndarray

    @property
    def tested(self) -> np.ndarray:
        """Samples with truth and with a vote, by place."""
        is_voted = np.asarray(self.votes.answers.sum(axis=1)).ravel() > 0
        return np.flatnonzero((self.truth >= 0) & is_voted)


def load_set(name: str) -> VoteSet | None:
    """A set of votes; None if its data are not here."""
    if name in TASKS:
        return _load_task(name)
    if name == JUDGES:
        return _load_judges()
    return _load_crowd(name)


def _find(shipped: str | None, folder: str, name: str) -> Path | None:
    return find_checking(folder, name) if shipped is None else find_data(shipped)


def find_checking(folder: str, name: str) -> Path | None:
    """A file that is not shipped; None if it is not here."""
    given = os.environ.get(CHECKING)
    path = None if given is None else Path(given) / folder / name
    return path if path is not None and path.is_file() else None


def _load_crowd(name: str) -> VoteSet | None:
    is_shipped = name == "adult_content2"
    paths = [
        _find(f"{name}/{part}.csv.gz" if is_shipped else None, "crowds", f"{name}_{part}.csv.gz")
        for part in ("votes", "truth")
    ]
    if paths[0] is None or paths[1] is None:
        return None
    rows, told = _read(paths[0]), {row["item"]: row["label"] for row in _read(paths[1])}
    given = [(row["worker"], row["item"], row["label"]) for row in rows]
    # Every function saw every item.
    silences = _list_silences(given) if name in FUNCTIONS else []
    votes = Votes.of_table(*zip(*given, *silences, strict=True), target=_find_target(name))
    return _with_truth(votes, told.get)


def _find_target(name: str) -> LabelSpace | None:
    return LabelSpace(GRADES[name]).on_line() if name in GRADES else None


def _list_silences(given: list[tuple[str, str, str]]) -> list[tuple[str, str, None]]:
    spoken = {(worker, item) for worker, item, _ in given}
    workers, items = (dict.fromkeys(column) for column in list(zip(*given, strict=True))[:2])
    return [(w, i, None) for w in workers for i in items if (w, i) not in spoken]


def _load_judges() -> VoteSet | None:
    path = _find(None, "llm_judges", "judges.npz")
    if path is None:
        return None
    shipped, known = np.load(find_data("llm_judges/grades.npz")), np.load(path)
    judge, item = np.nonzero(shipped["grades"] >= 0)
    names = shipped["items"][item].tolist()
    grades = shipped["grades"][judge, item].tolist()
    judges = shipped["judges"][judge].tolist()
    votes = Votes.of_table(judges, names, grades, target=_find_target(JUDGES))
    told = dict(zip(known["items"].tolist(), map(str, known["truth"].tolist()), strict=True))
    return _with_truth(votes, told.get, lambda item: item.partition("|")[0])


def _load_task(name: str) -> VoteSet:
    models, truth, meanings = read_task(name)
    votes = hear(models, **meanings).votes
    return VoteSet(votes, np.asarray(votes.target.places(truth)), np.arange(len(truth)))


def read_task(name: str) -> tuple[list[Predictions], list[str], dict[str, Any]]:
    """The models of a task on its test samples, the truth, and what their labels stand for."""
    from paper.evidence.tasks import TASKS as MAKERS

    task = MAKERS[name]()
    models, truth = task.part(True)
    if task.kind == "multilabel":  # confidences of labels that exclude each other
        models = [model.normalized() for model in models]
    return models, list(truth), task.meanings | {"kind": "multiclass"}


def _with_truth(
    votes: Votes,
    find: Callable[[str], str | None],
    group: Callable[[str], str] = lambda item: item,
) -> VoteSet:
    places = {name: place for place, name in enumerate(votes.target)}
    items = votes.samples.tolist()
    truth = np.array([places.get(str(find(item)), -1) for item in items])
    groups = np.unique([group(item) for item in items], return_inverse=True)[1]
    return VoteSet(votes, truth, groups)


def _read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))
