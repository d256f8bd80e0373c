"""Every builder of kernels with names, on small pieces of what it builds from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from wassemble.inputs.predictions.value import Predictions
from wassemble.inputs.words.embeddings import Embeddings
from wassemble.kernels import (
    LabelledKernel,
    from_attributes,
    from_confusion,
    from_cooccurrence,
    from_cost_table,
    from_descendants,
    from_graph,
    from_names,
    from_ratings,
    from_spelling,
    from_synonyms,
    from_tree,
    from_word_vectors,
    mix as mix_kernels,
)

PETS = ("cat", "dog", "husky", "beagle", "okapi", "car")
KINDS = ("dog", "car", "cat", "unicorn")

# Made up, but in proportion: pets are near each other, cars are not; okapi has no vector.
VECTORS = {
    "cat": (0.9, 0.3, 0.1),
    "dog": (0.8, 0.5, 0.1),
    "husky": (0.7, 0.7, 0.1),
    "beagle": (0.6, 0.7, 0.2),
    "car": (0.1, 0.1, 0.9),
    "unicorn": (0.7, 0.1, 0.4),
}
TREE = (
    ("thing", "animal"), ("thing", "car"), ("animal", "dog"), ("animal", "cat"),
    ("dog", "husky"), ("dog", "beagle"), ("pet", "cat"), ("thing", "pet"),
)  # fmt: skip
ROADS = (
    ("cat", "dog", 1.0), ("dog", "husky", 0.5), ("dog", "beagle", 0.7), ("cat", "car", 3.0),
    ("unicorn", "cat", 2.0),
)  # fmt: skip
SYNONYMS = (
    ("dog", "husky", 10), ("dog", "cat", 2), ("husky", "dog", 4), ("cat", "unicorn", 1),
    ("beagle", "dog", 7), ("beagle", "car", 1),
)  # fmt: skip

Rename = Callable[[str], str]
Build = Callable[[Sequence[str], Sequence[str], Rename], LabelledKernel]


@dataclass(frozen=True)
class Builder:
    """How to build one kernel over any order of its labels, under any renaming of them."""

    build: Build
    source: tuple[str, ...]
    target: tuple[str, ...]

    def __call__(
        self,
        source: Sequence[str] | None = None,
        target: Sequence[str] | None = None,
        rename: Rename = str,
    ) -> LabelledKernel:
        return self.build(
            self.source if source is None else source,
            self.target if target is None else target,
            rename,
        )


def names_of(labels: Sequence[str], rename: Rename) -> list[str]:
    return [rename(label) for label in labels]


def number(*labels: str) -> float:
    """Some number that depends on names only; about a third of them are 0."""
    value = sum((k + 1) * ord(letter) for k, letter in enumerate("/".join(labels)))
    return max(0, value * 7919 % 101 - 33) / 10


def table_of(source: Sequence[str], target: Sequence[str]) -> np.ndarray:
    return np.array([[number(a, b) for b in target] for a in source])


def pairs_of(source: Sequence[str], target: Sequence[str], rename: Rename) -> dict:
    pairs = {(rename(a), rename(b)): number(a, b) for a in source for b in target}
    return {pair: value for pair, value in pairs.items() if value}


def renamed(pairs: Sequence[tuple], rename: Rename) -> list[tuple]:
    return [(rename(a), rename(b), *rest) for a, b, *rest in pairs]


def _names(source, target, rename):
    aliases = {rename("husky"): rename("dog")}
    return from_names(names_of(source, rename), names_of(target, rename), aliases=aliases)


def _word_vectors(**options):
    def build(source, target, rename):
        embeddings = Embeddings(names_of(list(VECTORS), rename), list(VECTORS.values()))
        return from_word_vectors(
            names_of(source, rename), names_of(target, rename), embeddings=embeddings, **options
        )

    return build


def _synonyms(**options):
    def build(source, target, rename):
        synonyms = renamed(SYNONYMS, rename)
        return from_synonyms(
            names_of(source, rename), names_of(target, rename), synonyms=synonyms, **options
        )

    return build


def _tree(**options):
    def build(source, target, rename):
        edges = renamed(TREE, rename)
        return from_tree(names_of(source, rename), names_of(target, rename), edges=edges, **options)

    return build


def _descendants(source, target, rename):
    edges = renamed(TREE, rename)
    return from_descendants(names_of(source, rename), names_of(target, rename), edges=edges)


def _graph(**options):
    def build(source, target, rename):
        edges = renamed(ROADS, rename)
        return from_graph(
            names_of(source, rename), names_of(target, rename), edges=edges, **options
        )

    return build


def _cooccurrence(make=np.asarray, **options):
    def build(source, target, rename):
        rng = np.random.default_rng(3)
        seen = {label: rng.integers(0, 3, 30) for label in PETS} | {"car": np.zeros(30, dtype=int)}
        matrix = make(np.stack([seen[label] for label in source], axis=1))
        return from_cooccurrence(matrix, names_of(source, rename), **options)

    return build


def _confusion(source, target, rename):
    samples = [f"s{k}" for k in range(12)]
    scores = np.array([[number(s, a) for a in source] for s in samples])
    scores[3], scores[4, list(source).index("cat")] = np.nan, np.nan
    truth = {s: rename(sorted(KINDS)[k % 3]) for k, s in enumerate(samples)}
    predictions = Predictions("m", samples, names_of(source, rename), scores, kind="multilabel")
    return from_confusion(predictions, truth, target=names_of(target, rename))


def _from_table(builder, **options):
    def build(source, target, rename):
        table = table_of(source, target)
        return builder(table, names_of(source, rename), names_of(target, rename), **options)

    return build


def _from_pairs(builder, **options):
    def build(source, target, rename):
        pairs = pairs_of(source, target, rename)
        return builder(pairs, names_of(source, rename), names_of(target, rename), **options)

    return build


def _spelling(source, target, rename):
    return from_spelling(names_of(source, rename), names_of(target, rename), cutoff=0.4)


def _mix(*builds):
    def build(source, target, rename):
        return mix_kernels(
            [(build(source, target, rename), 1 + k) for k, build in enumerate(builds)]
        )

    return build


BUILDERS: dict[str, Builder] = {
    "names": Builder(_names, PETS, KINDS),
    "names-equal": Builder(_names, PETS, PETS),
    "descendants": Builder(_descendants, PETS, KINDS),
    "word-vectors": Builder(_word_vectors(), PETS, PETS),
    "word-vectors-rectangular": Builder(_word_vectors(metric="sqeuclidean"), PETS, KINDS),
    "word-vectors-sparse": Builder(_word_vectors(n_neighbors=3, epsilon=0.2), PETS, PETS),
    "word-vectors-local": Builder(_word_vectors(local_bandwidth=2), PETS, PETS),
    "word-vectors-local-rectangular": Builder(_word_vectors(local_bandwidth=2), PETS, KINDS),
    "word-vectors-in-logs": Builder(_word_vectors(epsilon=1e-3), PETS, PETS),
    "synonyms": Builder(_synonyms(), PETS, KINDS),
    "synonyms-symmetric": Builder(_synonyms(symmetric=True, strength=0.5), PETS, PETS),
    "tree-path": Builder(_tree(), PETS, PETS),
    "tree-lin": Builder(_tree(cost="lin", epsilon=0.3), PETS, KINDS),
    "graph": Builder(_graph(), PETS, PETS),
    "graph-cut-off": Builder(_graph(cutoff=1.6, weights="similarity"), PETS, KINDS),
    "cooccurrence": Builder(_cooccurrence(), PETS, PETS),
    "cooccurrence-sparse": Builder(_cooccurrence(sp.csr_array, smoothing=0.0), PETS, PETS),
    "confusion": Builder(_confusion, PETS, KINDS),
    "attributes": Builder(_from_table(from_attributes), PETS, KINDS),
    "ratings": Builder(_from_table(from_ratings), PETS, KINDS),
    "ratings-of-pairs": Builder(_from_pairs(from_ratings), PETS, KINDS),
    "costs": Builder(_from_table(from_cost_table, epsilon=2.0), PETS, KINDS),
    "costs-of-pairs": Builder(_from_pairs(from_cost_table, epsilon=2.0), PETS, KINDS),
    "spelling": Builder(_spelling, PETS, KINDS),
    "mix-sparse": Builder(_mix(_names, _synonyms()), PETS, KINDS),
    "mix-dense": Builder(_mix(_tree(epsilon=1.0), _word_vectors(epsilon=1e-3)), PETS, PETS),
}


def every_builder() -> pytest.MarkDecorator:
    """Parametrises a test's ``builder`` over all of them."""
    params = [pytest.param(builder, id=name) for name, builder in BUILDERS.items()]
    return pytest.mark.parametrize("builder", params)
