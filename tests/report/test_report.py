"""The evidence report: one page that loads nothing, and the same figures as JSON."""

import json
import re
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from report.trials import animals, birds, breeds, choose_instead, tags

from wassemble import InvalidInputError, MissingExtraError, Predictions
from wassemble.ensemble.learning import FittedRecipe, LearnedEnsemble
from wassemble.ensemble.learning.choice import Control
from wassemble.metrics import Comparison
from wassemble.report import write_report
from wassemble.report.board import judge_members
from wassemble.report.evidence import gather_evidence
from wassemble.report.headline import make_headline, make_reasons
from wassemble.report.kernel_effects import sweep_epsilon
from wassemble.report.plots import shown
from wassemble.solvers import ARITHMETIC, Barycenter, PowerMean


class Page(HTMLParser):
    """What a browser finds: texts that are shown, scripts, and addresses to load from."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.texts, self.scripts, self.addresses, self.ids = [], [], [], set()
        self._inside = []
        self.feed(self.source)

    def handle_starttag(self, tag, attrs):
        self._inside.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "srcset", "poster"):
                self.addresses.append(value)
            if name == "id":
                self.ids.add(value)
        if tag in ("meta", "link", "img", "br", "input"):
            self._inside.pop()

    def handle_endtag(self, tag):
        assert self._inside.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        inside = self._inside[-1] if self._inside else None
        (self.scripts if inside == "script" else self.texts).append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    @property
    def plots(self):
        return json.loads(self.scripts[0])


def look(learned, case, metric=None):
    return gather_evidence(
        learned, case.models, case.truth, metric=metric, sample_weight=None, seed=0
    )


def say(learned, case):
    """The sentences of the headline."""
    evidence = look(learned, case)
    return make_headline(evidence, judge_members(evidence))["sentences"]


def is_barycenter(recipe):
    return recipe.transports and recipe.kernel == "kinds"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A report on a barycenter through a kernel between the same labels."""
    case = breeds()
    learned = choose_instead(case.learned, is_barycenter)
    path = tmp_path_factory.mktemp("report") / "breeds.html"
    texts = {sample: f"<b>text</b> of {sample}" for sample in case.models[0].samples.tolist()}
    record = write_report(learned, case.models, case.truth, path, title="<i>Dogs</i>", texts=texts)
    return case, learned, path, record


def test_the_page_and_its_json_say_the_same(written):
    _, _, path, record = written
    page, saved = Page(path), json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert saved == record
    headline = saved["headline"]
    for sentence in (headline["choice"], headline["figure"], *headline["sentences"]):
        assert sentence in page.text
    assert f"{headline['score']:.4f}" in page.text
    assert f"{headline['best_simple']['gain']['difference']:+.4f}" in page.text


def test_the_headline_is_the_evaluation(written):
    _, learned, _, record = written
    headline, evaluation = record["headline"], record["evaluation"]
    chosen = next(each for each in evaluation["outcomes"] if each["is_chosen"])
    assert headline["chosen"] == chosen["name"] == learned.fitted.recipe.name
    assert (headline["score"], headline["low"]) == (chosen["score"], chosen["low"])
    assert headline["best_simple"]["name"] == evaluation["best_simple"]
    assert headline["best_simple"]["gain"] == evaluation["gain"]


def test_every_section_is_there(written):
    _, learned, path, record = written
    page = Page(path)
    names = {"leaderboard", "why", "calibration", "gains", "weights", "sweep", "shuffling"}
    assert names | {"disputed", "time", "made"} <= page.ids
    drawn = {"leaderboard", "calibration", "gains", "weights", "sweep", "shuffling", "time"}
    assert drawn == set(page.plots)
    assert {f"plot-{name}" for name in drawn} <= page.ids
    for line in learned.leaderboard:
        assert line.name in page.text
    assert 0 < len(record["disputed"]["samples"]) <= 20
    assert record["disputed"]["samples"][0]["explanation"]["contributions"]
    for reason in learned.choice.reasons:
        assert reason in page.text


def test_names_are_shown_and_never_read_as_markup(written):
    _, _, path, record = written
    page = Page(path)
    assert "alert(1)" in page.text
    assert "<b>text</b> of s" in page.text
    assert "<i>Dogs</i>" in page.text
    assert "<script>alert" not in page.source
    assert len(page.scripts) == 3  # figures, Plotly, and what draws them
    for text in ("<script>", "</script", "<b>"):
        assert text not in page.scripts[0]
    ticks = page.plots["gains"]["layout"]["yaxis"]["ticktext"]
    names = {row["label"] for row in record["gains"]["gained"] + record["gains"]["lost"]}
    assert all("<" not in tick for tick in ticks)
    assert len(ticks) == len(names)
    assert unescape(shown("<a href='x'>")) == "<a href='x'>"


def test_the_page_loads_nothing(written):
    _, _, path, _ = written
    page = Page(path)
    assert all(address.startswith("#") for address in page.addresses)
    own = page.source.replace(page.scripts[1], "")
    assert not re.search(r"https?://|//cdn|url\(|@import", own)
    assert "default-src 'none'" in own
    assert page.source.count("plotly.js v") == 1
    assert all(address[1:] in page.ids for address in page.addresses)


def test_the_leaderboard_has_both_halves(written):
    _, learned, _, record = written
    rows = record["leaderboard"]["rows"]
    assert [row["name"] for row in rows] == [line.name for line in learned.leaderboard]
    assert [row["validation"]["score"] for row in rows] == [
        line.score for line in learned.leaderboard
    ]
    stacked = next(row for row in rows if row["sort"] == "stacking")
    assert stacked["test"]["against_chosen"] is not None
    assert all(row["test"] for row in rows)
    assert sum("Stacking" in sentence for sentence in record["headline"]["sentences"]) == 1


def test_gains_per_label_add_up_to_the_difference(written):
    _, _, _, record = written
    gains = record["gains"]
    rows = gains["gained"] + gains["lost"]
    total = sum(row["gain"] * row["n_samples"] for row in rows) / record["evaluation"]["n_samples"]
    assert total == pytest.approx(record["headline"]["best_simple"]["gain"]["difference"])
    assert gains["n_gained"] + gains["n_lost"] == len(rows)


def test_the_sweep_passes_through_the_rule_itself(written):
    _, _, _, record = written
    sweep = record["sweep"]
    assert sweep["is_chosen"]
    own = next(point for point in sweep["points"] if point["power"] == sweep["own_power"])
    assert own["score"] == pytest.approx(record["headline"]["score"])
    entropies = [point["entropy"] for point in sweep["points"]]
    assert entropies == sorted(entropies, reverse=True)  # a sharper kernel spreads less
    assert all(point["distance_to_identity"] > 0 for point in sweep["points"])


def test_shuffling_starts_from_what_is_there(written):
    _, _, _, record = written
    found = record["shuffling"]
    assert found["sizes"][0] == 1
    assert found["scores"]["chosen"][0] == pytest.approx(record["headline"]["score"])
    assert set(found["scores"]) == {"chosen", "arithmetic mean", "geometric mean"}


def test_a_model_alone_by_the_rule_is_not_the_ensembles_doing(written):
    case, learned, _, record = written
    evidence = gather_evidence(
        learned, case.models, case.truth, metric=None, sample_weight=None, seed=0, fold=False
    )
    found = judge_members(evidence)
    assert {row["model"] for row in found["models"]} == {"one", "two", "three"}
    for row in found["models"]:
        assert row["by_rule"] + row["gain"]["difference"] == pytest.approx(
            record["headline"]["score"]
        )


def test_the_verdict_is_honest_both_ways(tmp_path):
    case = breeds()

    def sentences(wanted, **changes):
        learned = replace(choose_instead(case.learned, wanted), **changes)
        record = write_report(learned, case.models, case.truth, tmp_path / "x.html")
        return " ".join(record["headline"]["sentences"])

    assert "Fusing did not help: one model alone" in sentences(lambda r: r.model is not None)
    assert "no mass between labels" in sentences(lambda r: r.rule == ARITHMETIC and r.is_simple)
    recipe = next(r for r in (x.recipe for x in case.learned.rivals) if is_barycenter(r))
    none = Comparison(0.001, 0.01, -0.02, 0.02, 0.5)
    control = Control(0.5, none, 3)
    choice = replace(case.learned.choice, recipe=recipe, control=control)
    assert "meaning of the labels did not clearly help" in sentences(is_barycenter, choice=choice)
    sure = replace(control, comparison=replace(none, low=0.0005, sure=1.0))
    choice = replace(choice, control=sure)
    assert "meaning of the labels helped" in sentences(is_barycenter, choice=choice)


def test_what_is_said_of_simple_rules_is_true_whichever_rule_was_chosen():
    case = breeds()
    plain = next(rule for rule in case.learned.rivals if isinstance(rule.recipe.rule, PowerMean))
    weights = {"one": 0.6, "two": 0.3, "three": 0.1}
    weighted = FittedRecipe.of(replace(plain.recipe, weights="metric"), plain.fusion, weights)
    known = replace(case.learned, rivals=(*case.learned.rivals, weighted))
    recipes = {rule.recipe for rule in (known.fitted, *known.rivals)}
    for recipe in recipes:
        learned = choose_instead(known, lambda each, own=recipe: each == own)
        evidence = gather_evidence(
            learned, case.models, case.truth, metric=None, sample_weight=None, seed=0, fold=False
        )
        headline = make_headline(evidence, judge_members(evidence))
        said = " ".join(headline["sentences"])
        assert "Only simple rules" not in said  # barycenters were tried, too
        others = evidence.evaluation.outcomes
        simple = [e for e in others if e.recipe.is_simple and not e.is_chosen]
        assert headline["best_simple"]["name"] == simple[0].name
        assert evidence.evaluation.best_simple is simple[0]  # `evaluate` says the same
        if "beats every simple rule" in said:
            assert simple[0].score < headline["score"]
        if "A simple rule is as good as any" in said:
            best = next(each for each in others if not each.recipe.is_simple)
            assert f"the best other rule on these samples, {best.name}," in said


def test_a_multi_label_report_has_precision_instead_of_calibration(tmp_path):
    case = tags()
    path = tmp_path / "tags.html"
    record = write_report(case.learned, case.models, case.truth, path)
    page = Page(path)
    assert record["calibration"] is None
    assert "precision" in page.ids
    assert "calibration" not in page.ids
    assert "</script><b>boat" not in page.source
    plot = page.plots["precision"]
    assert plot["choices"][0]["title"] == "all labels together"
    assert {choice["title"] for choice in plot["choices"][1:]} == set(case.learned.target)
    assert sum(trace["visible"] for trace in plot["data"]) == len(plot["choices"][0]["traces"])
    first = record["disputed"]["samples"][0]
    assert set(first["truth"]) <= set(case.learned.target)
    assert record["gains"]["metric"] == "average precision"


def test_labels_that_differ_leave_out_what_needs_the_same_ones(tmp_path):
    case = animals()
    path = tmp_path / "animals.htm"
    learned = choose_instead(case.learned, lambda recipe: isinstance(recipe.rule, Barycenter))
    record = write_report(learned, case.models, case.truth, path)
    assert "kernel from labels to themselves" in record["shuffling"]["omitted"]
    assert record["shuffling"]["omitted"] in Page(path).text
    assert all(p["distance_to_identity"] is None for p in record["sweep"]["points"])
    made = record["disputed"]["samples"][0]["explanation"]["contributions"]
    assert {part["label"] for part in made} <= set(case.models[0].labels)


def test_a_saved_ensemble_gives_the_same_report(tmp_path):
    case = animals()
    case.learned.save(tmp_path / "saved")
    first = write_report(case.learned, case.models, case.truth, tmp_path / "a.html")
    loaded = LearnedEnsemble.load(tmp_path / "saved")
    second = write_report(loaded, case.models, case.truth, tmp_path / "b.html")
    for name in ("headline", "gains", "weights", "sweep", "disputed", "calibration"):
        assert second[name] == first[name]


def test_weights_by_label_are_shown_where_models_declare_different_labels(tmp_path):
    case = breeds()
    learned = choose_instead(case.learned, lambda recipe: recipe.rule == ARITHMETIC)
    known = learned.target.names[:5]
    spaces = (*learned.models[:2], ("three", type(learned.target)(known)))
    third = case.models[2]
    scores = third.scores[:, :5] / third.scores[:, :5].sum(axis=1, keepdims=True)
    models = [*case.models[:2], third.replace(labels=spaces[2][1], scores=scores)]
    path = tmp_path / "aware.html"
    rivals = tuple(rule for rule in learned.rivals if rule.fusion.kernel is None)
    kept = {rule.recipe for rule in (learned.fitted, *rivals)}
    board = tuple(line for line in learned.leaderboard if line.recipe in kept)
    learned = replace(learned, models=spaces, rivals=rivals, leaderboard=board)
    record = write_report(learned, models, case.truth, path)
    found = record["weights"]["per_label"]
    assert np.array(found["weights"]).sum(axis=1) == pytest.approx(1)
    assert found["weights"][found["labels"].index(learned.target[5])][2] == 0
    assert "label_weights" in Page(path).plots
    assert "omitted" in record["sweep"]


def sees_barycenters(recipe):
    return recipe.without_transport() is not None


@pytest.fixture(scope="module")
def stacked(tmp_path_factory):
    """A report on a stacked consensus."""
    case = birds()
    learned = choose_instead(case.learned, sees_barycenters)
    path = tmp_path_factory.mktemp("report") / "birds.html"
    return learned, path, write_report(learned, case.models, case.truth, path)


def test_a_stacked_consensus_is_chosen_where_it_wins_beside_the_best_simple_rule(stacked):
    _, path, record = stacked
    page, headline = Page(path), record["headline"]
    assert birds().learned.fitted.recipe.tier == 5
    assert "Chosen on 200 validation samples: stacked consensus." in page.text
    assert f"is {headline['best_simple']['score']:.4f}." in headline["figure"]
    assert "It beats every simple rule" in page.text
    sorts = {row["name"]: row["sort"] for row in record["leaderboard"]["rows"]}
    assert sorts["stacked consensus"] == "stacked consensus"
    assert sorts["logistic-regression stacking (C = 3)"] == "stacking"
    traces = {trace.get("name") for trace in page.plots["leaderboard"]["data"]}
    assert {"chosen", "stacking", "stacked consensus"} <= traces


def test_what_transport_adds_to_a_stacked_consensus_is_said(stacked):
    learned, path, _ = stacked
    assert "what they add is said above" in Page(path).text
    # Barycenters change every score; whether they change an answer is chance.
    evidence = look(learned, birds(), metric="log_loss")
    said = make_headline(evidence, {})["sentences"]
    scores = {each.name: each.score for each in evidence.evaluation.outcomes}
    gain = scores["stacked consensus"] - scores["stacked consensus without transport"]
    assert gain != 0
    assert any(f"the barycenters among what it sees add {gain:+.4f} (95 %" in each for each in said)
    without = choose_instead(
        learned, lambda recipe: recipe.tier == 5 and not sees_barycenters(recipe)
    )
    assert "nothing is transported" in " ".join(say(without, birds()))
    alone = replace(learned, rivals=tuple(r for r in learned.rivals if r.recipe.tier < 5))
    assert "was not judged on these samples" in " ".join(say(alone, birds()))


def test_stacking_is_compared_unless_it_is_what_was_chosen(stacked):
    learned, _, _ = stacked
    assert sum("Stacking by logistic regression is" in each for each in say(learned, birds())) == 1
    stacking = choose_instead(learned, lambda recipe: recipe.tier == 4)
    said = " ".join(say(stacking, birds()))
    assert "Stacking by logistic regression is" not in said
    assert "nothing is transported" in said


def test_a_stacked_consensus_has_shares_in_place_of_weights(stacked, tmp_path):
    learned, path, record = stacked
    page, rows = Page(path), record["weights"]["lead"]["rows"]
    assert record["weights"]["omitted"] in page.text
    assert not {"weights", "label_weights"} & set(page.plots)
    assert sum(row["percent"] for row in rows) == pytest.approx(100)
    of_models = {row["name"]: row["percent"] for row in rows if row["is_model"]}
    assert set(of_models) == {name for name, _ in learned.models}
    assert of_models["near"] > of_models["poor 0"]
    assert any("barycenter" in row["name"] for row in rows if not row["is_model"])
    # A model may be called like a rule.
    assert sum(row["name"] == "mean by name" for row in rows) == 2
    assert f"{rows[0]['percent']:.1f} %" in page.text
    assert record["disputed"]["measure"] == "total variation"
    told = record["disputed"]["samples"][0]["explanation"]["contributions"]
    assert {part["model"] for part in told} <= {*of_models, "all models"}
    assert told[0]["label"] in page.text
    assert "what speaks for" in page.text
    stacking = choose_instead(learned, lambda recipe: recipe.tier == 4)
    case = birds()
    other = write_report(stacking, case.models, case.truth, tmp_path / "stacking.html")
    assert other["weights"]["lead"] is None


def test_the_caution_that_was_used_is_said(stacked):
    learned, path, record = stacked
    assert "is more than 0.5 standard errors of the paired difference" in Page(path).text
    assert record["made"]["caution"] == 0.5
    case = birds()
    best = record["evaluation"]["best_simple"]
    simple = choose_instead(learned, lambda recipe: recipe.name == best)
    said = {0.0: "above 0.", 1.0: "more than one standard error of", 2.0: "2 standard errors of"}
    for caution, words in said.items():
        sentence = say(replace(simple, caution=caution), case)[0]
        assert "on validation the gain of no such rule was" in sentence
        assert words in sentence


def test_the_mean_that_others_are_compared_with_goes_by_name_if_it_can():
    case = breeds()
    means = [rule for rule in case.learned.rivals if rule.recipe.rule == ARITHMETIC]
    kinds_first = sorted(means, key=lambda rule: rule.recipe.kernel)
    assert [rule.recipe.kernel for rule in kinds_first] == ["kinds", "names"]
    evidence = look(replace(case.learned, rivals=(*kinds_first, *case.learned.rivals)), case)
    assert evidence.plain_mean(1.0).recipe.kernel == "names"
    by_kinds = tuple(rule for rule in case.learned.rivals if rule is not kinds_first[1])
    evidence = look(replace(case.learned, rivals=by_kinds), case)
    assert evidence.plain_mean(1.0).recipe.kernel == "kinds"


def test_a_missing_control_is_explained():
    case = breeds()
    for wanted, words in (
        (is_barycenter, "no time for a control"),
        (sees_barycenters, "sees barycenters among much else"),
        (lambda recipe: recipe.rule == ARITHMETIC, "transports nothing through a kernel"),
    ):
        learned = choose_instead(case.learned, wanted)
        learned = replace(learned, choice=replace(learned.choice, control=None))
        assert words in make_reasons(look(learned, case))["no_control"]


def test_samples_in_groups_widen_the_intervals(tmp_path):
    case = birds()
    copies = np.repeat(np.arange(case.models[0].n_samples), 4)
    models = [
        Predictions(model.model, range(len(copies)), model.labels, model.scores[copies])
        for model in case.models
    ]
    truth = [case.truth[i] for i in copies]
    path = tmp_path / "groups.html"
    alone = write_report(case.learned, models, truth, path)
    grouped = write_report(case.learned, models, truth, path, groups=copies.tolist())
    assert grouped["headline"]["score"] == alone["headline"]["score"]
    assert grouped["headline"]["standard_error"] > 1.5 * alone["headline"]["standard_error"]
    assert "drawn in groups" in Page(path).text


def test_nothing_is_left_of_a_report_that_fails(tmp_path, monkeypatch):
    case = animals()
    path = tmp_path / "a.html"
    path.write_text("before")
    monkeypatch.setattr("wassemble.report.write.draw_all", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(case.learned, case.models, case.truth, path)
    assert [each.name for each in tmp_path.iterdir()] == ["a.html"]
    assert path.read_text() == "before"


def test_a_page_must_be_called_html(tmp_path):
    case = animals()
    with pytest.raises(InvalidInputError, match=r"`path` must end in \.html"):
        write_report(case.learned, case.models, case.truth, tmp_path / "a.json")


@pytest.mark.parametrize("module", ["jinja2", "plotly"])
def test_a_missing_extra_is_one_clear_error(tmp_path, monkeypatch, module):
    case = animals()
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)

    class Missing:
        def find_spec(self, name, *_):
            if name.split(".")[0] == module:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(MissingExtraError, match=rf"needs {module}[\s\S]*wassemble\[report\]"):
        write_report(case.learned, case.models, case.truth, tmp_path / "a.html")
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_of_zeros_and_ones_is_not_swept(written):
    case, learned, _, _ = written
    evidence = gather_evidence(
        learned, case.models, case.truth, metric=None, sample_weight=None, seed=0, fold=False
    )
    fusion = learned.fusion
    one = next(iter(fusion.kernel.values()))
    plain = type(one)(type(one.kernel)(np.eye(6)), one.source, one.target, "names")
    fusion = fusion.replace(kernel=dict.fromkeys(fusion.kernel, plain))
    binary = replace(learned, fitted=replace(learned.fitted, fusion=fusion))
    assert "only 0 and 1" in sweep_epsilon(replace(evidence, learned=binary))["omitted"]
