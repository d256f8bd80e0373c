"""What was not reported is not zero: the rules for it."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from wassemble import InvalidInputError, Predictions
from wassemble.ensemble.completion import RULES, complete_scores, describe_rule

nan = np.nan


def make(scores, **options):
    scores = np.array(scores, dtype=float)
    labels = [f"l{i}" for i in range(scores.shape[1])]
    return Predictions("m", [f"s{i}" for i in range(len(scores))], labels, scores, **options)


def complete(scores, rule, *, hard_confidence=0.9, **options):
    return complete_scores(make(scores, **options), rule, hard_confidence=hard_confidence)


def test_spreading_gives_unreported_labels_equal_parts_of_what_is_left():
    found = complete([[0.6, 0.2, nan, nan]], "spread")
    np.testing.assert_allclose(found, [[0.6, 0.2, 0.1, 0.1]])


def test_renormalizing_divides_what_was_reported():
    np.testing.assert_allclose(complete([[0.6, 0.2, nan]], "renormalize"), [[0.75, 0.25, 0]])


def test_dropping_leaves_the_rest_out():
    np.testing.assert_allclose(complete([[0.6, 0.2, nan]], "drop"), [[0.6, 0.2, 0]])


def test_a_reported_zero_stays_zero():
    np.testing.assert_allclose(complete([[0.8, 0.0, nan]], "spread"), [[0.8, 0, 0.2]])


def test_a_hard_label_has_the_confidence_that_was_given():
    found = complete([[1, nan, nan]], "spread", is_hard=True, hard_confidence=0.8)
    np.testing.assert_allclose(found, [[0.8, 0.1, 0.1]])


def test_a_list_that_names_every_label_it_has_is_divided_by_its_sum():
    found = complete([[0.6, 0.3], [nan, 0.5]], "spread")
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3], [0.5, 0.5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_rounding_leaves_of_a_row_is_not_spread(dtype):
    scores = np.random.default_rng(0).random((50, 9))
    scores[:, 7:] = nan
    rows = make(scores, kind="multilabel").replace(scores=scores.astype(dtype)).normalized()
    sums = np.nansum(rows.scores, axis=1, dtype=np.float64)
    assert (sums < 1).any()
    found = complete_scores(rows, "spread", hard_confidence=0.9)
    np.testing.assert_array_equal(found[:, 7:], 0)


def test_what_a_model_is_hardly_unsure_of_is_spread():
    found = complete([[1 - 2e-12, nan, nan]], "spread")
    np.testing.assert_allclose(found[0, 1:], 1e-12, rtol=1e-3)


def test_an_abstention_is_all_zero():
    for rule in RULES:
        np.testing.assert_array_equal(
            complete([[nan, nan], [0.5, 0.5]], rule), [[0, 0], [0.5, 0.5]]
        )


def test_an_unreported_multilabel_score_is_half_of_the_smallest_reported():
    found = complete([[0.9, 0.4, nan]], "spread", kind="multilabel")
    np.testing.assert_allclose(found, [[0.9, 0.4, 0.2]])
    found = complete([[0.9, 0.4, nan]], "drop", kind="multilabel")
    np.testing.assert_allclose(found, [[0.9, 0.4, 0]])


def test_multilabel_scores_cannot_be_renormalized():
    with pytest.raises(InvalidInputError, match="multi-label scores of 'm'"):
        complete([[0.9, nan]], "renormalize", kind="multilabel")


@pytest.mark.parametrize("row", [[0.9, 0.4], [0.9, 0.4, nan]])
def test_declared_histograms_must_not_have_more_mass_than_1(row):
    with pytest.raises(
        InvalidInputError, match=r"must sum to 1 at most; got .* at sample 's0' of 'm'"
    ):
        complete([row], "spread", kind="multiclass")


@given(
    hnp.arrays(float, (3, 5), elements=st.floats(0.01, 1)),
    hnp.arrays(bool, (3, 5)),
    st.sampled_from(["spread", "renormalize"]),
)
def test_completed_histograms_have_mass_1_and_keep_the_order_of_what_was_reported(
    scores, hidden, rule
):
    scores = scores / scores.sum(axis=1, keepdims=True)
    hidden[:, 0] = False
    found = complete(np.where(hidden, nan, scores), rule)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    for row, seen in enumerate(~hidden):
        assert (np.argsort(found[row, seen]) == np.argsort(scores[row, seen])).all()
        if rule == "spread":
            # What was not reported is at most what was; if that binds, all are scaled alike.
            kept, told = found[row, seen], scores[row, seen]
            assert (kept >= told * (1 - 1e-9)).all()
            np.testing.assert_allclose(kept * told.sum(), told * kept.sum())
            assert found[row].max() <= kept.max() * (1 + 1e-9)


def test_single_precision_stays():
    given = make([[0.6, 0.2, nan]]).replace(scores=np.array([[0.6, 0.2, nan]], dtype=np.float32))
    for rule in RULES:
        assert complete_scores(given, rule, hard_confidence=0.9).dtype == np.float32


def test_every_rule_has_words():
    assert all(describe_rule(rule, "multiclass") for rule in RULES)
    assert all(describe_rule(rule, "multilabel") for rule in ("spread", "drop"))
