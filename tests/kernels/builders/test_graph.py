"""Kernels from a graph of words or labels."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.kernels import DenseKernel, SparseKernel, from_graph

ROADS = [("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 5.0), ("d", "e", 1.0)]
LABELS = ["a", "b", "c", "d"]


def costs_of(labels, target=None, *, epsilon=1.0, **options):
    kernel = from_graph(labels, target, epsilon=epsilon, **options)
    with np.errstate(divide="ignore"):
        return np.abs(-epsilon * np.log(kernel.to_dense()))


def test_costs_are_those_of_the_cheapest_path():
    inf = np.inf
    expected = [[0, 1, 3, inf], [1, 0, 2, inf], [3, 2, 0, inf], [inf, inf, inf, 0]]
    assert_allclose(costs_of(LABELS, edges=ROADS), expected, atol=1e-12)


def test_edges_without_weights_cost_one():
    pairs = [(a, b) for a, b, _ in ROADS]
    assert_allclose(costs_of(["a"], ["b", "c", "e"], edges=pairs), [[1, 1, np.inf]])


def test_similarities_cost_their_inverse():
    cost = costs_of(["a"], ["b", "c"], edges=ROADS, weights="similarity")
    assert_allclose(cost, [[0.7, 0.2]])


def test_of_several_edges_the_cheapest_counts():
    edges = [("a", "b", 4.0), ("b", "a", 3.0), ("a", "b", 9.0)]
    assert_allclose(costs_of(["a"], ["b"], edges=edges), [[3]])


def test_directed_edges_lead_one_way():
    kernel = from_graph(["a", "b"], edges=ROADS, epsilon=1.0, directed=True)
    assert_allclose(kernel.to_dense(), [[1, math.exp(-1)], [0, 1]])
    assert not kernel.kernel.is_symmetric


def test_a_cutoff_gives_a_sparse_kernel_of_what_is_nearer():
    whole = from_graph(LABELS, edges=ROADS, epsilon=1.0)
    near = from_graph(LABELS, edges=ROADS, epsilon=1.0, cutoff=2.0)
    assert isinstance(whole.kernel, DenseKernel)
    assert isinstance(near.kernel, SparseKernel)
    assert near.kernel.is_symmetric
    dense = whole.to_dense().copy()
    dense[0, 2] = dense[2, 0] = 0
    assert_allclose(near.to_dense(), dense)
    assert near.origin == "graph of edges, weights are cost, cut off at 2, epsilon 1"


def test_a_networkx_graph_is_taken_with_its_weights_and_direction():
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=2.0)
    graph.add_edge("b", "c")
    assert_allclose(costs_of(["a"], ["b", "c"], edges=graph), [[2, 3]])
    one_way = costs_of(["c"], ["a", "c"], edges=nx.DiGraph(graph.edges(data=True)))
    assert_allclose(one_way, [[np.inf, 0]])
    both_ways = costs_of(["c"], ["a"], edges=nx.DiGraph(graph.edges(data=True)), directed=False)
    assert_allclose(both_ways, [[3]])


def test_labels_outside_of_the_graph_go_to_their_own_name():
    for cutoff in (None, 10.0):
        kernel = from_graph(["a", "x"], ["x", "b"], edges=ROADS, epsilon=1.0, cutoff=cutoff)
        assert_allclose(kernel.to_dense(), [[0, math.exp(-1)], [1, 0]])
        assert kernel.notes == ("1 label outside of edges: 'x'",)


def test_labels_may_have_nodes_of_other_names():
    assert_allclose(costs_of(["A"], ["c"], edges=ROADS, nodes={"A": "a"}), [[3]])


@given(data=st.data())
def test_costs_equal_those_of_networkx(data):
    ends = st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 9))
    drawn = data.draw(st.lists(ends, min_size=1, max_size=20))
    graph = nx.MultiDiGraph() if data.draw(st.booleans()) else nx.MultiGraph()
    graph.add_weighted_edges_from([(f"n{a}", f"n{b}", w / 4) for a, b, w in drawn])
    labels = list(graph)
    found = dict(nx.all_pairs_dijkstra_path_length(graph))
    expected = [[found[a].get(b, np.inf) for b in labels] for a in labels]
    assert_allclose(costs_of(labels, edges=graph), expected, atol=1e-9)
    assert_allclose(costs_of(labels, edges=graph, cutoff=50.0), expected, atol=1e-9)


def test_many_source_labels_are_searched_in_blocks(monkeypatch):
    whole = from_graph(LABELS, edges=ROADS, epsilon=1.0).to_dense()
    monkeypatch.setattr("wassemble.kernels.builders.graph._BLOCK", 1)
    assert_array_equal(from_graph(LABELS, edges=ROADS, epsilon=1.0).to_dense(), whole)
    sparse = from_graph(LABELS, edges=ROADS, epsilon=1.0, cutoff=100.0).to_dense()
    assert_allclose(sparse, whole)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": "votes"}, "`weights` must be one of cost, similarity; got 'votes'"),
        ({"edges": [("a", "b")], "weights": "similarity"}, "must have weights; edges has none"),
        ({"edges": [("a", "b", 0)]}, "must be above 0; got 0 from 'a' to 'b'"),
        ({"edges": [("a", "b", np.inf)]}, "must be a finite number; got inf from 'a' to 'b'"),
        ({"edges": [("a", "b", 1), ("b", "c")]}, "a weight, or none; got 1 weights of 2 edges"),
        ({"edges": nx.Graph([(1, 2)])}, r"the ends of an edge must be names; got \(1, 2"),
        ({"cutoff": -1}, "`cutoff` must be finite and above 0; got -1"),
        ({"directed": "yes"}, "`directed` must be True or False; got 'yes'"),
        ({"cutoff": 9.0, "epsilon": 1e-3}, "= 0 at source label 'a', target label 'b'"),
    ],
)
def test_what_cannot_be_built_is_refused(options, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        from_graph(["a", "b"], **{"edges": ROADS} | options)
