"""Edges between named nodes: word graphs, hierarchies, pairs of synonyms."""

import math
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np

from wassemble._checks import fail
from wassemble.inputs.words.text_files import read_columns
from wassemble.labels import LabelSpace


@final
class Edges:
    """Pairs of named nodes, with or without a weight.

    Parameters
    ----------
    pairs : iterable of (str, str) or (str, str, number)
        From parent to child in a hierarchy; the third is a weight, which all pairs have or
        none.
    origin : str
        Where they come from, for accounts and messages.

    Attributes
    ----------
    nodes : LabelSpace
        Names in the order of appearance.
    starts, ends : arrays of shape (n_edges,)
        Places of both ends among the nodes.
    weights : array of shape (n_edges,) or None

    Examples
    --------
    >>> Edges([("dog", "husky"), ("dog", "beagle")])
    Edges(2 edges between 3 nodes)
    """

    def __init__(self, pairs: Iterable[tuple[Any, ...]], *, origin: str = "edges") -> None:
        places: dict[str, int] = {}
        starts: list[int] = []
        ends: list[int] = []
        weights: list[Any] = []
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) not in (2, 3):
                fail(f"an edge must be two names, or two names and a weight; got {pair!r}.")
            for name, side in zip(pair[:2], (starts, ends), strict=True):
                if not isinstance(name, str) or not name:
                    fail(f"the ends of an edge must be names; got {pair!r}.")
                side.append(places.setdefault(name, len(places)))
            weights += pair[2:]
        if not starts:
            fail(f"{origin} must hold at least one pair of nodes; got none.")
        if len(weights) not in (0, len(starts)):
            fail(
                f"all edges must have a weight, or none; got {len(weights):,} weights of"
                f" {len(starts):,} edges."
            )
        self.nodes = LabelSpace(places)
        self.starts, self.ends = np.array(starts), np.array(ends)
        self.weights = self._read_weights(weights) if weights else None
        self.origin = origin

    def _read_weights(self, weights: list[Any]) -> np.ndarray:
        for place, weight in enumerate(weights):
            is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
            if not is_number or not math.isfinite(weight):
                fail(
                    f"the weight of an edge must be a finite number; got {weight!r} from"
                    f" {self.nodes[self.starts[place]]!r} to {self.nodes[self.ends[place]]!r}."
                )
        return np.array(weights, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else ", weighted"
        return f"Edges({len(self):,} edges between {len(self.nodes):,} nodes{weighted})"


def as_edges(edges: Edges | Iterable[tuple[Any, ...]], *, origin: str = "edges") -> Edges:
    """``edges`` if they are `Edges`, else those of the pairs."""
    if isinstance(edges, Edges):
        return edges
    if isinstance(edges, str | bytes | PathLike):
        fail(
            f"`edges` must be pairs of names; got {edges!r}.",
            hint="`read_edges` reads them from a file",
        )
    if not isinstance(edges, Iterable):
        fail(f"`edges` must be pairs of names; got {type(edges).__name__}.")
    return Edges(edges, origin=origin)


def read_edges(path: str | PathLike[str]) -> Edges:
    r"""The edges in a text file: two names per line, and a weight as third column if any.

    Parameters
    ----------
    path : str or path
        ``.csv`` has commas; other files tabs, if the first line has one, else spaces. Names
        with spaces need one of the first two. ``.gz`` is unpacked. In a hierarchy, each line
        is parent and child.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tree.txt")
    ...     _ = path.write_text("dog husky\ndog beagle\n")
    ...     read_edges(path)
    Edges(2 edges between 3 nodes)
    """
    return _read_pairs(Path(path), "two names, and a weight if any")


def read_synonyms(path: str | PathLike[str]) -> Edges:
    r"""The synonyms in a text file: word, synonym, and the votes for it as third column if any.

    Parameters
    ----------
    path : str or path
        As in `read_edges`.

    Returns
    -------
    synonyms : Edges
        From each word to its synonyms; weights are votes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "synonyms.csv")
    ...     _ = path.write_text("word,synonym,votes\ncar,auto,12\ncar,motor vehicle,3\n")
    ...     read_synonyms(path)
    Edges(2 edges between 3 nodes, weighted)
    """
    synonyms = _read_pairs(Path(path), "a word and a synonym, and its votes if any")
    if synonyms.weights is not None and (synonyms.weights < 0).any():
        wrong = int((synonyms.weights < 0).argmax())
        word, synonym = (synonyms.nodes[ends[wrong]] for ends in (synonyms.starts, synonyms.ends))
        fail(
            f"{path}: votes must not be negative; got {synonyms.weights[wrong]:g} for"
            f" {synonym!r} as a synonym of {word!r}."
        )
    return synonyms


def _read_pairs(path: Path, what: str) -> Edges:
    """The pairs in a file; ``what`` words what a line must hold."""
    pairs: list[tuple[Any, ...]] = []
    for number, fields in read_columns(path, what):
        pair: tuple[Any, ...] = (fields[0], fields[1])
        if len(fields) == 3:
            try:
                weight = float(fields[2])
            except ValueError:
                weight = math.nan
            if not math.isfinite(weight):
                fail(
                    f"{path}, line {number}: the third column must be a finite number;"
                    f" got {fields[2]!r}."
                )
            pair = (*pair, weight)
        pairs.append(pair)
    return Edges(pairs, origin=path.name)
