"""Kernels that join names which are spelt nearly alike."""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from wassemble._checks import Number, fail, option
from wassemble._extras import load_extra
from wassemble._threads import available_threads
from wassemble.kernels.builders.cost import PairCosts
from wassemble.kernels.builders.spaces import note_labels, note_unjoined
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_spaces
from wassemble.labels import fold_name

# Similarities computed together.
_BLOCK = 2**22
# With "auto", the similarity in the kernel of two names that are just alike enough.
_AT_CUTOFF = 0.1


def from_spelling(
    source: Names,
    target: Names | None = None,
    *,
    epsilon: float | Literal["auto"] = "auto",
    cutoff: float = 0.85,
) -> LabelledKernel:
    """K = exp(-(1 - similarity of spelling) / epsilon) for names that are nearly the same.

    For plurals, variants and typing errors: "color" and "colour", "cat" and "cats". Names
    that mean nearly the same are another matter; see `kernels.from_word_vectors`.

    Parameters
    ----------
    source, target
        As in `kernels.from_word_vectors`.
    epsilon : float or "auto"
        "auto" gives two names whose similarity is just ``cutoff`` a tenth of the similarity
        of equal names.
    cutoff : float
        Above 0 and below 1. Names less similar than this are not joined. The similarity of
        two folded names is 1 - (letters to put in or take out) / (letters of both).

    Examples
    --------
    >>> kernel = from_spelling(["Colour", "house"], ["color", "mouse"], epsilon=0.5)
    >>> kernel.to_dense().round(3)  # one letter of eleven
    array([[0.834, 0.   ],
           [0.   , 0.   ]])
    """
    cutoff = Number(above=0, below=1)(cutoff, "cutoff")
    if isinstance(epsilon, str):
        if epsilon != "auto":
            fail(f'{option("epsilon")} must be a number above 0 or "auto"; got {epsilon!r}.')
        epsilon = float(f"{(1 - cutoff) / -math.log(_AT_CUTOFF):.4g}")
    source, target = read_spaces(source, target)
    pairs = _similar_pairs(
        # Of "-" nothing is left when folded.
        [fold_name(name) or name for name in source],
        [fold_name(name) or name for name in target],
        cutoff,
    )
    kernel, words = pairs.to_kernel(epsilon, source, target, symmetric=source is target)
    alone = np.bincount(pairs.rows, minlength=len(source)) == 0
    notes = note_labels(source, alone, "spelt like no target label")
    notes += note_unjoined(kernel, source, target)
    return LabelledKernel(kernel, source, target, f"spelling, cutoff {cutoff:g}, {words}", notes)


def _similar_pairs(first: list[str], second: list[str], cutoff: float) -> PairCosts:
    process = load_extra("rapidfuzz.process", "kernels", purpose="a kernel from spelling")
    indel = load_extra("rapidfuzz.distance.Indel", "kernels", purpose="a kernel from spelling")
    step = max(1, _BLOCK // len(second))

    def blocks() -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        for start in range(0, len(first), step):
            # What is below the cutoff comes back as 0, and by rounding what is just at it.
            block = process.cdist(
                first[start : start + step],
                second,
                scorer=indel.normalized_similarity,
                score_cutoff=cutoff - 1e-5,
                dtype=np.float64,
                workers=available_threads(),
            )
            yield start, 1 - block, block > cutoff - 1e-9

    return PairCosts.join(blocks(), (len(first), len(second)))
