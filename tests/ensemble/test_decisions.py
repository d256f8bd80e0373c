"""Decisions from a consensus: by hand, by brute force, and their laws."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from wassemble import InvalidInputError
from wassemble.ensemble import decisions
from wassemble.ensemble.decisions import (
    apply_thresholds,
    back_off,
    choose_best,
    choose_least_cost,
    fit_thresholds,
)
from wassemble.inputs.words.graphs import Edges
from wassemble.metrics import accuracy, mean_cost, precision_recall_f1

TREE = [
    ("thing", "animal"),
    ("thing", "car"),
    ("animal", "dog"),
    ("animal", "cat"),
    ("dog", "husky"),
    ("dog", "beagle"),
]
LABELS = ["husky", "beagle", "cat", "car"]


def integer_scores(seed, n_labels, n_samples=6):
    """Small whole numbers, so that sums are exact and equal scores are common."""
    return np.random.default_rng(seed).integers(0, 5, size=(n_samples, n_labels))


# -- one label -----------------------------------------------------------------------


def test_the_first_of_the_largest_is_chosen_and_none_without_an_answer():
    scores = [[0.1, 0.7, 0.2], [0.4, 0.2, 0.4], [0, 0, 0], [np.nan] * 3]
    np.testing.assert_array_equal(choose_best(scores), [1, 0, -1, -1])
    np.testing.assert_array_equal(choose_least_cost(scores, 1 - np.eye(3)), [1, 0, -1, -1])


@given(st.integers(0, 2**16), st.integers(1, 6))
def test_with_cost_1_for_each_mistake_the_least_cost_is_the_best(seed, n_labels):
    scores = integer_scores(seed, n_labels)
    found = choose_least_cost(scores, 1 - np.eye(n_labels))
    np.testing.assert_array_equal(found, choose_best(scores))


@given(st.integers(0, 2**16))
def test_no_other_answer_has_less_expected_cost(seed):
    rng = np.random.default_rng(seed)
    histograms, cost = rng.dirichlet(np.ones(4), size=5), rng.uniform(size=(4, 6))
    expected = np.einsum("sl,la->sa", histograms, cost)
    chosen = choose_least_cost(histograms, cost)
    np.testing.assert_allclose(expected[np.arange(5), chosen], expected.min(axis=1))
    np.testing.assert_array_equal(choose_least_cost(1e-3 * histograms, cost), chosen)


def test_a_dog_is_answered_where_two_breeds_outweigh_a_car():
    steps = [[0, 2, 4], [2, 0, 4], [4, 4, 0]]
    histograms = [[0.25, 0.35, 0.4]]
    assert choose_best(histograms)[0] == 2
    assert choose_least_cost(histograms, steps)[0] == 1


def test_least_cost_costs_less_than_the_best_label_in_the_long_run(rng):
    steps = np.array([[0, 1, 9], [1, 0, 9], [2, 2, 0]])
    histograms = rng.dirichlet(np.ones(3), size=4000)
    truth = (histograms.cumsum(axis=1) < rng.uniform(size=(4000, 1))).sum(axis=1)
    best, cheap = choose_best(histograms), choose_least_cost(histograms, steps)
    assert mean_cost(cheap, truth, steps) < mean_cost(best, truth, steps)
    assert accuracy(cheap, truth) < accuracy(best, truth)


def test_a_cost_without_a_row_per_label_is_refused():
    with pytest.raises(InvalidInputError, match="a row for each of the 2 labels; got 3 rows"):
        choose_least_cost([[1, 0]], np.zeros((3, 3)))


# -- a kind of label -----------------------------------------------------------------


def names(histograms, **options):
    return back_off(histograms, LABELS, TREE, **options).names.tolist()


def test_breeds_that_tie_are_some_kind_of_dog():
    found = back_off([[0.5, 0.5, 0, 0], [0.6, 0.4, 0, 0], [0.3, 0.3, 0.4, 0]], LABELS, TREE)
    assert found.names.tolist() == ["dog", "husky", "dog"]
    np.testing.assert_allclose(found.mass, [1, 0.6, 0.6])


def test_more_confidence_answers_higher_up():
    row = [[0.4, 0.2, 0.2, 0.2]]
    expected = {0: "husky", 0.39: "husky", 0.5: "dog", 0.6: "animal", 0.7: "animal", 0.8: "thing"}
    for confidence, name in expected.items():
        assert names(row, confidence=confidence) == [name]


def test_rows_are_divided_by_their_sums_and_empty_ones_have_no_answer():
    found = back_off([[5, 5, 0, 0], [0] * 4, [np.nan] * 4], LABELS, Edges(TREE))
    assert found.names.tolist() == ["dog", None, None]
    np.testing.assert_array_equal(found.mass, [1, np.nan, np.nan])


def test_labels_outside_of_the_tree_stand_alone():
    histograms = [[0.6, 0.4], [0.1, 0.9], [0.5, 0.5]]
    found = back_off(histograms, ["husky", "okapi"], TREE)
    assert found.names.tolist() == ["husky", "okapi", None]
    assert np.isnan(found.mass[2])


def test_nodes_with_another_name_are_found_through_the_mapping():
    found = back_off(
        [[0.5, 0.5], [0.9, 0.1]], ["Husky", "Beagle"], TREE,
        nodes={"Husky": "husky", "Beagle": "beagle"},
    )  # fmt: skip
    assert found.names.tolist() == ["dog", "husky"]


def test_a_label_above_another_holds_its_mass():
    found = back_off([[0.7, 0.3], [0.2, 0.8]], ["dog", "husky"], TREE)
    assert found.names.tolist() == ["dog", "husky"]
    np.testing.assert_allclose(found.mass, [1, 0.8])


def test_a_node_with_two_parents_counts_once():
    edges = [("pet", "dog"), ("hunter", "dog"), ("all", "pet"), ("all", "hunter"), ("all", "cat")]
    found = back_off([[0.6, 0.4], [0.5, 0.5]], ["dog", "cat"], edges, confidence=0.55)
    assert found.names.tolist() == ["dog", "all"]
    np.testing.assert_allclose(found.mass, [0.6, 1])


def test_lengths_of_edges_do_not_change_who_is_above_whom(rng):
    histograms = rng.dirichlet(np.ones(4), size=20)
    plain = back_off(histograms, LABELS, TREE)
    long = back_off(histograms, LABELS, [(*edge, 2.0 + i) for i, edge in enumerate(TREE)])
    assert long.names.tolist() == plain.names.tolist()


@given(st.integers(0, 2**16))
def test_at_confidence_0_the_largest_label_answers(seed):
    scores = integer_scores(seed, 4)
    expected = [LABELS[place] if place >= 0 else None for place in choose_best(scores)]
    assert names(scores, confidence=0) == expected


@given(st.integers(0, 2**16), st.floats(0.5, 0.99), st.integers(2, 7))
def test_from_half_on_the_deepest_node_with_enough_mass_answers(seed, confidence, n_labels):
    rng = np.random.default_rng(seed)
    # A random tree: each node hangs below an earlier one; its leaves are the labels.
    parents = {f"n{i}": f"n{rng.integers(i)}" for i in range(1, 2 * n_labels)}
    labels = [node for node in parents if node not in parents.values()]
    histograms = rng.dirichlet(np.full(len(labels), 0.5), size=4)
    found = back_off(histograms, labels, [(up, down) for down, up in parents.items()],
                     confidence=confidence)  # fmt: skip
    for row, name, mass in zip(histograms, found.names, found.mass, strict=True):
        masses, depths = {}, {}
        for label, share in zip(labels, row, strict=True):
            path = [label]
            while path[-1] in parents:
                path.append(parents[path[-1]])
            for depth, node in enumerate(path[::-1]):
                masses[node] = masses.get(node, 0) + share
                depths[node] = depth
        enough = [node for node in masses if masses[node] > confidence]
        assert name == max(enough, key=depths.get)
        assert mass == pytest.approx(masses[name])


def test_many_samples_are_answered_in_pieces_alike(rng, monkeypatch):
    histograms = rng.dirichlet(np.ones(4), size=50)
    whole = back_off(histograms, LABELS, TREE)
    monkeypatch.setattr(decisions, "_N_ENTRIES", 60)
    pieces = back_off(histograms, LABELS, TREE)
    np.testing.assert_array_equal(pieces.names, whole.names)
    np.testing.assert_allclose(pieces.mass, whole.mass, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": ["husky"]}, "`labels` must name all 4 columns; got 1 names"),
        ({"labels": list("abcd")}, "edges must have some label as a node; it has none of 'a', 'b'"),
        ({"confidence": 1}, "`confidence` must be at least 0 and below 1; got 1"),
        ({"confidence": "high"}, "below 1; got 'high'"),
        (
            {"edges": [("a", "husky"), ("husky", "a")]},
            "its own ancestor; got a ring of 'a', 'husky'",
        ),
        ({"edges": [("husky", "husky")]}, "its own ancestor; got a ring of 'husky'"),
        ({"nodes": {"cat": "feline"}}, "got 'cat' -> 'feline', which is none"),
    ],
)
def test_what_cannot_be_backed_off_is_named(change, words):
    arguments = {"labels": LABELS, "edges": TREE} | change
    with pytest.raises(InvalidInputError, match=words):
        back_off(np.ones((1, 4)), **arguments)


# -- sets of labels ------------------------------------------------------------------


def test_thresholds_decide_what_reaches_them():
    scores = [[0.5, 0.4], [0.49, 0.8], [np.nan, np.nan]]
    found = apply_thresholds(scores, 0.5)
    np.testing.assert_array_equal(found, [[1, 0], [0, 1], [0, 0]])
    assert found.dtype == np.int8
    np.testing.assert_array_equal(apply_thresholds(scores, [0.45, 0.9]), [[1, 0], [1, 0], [0, 0]])
    np.testing.assert_array_equal(apply_thresholds(scores, 0), [[1, 1], [1, 1], [0, 0]])
    assert not apply_thresholds(scores, np.inf).any()


def best_by_force(scores, truth, metric):
    """The best value over every threshold there is, for decisions on one label."""
    values = []
    for threshold in [*np.unique(scores), np.inf]:
        decided = scores >= threshold
        if metric == "accuracy":
            values.append((decided == truth).mean())
        else:
            values.append(2 * (decided & (truth == 1)).sum() / (decided.sum() + truth.sum()))
    return max(values), values


@given(st.integers(0, 2**16), st.sampled_from(["f1", "accuracy"]), st.sampled_from([None, 4]))
def test_fitted_thresholds_are_as_good_as_brute_force(seed, metric, levels):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.01, 1, size=(12, 3))
    if levels:
        scores = np.ceil(scores * levels) / levels
    truth = (rng.uniform(size=scores.shape) < 0.4).astype(int)
    truth[0] = 1
    thresholds = fit_thresholds(scores, truth, metric=metric, min_positives=1)
    decided = apply_thresholds(scores, thresholds)
    for label in range(3):
        best, _ = best_by_force(scores[:, label], truth[:, label], metric)
        hits = (decided[:, label] & truth[:, label]).sum()
        f1 = 2 * hits / (decided[:, label].sum() + truth[:, label].sum())
        right = (decided[:, label] == truth[:, label]).mean()
        assert best == pytest.approx(f1 if metric == "f1" else right)


@given(st.integers(0, 2**16), st.sampled_from(["f1", "accuracy"]), st.sampled_from([1, 100]))
def test_a_row_of_weight_two_counts_like_two_rows(seed, metric, min_positives):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.01, 1, size=(12, 3))
    truth = (rng.uniform(size=scores.shape) < 0.4).astype(int)
    truth[0] = 1
    weight = rng.integers(0, 3, size=12)
    weight[:2] = 1
    rules = {"metric": metric, "min_positives": min_positives}
    found = fit_thresholds(scores, truth, sample_weight=weight, **rules)
    repeated = fit_thresholds(scores.repeat(weight, 0), truth.repeat(weight, 0), **rules)
    np.testing.assert_allclose(found, repeated)


def test_thresholds_lie_halfway_to_the_next_score():
    scores = np.array([[0.9], [0.7], [0.3], [0.1]])
    assert fit_thresholds(scores, [[1], [1], [0], [0]], min_positives=1) == pytest.approx(0.5)
    assert fit_thresholds(scores, [[1], [1], [1], [1]], min_positives=1) == pytest.approx(0.05)
    near = np.array([[0.5], [np.nextafter(0.5, 0)]])
    assert fit_thresholds(near, [[1], [0]], min_positives=1) == 0.5


def test_of_equally_good_thresholds_the_highest_is_kept():
    scores = np.array([[0.9], [0.7], [0.5], [0.3]])
    # F1 is 2/3 with the first alone and with all four.
    assert fit_thresholds(scores, [[1], [0], [0], [1]], min_positives=1) == pytest.approx(0.8)
    never = fit_thresholds(scores, [[0], [1], [0], [0]], metric="accuracy", min_positives=1)
    assert never == np.inf


def test_rare_labels_get_the_threshold_of_all_labels_together(rng):
    scores = rng.uniform(size=(40, 3))
    truth = (scores > [0.2, 0.5, 0.8]).astype(int)
    truth[:, 2] = 0
    truth[scores[:, 2].argmax(), 2] = 1
    found = fit_thresholds(scores, truth, min_positives=5)
    overall = fit_thresholds(scores.reshape(-1, 1), truth.reshape(-1, 1))
    alone = fit_thresholds(scores, truth, min_positives=1)
    assert found[2] == overall[0] != alone[2]
    np.testing.assert_array_equal(found[:2], alone[:2])
    assert fit_thresholds(scores, truth)[2] == overall[0]  # 10 positives by default


def test_fitted_thresholds_beat_one_half_on_shifted_scores(rng):
    truth = (rng.uniform(size=(300, 4)) < 0.2).astype(int)
    scores = np.clip(0.2 + 0.15 * truth + 0.1 * rng.normal(size=truth.shape), 0.01, 1)
    fitted = precision_recall_f1(scores, truth, threshold=fit_thresholds(scores, truth))
    assert fitted.f1_per_class > precision_recall_f1(scores, truth).f1_per_class + 0.2


def test_what_is_not_known_or_not_answered_is_left_out(rng):
    scores = rng.uniform(size=(30, 1))
    truth = (scores + 0.3 * rng.normal(size=scores.shape) > 0.6).astype(int)
    known = rng.uniform(size=scores.shape) < 0.6
    rows = known[:, 0]
    expected = fit_thresholds(scores[rows], truth[rows], min_positives=1)
    assert expected != fit_thresholds(scores, truth, min_positives=1)
    for arguments in (
        {"truth": np.where(known, truth, -1)},
        {"truth": truth, "mask": known},
        {"truth": truth, "scores": np.where(known, scores, np.nan)},
    ):
        found = fit_thresholds(**{"scores": scores, "min_positives": 1} | arguments)
        np.testing.assert_array_equal(found, expected)


def test_bad_thresholds_are_named():
    with pytest.raises(InvalidInputError, match=r"`thresholds` must be one number.*shape \(3,\)"):
        apply_thresholds([[1, 0]], [1, 2, 3])
    with pytest.raises(InvalidInputError, match=r"`thresholds` must not be nan; got nan\."):
        apply_thresholds([[1, 0]], np.nan)
    with pytest.raises(InvalidInputError, match="`metric` must be one of f1, accuracy; got 'f2'"):
        fit_thresholds([[1, 0]], [[1, 0]], metric="f2")
    with pytest.raises(InvalidInputError, match="must have a positive in a row with an answer"):
        fit_thresholds([[1, 0]], [[0, 0]])
    with pytest.raises(InvalidInputError, match="`min_positives` must be at least 1; got 0"):
        fit_thresholds([[1, 0]], [[1, 0]], min_positives=0)
