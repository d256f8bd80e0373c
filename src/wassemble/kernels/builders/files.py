"""Kernels from files that say how similar labels are: each kind of file read in one place."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from wassemble._checks import fail, option
from wassemble.inputs import Predictions, read_embeddings, read_predictions, read_synonyms
from wassemble.inputs.reading import Reading
from wassemble.inputs.words.graphs import read_edges
from wassemble.kernels.builders.auto_epsilon import Epsilon
from wassemble.kernels.builders.graph import from_graph
from wassemble.kernels.builders.synonyms import from_synonyms
from wassemble.kernels.builders.tables import from_attributes, from_cost_table, from_ratings
from wassemble.kernels.builders.tree import from_tree
from wassemble.kernels.builders.word_vectors import from_word_vectors
from wassemble.kernels.named.labelled import LabelledKernel
from wassemble.labels import LabelSpace, enumerate_names

Path = str | PathLike[str]


@dataclass(frozen=True)
class KernelOrigin:
    """What a file knows of labels; a kernel once an epsilon is chosen."""

    has_cost: bool  # whether K = exp(-cost / epsilon); else epsilon has no say
    # From an epsilon to a `LabelledKernel`, where the file brings its own labels, else to a
    # function of (source, target) label spaces: as `Fusion` takes it.
    at: Callable[[Epsilon], Any]


def read_kernel_origin(
    name: str, path: Path, *, local_bandwidth: int | None = None, n_neighbors: int | None = None
) -> KernelOrigin:
    """The knowledge in the file ``path``, of the kind ``name``, one of `FILE_ORIGINS`.

    The rest is for word vectors alone, and as `from_word_vectors` takes it.
    """
    if name not in _READERS:
        fail(f"what a kernel is made from must be one of {', '.join(_READERS)}; got {name!r}.")
    if name == "embeddings":
        return _read_word_vectors(path, local_bandwidth, n_neighbors)
    for key, value in (("local_bandwidth", local_bandwidth), ("n_neighbors", n_neighbors)):
        if value is not None:
            fail(f"{option(key)} must go with word vectors; got {name}.")
    return _READERS[name](path)


def _read_word_vectors(
    path: Path, local_bandwidth: int | None = None, n_neighbors: int | None = None
) -> KernelOrigin:
    embeddings = read_embeddings(path)

    def at(epsilon: Epsilon) -> Any:
        return lambda source, target: from_word_vectors(
            source,
            target,
            embeddings=embeddings,
            epsilon=epsilon,
            local_bandwidth=local_bandwidth,
            n_neighbors=n_neighbors,
        )

    return KernelOrigin(True, at)


def _read_synonyms(path: Path) -> KernelOrigin:
    synonyms = read_synonyms(path)

    def build(source: LabelSpace, target: LabelSpace) -> LabelledKernel:
        if not any(name in synonyms.nodes for name in (*source, *target)):
            fail(
                f"{synonyms.origin} must have some label as a word; it has none of"
                f" {enumerate_names(source)}."
            )
        return from_synonyms(source, target, synonyms=synonyms)

    return KernelOrigin(False, lambda epsilon: build)


def _read_joined(build: Callable[..., LabelledKernel], path: Path) -> KernelOrigin:
    edges = read_edges(path)

    def at(epsilon: Epsilon) -> Any:
        return lambda source, target: build(source, target, edges=edges, epsilon=epsilon)

    return KernelOrigin(True, at)


def _read_attributes(path: Path) -> KernelOrigin:
    table, rows = _read_table(path)
    kernel = from_attributes(table.scores, rows, table.labels)
    return KernelOrigin(False, lambda epsilon: kernel)


def _read_ratings(path: Path) -> KernelOrigin:
    table, rows = _read_table(path)
    # An empty cell is a pair that nobody rated: not similar.
    kernel = from_ratings(np.nan_to_num(table.scores), rows, table.labels)
    return KernelOrigin(False, lambda epsilon: kernel)


def _read_costs(path: Path) -> KernelOrigin:
    table, rows = _read_table(path)
    # An empty cell is a pair that must not be joined.
    costs = np.where(np.isnan(table.scores), np.inf, table.scores)

    def at(epsilon: Epsilon) -> LabelledKernel:
        return from_cost_table(costs, rows, table.labels, epsilon=epsilon)

    return KernelOrigin(True, at)


def _read_table(path: Path) -> tuple[Predictions, list[str]]:
    """A table with names, rows as samples and columns as labels; and the names of its rows."""
    table = read_predictions(path, Reading(kind="multilabel", is_pairs=True))
    return table, [str(name) for name in table.samples]


_READERS: dict[str, Callable[[Path], KernelOrigin]] = {
    "embeddings": _read_word_vectors,
    "synonyms": _read_synonyms,
    "tree": partial(_read_joined, from_tree),
    "graph": partial(_read_joined, from_graph),
    "attributes": _read_attributes,
    "ratings": _read_ratings,
    "costs": _read_costs,
}
FILE_ORIGINS: tuple[str, ...] = tuple(_READERS)
