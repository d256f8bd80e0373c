"""Captioning: the gallery, shuffled captioners, what claims are read from, and small runs."""

from functools import partial

import numpy as np
import pytest
from text.tables import TableModel

from paper.captioning import gallery as captioning_gallery
from paper.captioning.gallery import Captioned, Gallery, SearchConfig, java_scores
from paper.captioning.scores import CaptionScore
from paper.captioning.shuffle import ShuffledNextWord, word_groups
from paper.captioning.study import (
    Found,
    Step,
    ends_sooner,
    entropy_grows,
    meaning_stays,
    ngrams_suffer,
    reach,
)
from paper.record.catalogue import find_experiment
from paper.record.findings import Figure
from paper.words.models import glove_kernels, synonym_kernels
from wassemble.errors import MissingExtraError
from wassemble.labels import LabelSpace
from wassemble.text import Vocabulary, beam_search

WORDS = ["<end>", "<unk>", "a", "cat", "dog", "mat", "2"]


@pytest.fixture(scope="module")
def gallery():
    return Gallery("val", 30, width=2, max_words=5)


class Uniform(TableModel):
    """Every word is as likely."""

    def start(self, context):
        return [(0,) for _ in context]

    def log_histogram(self, read):
        return np.full(len(self.vocabulary), -np.log(len(self.vocabulary)))


class OfPictures(TableModel):
    """A model of its own for each picture."""

    def start(self, context):
        return [(int(1e6 * abs(float(picture.sum()))),) for picture in context]


def said(cider, *, similarity=0.5, entropy=1.0):
    return Captioned(["a cat"], entropy, np.array([cider]), np.array([similarity]))


def step(epsilon, top, sampled=1.0, **more):
    found = {"top-k": said(top, **more), "randomised": said(sampled, **more)}
    return Step(epsilon, 10 * epsilon, found)


SIMPLE = {search: {"geometric mean": said(1.0)} for search in ("top-k", "randomised")}


def test_references_score_high_and_silence_scores_nothing(gallery):
    cider, similarity = gallery.score([texts[0] for texts in gallery.references])
    assert similarity == pytest.approx(1)
    assert cider.min() > 1
    cider, similarity = gallery.score([""] * 30)
    assert not cider.any()
    assert not similarity.any()


def test_captions_are_those_of_one_search_over_all_pictures(gallery):
    model = OfPictures(WORDS)
    found = gallery.caption(model, n_samples=2, seed=3)
    seeds = [[3, int(number)] for number in gallery.image_ids]
    search = {"width": 2, "max_words": 5, "n_samples": 2, "seed": seeds}
    together = beam_search(model, gallery.features, **search)
    assert found.texts == [sentences[0].text for sentences in together]
    assert len(set(found.texts)) > 10
    assert found.n_words == np.mean([len(text.split()) for text in found.texts])


def test_the_entropy_is_that_of_the_steps(gallery):
    assert gallery.caption(Uniform(WORDS)).entropy == pytest.approx(np.log(len(WORDS)))


def test_a_missing_program_is_told_and_the_other_scores_every_rule(monkeypatch):
    def missing(captions, references):
        raise MissingExtraError("METEOR needs Java, which is not installed.\nhint: install it")

    def lengths(captions, references):
        each = np.array(
            [len(text) + len(texts) for text, texts in zip(captions, references, strict=True)]
        )
        return CaptionScore(0.0, each)

    monkeypatch.setattr("paper.captioning.scores.meteor", missing)
    monkeypatch.setattr("paper.captioning.scores.spice", lengths)
    rules = {"one": Captioned(["a", "ab"], 0, *np.zeros((2, 2)))}
    rules["two"] = Captioned(["abc", "abcd"], 0, *np.zeros((2, 2)))
    found, notes = java_scores(rules, [["x"], ["x", "y", "z"]])
    assert found == {"SPICE": {"one": 3.5, "two": 5.5}}
    assert notes == ["METEOR needs Java, which is not installed."]


def test_groups_are_neighbours_without_special_words_and_digits():
    words = ["<end>", "<unk>", "a", "man", "dog", "2", "woman", "3", "cat", "kite"]
    vocabulary = Vocabulary(LabelSpace(words))
    kernel = glove_kernels(vocabulary.words)(0.2)
    groups = [vocabulary.decode(group) for group in word_groups(kernel, vocabulary, 2)]
    assert sorted(map(sorted, groups)) == [["cat", "dog"], ["man", "woman"]]
    assert word_groups(kernel, vocabulary, 1) == []


def test_shuffles_stay_inside_groups_and_come_out_again():
    model = TableModel(WORDS, seed=1)
    groups = [[2, 3, 4], [5, 1]]
    shuffled = ShuffledNextWord(model, groups, [0, 1])
    start = np.zeros(400, dtype=np.int64)
    logs, state = shuffled.step(shuffled.start(np.zeros(400)), start)
    plain, _ = model.step(model.start(np.zeros(400)), start)
    for group in groups:
        assert np.sort(logs[:, group], axis=1) == pytest.approx(np.sort(plain[:, group], axis=1))
    assert np.array_equal(logs[:, [0, 6]], plain[:, [0, 6]])
    # All six orders of three words, about as often.
    _, counts = np.unique(logs[:, groups[0]], axis=0, return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 35
    again, _ = shuffled.step(shuffled.start(np.zeros(400)), start)
    assert np.array_equal(again, logs)
    # The next step, and another captioner, have shuffles of their own.
    other, _ = ShuffledNextWord(model, groups, [0, 2]).step(shuffled.start(np.zeros(400)), start)
    assert not np.array_equal(other, logs)
    later, _ = shuffled.step(shuffled.reorder(state, np.arange(400)), start)
    read, _ = model.step(state[0], start)
    assert not np.array_equal(later.argsort(axis=1)[:, 1] == 2, read.argsort(axis=1)[:, 1] == 2)


def test_synonyms_and_vectors_join_words_of_like_meaning():
    words = LabelSpace(["sofa", "couch", "giraffe"])
    for kernel in (synonym_kernels(words)(1.0), glove_kernels(words)(0.2)):
        near, far = kernel.to_dense()[0, 1:]
        assert 1 > near > far


def test_entropy_must_grow_at_every_step_of_both_searches():
    rising = [step(e, 1.0, entropy=e) for e in (1, 2, 3)]
    assert entropy_grows(rising).held
    assert not entropy_grows([*rising, step(4, 1.0, entropy=2.5)]).held


def test_a_search_reaches_as_far_as_it_keeps_nine_tenths():
    steps = [step(1, 1.0, 0.95), step(2, 0.92, 0.5), step(3, 0.8, 0.95)]
    assert reach(steps, SIMPLE, "top-k") == 2
    assert reach(steps, SIMPLE, "randomised") == 1  # what comes back later does not count
    assert ends_sooner(steps, SIMPLE).held
    assert not ends_sooner([step(1, 0.5, 0.5)], SIMPLE).held


def test_ngrams_suffer_only_below_the_mean():
    assert ngrams_suffer([step(1, 1.0), step(2, 0.9)], SIMPLE).held
    assert not ngrams_suffer([step(1, 1.2), step(2, 1.1)], SIMPLE).held
    assert not ngrams_suffer([step(1, 0.8), step(2, 0.9)], SIMPLE).held


@pytest.mark.parametrize(
    ("cider", "similarity", "held"),
    [(0.9, 0.495, True), (0.9, 0.48, False), (1.1, 0.5, False), (0.995, 0.495, False)],
)
def test_meaning_stays_within_bounds_while_ngrams_fall(cider, similarity, held):
    rules = {"geometric mean": said(1.0), "far": said(cider, similarity=similarity)}
    found = Found([], {}, {"top-k": rules}, "far")
    assert meaning_stays(found, at_most=0.02).held is held


SMALL = {"n_validation": 2, "n_test": 3, "width": 2, "max_words": 8}
TINY = {"captioners": ("tiny",)}
RUNS = {
    "captioning-glove": {**SMALL, **TINY, "epsilons": (0.1, 0.25), "orders": (0.5,)},
    "captioning-synonyms": {**SMALL, **TINY, "epsilons": (0.1, 10.0), "orders": (0.5,)},
    "captioning-shuffle": {**SMALL, **TINY, "sizes": (1, 5), "epsilons": (0.2,), "orders": (0.5,)},
    "captioning-examples": {"n_images": 2, "width": 2, "max_words": 8, **TINY},
    "captioning-vocabulary": {
        **SMALL,
        "captioners": ("tiny", "cross-entropy-small"),
        "other": "tiny",
        "epsilons": (0.1, 0.15),
        "orders": (0.5,),
    },
}


@pytest.fixture(scope="module")
def runs():
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captioning_gallery, "java_scores", lambda rules, references: ({}, []))
        for name, settings in RUNS.items():
            module = find_experiment(name).load()
            steps = []
            progress = partial(lambda known, *each: known.append(each), steps)
            found[name] = module.run(module.Config(**settings), progress), steps
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_run_reports_its_progress_to_the_end(runs, name):
    _, steps = runs[name]
    n_all = steps[-1][1]
    assert steps == [(n_done, n_all) for n_done in range(1, n_all + 1)]


@pytest.mark.parametrize("name", ["captioning-glove", "captioning-synonyms"])
def test_a_study_has_every_rule_of_both_searches(runs, name):
    findings, _ = runs[name]
    sweep, top, sampled = findings.tables
    assert [row[0] for row in sweep.rows[-2:]] == [
        f"barycenter, epsilon {epsilon:g}" for epsilon in RUNS[name]["epsilons"]
    ]
    near, far = (row[1] for row in sweep.rows[-2:])
    assert 0 < near < far
    for table in (top, sampled):
        names = [row[0] for row in table.rows]
        assert {"tiny", "arithmetic mean", "geometric mean"} <= set(names)
        assert any(rule.startswith("barycenter, best") for rule in names)
        # Every rule has a gain but the one that gains are over.
        assert sum(row[2] is None for row in table.rows) == 1
        assert all(isinstance(row[1], Figure) for row in table.rows)


def test_the_paper_stands_beside_the_rules_of_its_table(runs):
    _, top, sampled = runs["captioning-glove"][0].tables
    place = top.columns.index("paper: entropy")
    known = {row[0]: row[place] for row in top.rows if row[place] is not None}
    assert known["geometric mean"] == 1.33
    assert [value for rule, value in known.items() if rule.startswith("barycenter, far")] == [6.94]
    assert "paper: entropy" not in sampled.columns


def test_neighbourhoods_of_one_are_not_shuffled(runs):
    by_size, at_largest = runs["captioning-shuffle"][0].tables
    [captioner] = SearchConfig().read_captioners("tiny").values()
    test = Gallery("test", 3, width=2, max_words=8, length_power=1.0)
    clean = {row[0]: row[1] for row in by_size.rows}
    assert clean["best single captioner"] == pytest.approx(test.caption(captioner).cider.mean())
    last = {row[0]: row[1].value for row in at_largest.rows}
    assert last == {row[0]: pytest.approx(row[-1]) for row in by_size.rows}
    assert last["best single captioner"] != clean["best single captioner"]


def test_examples_have_every_caption_and_reference(runs):
    summary, *images = runs["captioning-examples"][0].tables
    gallery = Gallery("test", 2)
    assert [table.title for table in images] == [f"Image {n}" for n in gallery.image_ids]
    for table, references in zip(images, gallery.references, strict=True):
        assert [row[1] for row in table.rows if row[0] == "reference"] == references
    same = {row[0]: row[1] for row in summary.rows}
    assert same["geometric mean"] == 2
    assert "37 %" in runs["captioning-examples"][0].difference


def test_the_union_says_words_that_one_captioner_lacks(runs):
    findings, _ = runs["captioning-vocabulary"]
    [table] = findings.tables
    rare = {row[0]: row[table.columns.index("rare words")] for row in table.rows}
    assert rare["tiny"] == 0
    assert "tiny and cross-entropy-small are fused" in findings.text
    assert [claim.statement.split(" is ")[1] for claim in findings.claims] == [
        "better than each captioner alone",
        "better than the best simple rule",
    ]
