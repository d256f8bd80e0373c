"""Laws of hiding labels and of giving them their mass back."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from paper.expansion import (
    Config,
    Expansion,
    Grid,
    Rules,
    costs_nothing,
    hide_labels,
    kernel_to_hidden,
    load_images,
    nearest_known,
    ranks,
    run,
    strike_classes,
)
from paper.record.findings import Figure
from wassemble.ensemble.learning.temperature import temper
from wassemble.inputs import Predictions
from wassemble.labels import LabelSpace

SMALL = Config(
    n_images=(40, 120),
    n_pairs=(200, 600),
    n_contexts=8,
    n_neighbors=5,
    seeds=(0, 1),
    grid=Grid(orders=(0.5,), given=(0.1,), kernel_given=(1.0,), epsilons=(0.2,), exponents=(0.9,)),
)


def test_the_right_share_of_labels_is_hidden_the_same_or_others(rng):
    own = hide_labels(3, 50, 0.2, alike=False, rng=rng)
    same = hide_labels(3, 50, 0.2, alike=True, rng=rng)
    assert (own.sum(axis=1) == 40).all()
    assert (same.sum(axis=1) == 40).all()
    assert (same == same[0]).all()
    assert not (own == own[0]).all()


def test_struck_classes_let_the_next_ones_move_up():
    is_known = np.array([True, False, True, True, False, True])
    best = np.array([[1, 0, 4, 5, 2], [0, 2, 3, 5, 1]])
    assert strike_classes(best, is_known).tolist() == [[0, 5, 2, -1, -1], [0, 2, 3, 5, -1]]


def test_a_network_scores_no_class_that_it_does_not_know():
    task = load_images(Config(n_images=(20, 40), n_neighbors=5), alike=False, seed=0)
    for model, known in zip(task.models, task.is_known, strict=True):
        assert list(model.labels) == [task.target[int(i)] for i in np.flatnonzero(known)]
        assert np.nansum(model.scores, axis=1).max() <= 1 + 1e-5


def test_hidden_labels_take_from_their_nearest_known_label():
    similarity = sp.csr_array([[1.0, 0.6, 0.2], [0.6, 1.0, 0.5], [0.2, 0.5, 1.0]])
    is_known = np.array([True, False, True])
    assert kernel_to_hidden(similarity, is_known).toarray().tolist() == [[0, 0.6, 0], [0, 0.5, 0]]
    assert nearest_known(similarity, is_known).toarray().tolist() == [[0, 1, 0], [0, 0, 0]]


def test_ties_rank_in_the_middle():
    scores = np.array([[0.5, 0.2, 0.2, 0.2], [0.1, 0.9, 0.0, 0.0]])
    assert ranks(scores, np.array([1, 1])).tolist() == [3.0, 1.0]


@pytest.fixture
def two_models() -> Expansion:
    """Two models without "cub", which is much like "bear"; it is the truth of each sample."""
    target = LabelSpace(["bear", "cub", "car"])
    models = [
        Predictions(name, ["x", "y"], ["bear", "car"], scores, kind="multiclass")
        for name, scores in (("a", [[0.8, 0.2]] * 2), ("b", [[0.6, 0.4]] * 2))
    ]
    similarity = sp.csr_array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.1], [0.1, 0.1, 1.0]])
    return Expansion(
        models,
        models,
        target,
        np.array([[True, False, True]] * 2),
        similarity,
        similarity,
        truth=np.array([1, 1]),
        row=np.array([0, 1]),
        is_test=np.array([False, True]),
        groups=np.array([0, 1]),
    )


def test_transport_gives_a_hidden_label_what_its_neighbour_would_and_no_mean_gives_it_any(
    two_models,
):
    found = Rules(two_models, replace(SMALL.grid, given=(0.3,))).uncalibrated()
    cub = {name: scores[1, 1] for name, scores in found.items()}
    assert cub["mean of those who know"] == cub["geometric mean of those who know"] == 0
    assert cub["spread evenly"] == pytest.approx(0.3 / 1.3)
    # The bears hold 0.7 on average, and pass 0.3 of each 1.3 on.
    assert cub["nearest neighbour"] == pytest.approx(0.7 * 0.3 / 1.3)
    assert cub["barycenter"] == pytest.approx(cub["nearest neighbour"], rel=0.1)
    for scores in found.values():
        assert scores.sum(axis=1) == pytest.approx(1)


def test_how_sure_a_rule_is_gains_it_nothing(two_models):
    scores = np.array([[0.3, 0.6, 0.1]] * 2)
    task = replace(
        two_models,
        truth=np.repeat([0, 1, 2], [3, 6, 1]),  # as often as the scores say
        row=np.zeros(10, dtype=int),
        is_test=np.zeros(10, dtype=bool),
        groups=np.arange(10),
    )
    rules = Rules(task, SMALL.grid)
    for sharper in (1.0, 0.5, 2.0):
        found = rules.calibrate(temper(scores, sharper), f"sharper by {sharper}")
        np.testing.assert_allclose(found, scores)
    assert rules.knobs["sharper by 0.5"] == "temperature 2"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.001, 0.01, True),
        (-0.004, 0.002, True),  # a loss within the margin is none
        (-0.014, -0.006, None),
        (-0.02, 0.02, None),
        (-0.03, -0.011, False),
    ],
)
def test_a_loss_on_all_labels_is_a_cost_beyond_a_margin_and_open_where_it_may_be(
    low, high, expected
):
    assert costs_nothing(Figure((low + high) / 2, low, high, is_gain=True)) is expected


def test_on_classes_that_every_network_lacks_transport_beats_spread_and_neighbour():
    findings = run(SMALL)
    table = findings.tables[2]
    assert table.title == "Classes, the same hidden from each model"
    likelihood = {row[0]: row[5].value for row in table.rows}
    assert likelihood["barycenter"] > likelihood["spread evenly"]
    assert likelihood["barycenter"] > likelihood["nearest neighbour"]
    assert max(likelihood, key=likelihood.get) == "nothing hidden"
    ours = [claim for claim in findings.claims if claim.source == "ours"]
    assert len(ours) == 4  # of costs measured by neighbours, one for each task
    assert "Of the paper's 8 claims" in findings.verdict or "8 of the paper's" in findings.verdict
