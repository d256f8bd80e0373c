"""What pages show is what was computed, in words and in plain data."""

import json
import re

import pytest
from web.explorer.small import TAG, ask, from_vectors, make_case, scores

from wassemble.web.explorer.answers import find_flows
from wassemble.web.explorer.present import (
    draw_ribbons,
    present_answer,
    present_knobs,
    present_steps,
    settle,
)
from wassemble.web.explorer.view import View

TRUTH = {"s0": ("cat",), "s1": ("dog",), "s2": ("okapi",)}


@pytest.fixture(scope="module")
def case():
    names = {"cat": "house cat"}
    return make_case(similarity=from_vectors(), truth=TRUTH, names=names)


def show(case, row=0, **view):
    return present_answer(case, ask(case, row, **view), View(**view))


def test_bars_are_the_largest_scores(case):
    answer = ask(case)
    for panel, line in zip(show(case)["panels"], answer.lines, strict=True):
        assert [row["label"] for row in panel["rows"]] == [name for name, _ in line.top(7)]
        percents = [row["percent"] for row in panel["rows"]]
        assert percents == sorted(percents, reverse=True)
        assert 0 < max(percents) <= 100


def test_the_verdict_is_right_wrong_or_nothing(case):
    for row, (sample, true) in enumerate(TRUTH.items()):
        for chip, line in zip(show(case, row)["chips"], ask(case, row).lines, strict=False):
            best = line.top(1)[0][0]
            if chip["title"] in ("consensus", "plain mean"):
                assert chip["verdict"] == ("right" if best in true else "wrong"), sample
    assert [chip["verdict"] for chip in show(case, 3)["chips"]] == [""] * 3
    assert show(case, 0)["truth"] == [{"label": "cat", "name": "house cat"}]


def test_without_truth_the_third_chip_is_the_surest_model():
    case = make_case(similarity=from_vectors())
    best = max(case.table.models, key=lambda model: model.scores[0].max())
    assert show(case)["chips"][2]["title"] == f"surest model, {best.model}"


def test_labels_go_by_the_names_of_people(case):
    shown = show(case, label="cat")
    assert shown["label"]["name"] == "house cat"
    names = {row["label"]: row["name"] for panel in shown["panels"] for row in panel["rows"]}
    assert names["cat"] == "house cat"
    assert names["dog"] == "dog"


@pytest.mark.parametrize("model", ["", "model 1"])
def test_flows_stand_beside_the_bar_that_was_chosen(case, model):
    shown = show(case, label="cat", model=model)
    chosen = [panel["name"] for panel in shown["panels"] if panel["is_open"]]
    assert chosen == [model or "consensus"]
    flows = find_flows(ask(case), "cat", model)
    assert [row["mass"] for row in shown["flows"]["rows"]] == [f"{f.mass:.3g}" for f in flows.flows]
    assert len(shown["flows"]["ribbons"]) == len(flows.flows)
    assert show(case)["flows"] is None


def test_ribbons_fill_the_whole_height_of_the_stack():
    numbers = [
        [float(number) for number in re.findall(r"-?[\d.]+", path)]
        for path in draw_ribbons([3.0, 1.0, 0.5])
    ]
    tops, ends = [path[7] for path in numbers], [path[9] for path in numbers]
    assert tops[0] == 0
    assert tops[1:] == pytest.approx(ends[:-1], rel=1e-4)
    assert ends[-1] == pytest.approx(30, rel=1e-4)
    thickness = [end - top for top, end in zip(tops, ends, strict=True)]
    assert thickness == pytest.approx([20, 20 / 3, 10 / 3], rel=1e-4)


def test_what_is_shown_is_json(case):
    shown = show(case, example="x", sample="s0", label=TAG)
    again = json.loads(json.dumps(shown, allow_nan=False))
    assert again["query"].startswith("example=x&sample=s0&label=")
    assert again["panels"][0]["rows"][0]["href"].startswith("/explorer/view?example=x")


def test_details_say_how_the_sweeps_ended(case):
    assert show(case)["status"].startswith("Converged after")
    stopped = show(case, epsilon=1e-4, mass="balanced")["status"]
    assert "Not converged: stopped after 300 sweeps" in stopped


def test_sliders_that_do_nothing_say_why(case):
    kept = present_knobs(case, View(mass="balanced"))["reasons"]
    assert kept["mass_penalty"]
    assert not kept["epsilon"]
    by_name = make_case()
    assert present_knobs(by_name, View(mass="balanced"))["reasons"]["epsilon"]
    moved = present_knobs(by_name, View())["reasons"]
    assert not moved["epsilon"]
    assert not moved["mass_penalty"]
    assert present_knobs(make_case(scores(), from_vectors()), View())["reasons"]["mass"]


def test_a_view_that_says_what_is_usual_says_nothing(case):
    usual = View(epsilon=case.epsilon, mass="unbalanced", mass_penalty=2.0, weight=(1.0,) * 3)
    assert settle(case, usual) == View()
    told = View(epsilon=0.7, mass="balanced", mass_penalty=3.0, weight=(1.0, 1.0, 2.0))
    assert settle(case, told) == told


def test_steps_lead_through_the_list(case):
    order, row = [], present_steps(case, View(), 0)
    while row["before"]:
        row = present_steps(case, View(), int(row["before"][-1]))
    while True:
        order.append(row["rank"])
        if not row["after"]:
            break
        row = present_steps(case, View(), int(row["after"][-1]))
    assert order == [1, 2, 3, 4]
