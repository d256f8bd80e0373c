"""Figures hold what was computed, and names as text."""

import json

import plotly.graph_objects as go
import pytest
from web.explorer.small import TAG, ask, from_vectors, histograms, make_case

from wassemble.web.explorer.answers import Flows, find_flows, find_neighbors
from wassemble.web.explorer.plots import N_TOP, draw_answer, draw_flows, draw_neighbors
from wassemble.web.explorer.present import present
from wassemble.web.explorer.view import View

MODELS = ["model 0", "model 1", "model 2"]


@pytest.fixture(scope="module")
def case():
    return make_case(similarity=from_vectors())


@pytest.fixture(scope="module")
def answer(case):
    return ask(case, epsilon=0.3, mass="unbalanced")


def test_bars_are_the_largest_scores(answer):
    figure = draw_answer(answer, "cat", "")
    assert len(figure["data"]) == len(answer.lines) == 6
    for trace, line in zip(figure["data"], answer.lines, strict=True):
        top = line.top(N_TOP)
        assert list(trace["x"]) == [score for _, score in top]
        whose = line.name if line.role == "model" else ""
        assert trace["customdata"] == [[name, whose] for name, _ in top]


@pytest.mark.parametrize("width", ["wide", "narrow"])
@pytest.mark.parametrize("n_models", [1, 2, 9])
def test_plotly_takes_every_layout(width, n_models):
    answer = ask(make_case(histograms(n_models), from_vectors()))
    figure = draw_answer(answer, "cat", "")
    made = go.Figure(figure["data"], figure["layouts"][width])
    for number in range(1, n_models + 4):
        axis = made.layout["yaxis" if number == 1 else f"yaxis{number}"]
        assert axis.domain is not None
        assert len(axis.ticktext) == len(figure["data"][number - 1]["x"])


@pytest.mark.parametrize("label", ["cat", TAG])
def test_links_into_a_label_sum_to_its_mass(answer, label):
    flows = find_flows(answer, label)
    sankey = draw_flows(flows, MODELS)["data"][0]
    go.Figure([sankey])
    link = sankey["link"]
    into = [v for v, end in zip(link["value"], link["target"], strict=True) if end == 0]
    place = answer.plan.target.position(label)
    assert sum(into) == pytest.approx(answer.consensus.scores[place], rel=1e-9)
    # What comes to a model's node leaves it again.
    middles = {s for s, e in zip(link["source"], link["target"], strict=True) if e == 0}
    for node in middles & set(link["target"]):
        came = sum(v for v, e in zip(link["value"], link["target"], strict=True) if e == node)
        left = sum(v for v, s in zip(link["value"], link["source"], strict=True) if s == node)
        assert came == pytest.approx(left)


def test_links_from_a_models_label_sum_to_what_it_sent(answer):
    flows = find_flows(answer, "dog", "model 1")
    sankey = draw_flows(flows, MODELS)["data"][0]
    assert sum(sankey["link"]["value"]) == pytest.approx(flows.mass)
    assert ["cat", ""] in [custom[:2] for custom in sankey["link"]["customdata"]]


def test_a_label_without_flows_has_an_empty_picture():
    sankey = draw_flows(Flows("", "cat", 0.0, ()), MODELS)["data"][0]
    assert list(sankey["link"]["value"]) == []


def test_neighbours_are_bars(case, answer):
    neighbors = find_neighbors(case, answer, "cat")
    figure = draw_neighbors(neighbors)
    go.Figure(figure["data"], figure["layout"])
    assert list(figure["data"][0]["x"]) == [each.similarity for each in neighbors]
    assert draw_neighbors([])["data"][0]["x"] == []


def test_what_plotly_shows_has_no_tags(case, answer):
    shown = present(case, answer, View(label=TAG)).model_dump()
    texts = []

    def walk(value, key=""):
        if isinstance(value, dict):
            for name, each in value.items():
                walk(each, name)
        elif isinstance(value, list | tuple):
            for each in value:
                walk(each, key)
        elif isinstance(value, str) and key != "customdata":  # read by the script alone
            texts.append(value)

    walk(shown["plots"])
    assert not [text for text in texts if "<s" in text]
    assert any("&lt;script&gt;" in text for text in texts)
    # Of customdata, Plotly shows the third entry of flows.
    for part in ("node", "link"):
        assert all("<" not in c[2] for c in shown["plots"]["flows"]["data"][0][part]["customdata"])


def test_what_is_shown_is_json(case, answer):
    shown = present(case, answer, View(example="x", sample="s0"))
    again = json.loads(json.dumps(shown.model_dump(), allow_nan=False))
    assert again["query"] == "example=x&sample=s0"
    assert again["label"] == answer.consensus.top(1)[0][0]
    assert {row[0]["text"] for row in again["rules"]["rows"]} >= {"consensus", *MODELS}
    assert again["flows"]["rows"][0][0]["href"].startswith("/explorer/view?example=x")


def test_words_say_whether_a_plain_mean_would_do(case):
    same = [m.replace(scores=m.scores * 0 + [0.96, 0.01, 0.01, 0.01, 0.01]) for m in histograms()]
    alike = make_case(same, from_vectors())
    shown = present(alike, ask(alike), View())
    assert "a plain mean gives the same answer" in shown.summary
    assert "Converged after" in shown.summary
    stopped = present(case, ask(case, epsilon=1e-4, mass="balanced"), View())
    assert "Not converged: stopped after 300 sweeps" in stopped.summary


def test_sliders_that_do_nothing_say_why(case):
    kept = present(case, ask(case, mass="balanced"), View()).controls
    assert kept.mass_penalty.reason
    assert not kept.epsilon.reason
    by_name = make_case()
    assert present(by_name, ask(by_name, mass="balanced"), View()).controls.epsilon.reason
    moved = present(by_name, ask(by_name, mass="unbalanced"), View()).controls
    assert not moved.epsilon.reason
    assert not moved.mass_penalty.reason
