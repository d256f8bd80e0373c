"""Kernels from a hierarchy of labels."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.kernels import from_tree

TREE = [
    ("animal", "dog"),
    ("animal", "cat"),
    ("dog", "husky"),
    ("dog", "beagle"),
    ("beagle", "pocket beagle"),
]


def costs_of(labels, target=None, epsilon=1.0, **options):
    kernel = from_tree(labels, target, epsilon=epsilon, **options)
    with np.errstate(divide="ignore"):
        return np.abs(-epsilon * np.log(kernel.to_dense()))


def test_path_costs_count_edges_up_and_down():
    labels = ["husky", "beagle", "cat", "pocket beagle", "animal"]
    assert_allclose(
        costs_of(labels, edges=TREE),
        [[0, 2, 3, 3, 2], [2, 0, 3, 1, 2], [3, 3, 0, 4, 1], [3, 1, 4, 0, 3], [2, 2, 1, 3, 0]],
        atol=1e-12,
    )


def test_leaves_go_to_the_inner_nodes_above_them():
    cost = costs_of(["husky", "pocket beagle", "cat"], ["dog", "cat"], edges=TREE)
    assert_allclose(cost, [[1, 3], [2, 4], [2, 0]], atol=1e-12)


def test_lin_costs_come_from_counted_descendants():
    # Six nodes: dog has three below it, beagle one, animal all five.
    content = {"husky": 1, "cat": 1, "beagle": 1 - math.log(2) / math.log(6)}
    content |= {"dog": 1 - math.log(4) / math.log(6), "animal": 0}
    cost = costs_of(["husky", "beagle", "cat", "dog", "animal"], edges=TREE, cost="lin")
    assert_allclose(cost[0, 1], 1 - 2 * content["dog"] / (1 + content["beagle"]))
    assert_allclose(cost[0, 2], 1)
    assert_allclose(cost[0, 3], 1 - 2 * content["dog"] / (1 + content["dog"]))
    assert_allclose(cost[0, 4], 1)
    assert_allclose(np.diag(cost), 0, atol=1e-12)


def test_lin_may_be_counted_among_some_leaves_only():
    # Without the pocket beagle: five nodes, and dog has two below it.
    content = 1 - math.log(3) / math.log(5)
    cost = costs_of(["husky", "cat"], ["beagle"], edges=TREE, cost="lin", leaves=["beagle"])
    assert_allclose(cost, [[1 - content], [1]])


def test_a_node_may_have_two_parents():
    edges = [("a", "x"), ("a", "y"), ("b", "y"), ("b", "z"), ("root", "a"), ("root", "b")]
    cost = costs_of(["x", "y", "z"], edges=edges)
    assert_allclose(cost, [[0, 2, 4], [2, 0, 2], [4, 2, 0]], atol=1e-12)


def test_the_shortest_way_counts_where_ancestors_differ():
    # By the root it is 1 + 2 steps; by the lower ancestor 2 + 3.
    edges = [("root", "x"), ("root", "m"), ("m", "y"), ("low", "n"), ("n", "x")]
    edges += [("low", "o"), ("o", "p"), ("p", "y"), ("root", "low")]
    assert_allclose(costs_of(["x"], ["y"], edges=edges), [[3]])


@pytest.mark.parametrize("cost", ["path", "lin"])
def test_labels_without_a_common_ancestor_are_not_joined(cost):
    kernel = from_tree(["x", "y"], edges=[("a", "x"), ("b", "y")], epsilon=1.0, cost=cost)
    assert_array_equal(kernel.to_dense(), np.eye(2))


def test_labels_outside_of_the_tree_go_to_their_own_name():
    kernel = from_tree(["husky", "car", "cat"], ["car", "dog"], edges=TREE, epsilon=1.0)
    assert_allclose(kernel.to_dense(), [[0, math.exp(-1)], [1, 0], [0, math.exp(-2)]])
    assert kernel.notes == ("1 label outside of edges: 'car'",)


def test_labels_may_have_nodes_of_other_names():
    nodes = {"Siberian husky": "husky", "house cat": "cat"}
    cost = costs_of(["Siberian husky", "house cat", "dog"], edges=TREE, nodes=nodes)
    assert_allclose(cost, [[0, 3, 1], [3, 0, 2], [1, 2, 0]], atol=1e-12)


def test_a_root_alone_has_no_information_and_costs_nothing():
    cost = costs_of(["animal"], edges=TREE, cost="lin", leaves=["animal"])
    assert_allclose(cost, [[0]])


def test_two_labels_may_be_one_node():
    cost = costs_of(["dog", "hound"], edges=TREE, nodes={"hound": "dog"}, cost="lin")
    assert_allclose(cost, np.zeros((2, 2)), atol=1e-12)


def test_the_kernel_is_symmetric_without_a_target():
    for cost in ("path", "lin"):
        kernel = from_tree(["husky", "cat", "beagle"], edges=TREE, cost=cost)
        assert kernel.kernel.is_symmetric
        assert f"{cost} cost" in kernel.origin


@given(data=st.data())
def test_costs_equal_those_of_a_search_in_networkx(data):
    n_nodes = data.draw(st.integers(2, 12))
    ends = st.tuples(st.integers(0, n_nodes - 1), st.integers(0, n_nodes - 1))
    drawn = data.draw(st.lists(ends.filter(lambda e: e[0] < e[1]), min_size=1, max_size=25))
    edges = [(f"n{a}", f"n{b}") for a, b in drawn]
    graph = nx.DiGraph(edges)
    labels = list(graph)
    above = {x: {x: 0} | dict(nx.single_target_shortest_path_length(graph, x)) for x in labels}
    n_below = {x: len(nx.descendants(graph, x)) for x in labels}
    content = {x: 1 - math.log(n_below[x] + 1) / math.log(len(labels)) for x in labels}
    path = np.full((len(labels), len(labels)), np.inf)
    lin = path.copy()
    for i, x in enumerate(labels):
        for j, y in enumerate(labels):
            common = above[x].keys() & above[y].keys()
            if common:
                path[i, j] = min(above[x][c] + above[y][c] for c in common)
                total = content[x] + content[y]
                shared = max(content[c] for c in common)
                lin[i, j] = 1 - 2 * shared / total if total else 0
    assert_allclose(costs_of(labels, edges=edges), path, atol=1e-9)
    assert_allclose(costs_of(labels, edges=edges, cost="lin"), lin, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cost": "depth"}, "`cost` must be one of path, lin; got 'depth'"),
        ({"edges": [("a", "b"), ("b", "a")]}, "its own ancestor; got a ring of 'a', 'b'.\nhint:"),
        ({"edges": [("husky", "husky")]}, "its own ancestor; got a ring of 'husky'"),
        ({"edges": [("a", "b")]}, "edges must have some label as a node; it has none of 'husky'"),
        ({"edges": []}, "edges must hold at least one pair of nodes; got none"),
        ({"edges": [("a",)]}, r"an edge must be two names, or two names and a weight; got \('a',"),
        ({"edges": 3}, "`edges` must be pairs of names; got int"),
        ({"nodes": {"husky": "wolf"}}, "nodes of edges; got 'husky' -> 'wolf', which is none"),
        ({"leaves": ["dog"]}, "counted for the cost \"lin\" only; got them with 'path'"),
        (
            {"edges": [("a", "b", 2)]},
            "must have no weights; those of edges have.\nhint: `kernels",
        ),
        ({"leaves": ["wolf"], "cost": "lin"}, "`leaves` must be nodes of edges; got 'wolf'"),
    ],
)
def test_what_cannot_be_built_is_refused(options, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_tree(["husky"], ["dog"], **{"edges": TREE} | options)
