"""Trees with names: the rule they make, and votes at any level."""

import numpy as np
import pytest

import wassemble as ws
from wassemble.ensemble import tree_barycenter
from wassemble.kernels import from_descendants

TREE = [("animal", "dog"), ("animal", "cat"), ("dog", "husky"), ("dog", "beagle"), ("thing", "car")]
BREEDS = ["husky", "beagle", "cat"]


def test_trees_apart_are_joined_above_and_empty_branches_left_out():
    rule = tree_barycenter([*BREEDS, "car"], TREE)
    assert len(rule.parents) == 8  # and dog, animal, thing, and a node above all
    assert tree_barycenter(BREEDS, TREE).parents.count(-1) == 1
    assert len(tree_barycenter(BREEDS, TREE).parents) == 5


def test_lengths_of_edges_count():
    far = [("x", "a", 1.0), ("x", "b", 1.0), ("y", "c", 1.0), ("r", "x", 5.0), ("r", "y", 5.0)]
    rule = tree_barycenter(["c", "a", "b"], far)
    assert rule.lengths == (1.0, 1.0, 1.0, 5.0, 5.0, 0.0)
    named = tree_barycenter(["C", "a", "b"], far, nodes={"C": "c"})
    assert named == rule


def test_an_edge_may_be_told_again_but_not_with_another_length():
    assert tree_barycenter(BREEDS, [*TREE, TREE[2]]) == tree_barycenter(BREEDS, TREE)
    edges = [("dog", "husky", 1.0), ("dog", "beagle", 1.0), ("dog", "husky", 2.0)]
    with pytest.raises(ws.InvalidInputError, match="got several for 'husky'"):
        tree_barycenter(BREEDS[:2], edges)


def test_two_of_three_outvote_one_at_the_level_where_they_agree():
    rule = tree_barycenter(BREEDS, TREE)
    fused = rule.fuse(np.eye(3)).scores[0]
    np.testing.assert_allclose(fused, [0.5, 0.5, 0])


@pytest.mark.parametrize(
    ("labels", "edges", "words"),
    [
        (["husky", "okapi"], TREE, "each label must be a node .* got 'okapi'"),
        (BREEDS, [*TREE, ("pet", "cat")], "got several for 'cat'"),
        (BREEDS, [*TREE, ("husky", "animal")], "its own ancestor"),
    ],
)
def test_what_is_no_tree_of_the_labels_is_refused(labels, edges, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        tree_barycenter(labels, edges)


def test_a_kind_votes_for_all_below_it_and_a_stranger_for_those_below_its_kind():
    source = ["animal", "dog", "husky", "poodle", "car"]
    kernel = from_descendants(source, BREEDS, edges=[*TREE, ("dog", "poodle")])
    expected = [[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(kernel.to_dense(), expected)


def test_votes_at_several_levels_are_fused_in_the_tree():
    breeds = ws.Predictions("breeds", ["x"], BREEDS, [[0.6, 0.1, 0.3]])
    kinds = ws.Predictions("kinds", ["x"], ["dog", "cat"], [[1.0, 0.0]])

    def kernel(source, target):
        return from_descendants(source, target, edges=TREE)

    fusion = ws.Fusion(tree_barycenter(BREEDS, TREE), kernel, target=BREEDS)
    fused = fusion.run([breeds, kinds]).consensus
    assert fused.scores.sum() == pytest.approx(1)
    assert fused.scores[0, :2].sum() == pytest.approx(0.85)


def test_a_tree_knows_labels_by_the_order_that_it_was_made_for():
    model = ws.Predictions("a", ["x"], ["cat", "husky", "beagle"], [[0.2, 0.5, 0.3]])
    rule = tree_barycenter(BREEDS, TREE)
    with pytest.raises(ws.InvalidInputError, match="`target` must name the labels that the rule"):
        ws.Fusion(rule).fuse([model])
    plain = ws.Fusion(ws.ARITHMETIC)
    plain.fuse([model])  # whose labels are matched in their own order
    with pytest.raises(ws.InvalidInputError, match="`target` must name"):
        plain.replace(rule=rule).fuse([model])
    fused = ws.Fusion(rule, target=BREEDS).fuse([model]).scores
    np.testing.assert_allclose(fused, [[0.5, 0.3, 0.2]])
