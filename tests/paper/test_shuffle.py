"""Robustness to semantic shuffling: what is shuffled, and what is made of it."""

import numpy as np
import pytest

from paper import shuffle
from paper.cost_sensitive import histograms_of
from paper.shuffle import Config, cifar100


@pytest.fixture(scope="module")
def case():
    return cifar100("tree", Config(sharpness=(1.0,), sweeps=2))


def test_stars_of_one_change_nothing(case):
    shuffled = case.shuffle(1, n_shuffles=3, seed=0)
    assert len(shuffled.truth) == len(case.truth)
    for name, scores in histograms_of(case.models).items():
        assert np.array_equal(shuffled.models[name], scores[shuffled.samples])


def test_shuffles_keep_the_scores_and_differ_by_model_and_turn(case):
    shuffled = case.shuffle(5, n_shuffles=2, seed=0)
    clean = histograms_of(case.models)
    for name, scores in shuffled.models.items():
        found, expected = (
            np.sort(each, axis=1) for each in (scores, clean[name][shuffled.samples])
        )
        np.testing.assert_allclose(found, expected, atol=1e-6)
    n_seen = int((~case.is_test).sum())
    first, second = (
        shuffled.models["densenet-bc-100"][rows]
        for rows in (slice(0, n_seen), slice(n_seen, 2 * n_seen))
    )
    assert np.array_equal(shuffled.samples[:n_seen], shuffled.samples[n_seen : 2 * n_seen])
    assert not np.array_equal(first, second)
    again = case.shuffle(5, n_shuffles=2, seed=0)
    assert np.array_equal(again.models["lenet-5"], shuffled.models["lenet-5"])


def test_models_that_are_shuffled_alike_send_a_common_best_label_to_the_same_place(case):
    clean = np.stack([each.argmax(axis=1) for each in histograms_of(case.models).values()])

    def same(*, alike):
        shuffled = case.shuffle(5, n_shuffles=1, seed=0, alike=alike)
        best = np.stack([each.argmax(axis=1) for each in shuffled.models.values()])
        agree = (clean[0] == clean)[:, shuffled.samples].all(axis=0)
        return (best[0] == best).all(axis=0)[agree].mean()

    assert same(alike=True) == 1
    assert same(alike=False) < 0.2


def test_the_mean_through_k_is_the_barycenter_of_one_model(case):
    stack = case.shuffle(2, n_shuffles=1, seed=0).stack(True)[:, :20]
    mean = stack.mean(axis=0)
    kernel = np.exp(-case.cost / 0.9141)  # the tree's own epsilon
    expected = (mean / kernel.sum(axis=1)) @ kernel
    found = case.controls["arithmetic mean through K"](stack, 1.0)
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_run_tells_what_the_shuffles_cost_and_judges_at_the_largest_size():
    config = Config(cases=("tree",), sizes=(1, 5), n_shuffles=1, sharpness=(0.7, 1.0))
    steps = []
    findings = shuffle.run(config, lambda *step: steps.append(step))
    by_size, at_largest, alike = findings.tables
    accuracy = {row[0]: row[1:] for row in by_size.rows}
    assert accuracy["arithmetic mean"][0] == pytest.approx(0.781, abs=0.01)
    assert accuracy["arithmetic mean"][1] < 0.3
    at_five = {row[0]: row[1].value for row in at_largest.rows}
    assert {name: at_five[name] for name in accuracy} == {n: a[-1] for n, a in accuracy.items()}
    assert {f"{name}, least cost" for name in ("power mean", "barycenter, tuned")} <= set(at_five)
    assert ["accuracy" in claim.statement for claim in findings.claims] == [True, False]
    assert all(float(claim.power) > 0 for claim in findings.claims)
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert alike.columns == ["rule", "accuracy", "gain"]
    names = ["cifar100-tree-accuracy", "cifar100-tree-cost"]
    assert [plot.name for plot in findings.plots] == names
