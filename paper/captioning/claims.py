"""What section 6.3 says of captions as epsilon grows, held against a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from paper.captioning.study import SEARCHES, Found, Rules, Step
from paper.record.findings import Claim

__all__ = ["ends_sooner", "entropy_grows", "meaning_stays", "ngrams_suffer", "reach"]

_SOURCE = "section 6.3"
_KEEPS = 0.9  # of the geometric mean's CIDEr: a search that still works


def entropy_grows(steps: Sequence[Step]) -> Claim:
    """The entropy of the fused histograms rises with epsilon."""
    spread = {search: [step.found[search].entropy for step in steps] for search in SEARCHES}
    return Claim(
        "entropy goes up with epsilon",
        _SOURCE,
        all(low < high for each in spread.values() for low, high in pairwise(each)),
        "; ".join(f"{search}: {e[0]:.2f} to {e[-1]:.2f}" for search, e in spread.items()),
    )


def ngrams_suffer(steps: Sequence[Step], simple: Mapping[str, Rules]) -> Claim:
    """CIDEr falls below the means' as epsilon grows, in top-k search."""
    level = simple["top-k"]["geometric mean"].cider.mean()
    first, last = (step.found["top-k"].cider.mean() for step in (steps[0], steps[-1]))
    return Claim(
        "top-k: CIDEr deteriorates as epsilon grows",
        _SOURCE,
        last < first and last < level,
        f"CIDEr {first:.3f} to {last:.3f}, geometric mean {level:.3f}",
    )


def meaning_stays(found: Found, *, at_most: float) -> Claim:
    """In top-k search WMD changes little, less than CIDEr falls."""
    rules = found.tests["top-k"]
    mean, far = rules["geometric mean"], rules[found.far]
    meaning, ngrams = (
        float(own.mean() / other.mean() - 1)
        for own, other in ((far.similarity, mean.similarity), (far.cider, mean.cider))
    )
    return Claim(
        f"top-k: WMD stays (within {at_most:.0%}) while CIDEr falls more, {found.far}",
        _SOURCE,
        abs(meaning) <= at_most and ngrams < -abs(meaning),
        f"WMD {meaning:+.1%}, CIDEr {ngrams:+.1%} beside the geometric mean, test images",
    )


def reach(steps: Sequence[Step], simple: Mapping[str, Rules], search: str) -> float:
    """The epsilon up to which CIDEr keeps nine tenths of the geometric mean's; 0 if nowhere."""
    level = _KEEPS * simple[search]["geometric mean"].cider.mean()
    found = 0.0
    for step in steps:
        if step.found[search].cider.mean() < level:
            break
        found = step.epsilon
    return found


def ends_sooner(steps: Sequence[Step], simple: Mapping[str, Rules]) -> Claim:
    """A randomised search bears less epsilon than top-k."""
    ends = {search: reach(steps, simple, search) for search in SEARCHES}
    return Claim(
        "a randomised search works only up to a smaller epsilon",
        _SOURCE,
        ends["randomised"] < ends["top-k"],
        "CIDEr keeps 90 % of the geometric mean's up to epsilon "
        + ", ".join(f"{end:g} ({search})" for search, end in ends.items()),
    )
