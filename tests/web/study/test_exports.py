import csv
import io
import json

from web.study.people import SYSTEMS, make_items
from web.study.test_results import make_snapshot, random_study, said

from wassemble.web.study.answers import Snapshot, fails_check
from wassemble.web.study.results import compute_results, to_csv, to_json


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
        assert int(row["detail"]) == answer.scores["detail"][choice]
        assert (float(row["best_detail"]) > 0) == (answer.best["detail"] == choice)
        wanted = "" if item.check is None else "failed" if fails_check(item, answer) else "passed"
        assert row["check"] == wanted


def test_the_tables_means_are_those_of_the_results():
    study = random_study(4)
    results = compute_results(study)
    for system in SYSTEMS:
        rows = [row for row in read(study) if row["system"] == system]
        mean = sum(int(row["correctness"]) for row in rows) / len(rows)
        share = sum(float(row["best_correctness"]) for row in rows) / len(rows)
        assert abs(mean - results.opinion["correctness"][system].value) < 1e-9
        assert abs(share - results.best["correctness"][system].value) < 1e-4


def test_an_answer_in_part_is_not_in_the_table_but_in_the_json():
    study = make_snapshot([{0: said((1, None, 2), None)}], n_checks=0, scales=("correctness",))
    assert read(study) == []
    [rater] = json.loads(to_json(study))["raters"]
    assert rater["answers"][0]["scores"] == {"correctness": [1, None, 2]}


def test_what_a_spreadsheet_would_run_gets_an_apostrophe():
    study = make_snapshot([{0: said((1, 2), 1)}], n_items=1, n_checks=0, scales=("correctness",))
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
