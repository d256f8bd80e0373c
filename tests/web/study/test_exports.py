import csv
import io
import json
import shlex

import pytest
from web.study.people import SYSTEMS, make_items
from web.study.test_results import ONE, make_snapshot, random_study, said

from wassemble.cli import main
from wassemble.web.study.answers import Snapshot, fails_check
from wassemble.web.study.exports import (
    jury_command,
    to_csv,
    to_json,
    to_verdicts,
    verdicts_name,
)
from wassemble.web.study.questions import PAPER
from wassemble.web.study.results import compute_results


def read(snapshot):
    return list(csv.DictReader(io.StringIO(to_csv(snapshot), newline="")))


def test_the_table_has_a_row_for_each_rater_item_and_system():
    study = random_study(3)
    rows = read(study)
    assert len(rows) == 3 * (6 * 3 + 2)
    assert len({(row["rater"], row["item"], row["system"]) for row in rows}) == len(rows)
    for row in rows:
        rater = study.raters[int(row["rater"]) - 1]
        [place] = [p for p, item in enumerate(study.items) if item.id == row["item"]]
        item, answer = study.items[place], rater.complete[place]
        choice = item.choice_of(row["system"])
        [shown] = [each for each in rater.shown if each.item == place]
        assert row["caption"] == item.captions[row["system"]]
        assert "ABC".index(row["letter"]) == shown.order.index(choice)
        assert int(row["detail"]) == answer.said["detail"][choice]
        assert (float(row["most detailed"]) > 0) == (answer.said["most detailed"] == choice)
        wanted = (
            "" if item.check is None else "failed" if fails_check(item, answer, PAPER) else "passed"
        )
        assert row["check"] == wanted


def test_the_tables_means_are_those_of_the_results():
    study = random_study(4)
    results = compute_results(study)
    for system in SYSTEMS:
        rows = [row for row in read(study) if row["system"] == system]
        mean = sum(int(row["correctness"]) for row in rows) / len(rows)
        share = sum(float(row["most correct"]) for row in rows) / len(rows)
        assert abs(mean - results.figures["correctness"][system].value) < 1e-9
        assert abs(share - results.figures["most correct"][system].value) < 1e-4


def test_an_answer_in_part_is_not_in_the_table_but_in_the_json():
    study = make_snapshot([{0: said((1, None, 2), None)}], n_checks=0, questions=ONE)
    assert read(study) == []
    [rater] = json.loads(to_json(study))["raters"]
    assert rater["answers"][0]["said"] == {"correctness": [1, None, 2], "most correct": None}


def test_what_a_spreadsheet_would_run_gets_an_apostrophe():
    study = make_snapshot([{0: said((1, 2), 1)}], n_items=1, n_checks=0, questions=ONE)
    captions = {"=cmd()": "+1", "@sum": "-2, and, more"}
    item = type(study.items[0])("\t=1", captions, text="text")
    rows = read(Snapshot(**{**vars(study), "items": (item,)}))
    assert [row["system"] for row in rows] == ["'=cmd()", "'@sum"]
    assert [row["caption"] for row in rows] == ["'+1", "'-2, and, more"]
    assert {row["item"] for row in rows} == {"'\t=1"}
    assert [row["correctness"] for row in rows] == ["1", "2"]


def test_the_json_holds_everything_and_reads_back_as_the_same_study():
    study = random_study(4)
    record = json.loads(to_json(study))
    again = Snapshot.from_record(record)
    assert again == study
    assert compute_results(again) == compute_results(study)
    assert record["results"]["n_answers"] == 24
    assert record["results_of_attentive_raters"]["n_raters"] <= 4
    assert [item["id"] for item in record["items"]] == [item.id for item in make_items()]


def test_verdicts_name_captions_and_leave_out_checks_and_what_nobody_was_asked():
    study = random_study(3)
    lines = {
        question.name: [json.loads(line) for line in to_verdicts(study, question).splitlines()]
        for question in PAPER
    }
    assert len(lines["detail"]) == 3 * (4 * 3 + 2 + 1)
    assert len(lines["most correct"]) == 3 * 5  # in item 2 all systems say the same
    assert {line["judge"] for line in lines["detail"]} == {"rater 1", "rater 2", "rater 3"}
    assert not any(line["item"].startswith("check") for each in lines.values() for line in each)
    rater = study.raters[0]
    [place] = [p for p, item in enumerate(study.items) if item.id == "item-1"]
    own = [line for line in lines["detail"] if line["judge"] == "rater 1"]
    assert {line["item"]: int(line["verdict"]) for line in own if "item-1" in line["item"]} == {
        f"item-1: {SYSTEMS[0]} = {SYSTEMS[1]}": rater.complete[place].said["detail"][0],
        f"item-1: {SYSTEMS[2]}": rater.complete[place].said["detail"][1],
    }


@pytest.mark.parametrize("question", PAPER, ids=lambda question: question.name)
def test_a_jury_hears_the_raters_by_the_command_that_the_page_shows(
    question, tmp_path, monkeypatch, capsys
):
    study = random_study(4, n_items=8)
    (tmp_path / verdicts_name(7, question)).write_text(to_verdicts(study, question))
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(jury_command(7, question))
    assert program == "wassemble"
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    alpha = compute_results(study).agreement[question.name].alpha
    assert found["alpha"] == pytest.approx(alpha, abs=1e-9)
