"""How far raters agree: Krippendorff's alpha (Krippendorff 2011)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wassemble._extras import load_extra
from wassemble.web.study.answers import Answer
from wassemble.web.study.items import SCORES, Item, system_names

__all__ = ["Agreement", "alpha", "measure_agreement"]


@dataclass(frozen=True)
class Agreement:
    """Alpha of the scores (ordinal) and of the best choices (nominal) on one scale.

    1 is full agreement, 0 that of chance; None where no two raters answered for the same
    item, or all said the same throughout, so that agreement cannot be told from habit.
    """

    scores: float | None
    best: float | None


def measure_agreement(
    answers: Sequence[tuple[int, int, Answer]], items: Sequence[Item], scale: str
) -> Agreement:
    """Agreement of answers, given as (rater, item's place, answer).

    A unit of the scores is a caption of an item, one of the best choices an item with
    captions that differ. A best choice is named by the first system that said the caption.
    """
    systems = system_names(items)
    scores: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(SCORES))
    best: defaultdict[int, list[int]] = defaultdict(lambda: [0] * len(systems))
    for _, place, answer in answers:
        for choice, score in enumerate(answer.scores[scale]):
            if score is not None:
                scores[place, choice][score - 1] += 1
        if len(items[place].choices) > 1:  # else nobody was asked
            chosen = answer.best[scale]
            first = next(i for i, s in enumerate(systems) if items[place].choice_of(s) == chosen)
            best[place][first] += 1
    return Agreement(
        alpha(list(scores.values()), level="ordinal"), alpha(list(best.values()), level="nominal")
    )


def alpha(value_counts: Sequence[Sequence[int]], *, level: str) -> float | None:
    """Krippendorff's alpha of units, each with how often it was given each value."""
    pairable = [counts for counts in value_counts if sum(counts) >= 2]
    if not pairable or np.count_nonzero(np.sum(pairable, axis=0)) < 2:
        return None
    krippendorff = load_extra("krippendorff", "web", purpose="agreement between raters")
    found = krippendorff.alpha(
        value_counts=np.array(pairable),
        value_domain=range(len(pairable[0])),
        level_of_measurement=level,
    )
    return float(found)
