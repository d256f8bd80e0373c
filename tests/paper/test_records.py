"""Records: run once, written whole, made again only when something changed."""

import json
import re
import subprocess
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from pinned_findings import differences

from paper.record import records
from paper.record.catalogue import EXPERIMENTS, Experiment, find_experiment
from paper.record.findings import (
    Claim,
    Figure,
    Findings,
    Plot,
    Table,
    fill,
    follow,
    ticker,
    to_markdown,
)
from paper.record.page import read_records, to_page, write_html
from paper.record.records import configure, find_commit, read_record, reproduce
from wassemble.errors import InvalidInputError


@dataclass(frozen=True)
class Config:
    epsilon: float = 0.3
    sweeps: tuple[int, ...] = (1, 5)
    name: str = "x"


@pytest.fixture
def experiment(monkeypatch):
    """An experiment whose runs are counted."""
    runs = []

    def run(config, progress):
        runs.append(config)
        return Findings(
            text="What was done.",
            tables=[
                Table(
                    "Accuracy",
                    ["rule", "n", "test", "gain"],
                    [
                        ["mean", 1200, Figure(0.5, 0.4, 0.6), None],
                        ["other <b>", 7, np.float32(0.25), Figure(0.1, 0, 0.2, is_gain=True)],
                    ],
                    digits=2,
                    note="A note.",
                )
            ],
            plots=[Plot("curve", "A curve", "x", "y", {"a": [(1, config.epsilon), (2, 3)]})],
            claims=[Claim("||K|| grows", "section 4", np.bool_(False), "it does not")],
            verdict="The paper's claim fails here: it is flat.",
            difference="other data.",
        )

    module = SimpleNamespace(Config=Config, run=run)
    monkeypatch.setattr(Experiment, "load", lambda self: module)
    return SimpleNamespace(runs=runs, it=EXPERIMENTS["attributes"])


def test_what_has_a_record_is_not_run_again(experiment, tmp_path):
    first = reproduce(experiment.it, tmp_path)
    second = reproduce(experiment.it, tmp_path)
    assert first.pop("is_new") is True
    assert second.pop("is_new") is False
    assert first == second
    assert len(experiment.runs) == 1
    reproduce(experiment.it, tmp_path, again=True)
    assert len(experiment.runs) == 2


def test_other_settings_or_other_code_run_again(experiment, tmp_path, monkeypatch):
    reproduce(experiment.it, tmp_path)
    changed = reproduce(experiment.it, tmp_path, settings={"epsilon": 1})
    assert changed["config"]["epsilon"] == 1.0
    assert changed["command"] == "python -m paper reproduce attributes --set epsilon=1"
    monkeypatch.setattr(records, "fingerprint", lambda experiment, config: "newer code")
    reproduce(experiment.it, tmp_path, settings={"epsilon": 1})
    assert len(experiment.runs) == 3


def test_a_record_says_what_it_was_made_with_and_is_not_made_again_for_that(
    experiment, tmp_path, monkeypatch
):
    first = reproduce(experiment.it, tmp_path)
    assert set(first["made_with"]) == {"commit", "date", "native"}
    assert re.fullmatch(r"[0-9a-f]{7,}\+?|unknown", first["made_with"]["commit"])
    other = {"commit": "abc1234+", "date": "2020-01-02", "native": None}
    monkeypatch.setattr(records, "_tell_circumstances", lambda: other)
    assert reproduce(experiment.it, tmp_path)["is_new"] is False
    page = to_markdown(reproduce(experiment.it, tmp_path, again=True))
    assert "at commit abc1234+ on 2020-01-02, with NumPy's sweeps." in page
    old = {key: value for key, value in first.items() if key != "made_with"}
    assert to_markdown(old).rstrip().endswith(" s.")


def test_a_commit_is_marked_where_files_differ_and_unknown_outside_a_clone(tmp_path):
    def git(*words):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    assert find_commit(tmp_path) == "unknown"
    git("init")
    (tmp_path / "a.txt").write_text("1")
    git("add", "a.txt")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    git(*who, "commit", "-m", "first")
    clean = find_commit(tmp_path)
    assert re.fullmatch("[0-9a-f]{7,}", clean)
    (tmp_path / "a.txt").write_text("2")
    assert find_commit(tmp_path) == f"{clean}+"


def test_an_interrupted_run_leaves_no_record(experiment, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "to_markdown", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(experiment.it, tmp_path)
    assert read_record("attributes", tmp_path) is None


def test_a_page_shows_figures_gains_and_claims(experiment, tmp_path):
    page = to_markdown(reproduce(experiment.it, tmp_path))
    assert page == (tmp_path / "attributes.md").read_text()
    assert "| mean      | 1,200 | 0.50 [0.40, 0.60] |" in page
    assert "+0.10 [+0.00, +0.20]" in page
    assert "![A curve](attributes-curve.svg)" in page
    assert "**not held**" in page
    assert "**The paper's claim fails here: it is flat.**" in page
    assert "could have seen" in page
    assert "Why our figures are not the paper's: other data." in page
    assert (tmp_path / "attributes-curve.svg").read_text().startswith("<?xml")


def test_plots_are_the_same_each_time(experiment, tmp_path):
    reproduce(experiment.it, tmp_path / "a")
    reproduce(experiment.it, tmp_path / "b")
    a, b = (tmp_path / side / "attributes-curve.svg" for side in "ab")
    assert a.read_bytes() == b.read_bytes()


def test_all_records_are_one_page(experiment, tmp_path):
    reproduce(experiment.it, tmp_path)
    reproduce(EXPERIMENTS["timing"], tmp_path)
    found = read_records(tmp_path)
    assert [record["name"] for record in found] == ["attributes", "timing"]
    page = to_page(found, folder="results/")
    assert "[Animals from attributes](#animals-from-attributes)" in page
    assert "0, 1, 0" in page
    assert "(results/timing-curve.svg)" in page
    html = write_html(found, tmp_path).read_text()
    assert '<h2 id="animals-from-attributes">' in html
    assert "other &lt;b&gt;" in html
    assert "<td>||K|| grows</td>" in html
    assert html.count("data:image/svg+xml;base64,") == 2
    assert "http" not in html


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "timing.json").write_text('{"made_by": "x"}')
    with pytest.raises(InvalidInputError, match=r"timing\.json must be a record"):
        read_record("timing", tmp_path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilo": 1}, "a setting of 'it' must be one of epsilon, sweeps, name; got 'epsilo'"),
        ({"epsilon": "much"}, "it: epsilon must be like 0.3; got 'much'"),
        ({"epsilon": True}, "it: epsilon must be like 0.3; got True"),
        ({"sweeps": [1, 2.5]}, "it: sweeps must be like 1; got 2.5"),
    ],
)
def test_wrong_settings_are_named(settings, words):
    with pytest.raises(InvalidInputError) as error:
        configure(Config(), settings, "it")
    assert words in str(error.value)


def test_settings_take_the_type_of_what_they_replace():
    found = configure(Config(), {"epsilon": 2, "sweeps": 3, "name": "y"}, "it")
    assert found == Config(2.0, (3,), "y")


def test_cells_find_their_columns_by_name():
    rows = [{"rule": "mean", "test": 0.5, "paper": None}, {"paper": 0.7, "rule": "a", "test": 0.25}]
    table = Table.of("Accuracy", rows, {"rule": 0, "test": 1}, "note")
    named = ["rule", "test", "paper"], [["mean", 0.5, None], ["a", 0.25, 0.7]]
    assert table == Table("Accuracy", *named, digits=[0, 1, 3], note="note")
    assert Table.of("", rows, 4).digits == 4
    with pytest.raises(KeyError, match="paper"):
        Table.of("", [rows[0], {"rule": "b", "test": 0.5}])


def test_a_text_has_the_settings_in_it_unless_told_otherwise():
    config = SimpleNamespace(epsilon=0.3, n_images=100)
    text = fill("{n_images} images, epsilon {epsilon:g}, {n_words} words", config, n_words=5)
    assert text == "100 images, epsilon 0.3, 5 words"
    assert fill("{n_images}", config, n_images=7) == "7"


def test_steps_are_counted_when_they_are_done():
    told = []
    items = follow("abc", lambda *each: told.append(each))
    assert next(items) == "a"
    assert told == []
    assert [*items] == ["b", "c"]
    assert told == [(1, 3), (2, 3), (3, 3)]
    ticker(None, 3)()  # nobody listens


def test_differences_name_the_place():
    pinned = {"tables": [{"rows": [["a", 0.5, None]]}], "text": "x"}
    assert differences(json.loads(json.dumps(pinned)), pinned) == []
    near = {"tables": [{"rows": [["a", 0.5 + 1e-9, None]]}], "text": "x"}
    assert differences(near, pinned) == []
    other = {"tables": [{"rows": [["a", 0.6, None]]}], "more": 1}
    assert differences(other, pinned) == [
        "/tables[0]/rows[0][1]: 0.6, pinned 0.5",
        "/text: None, pinned 'x'",
        "/more: 1, pinned None",
    ]


def test_an_unknown_experiment_is_named():
    with pytest.raises(
        InvalidInputError, match=r"must be one of caption-attributes, .*; got 'dragons'"
    ):
        find_experiment("dragons")
