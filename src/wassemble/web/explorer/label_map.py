"""A map of labels: those that the kernel sends the same way lie close to each other."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from wassemble.labels import LabelSpace
from wassemble.web.explorer.cases import Case
from wassemble.web.explorer.judging import Judgement
from wassemble.web.explorer.similarity import NAMES

_N_LABELS = 120
# Width of a letter and height of a line, as shares of the map; names go to the left from here on.
_LETTER, _LINE, _RIGHT = 0.0085, 0.028, 0.85


@dataclass(frozen=True)
class Point:
    """A label on the map: places from 0 to 1, and how many samples are about it."""

    label: str
    name: str
    x: float
    y: float
    n_samples: int
    n_right: int
    is_named: bool  # whether there is room for its name


def map_labels(case: Case, judgement: Judgement, epsilon: float) -> list[Point]:
    """Places of the labels that most samples are about; none where names alone join labels.

    Each label is described by its similarity to every label of every model, as a vector of length
    1; the map shows the two directions in which these differ most, drawn apart where it is full.
    """
    if case.similarity is NAMES:
        return []
    counts, right = _count(judgement)
    chosen = [place for place, _ in counts.most_common(_N_LABELS)]
    if len(chosen) < 3:
        return []
    x, y = _scale(_loosen(_flatten(_describe(case, chosen, epsilon))))
    labels = [case.target[place] for place in chosen]
    names = [case.table.name(label) for label in labels]
    is_named = _find_room(names, x, y)
    return [
        Point(label, name, float(x[i]), float(y[i]), counts[at], right[at], is_named[i])
        for i, (at, label, name) in enumerate(zip(chosen, labels, names, strict=True))
    ]


def _find_room(names: list[str], x: np.ndarray, y: np.ndarray) -> list[bool]:
    """Which names can be read: the first come first, and none lies on another."""
    boxes: list[tuple[float, float, float]] = []
    found = []
    for name, left, middle in zip(names, x.tolist(), y.tolist(), strict=True):
        wide = _LETTER * (len(name) + 2)
        start = left if left < _RIGHT else left - wide
        is_free = all(
            abs(middle - at) > _LINE or start > right or start + wide < first
            for first, right, at in boxes
        )
        if is_free:
            boxes.append((start, start + wide, middle))
        found.append(is_free)
    return found


def _count(judgement: Judgement) -> tuple[Counter[int], Counter[int]]:
    """How many samples each label is true of, or is the answer to, and how many are right."""
    consensus, truth = judgement.rule("consensus"), judgement.truth
    counts: Counter[int] = Counter()
    right: Counter[int] = Counter()
    for at, answer in enumerate(consensus.answers.tolist()):
        true = np.flatnonzero(truth.is_true[at, :-1]).tolist()
        for place in true if truth.is_known[at] else [answer]:
            counts[place] += place >= 0
            right[place] += bool(consensus.right[at]) and place == answer
    return counts, right


def _describe(case: Case, chosen: list[int], epsilon: float) -> np.ndarray:
    """Similarities to the labels of the models, (n_chosen, n_source), of length 1."""
    target = LabelSpace(case.target[place] for place in chosen)
    seen: set[object] = set()
    parts = []
    for model in case.table.models:
        key = model.labels if case.similarity.is_shared else model.model
        if key not in seen:
            seen.add(key)
            costs = case.similarity.costs(model.model, model.labels, target)
            with np.errstate(under="ignore"):
                parts.append(np.exp(costs.astype(np.float64) / -epsilon).T)
    table = np.hstack(parts)
    length = np.sqrt((table**2).sum(axis=1, keepdims=True))
    return table / np.where(length > 0, length, 1)


def _flatten(table: np.ndarray) -> np.ndarray:
    """The two directions in which rows differ most, (n_chosen, 2)."""
    left, values, _ = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    return left[:, :2] * values[:2]


def _loosen(places: np.ndarray) -> np.ndarray:
    """The same directions from the middle, where most labels crowd, and roots of the distances."""
    away = places - np.median(places, axis=0)
    distance = np.sqrt((away**2).sum(axis=1, keepdims=True))
    loose: np.ndarray = away / np.sqrt(np.where(distance > 0, distance, 1))
    return loose


def _scale(places: np.ndarray) -> np.ndarray:
    """Both directions from 0 to 1; the wider fills it."""
    low, high = places.min(axis=0), places.max(axis=0)
    middle, wide = (low + high) / 2, max(float((high - low).max()), 1e-9)
    scaled: np.ndarray = (0.5 + (places - middle) / wide).T
    return scaled
