"""Labels in a tree: the exact W1 barycenter, by slopes.

W1 on a tree is the sum over edges of their length times |A - B|, the difference of the mass below
the edge. Unlike on a line, the median at each edge need not be a histogram: the masses below the
children of a node may add up to more than the mass below it. So masses are found together. What a
subtree costs, as a function of the mass b in it, is convex and made of straight pieces: pieces of
the children, sorted by slope, are the cheapest way to share b among them; its own edge adds the
cost w_l |A_l - b| of each model. Up the tree for the costs, down again for the masses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Literal, final

import numpy as np

from wassemble._arrays import Array, namespace, without_gradient
from wassemble._checks import fail
from wassemble.solvers.exact import ExactBarycenter

# Slopes are sums of weights times lengths; those that differ by rounding, less than 1 / _ONE, are
# equal.
_ONE = 1e10
# Mass that rounding may make of none.
_LITTLE = 1e-12


@final
@dataclass(frozen=True)
class TreeBarycenter(ExactBarycenter):
    """Exact W1 barycenter of labels in a tree: no epsilon, no sweeps.

    Where several are as good, mass is shared among them in proportion to how much each could
    take, so that the order of labels and models does not matter.

    Parameters
    ----------
    parents : sequence of int
        The node above each node, -1 for none; nodes are counted from 0, and the first ones are
        the target labels, in their order. Nodes that are no label hold no mass.
    lengths : sequence of float, optional
        Of the edge above each node, at least 0; 1 if not given.

    Examples
    --------
    >>> husky, beagle, cat, dog, animal = range(5)
    >>> tree = TreeBarycenter((dog, dog, animal, animal, -1))
    >>> tree.fuse([[0.9, 0, 0.1], [0, 0.9, 0.1], [0, 0, 1.0]]).scores  # two of three say dog
    array([[0.45, 0.45, 0.1 ]])
    """

    key: ClassVar[str] = "tree barycenter"
    label_order: ClassVar[Literal["line", "given", "any"]] = "given"

    parents: Sequence[int]
    lengths: Sequence[float] | None = None

    def __post_init__(self) -> None:
        parents = np.asarray(self.parents)
        if parents.ndim != 1 or parents.dtype.kind not in "iu" or not len(parents):
            fail(f"`parents` must be the place of the node above each node; got {self.parents!r}.")
        if ((parents < -1) | (parents >= len(parents))).any():
            fail(f"`parents` must be from -1 to {len(parents) - 1}; got {parents.tolist()}.")
        object.__setattr__(self, "parents", tuple(parents.tolist()))
        if self.lengths is not None:
            self._check_lengths(np.asarray(self.lengths, dtype=np.float64))
        self._order  # noqa: B018  # rings are refused here

    def _check_lengths(self, lengths: np.ndarray) -> None:
        if lengths.shape != (len(self.parents),):
            fail(f"`lengths` must be one per node, {len(self.parents)}; got {len(lengths)}.")
        if not (np.isfinite(lengths) & (lengths >= 0)).all():
            fail(f"`lengths` must be finite and at least 0; got {lengths.tolist()}.")
        object.__setattr__(self, "lengths", tuple(lengths.tolist()))

    @cached_property
    def _order(self) -> list[int]:
        """Nodes from the top down: each after its parent."""
        order = [node for node, parent in enumerate(self.parents) if parent < 0]
        if len(order) > 1:
            fail(f"a tree must have one node without a parent; got {len(order)} of them.")
        for node in order:  # which grows meanwhile
            order += self._children[node]
        if len(order) < len(self.parents):
            ring = sorted(set(range(len(self.parents))) - set(order))
            fail(f"no node may be its own ancestor; got a ring at or above node {ring[0]}.")
        return order

    @cached_property
    def _children(self) -> list[list[int]]:
        children: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(node)
        return children

    @cached_property
    def _edges(self) -> np.ndarray:
        """Lengths of edges relative to the longest, so that slopes can be rounded."""
        edges = np.ones(len(self.parents)) if self.lengths is None else np.array(self.lengths)
        return edges / (edges.max() or 1.0)

    def _check_labels(self, n_target: int) -> None:
        barren = [node for node in self._order if node >= n_target and not self._children[node]]
        if n_target > len(self.parents) or barren:
            fail(
                f"the tree must have the {n_target} target labels as its first nodes, and a node"
                f" below each other one; got {len(self.parents)} nodes.",
                hint="`tree_barycenter(labels, edges)` makes the rule from names",
            )

    def _find(self, shares: Array, weights: Array) -> Array:
        xp, n_target = namespace(shares), shares.shape[-1]
        below = self._sum_below(xp.astype(shares, xp.float64))  # slopes must tie where they do
        none = xp.zeros_like(below[0][:, :1])  # one number for each row
        weights = weights.T + none
        inside: dict[int, _Choice] = {}
        costs: dict[int, _Pieces] = {}
        for node in reversed(self._order):
            # A label costs nothing itself, whatever its mass.
            own = [_Pieces(none + 1, none)] if node < n_target else []
            inside[node] = _Choice([*(costs[child] for child in self._children[node]), *own])
            costs[node] = inside[node].cheapest.plus(self._edges[node] * weights, below[node])
        return self._share_out(inside, none + 1, n_target)

    def _sum_below(self, shares: Array) -> list[Array]:
        """Mass of each model at and below each node, (n_rows, n_models)."""
        labels = [shares[..., label].T for label in range(shares.shape[-1])]
        below = [*labels, *[0.0] * (len(self.parents) - len(labels))]
        for node in reversed(self._order[1:]):
            below[self.parents[node]] = below[self.parents[node]] + below[node]
        return below

    def _share_out(self, inside: dict[int, _Choice], whole: Array, n_target: int) -> Array:
        """Mass of each label, from the top down."""
        labels: dict[int, Array] = {}
        mass = {self._order[0]: whole}
        for node in self._order:
            given = inside[node].share(mass.pop(node))
            mass |= zip(self._children[node], given, strict=False)  # the last may be its own
            if node < n_target:
                labels[node] = given[-1]
        return namespace(whole).concat([labels[label] for label in range(n_target)], axis=1)

    def couple(self, model: np.ndarray, consensus: np.ndarray) -> np.ndarray:
        """What meets its like low in the tree goes no higher: optimal on any tree."""
        n_target = len(model)
        coupling = np.zeros((n_target, n_target))
        waits: dict[int, np.ndarray] = {}  # mass of both that met nothing yet
        for node in reversed(self._order):
            pair = np.sum([waits.pop(child) for child in self._children[node]], axis=0)
            pair = np.zeros((2, n_target)) + pair
            if node < n_target:
                pair[:, node] += model[node], consensus[node]
            sums = pair.sum(axis=1)
            met = sums.min()
            if met > 0:
                coupling += np.outer(*pair) * met / sums.prod()
                pair *= (1 - met / sums)[:, None]
            waits[node] = pair
        return coupling

    def distances(self, models: np.ndarray, consensus: np.ndarray) -> np.ndarray:
        lengths = np.ones(len(self.parents)) if self.lengths is None else self.lengths
        apart = self._sum_below((models - consensus)[None])
        return np.asarray(lengths) @ np.abs(apart)[:, :, 0]

    def __str__(self) -> str:
        return f"median in a tree, {len(self.parents)} nodes"


@dataclass(frozen=True, eq=False)
class _Pieces:
    """A convex function of mass from 0 to 1, for each row: straight pieces, by rising slopes."""

    lengths: Array  # (n_rows, n_pieces)
    slopes: Array

    def plus(self, weights: Array, below: Array) -> _Pieces:
        """The same plus ``sum_l w_l |A_l - b|``, all (n_rows, n_models)."""
        xp = namespace(below)
        ends = xp.cumulative_sum(self.lengths, axis=1)
        bends = xp.diff(self.slopes, axis=1, append=self.slopes[:, -1:])
        points = xp.concat([ends, below], axis=1)
        bends = xp.concat([bends, 2 * weights], axis=1)
        order = xp.argsort(without_gradient(points), axis=1)
        points = xp.clip(xp.take_along_axis(points, order, axis=1), None, 1.0)
        bends = xp.take_along_axis(bends, order, axis=1)
        first = self.slopes[:, :1] - xp.sum(weights, axis=1, keepdims=True)
        slopes = first + xp.cumulative_sum(bends, axis=1) - bends
        return _Pieces(_differences(points), xp.round(slopes * _ONE) / _ONE)


class _Choice:
    """Mass that can be shared among several, each with what it costs."""

    def __init__(self, parts: list[_Pieces]) -> None:
        self._xp = xp = namespace(parts[0].lengths)
        self._sizes = [part.lengths.shape[1] for part in parts]
        self._lengths = xp.concat([part.lengths for part in parts], axis=1)
        self._slopes = xp.concat([part.slopes for part in parts], axis=1)
        order = xp.argsort(without_gradient(self._slopes), axis=1)
        self._ends = xp.cumulative_sum(xp.take_along_axis(self._lengths, order, axis=1), axis=1)
        self._sorted = xp.take_along_axis(self._slopes, order, axis=1)

    @property
    def cheapest(self) -> _Pieces:
        """What mass from 0 to 1 costs: cheap pieces first."""
        return _Pieces(_differences(self._xp.clip(self._ends, None, 1.0)), self._sorted)

    def share(self, mass: Array) -> list[Array]:
        """How much each gets; all (n_rows, 1)."""
        xp = self._xp
        is_short = self._ends < mass - _LITTLE
        slopes = xp.where(is_short, self._sorted[:, -1:], self._sorted)
        bound = xp.min(slopes, axis=1, keepdims=True)
        cheaper = xp.where(self._slopes < bound, self._lengths, 0.0)
        equal = xp.where(self._slopes == bound, self._lengths, 0.0)
        left = mass - xp.sum(cheaper, axis=1, keepdims=True)
        room = xp.sum(equal, axis=1, keepdims=True)
        taken = cheaper + equal * (left / xp.where(room > 0, room, 1.0))
        stops = np.cumsum([0, *self._sizes]).tolist()
        return [
            xp.sum(taken[:, start:stop], axis=1, keepdims=True) for start, stop in pairwise(stops)
        ]


def _differences(ends: Array) -> Array:
    """Lengths of pieces from where they end."""
    xp = namespace(ends)
    return xp.diff(ends, axis=1, prepend=xp.zeros_like(ends[:, :1]))
