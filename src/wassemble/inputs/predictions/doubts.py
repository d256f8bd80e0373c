"""What makes one doubt that a table of scores means what was read from it.

Looks at names of columns and at some rows. What cannot be meant is an error, with the way
out; what may be meant is a sentence for the account.
"""

from collections.abc import Sequence

import numpy as np

from wassemble._checks import fail, option, option_or
from wassemble.inputs.predictions.value import NEARLY, SUM_SLACK, Kind
from wassemble.labels import LabelSpace, enumerate_names, fold_name

# Columns that stand beside scores in many tables, by their folded names.
_BESIDE = frozenset(
    {
        *("class", "class id", "class index", "confidence", "entropy", "epoch", "fold", "gt"),
        *("index", "label", "label id", "margin", "max prob", "pred", "prediction", "row"),
        *("score", "seed", "split", "target", "time", "top1", "true label", "truth"),
        *("y", "y pred", "y true"),
    }
)


def doubt_rest(left_out: Sequence[str], kind: Kind) -> list[str]:
    """Doubts about columns that are none of the labels asked for, where no histogram is left."""
    if kind == "multiclass" or not left_out:
        return []
    return [
        f"{option('labels')} lists not all columns: {enumerate_names(left_out)}"
        f" {'is' if len(left_out) == 1 else 'are'} left out, and the rows that are left do not sum"
        f" to 1; {option('kind', 'multilabel')} says that they need not"
    ]


def doubt_scores(labels: LabelSpace, scores: np.ndarray, kind: Kind) -> list[str]:
    """Doubts about a wide table whose ``kind`` was detected, from some of its rows.

    ``labels`` are its columns, of which nobody said that they are labels.
    """
    if kind == "multiclass" or len(scores) == 0:
        return []
    known = np.nan_to_num(scores.astype(np.float64, copy=False))
    _refuse_stray(labels, known)
    beside = [labels[i] for i in _find_beside(labels, known)]
    if beside:
        return [
            f"{enumerate_names(beside)} may be no label; {option('labels')} lists the labels of"
            " this model"
        ]
    top = float(known.max())
    if len(labels) == 1 and top > 1 and (known == known.round()).all():
        column = option_or('the name "label"', label_column=labels[0])
        return [
            f"{labels[0]!r} has whole numbers up to {top:g}: if they are answers, such as grades,"
            f" {column} says so; {option('kind', 'multilabel')} says that they are scores"
        ]
    return doubt_values(scores, kind)


def doubt_values(scores: np.ndarray, kind: Kind) -> list[str]:
    """Doubts about scores, in a table of any form, whose ``kind`` was detected from these rows."""
    if kind == "multiclass" or len(scores) == 0:
        return []
    known = np.nan_to_num(scores.astype(np.float64, copy=False))
    top = float(known.max())
    if top > 1 + SUM_SLACK:
        return [
            f"scores go up to {top:.4g}: if they are logits, a softmax must make histograms of them"
            f" first; if they are counts or percentages, {option('normalize', True)} divides each"
            f" row by its sum; {option('kind', 'multilabel')} says that they are scores"
        ]
    sums = known.sum(axis=1)
    sums = sums[sums > 0]
    if len(sums) and (np.abs(sums - 1) <= NEARLY).all():
        return [
            f"rows sum to {sums.min():.2f} to {sums.max():.2f}, as probabilities do that were"
            f" rounded or cut off: if they are, {option('normalize', True)} divides each row by its"
            f" sum; {option('kind', 'multilabel')} says that labels do not exclude each other"
        ]
    return []


def _refuse_stray(labels: LabelSpace, scores: np.ndarray) -> None:
    """Refuse columns without which every row would sum to 1."""
    if len(labels) < 3:
        return
    sums = scores.sum(axis=1)
    rows = np.flatnonzero(scores.any(axis=1))
    without = sums[rows, None] - scores[rows]
    alone = np.flatnonzero((np.abs(without - 1) <= SUM_SLACK).all(axis=0)).tolist()
    named = [place for place, name in enumerate(labels) if fold_name(name) in _BESIDE]
    # A confidence may be a copy of the label that is always first.
    stray = [place for place in alone if place in named][:1] or alone[-1:]
    if not stray:
        left = sums[rows] - scores[rows][:, named].sum(axis=1)
        if 0 < len(named) < len(labels) - 1 and (np.abs(left - 1) <= SUM_SLACK).all():
            stray = named
    if stray and len(rows):
        names = enumerate_names([labels[place] for place in stray])
        fail(
            f"every column beside the ids must be a label; got {names}, without which every row"
            " sums to 1.",
            hint=f"remove it; or {option('labels')} lists the labels of this model; or"
            f" {option('kind', 'multilabel')} says that it is one",
        )


def _find_beside(labels: LabelSpace, scores: np.ndarray) -> list[int]:
    """Columns called like something else whose values are like something else, too."""
    places = []
    for place, name in enumerate(labels):
        if fold_name(name) not in _BESIDE or len(labels) < 2:
            continue
        own = scores[:, place]
        counts = own.max() > 1 and (own == np.floor(own)).all()
        others = np.delete(scores, place, axis=1).max(axis=1)
        if counts or (own.any() and np.allclose(own, others)):
            places.append(place)
    return places
