"""Candidate kernels for learning: read by name, as tables in the order of each model's labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble.learning.recipes import NAMES, read_kernels
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace, enumerate_names

# The block of entries that are in no other.
_OTHERS = "other labels"


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate kernels as tables: a stack of them for each kernel that is learned.

    Models with the same labels and the same candidates share one learned kernel.

    Attributes
    ----------
    names : tuple of str
    stacks : tuple of arrays of shape (n_candidates, n_source, n_target)
        Each table divided by its largest entry.
    own : tuple of bool arrays of shape (n_source, n_target)
        Where source and target have the same name.
    blocks : tuple of int arrays of shape (n_source, n_target)
        Place in ``block_names`` of each entry.
    sources : tuple of LabelSpace
        Source labels of each learned kernel.
    places : dict of model name to int
        Which of the learned kernels is a model's.
    """

    names: tuple[str, ...]
    target: LabelSpace
    sources: tuple[LabelSpace, ...]
    places: dict[str, int]
    stacks: tuple[np.ndarray, ...]
    own: tuple[np.ndarray, ...]
    blocks: tuple[np.ndarray, ...]
    block_names: tuple[str, ...]

    @property
    def has_names(self) -> bool:
        """Whether some source label is a target label by name."""
        return any(own.any() for own in self.own)

    @property
    def share_names(self) -> tuple[str, ...]:
        """What a mixture is of."""
        return (*self.names, NAMES) if self.has_names else self.names


def read_candidates(
    candidates: Mapping[str, Any],
    models: Sequence[tuple[str, LabelSpace]],
    target: LabelSpace,
    groups: Mapping[str, Iterable[str]] | None = None,
) -> Candidates:
    """Candidates by name, put in the order of each model's labels."""
    if not isinstance(candidates, Mapping) or not candidates:
        fail(
            "`candidates` must be a dict of names to kernels with at least one;"
            f" got {candidates!r}."
        )
    offered = read_kernels(candidates, models, target, word="candidate", reserved=(NAMES,))
    places: dict[str, int] = {}
    known: dict[Any, int] = {}
    stacks: list[np.ndarray] = []
    sources: list[LabelSpace] = []
    for model, labels in models:
        given = {name: kernels[model] for name, kernels in offered.items()}
        key = (labels, tuple(id(kernel) for kernel in given.values()))
        if key not in known:
            known[key] = len(stacks)
            stacks.append(
                np.stack([_table(name, k, model, labels, target) for name, k in given.items()])
            )
            sources.append(labels)
        places[model] = known[key]
    own = [source.match(target).to_sparse().toarray() > 0 for source in sources]
    blocks, block_names = _find_blocks(sources, own, groups)
    return Candidates(
        tuple(candidates),
        target,
        tuple(sources),
        places,
        tuple(stacks),
        tuple(own),
        tuple(blocks),
        block_names,
    )


def _table(
    name: str, kernel: LabelledKernel, model: str, labels: LabelSpace, target: LabelSpace
) -> np.ndarray:
    table = np.asarray(kernel.align(labels, target).to_dense(), dtype=np.float64)
    largest = table.max()
    if largest == 0:
        fail(f"the candidate {name!r} must have an entry above 0; got none for {model!r}.")
    return table / largest


def _find_blocks(
    sources: Sequence[LabelSpace],
    own: Sequence[np.ndarray],
    groups: Mapping[str, Iterable[str]] | None,
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """The block of each entry: its own name, the group of its source label, or the rest."""
    groups = {name: list(labels) for name, labels in (groups or {}).items()}
    number_of: dict[str, int] = {}
    everything = set(itertools.chain(*sources))
    for number, (name, labels) in enumerate(groups.items()):
        strange = [label for label in labels if label not in everything]
        if strange or not labels:
            fail(
                f"the group {name!r} must hold labels of the models; got"
                f" {enumerate_names(strange) if strange else 'none'}."
            )
        for label in labels:
            if label in number_of:
                fail(f"a label must be in one group; got {label!r} in two.")
            number_of[label] = number
    first = int(any(each.any() for each in own))
    n_groups = len(groups)
    blocks = []
    for source, each in zip(sources, own, strict=True):
        rows = np.array([number_of.get(label, n_groups) for label in source])
        blocks.append(np.where(each, 0, first + rows[:, None]))
    names = [NAMES] * first + [*groups, _OTHERS]
    used = np.unique(np.concatenate([block.ravel() for block in blocks]))
    return [np.searchsorted(used, block) for block in blocks], tuple(names[i] for i in used)
