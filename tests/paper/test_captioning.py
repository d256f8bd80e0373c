"""Captioning: the gallery, shuffled captioners, what claims are read from, and small runs."""

import re
from functools import partial

import numpy as np
import pytest
from text.tables import TableModel

from paper.captioners import TOLD
from paper.captioning import gallery as captioning_gallery
from paper.captioning.beyond import FollowingDisagreement, disagreement
from paper.captioning.gallery import Captioned, Gallery, SearchConfig, java_scores
from paper.captioning.scores import CaptionScore
from paper.captioning.shuffle import ShuffledNextWord, word_stars
from paper.captioning.study import (
    Found,
    Step,
    entropy_grows,
    meaning_stays,
    ngrams_suffer,
    randomised_loss,
    reach,
)
from paper.data.captions import load_caption_words
from paper.record.catalogue import find_experiment
from paper.record.findings import Figure
from paper.record.judging import Judge
from paper.words.models import (
    epsilon_at,
    glove_kernels,
    load_caption_vectors,
    synonym_kernels,
)
from wassemble.errors import InvalidInputError, MissingExtraError
from wassemble.kernels import distance_to_identity
from wassemble.labels import LabelSpace
from wassemble.metrics import MEAN
from wassemble.solvers import ARITHMETIC, GEOMETRIC
from wassemble.text import FusedNextWord, Vocabulary, beam_search

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
    """Of forty images, no two alike, with these means."""
    spread = np.linspace(-0.01, 0.01, 40)
    near = similarity * (1 + spread)
    return Captioned(["a cat"], entropy + spread[::8], cider + spread, near, near)


def step(distance, top, sampled=1.0, **more):
    found = {"top-k": said(top, **more), "randomised": said(sampled, **more)}
    return Step(distance, distance / 10, found)


def judge():
    return Judge(MEAN, np.zeros(40))


SIMPLE = {search: {"geometric mean": said(1.0)} for search in ("top-k", "randomised")}


def test_references_score_high_and_silence_scores_nothing(gallery):
    cider, similarity, papers = gallery.score([texts[0] for texts in gallery.references])
    assert similarity == pytest.approx(1)
    assert cider.min() > 1
    # One of five references is the caption itself; the others keep the paper's from 1.
    assert 0.2 < papers.mean() < 0.4
    for score in gallery.score([""] * 30):
        assert not score.any()


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


def test_the_entropy_is_of_all_words_where_a_search_leaves_some_out(gallery):
    models = [OfPictures(WORDS, seed=seed) for seed in (1, 2)]
    whole, part = (FusedNextWord(models, rule=GEOMETRIC, n_top=n_top) for n_top in (None, 2))
    found = gallery.caption(part)
    assert found.entropy > np.log(3)
    each = captioning_gallery._mean_entropies(whole, gallery.features[:6], found.texts[:6])
    assert found.entropies.tolist() == each.tolist()
    assert found.entropy == pytest.approx(each.mean())


def test_a_caption_has_the_mean_entropy_of_its_own_steps(gallery):
    model, features = OfPictures(WORDS), gallery.features[:2]
    texts = ["a cat", "a dog a mat"]
    together = captioning_gallery._mean_entropies(model, features, texts)
    alone = [
        captioning_gallery._mean_entropies(model, features[i : i + 1], texts[i : i + 1])[0]
        for i in range(2)
    ]
    np.testing.assert_allclose(together, alone)
    assert together[0] != together[1]


def test_a_gallery_may_begin_later_in_its_split(gallery):
    later = Gallery("val", 10, first=20, width=2, max_words=5)
    model = OfPictures(WORDS)
    whole, part = gallery.caption(model), later.caption(model)
    assert part.texts == whole.texts[20:]
    assert np.array_equal(part.cider, whole.cider[20:])


def test_disagreement_is_the_share_of_the_most_that_models_can_disagree():
    with np.errstate(divide="ignore"):
        apart = np.log(np.eye(3)[:, None])
    assert disagreement(apart) == pytest.approx([1.0])
    assert disagreement(apart[[0, 0, 0]]) == pytest.approx([0.0])
    assert 0 < disagreement(apart[[0, 0, 1]])[0] < 1


def test_a_row_goes_up_a_rung_for_each_threshold_that_its_disagreement_reaches():
    models = [TableModel(WORDS, seed=seed) for seed in (1, 2)]
    low, high = (FusedNextWord(models, rule=rule) for rule in (GEOMETRIC, ARITHMETIC))
    state, words = low.start(range(40)), np.zeros(40, dtype=np.int64)
    logs, _ = low.step_models(state.states, words)
    middle = float(np.median(disagreement(logs)))
    found, after = FollowingDisagreement([low, high], [middle]).step(state, words)
    is_high = disagreement(logs) >= middle
    assert 10 < is_high.sum() < 30
    for rung, rows in ((low, ~is_high), (high, is_high)):
        assert np.array_equal(found[rows], rung.step(state, words)[0][rows])
    assert after.states == low.step(state, words)[1].states


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
    rules = {"one": Captioned(["a", "ab"], *np.zeros((4, 2)))}
    rules["two"] = Captioned(["abc", "abcd"], *np.zeros((4, 2)))
    found, notes = java_scores(rules, [["x"], ["x", "y", "z"]])
    assert found == {"SPICE": {"one": 3.5, "two": 5.5}}
    assert notes == ["METEOR needs Java, which is not installed."]


def test_stars_are_neighbours_without_special_words_digits_and_function_words():
    words = ["<end>", "<unk>", "a", "man", "dog", "2", "woman", "3", "cat", "of", "with"]
    vocabulary = Vocabulary(LabelSpace(words))
    stars = word_stars(glove_kernels(vocabulary.words)(0.2), vocabulary, 2)
    joined = {tuple(vocabulary.decode(star)) for star in stars if star[1] < len(words)}
    assert joined == {("man", "woman"), ("woman", "man"), ("dog", "cat"), ("cat", "dog")}


def test_best_words_fall_on_any_word_of_their_star_and_come_out_again():
    model = TableModel(WORDS, seed=1)
    n_words = len(WORDS)
    stars = np.full((n_words, 3), n_words)
    stars[:, 0] = range(n_words)
    stars[2:5, 1:] = [[3, 4], [2, 4], [2, 3]]
    shuffled = ShuffledNextWord(model, stars, [0, 1], n_hubs=2)
    start = np.zeros(600, dtype=np.int64)

    def begin(model):  # sentences of one picture
        return model.reorder(model.start(np.zeros(1)), start)

    logs, state = shuffled.step(begin(shuffled), start)
    plain, _ = model.step(begin(model), start)
    assert np.array_equal(logs[:, [0, 1, 5, 6]], plain[:, [0, 1, 5, 6]])
    # All six orders of three words, about as often: no second star moved them again.
    _, counts = np.unique(logs[:, 2:5], axis=0, return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 60
    again, _ = shuffled.step(begin(shuffled), start)
    assert np.array_equal(again, logs)
    # Another captioner has shuffles of its own, one with the same seed the same.
    others = [ShuffledNextWord(model, stars, [0, seed], n_hubs=2) for seed in (2, 1)]
    own, alike = (each.step(begin(each), start)[0] for each in others)
    assert not np.array_equal(own, logs)
    assert np.array_equal(alike, logs)
    later, _ = shuffled.step(shuffled.reorder(state, np.arange(600)), start)
    read, _ = model.step(state.inner, start)
    assert len(np.unique(later[:, 2:5], axis=0)) > len(np.unique(read[:, 2:5], axis=0))


def test_a_shuffle_is_the_pictures_own_whatever_is_searched_with_it():
    model, n_words = TableModel(WORDS, seed=1), len(WORDS)
    stars = np.full((n_words, 3), n_words)
    stars[:, 0] = range(n_words)
    stars[2:5, 1:] = [[3, 4], [2, 4], [2, 3]]
    shuffled = ShuffledNextWord(model, stars, [0], n_hubs=2)

    def step(pictures, rows):
        state = shuffled.reorder(shuffled.start(pictures), np.array(rows))
        return shuffled.step(state, np.zeros(len(rows), dtype=np.int64))[0]

    pictures = np.arange(40.0)
    rows = np.repeat(np.arange(40), 3)  # three sentences of each
    together = step(pictures, rows).reshape(40, 3, n_words)
    # Of any batch, in any place of it.
    later = step(pictures[15:30], rows[:45]).reshape(15, 3, n_words)
    assert np.array_equal(later, together[15:30])
    # The same place of two batches is two pictures; sentences of one have their own too.
    assert not np.array_equal(together[:15], together[15:30])
    assert not np.array_equal(together[:, 0], together[:, 1])


def test_an_epsilon_is_found_for_a_distance_and_the_paper_has_more_words():
    words = LabelSpace(["sofa", "couch", "chair", "giraffe", "zebra", "dog", "cat"])
    for kernel_at in (glove_kernels(words), synonym_kernels(words)):
        epsilon = epsilon_at(kernel_at, 20.0)
        kernel = kernel_at(epsilon)
        norm = float(distance_to_identity(kernel.kernel))
        assert norm * np.sqrt(10_096 / 7) == pytest.approx(20.0, rel=1e-3)
    with pytest.raises(InvalidInputError, match="distance to the identity must be between"):
        epsilon_at(synonym_kernels(words), 1e4)


def test_vectors_of_caption_words_have_lengths_of_their_own_or_one():
    raw, unit = load_caption_vectors(), load_caption_vectors(unit_norm=True)
    lengths = np.linalg.norm(raw.vectors, axis=1)
    assert lengths.max() > 2 * lengths.min()
    np.testing.assert_allclose(raw.vectors, unit.vectors * lengths[:, None], atol=1e-5)
    # They are of one kind with those that captioners began from.
    _, known = load_caption_words()
    found = unit.vectors[[unit.find(word) for word in known.words]]
    np.testing.assert_allclose(found, known.vectors, atol=0.01)


def test_word_vectors_are_compared_by_their_squared_distance():
    words = LabelSpace(["sofa", "couch", "giraffe"])
    near, far = (np.asarray(glove_kernels(words)(epsilon).to_dense()) for epsilon in (0.5, 1.0))
    np.testing.assert_allclose(near, far**2, rtol=1e-4)
    # Of unit vectors: 2 - 2 cosine, at most 4; a distance would be at most 2.
    _, vectors = load_caption_words()
    sofa, giraffe = (vectors.vectors[vectors.find(word)] for word in ("sofa", "giraffe"))
    assert -np.log(far[0, 2]) == pytest.approx(np.square(sofa - giraffe).sum(), rel=0.01)


def test_synonyms_and_vectors_join_words_of_like_meaning():
    words = LabelSpace(["sofa", "couch", "giraffe"])
    for kernel in (synonym_kernels(words)(1.0), glove_kernels(words)(0.2)):
        near, far = kernel.to_dense()[0, 1:]
        assert 1 > near > far


def test_entropy_must_grow_at_every_step_of_both_searches():
    rising = [step(e, 1.0, entropy=e) for e in (1, 2, 3)]
    assert entropy_grows(rising, 0).held is True
    assert entropy_grows([*rising, step(4, 1.0, entropy=2.5)], 0).held is False
    flat = step(4, 1.0, entropy=3.0)
    unsure = Captioned(["a cat"], 3 + np.array([-1, 1, -1, 1, 0.5]), *np.zeros((3, 40)))
    open_end = Step(4, 0.4, {**flat.found, "top-k": unsure})
    claim = entropy_grows([*rising, open_end], 0)
    assert claim.held is None or claim.held is False
    assert float(claim.power) > 0.5


def test_a_gain_at_the_papers_largest_distance_is_told_where_one_beyond_it_is_judged():
    steps = [step(4.2, 1.0), step(48.5, 0.9), step(150, 0.5)]
    claim = ngrams_suffer(steps, judge(), 48.5)
    assert "+0.500 [" in claim.found
    assert "at 48.5, the paper's largest, +0.100 [" in claim.found
    assert "largest" not in ngrams_suffer(steps[:2], judge(), 48.5).found


def test_a_search_reaches_as_far_as_it_keeps_nine_tenths():
    steps = [step(1, 1.0, 0.95), step(2, 0.92, 0.5), step(3, 0.8, 0.95)]
    assert reach(steps, SIMPLE, "top-k") == 2
    assert reach(steps, SIMPLE, "randomised") == 1  # what comes back later does not count
    assert reach([step(1, 0.5)], SIMPLE, "top-k") == 0
    assert randomised_loss(steps[1], SIMPLE) == pytest.approx(0.42)


def test_ngrams_suffer_where_the_loss_is_beyond_chance():
    assert ngrams_suffer([step(1, 1.0), step(2, 0.9)], judge(), 2).held is True
    assert ngrams_suffer([step(1, 0.8), step(2, 0.9)], judge(), 2).held is False
    noisy = Captioned(["a cat"], np.ones(5), np.tile([0.0, 2.0], 20) - 0.01, *np.zeros((2, 40)))
    far = Step(2, 0.2, {"top-k": noisy})
    assert ngrams_suffer([step(1, 1.0), far], judge(), 2).held is None


@pytest.mark.parametrize(("similarity", "held"), [(0.495, True), (0.48, False), (0.55, False)])
def test_meaning_stays_within_bounds(similarity, held):
    rules = {"geometric mean": said(1.0), "far": said(0.9, similarity=similarity)}
    found = Found([], {}, {"top-k": rules}, "far")
    claim = meaning_stays(found, judge(), source="table 7", at_most=0.02)
    assert claim.held is held
    assert claim.source == "table 7"


def test_captioners_that_are_told_concepts_get_them():
    told, seeing = (
        SearchConfig(captioners=names).gallery("test", 2) for names in (TOLD, ("tiny",))
    )
    assert told.features.shape == (2, 18, 128)
    assert np.array_equal(told.features[:, :16], seeing.features)


SMALL = {"n_validation": 2, "n_test": 3, "width": 2, "max_words": 8}
TINY = {"captioners": ("tiny",)}
RUNS = {
    "captioning-glove": {**SMALL, **TINY, "distances": (4.2, 48.5), "orders": (0.5,)},
    "captioning-synonyms": {
        **SMALL,
        **TINY,
        "distances": (0.25, 20.0),
        "far": 20.0,
        "orders": (0.5,),
    },
    "captioning-shuffle": {
        **SMALL,
        **TINY,
        "sizes": (1, 5),
        "glove_distances": (48.5,),
        "synonym_distances": (20.0,),
        "orders": (0.5,),
    },
    "captioning-examples": {
        "n_images": 2,
        "width": 2,
        "max_words": 8,
        "synonym_distance": 20.0,
        **TINY,
    },
    "captioning-beyond": {
        **SMALL,
        "captioners": ("cross-entropy-small", "self-critical-small"),
        "n_draws": 2,
        "distances": (48.5,),
        "thresholds": (0.2,),
        "n_top": 50,
    },
    "captioning-vocabulary": {
        **SMALL,
        "captioners": ("tiny", "cross-entropy-small"),
        "other": "tiny",
        "distances": (4.2, 15.9),
        "orders": (0.5,),
    },
    "entropy": {
        **TINY,
        "n_images": 2,
        "word": "train",
        "synonym_distances": (20.0, 0.25),
        "glove_distances": (1500.0, 48.5, 27.8, 15.9, 4.2),
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
        f"barycenter, distance {distance:g}" for distance in RUNS[name]["distances"]
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


def test_stars_of_one_word_are_not_shuffled_and_those_of_five_are_judged(runs):
    by_size, judged, alike, *_ = runs["captioning-shuffle"][0].tables
    [captioner] = SearchConfig().read_captioners("tiny").values()
    test = Gallery("test", 3, width=2, max_words=8, length_power=1.0)
    clean = {row[0]: row[1] for row in by_size.rows}
    assert clean["best single captioner"] == pytest.approx(test.caption(captioner).cider.mean())
    at_five = {row[0]: row[1].value for row in judged.rows}
    assert at_five == {row[0]: pytest.approx(row[-1]) for row in by_size.rows}
    assert at_five["best single captioner"] != clean["best single captioner"]
    means = ["arithmetic mean", "geometric mean"]
    through = [f"{mean} through K" for mean in means]
    assert [row[0] for row in alike.rows] == [*means, *through, "barycenter"]
    findings, _ = runs["captioning-shuffle"]
    assert all("stars of 5" in claim.statement for claim in findings.claims)
    # What there is without shuffles stands beside: the ceiling.
    ceiling = clean["arithmetic mean"]
    recovers, suffers, *_ = findings.claims
    assert f"arithmetic mean {at_five['arithmetic mean']:.3f} of {ceiling:.3f}" in suffers.found
    assert f"{at_five['barycenter']:.3f} of {clean['barycenter']:.3f}: " in recovers.found
    kept = at_five["barycenter"] / clean["barycenter"]
    assert f"under stars of GloVe the barycenter keeps {kept:.0%} of" in findings.verdict
    shares = re.findall(r"GloVe: (\d+\.\d) % of the mass", findings.text)
    assert len(shares) == 1
    assert 0 <= float(shares[0]) < 50


def test_ideas_are_judged_on_the_images_of_all_draws(runs):
    findings, _ = runs["captioning-beyond"]
    assert [table.title for table in findings.tables] == [
        "Test images, without shuffles",
        "Test images, under stars",
    ]
    plain, stars = ({row[0]: row for row in table.rows} for table in findings.tables)
    names = RUNS["captioning-beyond"]["captioners"]
    models = list(SearchConfig().read_captioners(*names).values())
    test = Gallery("test", 6, width=2, max_words=8, length_power=1.0)
    mean = test.caption(FusedNextWord(models, rule=ARITHMETIC)).cider
    assert plain["arithmetic mean"][1].value == pytest.approx(mean.mean())
    assert plain["arithmetic mean"][2:4] == pytest.approx([mean[:3].mean(), mean[3:].mean()])
    assert stars["arithmetic mean"][1].value != plain["arithmetic mean"][1].value
    assert len(findings.claims) == 6
    assert {claim.source for claim in findings.claims} == {"ours"}
    assert "paper's" not in findings.verdict
    assert "6 test images show a gain from" in findings.verdict


def test_entropy_follows_the_distance_from_the_geometric_mean_to_uniform(runs):
    findings, _ = runs["entropy"]
    held = {claim.statement: claim.held for claim in findings.claims}
    assert held["entropy grows with the distance of K to the identity (synonyms)"]
    assert held["entropy grows with the distance of K to the identity (GloVe)"]
    assert held["a large epsilon gives a nearly uniform consensus (95 % of its entropy)"]
    assert held["K = I gives the geometric mean"]
    assert all(claim.power for claim in findings.claims)
    assert [claim.source for claim in findings.claims].count("table 8") == 1
    rows = {row[0]: row for row in findings.tables[0].rows}
    [far] = [row for name, row in rows.items() if "GloVe, 48.5" in name]
    assert far[4] == 6.94
    assert far[1] > rows["geometric mean"][1]
    # The best word of one captioner alone is "train": the image was chosen for it.
    assert findings.tables[1].rows[0][2].startswith("train ")


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
        "better than each captioner alone (CIDEr)",
        "better than the best simple rule (CIDEr)",
    ]
