"""When mistakes cost differently: the tasks, and what a table and a claim say of them."""

import numpy as np
import pytest

from paper import cost_sensitive
from paper.cost_sensitive import (
    Config,
    Rule,
    answers,
    minus_cost,
    share_right,
    tree_steps,
    user_costs,
)
from paper.evidence.tasks import TASKS
from paper.record.judging import Judge
from wassemble.inputs.words.graphs import as_edges
from wassemble.labels import LabelSpace

STEPS = np.array([[0.0, 2, 4], [2, 0, 4], [4, 4, 0]])


@pytest.fixture(scope="module")
def findings():
    return cost_sensitive.run(Config(tasks=("user",), sharpness=(1.0, 5.0), sweeps=(2,)))


def test_a_users_costs_cover_every_class_and_differ_both_ways():
    classes = TASKS["cifar100"]().target
    cost = user_costs(classes)
    baby, man, bus, train, rose = classes.places(["baby", "man", "bus", "train", "rose"])
    assert np.isfinite(cost).all()
    assert (np.diag(cost) == 0).all()
    assert (cost + np.eye(100) > 0).all()
    assert cost[baby, man] == cost[bus, train] == 1
    assert (cost[man, rose], cost[rose, man]) == (12, 4)
    # Twenty groups of five: four other classes of the own group cost 1.
    assert ((cost == 1).sum(axis=1) == 4).all()


def test_steps_are_counted_up_and_down_the_tree():
    edges = as_edges([("animal", "dog"), ("animal", "cat"), ("dog", "husky"), ("dog", "beagle")])
    steps = tree_steps(LabelSpace(["husky", "beagle", "cat"]), edges)
    assert steps.tolist() == [[0, 2, 3], [2, 0, 3], [3, 3, 0]]


def test_measures_see_what_the_answer_makes_of_a_histogram():
    histograms, truth = np.array([[0.25, 0.35, 0.4]]), np.array([0])
    ways = answers(STEPS)
    assert minus_cost(ways["largest"], STEPS).score(histograms, truth, None) == -4
    assert minus_cost(ways["least cost"], STEPS).score(histograms, truth, None) == -2
    assert share_right(ways["least cost"]).score(histograms, np.array([1]), None) == 1


def test_every_rule_stands_with_both_answers(findings):
    rows = findings.tables[0].rows
    kinds = {(row[0].split(" (")[0].split(",")[0], row[1]) for row in rows}
    for name in ("best single model", "geometric mean", "power mean"):
        assert {(name, "largest"), (name, "least cost")} <= kinds
    assert {("arithmetic mean", "largest"), ("barycenter of one label", "least cost")} <= kinds
    assert {("barycenter", "largest"), ("barycenter", "least cost")} <= kinds
    assert len({(row[0], row[1]) for row in rows}) == len(rows)


def test_the_answer_of_least_cost_makes_cheaper_mistakes(findings):
    mistakes = {(row[0], row[1]): row[4] for row in findings.tables[0].rows}
    assert mistakes["geometric mean", "least cost"] < mistakes["geometric mean", "largest"]
    one_label = mistakes["barycenter of one label", "least cost"]
    assert one_label < mistakes["arithmetic mean", "largest"]


@pytest.mark.parametrize("is_cheaper", [True, False])
def test_a_claim_is_judged_against_the_means_with_the_cheapest_plain_rule_beside(is_cheaper):
    truth = np.tile([0, 1, 2], 20)
    wrong = (truth + 1) % 3
    task = cost_sensitive.CostTask(
        "task", {}, np.tile(truth, 2), np.repeat([False, True], 60), STEPS, {}
    )
    good, bad = (truth, wrong) if is_cheaper else (wrong, truth)
    rules = [
        Rule("arithmetic mean", "largest", bad, bad),
        Rule("geometric mean", "least cost", bad, bad),
        Rule("barycenter", "largest", good, good),
        Rule("barycenter, labels shuffled", "largest", truth, truth),
    ]
    judge = Judge(minus_cost(lambda places: places, STEPS), truth)
    claim = cost_sensitive._claim(task, rules, judge)
    assert claim.held is is_cheaper
    assert ("-" in claim.found.rpartition(";")[2]) is not is_cheaper  # saved beside the plain rule
    assert "shuffled" not in claim.found
