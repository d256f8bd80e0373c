import json
import math
import random
from dataclasses import asdict, replace

import numpy as np
import pytest
from web.study.people import SYSTEMS, make_items, random_answer

from wassemble.metrics import Resamples, krippendorff_alpha, student_interval
from wassemble.web.study.answers import TIE, Answer, Given, Participant, Snapshot
from wassemble.web.study.charts import draw_charts
from wassemble.web.study.design import Design, Shown, assign
from wassemble.web.study.items import Item
from wassemble.web.study.questions import PAPER, Question
from wassemble.web.study.results import compute_results, failed_checks, holm

ONE = (PAPER[0], PAPER[2])  # correctness, most correct


def make_snapshot(answers, *, n_items=6, n_checks=1, questions=PAPER, **options):
    """A study with the answers of each rater, by the item's place."""
    items, design = (
        make_items(n_items, n_checks=n_checks),
        Design("A study", questions=questions, **options),
    )
    raters = [
        Participant(
            number + 1,
            assign(items, design, number),
            "2026-01-01T00:00:00+00:00",
            False,
            tuple(
                Given(answer.said, place, "2026-01-02T00:00:00+00:00", seconds=10.0 + place)
                for place, answer in own.items()
            ),
        )
        for number, own in enumerate(answers)
    ]
    return Snapshot(design, "2026-01-01T00:00:00+00:00", False, tuple(items), tuple(raters))


def said(scores, best):
    return Answer({"correctness": tuple(scores), "most correct": best})


def random_study(n_raters, *, n_items=6, seed=0, n_checks=1):
    items = make_items(n_items, n_checks=n_checks)
    rng = random.Random(seed)
    answers = [
        {place: random_answer(item, rng) for place, item in enumerate(items)}
        for _ in range(n_raters)
    ]
    return make_snapshot(answers, n_items=n_items, n_checks=n_checks)


def values(estimates):
    return [estimates[system].value for system in SYSTEMS]


def test_scores_and_shares_are_those_counted_by_hand():
    # Items: 0 with three captions, 1 with two (the first of two systems), 2 with one of all.
    snapshot = make_snapshot(
        [
            {0: said((1, 2, 3), 2), 1: said((4, 2), 0), 2: said((5,), 0)},
            {0: said((3, 3, 4), 0), 1: said((2, 1), 1)},
        ],
        n_items=3,
        n_checks=0,
        questions=ONE,
    )
    results = compute_results(snapshot)
    assert (results.n_raters, results.n_items, results.n_answers) == (2, 3, 5)
    opinion = [(1 + 3 + 4 + 2 + 5) / 5, (2 + 3 + 4 + 2 + 5) / 5, (3 + 4 + 2 + 1 + 5) / 5]
    assert values(results.figures["correctness"]) == pytest.approx(opinion)
    best = [(0 + 1 + 1 / 2 + 0 + 1 / 3) / 5, (1 / 2 + 1 / 3) / 5, (1 + 0 + 0 + 1 + 1 / 3) / 5]
    assert values(results.figures["most correct"]) == pytest.approx(best)
    assert results.counts["correctness"][SYSTEMS[0]] == [1, 1, 1, 1, 1]
    assert results.counts["correctness"][SYSTEMS[1]] == [0, 2, 1, 1, 1]
    assert results.differences == ()  # too few to tell anything


def test_shares_of_each_scale_sum_to_one():
    results = compute_results(random_study(4))
    for name in ("most correct", "most detailed"):
        assert sum(values(results.figures[name])) == pytest.approx(1)


def test_attention_checks_are_counted_and_not_averaged():
    names = [question.name for question in PAPER]
    right = Answer(dict(zip(names, ((5, 1), (5, 1), 0, 0), strict=True)))
    wrong = Answer(dict(zip(names, ((1, 5), (1, 1), 1, 1), strict=True)))
    rng = random.Random(0)
    items = make_items()
    own = [{0: random_answer(items[0], rng)} for _ in range(4)]
    own[0][1], own[1][1], own[2][1] = right, wrong, wrong
    snapshot = make_snapshot(own)
    assert failed_checks(snapshot) == {1: 0, 2: 1, 3: 1}
    every, attentive = (compute_results(snapshot, only_attentive=only) for only in (False, True))
    assert every.n_failed == attentive.n_failed == {0: 1, 1: 2}
    assert (every.n_raters, every.n_answers) == (4, 4)
    assert (attentive.n_raters, attentive.n_answers) == (2, 2)
    alone = make_snapshot([own[0], own[3]])
    assert attentive.figures == compute_results(alone).figures
    assert attentive.figures != every.figures


def test_an_answer_in_part_does_not_count():
    part = said((1, None, 3), 0)
    results = compute_results(make_snapshot([{0: part}], n_checks=0, questions=ONE))
    assert results.n_answers == 0
    assert results.note == "No answers yet."
    assert results.figures == results.agreement == {}


@pytest.mark.parametrize(("n_raters", "n_items"), [(2, 8), (8, 4)])
def test_too_few_answers_give_means_in_words_and_no_chart(n_raters, n_items):
    results = compute_results(random_study(n_raters, n_items=n_items))
    assert results.note.startswith("Too few answers to conclude anything")
    assert f"there are {n_raters} and {n_items}." in results.note
    assert results.figures["detail"][SYSTEMS[0]].low is None
    assert draw_charts(results) == {}


def test_few_raters_are_said_to_be_few():
    assert "3 raters only" in compute_results(random_study(3)).note
    assert compute_results(random_study(10)).note == ""


def test_an_interval_holds_the_mean_and_is_the_same_each_time():
    study = random_study(12, n_items=12)
    results = compute_results(study)
    for figures in results.figures.values():
        for estimate in figures.values():
            assert estimate.low < estimate.value < estimate.high
    assert results == compute_results(study)
    assert results != compute_results(study, seed=1)


def test_resamples_are_of_raters_and_items_both():
    # Two raters who always disagree, on one item: only raters vary; and the other way round.
    table = np.array([[1.0], [5.0]])
    for raters, items in (([0, 1], [0, 0]), ([0, 0], [0, 1])):
        means = Resamples.draw(2, raters, items, n_resamples=4000).means(table)
        found, counts = np.unique(means, return_counts=True)
        assert found.tolist() == [1, 3, 5]
        assert counts / 4000 == pytest.approx([0.25, 0.5, 0.25], abs=0.03)


def test_many_answers_of_one_rater_are_not_many_raters():
    """The interval is as wide as few raters make it, however many items each rates."""
    generous = np.repeat([1.0, 5.0, 1.0, 5.0], 200)[:, None]
    raters, items = np.repeat(np.arange(4), 200), np.tile(np.arange(200), 4)
    means = Resamples.draw(800, raters, items).means(generous)
    assert np.std(means) == pytest.approx(2 / math.sqrt(4), rel=0.1)


@pytest.mark.parametrize("n_raters", [4, 12])
def test_intervals_cover_the_truth_as_often_as_they_say(n_raters):
    """Scores made of rater, item and noise; 95 % of 200 intervals, give or take 3 errors."""
    rng = np.random.default_rng(0)
    n_items, n_studies = 20, 200
    raters, items = np.repeat(np.arange(n_raters), n_items), np.tile(np.arange(n_items), n_raters)
    n_covered = 0
    for study in range(n_studies):
        scores = rng.normal(size=n_raters)[raters] + rng.normal(size=n_items)[items]
        scores = (scores + rng.normal(size=len(raters)))[:, None]
        means = Resamples.draw(len(scores), raters, items, n_resamples=200, seed=study).means(
            scores
        )
        low, high = student_interval(float(scores.mean()), means, n_groups=n_raters)
        n_covered += low <= 0 <= high
    assert n_covered / n_studies > 0.95 - 3 * math.sqrt(0.95 * 0.05 / n_studies)


def test_three_raters_who_agree_prove_nothing_of_others():
    items = [replace(make_items()[0], id=str(i)) for i in range(6)]
    answers = [{place: said((5, 5, 5), 0) for place in range(6)} for _ in range(3)]
    snapshot = replace(make_snapshot(answers, questions=ONE), items=tuple(items))
    results = compute_results(snapshot)
    best = results.figures["most correct"][SYSTEMS[0]]
    assert (best.value, best.low, best.high) == pytest.approx((1, 0.438, 1), abs=1e-3)  # Wilson
    score = results.figures["correctness"][SYSTEMS[0]]
    assert (score.value, score.low, score.high) == pytest.approx((5, 2.754, 5), abs=1e-3)
    assert all(
        each.estimate.low < 0 < each.estimate.high
        for each in results.differences
        if each.question == "correctness"
    )
    assert not any(each.is_told for each in results.differences)


def test_an_interval_ends_where_the_scale_does():
    draws = np.array([1.0, 5.0])
    assert student_interval(3, draws, n_groups=3, limits=(1, 5)) == (1, 5)
    low, high = student_interval(3, draws, n_groups=3)
    assert (low, high) == pytest.approx((3 - 4.303 * 2, 3 + 4.303 * 2), abs=0.01)


# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section E: four observers,
# twelve units, some values missing.
PUBLISHED = """
    1 2 3 3 2 1 4 1 2 . . .
    1 2 3 3 2 2 4 1 2 5 . 3
    . 3 3 3 2 3 4 2 2 5 1 .
    1 2 3 3 2 4 4 1 2 5 1 .
"""


def test_agreement_of_a_study_is_that_of_its_captions_and_choices():
    """The same example, as scores for twelve captions of as many items."""
    observers = [line.split() for line in PUBLISHED.strip().split("\n")]
    shown = make_items(12, n_checks=0)
    answers = [
        {
            place: said([int(value), *[3] * (len(shown[place].choices) - 1)], 0)
            for place, value in enumerate(values)
            if value != "."
        }
        for values in observers
    ]
    results = compute_results(make_snapshot(answers, n_items=12, n_checks=0, questions=ONE))
    units = zip(*observers, strict=True)
    counts = [[unit.count(str(value)) for value in range(1, 6)] for unit in units]
    for place, item in enumerate(shown):  # the other captions all got 3
        n_given = sum(counts[place])
        counts += [[0, 0, n_given, 0, 0]] * (len(item.choices) - 1)
    found = results.agreement["correctness"]
    assert found.alpha == pytest.approx(krippendorff_alpha(counts, is_ordered=True))
    assert found.low < found.alpha < found.high
    assert results.agreement["most correct"].alpha is None  # all chose the first system's


def test_an_item_with_nothing_to_choose_from_is_no_agreement():
    """Items 0 and 1 divide the raters; in item 2 all systems say the same."""
    divided = [{0: said((3, 3, 3), c), 1: said((3, 3), c), 2: said((3,), 0)} for c in (0, 1)]
    results = compute_results(make_snapshot(divided, n_checks=0, questions=ONE))
    wanted = krippendorff_alpha([[1, 1, 0], [1, 0, 1]])
    assert results.agreement["most correct"].alpha == pytest.approx(wanted)


def test_full_agreement_is_one_and_none_can_be_measured_without_a_second_rater():
    one = {
        place: said(range(1, 1 + len(i.choices)), place % len(i.choices))
        for place, i in enumerate(make_items(6, n_checks=0))
    }
    twice = compute_results(make_snapshot([one, one], n_checks=0, questions=ONE))
    assert [each.alpha for each in twice.agreement.values()] == pytest.approx([1, 1])
    alone = compute_results(make_snapshot([one], n_checks=0, questions=ONE))
    assert [each.alpha for each in alone.agreement.values()] == [None, None]


def test_charts_show_the_figures_with_their_intervals():
    results = compute_results(random_study(5))
    charts = draw_charts(results)
    json.dumps(charts, allow_nan=False)
    grades, best = charts["Mean grades, 1 to 5"], charts["Chosen as best"]
    assert [trace["name"] for trace in grades["data"]] == ["correctness", "detail"]
    assert [trace["name"] for trace in best["data"]] == ["most correct", "most detailed"]
    for place, system in enumerate(SYSTEMS):
        share = results.figures["most detailed"][system]
        assert best["data"][1]["y"][place] == pytest.approx(100 * share.value)
        assert best["data"][1]["error_y"]["array"][place] == pytest.approx(
            100 * (share.high - share.value)
        )
        grade = results.figures["detail"][system]
        assert grades["data"][1]["y"][place] == pytest.approx(grade.value)
        assert grades["data"][1]["error_y"]["arrayminus"][place] == pytest.approx(
            grade.value - grade.low
        )


def test_names_in_charts_are_shown_letter_by_letter_and_stand_apart():
    study, begin = random_study(5), "<b>a very long name</b> of a system, "
    names = {system: f"{begin}{place}" for place, system in enumerate(SYSTEMS)}
    items = tuple(
        replace(item, captions={names.get(s, s): text for s, text in item.captions.items()})
        for item in study.items
    )
    chart = draw_charts(compute_results(replace(study, items=items)))["Chosen as best"]
    axis = chart["layout"]["xaxis"]
    assert chart["data"][0]["x"] == axis["tickvals"] == [0, 1, 2]
    assert len(set(axis["ticktext"])) == 1
    assert axis["ticktext"][0].startswith("&lt;b&gt;a very")
    assert chart["data"][0]["customdata"][2].startswith("&lt;b&gt;a very long name&lt;/b&gt;")


PAIR = Question("better", "best", "Which one?", ("about the same",))


def test_of_pairs_who_was_not_shown_has_neither_won_nor_lost():
    items, design = (
        make_items(6, n_checks=0),
        Design("A study", questions=(PAIR,), is_pairwise=True),
    )
    raters, wanted = [], {system: [] for system in SYSTEMS}
    for number in range(6):
        shown, given = assign(items, design, number), []
        for each in shown:
            chosen = max(each.order) if each.item % 2 else TIE  # ties, or the last system wins
            if len(each.order) == 1:
                chosen = each.order[0]
            given.append(Given({"better": chosen}, each.item, "2026-01-02T00:00:00+00:00"))
            for system in SYSTEMS:
                if (choice := items[each.item].choice_of(system)) in each.order:
                    wanted[system].append(0.5 if chosen == TIE else float(choice == chosen))
        raters.append(Participant(number + 1, shown, None, False, tuple(given)))
    snapshot = Snapshot(design, "2026-01-01T00:00:00+00:00", False, tuple(items), tuple(raters))
    results = compute_results(snapshot)
    means = [sum(wanted[system]) / len(wanted[system]) for system in SYSTEMS]
    assert values(results.figures["better"]) == pytest.approx(means)
    assert {len(each) for each in wanted.values()} != {36}
    assert len(results.differences) == 3
    json.dumps(asdict(results), allow_nan=False)


def test_labels_are_counted_and_their_agreement_is_nominal():
    labels = Question("animal", "label", "What is it?", ("cat", "dog", "neither"))
    items = tuple(Item(str(number), {}, text="?") for number in range(5))
    said_by = ("cat cat dog dog neither", "cat dog dog dog neither", "cat cat dog dog dog")
    raters = tuple(
        Participant(
            number,
            tuple(Shown(place, ()) for place in range(5)),
            None,
            False,
            tuple(Given({"animal": label}, at, "") for at, label in enumerate(said.split())),
        )
        for number, said in enumerate(said_by, start=1)
    )
    snapshot = Snapshot(Design("A study", questions=(labels,)), "", False, items, raters)
    results = compute_results(snapshot)
    assert results.systems == results.differences == ()
    found = {label: each.value for label, each in results.figures["animal"].items()}
    assert found == pytest.approx({"cat": 5 / 15, "dog": 8 / 15, "neither": 2 / 15})
    counts = [[3, 0, 0], [2, 1, 0], [0, 3, 0], [0, 3, 0], [0, 1, 2]]
    agreement = results.agreement["animal"]
    assert agreement.alpha == pytest.approx(krippendorff_alpha(counts))
    assert agreement.low < agreement.alpha < agreement.high == 1
    assert results.items[1]["said"] == {"animal": {"cat": 2, "dog": 1}}


def test_a_difference_is_told_only_where_holm_lets_it():
    rng = np.random.default_rng(0)
    items = [replace(make_items()[0], id=str(i)) for i in range(20)]
    answers = [
        {
            place: said((1 + rng.integers(2), 4 + rng.integers(2), 4 + rng.integers(2)), 1)
            for place in range(20)
        }
        for _ in range(10)
    ]
    snapshot = make_snapshot([{} for _ in answers], n_items=20, n_checks=0, questions=ONE)
    raters = tuple(
        replace(
            rater,
            answers=tuple(
                Given(
                    {k: tuple(map(int, v)) if k == "correctness" else v for k, v in a.said.items()},
                    place,
                    "",
                )
                for place, a in own.items()
            ),
        )
        for rater, own in zip(snapshot.raters, answers, strict=True)
    )
    shown = tuple(Shown(place, (0, 1, 2)) for place in range(20))
    raters = tuple(replace(rater, shown=shown) for rater in raters)
    results = compute_results(replace(snapshot, items=tuple(items), raters=raters))
    told = [each.is_told for each in results.differences if each.question == "correctness"]
    assert told == [True, True, False]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], []),
        ([0.2], [0.2]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # as R's p.adjust(..., "holm")
        ([0.5, 0.5, 0.5], [1, 1, 1]),
        ([0.04, 0.001], [0.04, 0.002]),
    ],
)
def test_holm_is_as_in_other_software(given, wanted):
    assert holm(given) == pytest.approx(wanted)


def test_raters_and_items_are_listed_with_their_times():
    results = compute_results(random_study(4))
    assert [each["rater"] for each in results.raters] == [1, 2, 3, 4]
    assert {each["n_answers"] for each in results.raters} == {6}
    assert {each["n_answers"] for each in results.items} == {4}
    assert [each["seconds"] for each in results.items] == [10 + e["place"] for e in results.items]
    assert all(0 < each["likeness"] < 1 for each in results.raters)


def test_who_says_what_all_others_say_is_like_them():
    same = {
        place: said((3,) * len(item.choices), 0)
        for place, item in enumerate(make_items(6, n_checks=0))
    }
    other = {
        place: said((5,) * len(item.choices), 0)
        for place, item in enumerate(make_items(6, n_checks=0))
    }
    study = make_snapshot([same, same, other], n_checks=0, questions=(PAPER[0],))
    likeness = [each["likeness"] for each in compute_results(study).raters]
    assert likeness == [0.5, 0.5, 0]


def test_results_are_plain_json():
    json.dumps(asdict(compute_results(random_study(5))), allow_nan=False)
