"""Rules for labels in a tree, by their names."""

from collections.abc import Iterable, Mapping

import numpy as np

from wassemble._checks import fail, option
from wassemble.inputs.words.graphs import Edges, as_edges
from wassemble.kernels.builders.spaces import find_nodes
from wassemble.kernels.builders.tree import check_ancestry
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.solvers import TreeBarycenter


def tree_barycenter(
    labels: Iterable[str],
    edges: Edges | Iterable[tuple[str, str]] | Iterable[tuple[str, str, float]],
    *,
    nodes: Mapping[str, str] | None = None,
) -> TreeBarycenter:
    """The rule `TreeBarycenter` of a tree whose nodes have names.

    Branches that hold no label are left out. Trees apart are joined at a node above all of them.

    Parameters
    ----------
    labels : iterable of str
        The target labels; each must be a node.
    edges : Edges or iterable of (parent, child) or (parent, child, length)
        A node has one parent. Edges without a length are 1 long.
    nodes : mapping of str to str, optional
        Node of each label whose node has another name.

    Examples
    --------
    >>> tree = [("animal", "dog"), ("animal", "cat"), ("dog", "husky"), ("dog", "beagle")]
    >>> tree_barycenter(["husky", "beagle", "cat"], tree)
    TreeBarycenter(parents=(4, 4, 3, -1, 3), lengths=None)
    """
    space, tree = LabelSpace(labels), as_edges(edges)
    check_ancestry(tree)
    places, own = find_nodes(space, tree.nodes, nodes, what=tree.origin)
    if len(places) < len(space) or len(set(own.tolist())) < len(space):
        lost = [name for place, name in enumerate(space) if place not in places]
        fail(
            f"each label must be a node of its own of {tree.origin}; got"
            f" {enumerate_names(lost or space)}.",
            hint=f"add the node above each to the tree, or name the labels that are in it by"
            f" {option('target')}",
        )
    parents, lengths = _read_parents(tree)
    kept = _climb(own, parents)
    return _to_rule(
        [*own.tolist(), *(node for node in kept if node not in set(own.tolist()))], parents, lengths
    )


def _read_parents(tree: Edges) -> tuple[np.ndarray, np.ndarray | None]:
    """The parent of each node, -1 for none, and the length of the edge above it."""
    lengths = np.ones(len(tree)) if tree.weights is None else tree.weights
    told = np.unique([tree.ends, tree.starts, lengths], axis=1)  # an edge may be told again
    ends, counts = np.unique(told[0].astype(np.int64), return_counts=True)
    if (counts > 1).any():
        names = enumerate_names([tree.nodes[node] for node in ends[counts > 1].tolist()])
        fail(
            f"a node of {tree.origin} must have one parent, at one length; got several for"
            f" {names}.",
            hint="`kernels.from_tree` takes any hierarchy",
        )
    parents = np.full(len(tree.nodes), -1)
    parents[tree.ends] = tree.starts
    if tree.weights is None:
        return parents, None
    lengths = np.zeros(len(tree.nodes))
    lengths[tree.ends] = tree.weights
    return parents, lengths


def _climb(own: np.ndarray, parents: np.ndarray) -> list[int]:
    """Nodes at and above ``own``, in the order of the tree."""
    above = set(own.tolist())
    step = above
    while step := {int(parents[node]) for node in step} - above - {-1}:
        above |= step
    return sorted(above)


def _to_rule(order: list[int], parents: np.ndarray, lengths: np.ndarray | None) -> TreeBarycenter:
    """The rule with nodes in this order; roots are joined if there are several."""
    place = {node: at for at, node in enumerate(order)}
    renamed = [place.get(int(parents[node]), -1) for node in order]
    own = None if lengths is None else lengths[order].tolist()
    if renamed.count(-1) > 1:
        renamed = [len(order) if parent < 0 else parent for parent in renamed] + [-1]
        own = None if own is None else [*own, 0.0]
    return TreeBarycenter(renamed, own)
