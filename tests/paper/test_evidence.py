"""`python -m paper evidence`: the same samples for all, records that resume, honest verdicts."""

import json

import numpy as np
import pytest

from paper.commands import main
from paper.evidence import records
from paper.evidence.cases import Case, Draw, list_draws
from paper.evidence.command import NAMES
from paper.evidence.records import find_records, judge_rivals, keep, record_path
from paper.evidence.rivals import ORACLE, RIVALS
from paper.evidence.summary import summarise, to_markdown
from paper.evidence.tasks import TASKS, Task
from wassemble import InvalidInputError, LabelSpace, Predictions

LABELS = ["cat", "dog", "fox"]
WHOLE = Draw()


def small_task(n_samples=120, **options):
    """One good model, and one that takes cats for dogs and dogs for cats; half are known."""
    rng = np.random.default_rng(0)
    truth = np.arange(n_samples) % 3
    good = np.eye(3)[np.where(rng.random(n_samples) < 0.8, truth, rng.integers(3, size=n_samples))]
    turned = np.eye(3)[np.array([1, 0, 2])[truth]]
    models = [
        Predictions(name, range(n_samples), LABELS, 0.7 * scores + 0.1, kind="multiclass")
        for name, scores in (("good", good), ("turned", turned))
    ]
    is_test = np.arange(n_samples) >= n_samples // 2
    names = [LABELS[i] for i in truth]
    return Task(
        "small", "Small", models, names, is_test, LabelSpace(LABELS), "multiclass", **options
    )


def small_multilabel_task():
    rng = np.random.default_rng(0)
    truth = (rng.random((80, 3)) < 0.4).astype(float)
    truth[0, 0] = np.nan
    models = [
        Predictions(
            name,
            range(80),
            LABELS,
            np.clip(np.nan_to_num(truth) * 0.5 + noise * rng.random((80, 3)), 0, 1),
            kind="multilabel",
        )
        for name, noise in (("sure", 0.6), ("unsure", 0.9))
    ]
    is_test = np.arange(80) >= 40
    return Task("several", "Several", models, truth, is_test, LabelSpace(LABELS), "multilabel")


def test_a_share_is_spread_over_labels_and_never_of_the_test_samples():
    task = small_task()
    whole = Case(task, Draw())
    fifth = Case(task, Draw(0.2, 1))
    assert len(fifth.known) == 12
    assert set(fifth.known) < set(whole.known)
    assert np.bincount(fifth.places[fifth.known]).tolist() == [4, 4, 4]
    assert fifth.test.tolist() == whole.test.tolist()
    assert Case(task, Draw(0.2, 2)).known.tolist() != fifth.known.tolist()


def test_a_new_split_has_the_same_sizes_and_other_samples():
    task = small_task()
    again = Case(task, Draw(split=1))
    assert (len(again.known), len(again.test)) == (60, 60)
    assert not set(again.known) & set(again.test)
    assert again.test.tolist() != Case(task, Draw()).test.tolist()
    assert np.bincount(again.places[again.test]).tolist() == [20, 20, 20]


def test_a_new_split_keeps_groups_whole_where_they_must_be():
    groups = [str(i // 6) for i in range(120)]
    case = Case(small_task(groups=groups, is_split_by_group=True), Draw(split=1))
    assert len(case.known) + len(case.test) == 120
    assert not {groups[i] for i in case.known} & {groups[i] for i in case.test}


def test_new_splits_are_drawn_where_test_samples_have_been_seen():
    assert [draw.split for draw in list_draws(has_been_seen=True)].count(0) == 7
    assert all(draw.split == 0 for draw in list_draws(has_been_seen=False))


def test_a_bootstrap_draws_whole_groups():
    groups = [str(i // 6) for i in range(120)]
    case = Case(small_task(groups=groups), Draw())
    assert case.bootstrap.resamples.counts[0].shape[1] == 10


def test_rivals_that_learn_labels_find_what_a_mean_cannot():
    found = judge_rivals(Case(small_task(), Draw()))["rules"]
    assert list(found) == [*RIVALS, ORACLE]
    assert found["best single model"]["picked"] == "good"
    assert found["best simple rule"]["score"] < 0.95
    for name in ("logistic regression, C = 10", "logistic regression, C tuned"):
        assert found[name]["score"] == 1
    assert found["gradient boosting"]["score"] > 0.95
    assert found["greedy weights"]["picked"].startswith("good")
    assert found["best single model"]["score"] < found[ORACLE]["score"] < 1


def test_rivals_take_several_labels_and_truth_that_nobody_knows():
    found = judge_rivals(Case(small_multilabel_task(), Draw()))["rules"]
    scores = {name: each["score"] for name, each in found.items()}
    assert scores[ORACLE] > scores["best single model"] > 0.5
    assert scores["logistic regression, C = 10"] > 0.5


def test_a_rival_that_cannot_be_fitted_says_why():
    task = small_task()
    task.is_test[:] = True
    task.is_test[[0, 3]] = False  # both are cats
    found = judge_rivals(Case(task, Draw()))["rules"]
    assert "class" in found["logistic regression, C = 10"]["failed"]
    assert found["best single model"]["score"] > 0.5


def test_a_record_is_kept_until_what_makes_it_changes(tmp_path):
    made = []

    def make():
        made.append(1)
        return {"rules": {}}

    path = tmp_path / "a" / "b.json"
    assert keep(path, "x", make)[1]
    assert not keep(path, "x", make)[1]
    assert keep(path, "y", make)[1]
    assert len(made) == 2
    path.write_text("{}")
    with pytest.raises(InvalidInputError, match="must be a record of evidence"):
        keep(path, "x", make)


def test_a_changed_case_makes_other_records():
    first, second = Case(small_task(), Draw()), Case(small_task(), Draw(0.5, 1))
    assert records.rivals_made_by(first) == records.rivals_made_by(Case(small_task(), Draw()))
    assert records.rivals_made_by(first) != records.rivals_made_by(second)
    assert records.ours_made_by(first, 1.0) != records.ours_made_by(first, None)


def write_records(folder, ours, rival, *, name="digits", draws=(WHOLE,), case="same"):
    """Records in which ours and a rival reach certain scores on four resamples."""

    def rule(scores):
        if isinstance(scores, str):
            return {"failed": scores}
        return {"score": scores[0], "drawn": scores, "picked": "this", "seconds": 1.0}

    title = "Circles" if name == "animals" else "Small"
    about = {"title": title, "metric": "accuracy", "n_models": 2, "n_target": 3, "n_test": 60}
    about |= {"n_known": 60, "n_groups": None, "case": case, "made_by": "x"}
    rules = {each: rule([0.1] * 4) for each in RIVALS} | {ORACLE: rule([1.0] * 4)}
    sides = {
        "rivals": about | {"rules": rules | {"greedy weights": rule(rival)}},
        "ours": about | {"rules": {"ours": rule(ours)}, "words": ["chosen: this"], "case": "same"},
    }
    for draw in draws:
        for side, record in sides.items():
            path = record_path(folder, name, draw, side)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([0.8, 0.81, 0.79, 0.8], "ahead of greedy weights: +0.100 ± 0.007"),
        ([0.7, 0.71, 0.69, 0.7], "as good as greedy weights: +0.000 ± 0.007"),
        ([0.6, 0.61, 0.59, 0.6], "**behind greedy weights**: -0.100 ± 0.007"),
        ("no", "**ours failed**; greedy weights did not"),
    ],
)
def test_ours_is_judged_against_the_best_rival(tmp_path, ours, verdict):
    write_records(tmp_path, ours, [0.7] * 4)
    page = to_markdown(summarise(find_records(tmp_path, ["digits"])), {})
    assert verdict in page
    assert ("It is behind nowhere" in page) == ("behind" not in verdict and ours != "no")
    assert "- chosen: this" in page


def test_the_page_says_where_ours_is_behind_and_which_rivals_failed(tmp_path):
    draws = [Draw(0.05, seed) for seed in (1, 2, 3)]
    write_records(tmp_path, [0.8] * 4, [0.7] * 4)
    write_records(tmp_path, [0.6] * 4, [0.7] * 4, draws=draws)
    write_records(tmp_path, [0.8] * 4, "one class", draws=[Draw(split=1)])
    page = to_markdown(summarise(find_records(tmp_path, ["digits"])), {})
    assert "or better, on 1 of 1 tasks. It is behind by more than that on: Small, 5 %." in page
    assert page.count("\n## ") == 4  # all samples, 5 %, new splits, what was chosen
    assert "greedy weights failed with 100 %, new split 1: one class" in page


def test_a_circular_task_comes_last_with_what_undoes_it_and_counts_for_nothing(tmp_path):
    for name in ("animals", "digits"):
        write_records(tmp_path, [0.94] * 4, [0.9] * 4, name=name)
    found = summarise(find_records(tmp_path, ["animals", "digits"]))
    page = to_markdown(found, {"inverse": 0.944, "vote": 0.942})
    assert "or better, on 1 of 1 tasks." in page
    assert page.index("| Small") < page.index("| Circles")
    assert (
        "Circles is circular and counts for nothing here: its 0.940 stands beside 0.944 of the"
        " inverse and 0.942 of the vote" in page
    )


def test_records_of_other_samples_are_not_compared(tmp_path):
    write_records(tmp_path, [0.8] * 4, [0.7] * 4, case="other")
    assert find_records(tmp_path, ["animals"]) == {}


def test_evidence_on_a_real_task(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["evidence", "digits", "--quick", "--out", "r", "--time-budget", "0", "--no-pages"]
    assert main(command) == 0
    (row,) = json.loads((tmp_path / "r" / "evidence.json").read_text())["digits"]["rows"]
    assert row["n_known"] == 610
    assert row["ours"]["score"] > 0.91
    simple = row["rivals"]["best simple rule"]
    gain = row["ours"]["score"] - simple["score"]
    assert simple["gain_of_ours"]["difference"] == pytest.approx(gain, abs=1e-5)
    assert row["rivals"]["gradient boosting"]["score"] > 0.91
    told = capsys.readouterr()
    assert "digits: ours" in told.out
    assert "ours: done" in told.err
    assert main(command) == 0
    assert capsys.readouterr().err.count("made before") == 2


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_an_interrupted_run_keeps_what_is_done(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["evidence", "digits", "--quick", "--only", "rivals"]
    assert main(command) == 0
    monkeypatch.setattr(records, "judge_ours", interrupt)
    assert main(command[:3]) == 1
    told = capsys.readouterr().err
    assert "digits, 100 %, rivals: made before" in told
    assert "interrupted at 1/1 digits, 100 %, ours; the same command goes on from there" in told
    assert not record_path(tmp_path / "reports", "digits", WHOLE, "ours").exists()


def test_every_task_can_be_named():
    assert list(NAMES) == list(TASKS)


def test_an_unknown_task_is_refused(capsys):
    assert main(["evidence", "nothing"]) == 2
    assert "is not one of" in capsys.readouterr().err
