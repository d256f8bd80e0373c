"""Learning an ensemble: the promise is kept, and the reason is said."""

import json
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import wassemble as ws
from wassemble import InvalidInputError, Predictions
from wassemble.ensemble.learning import (
    FittedRecipe,
    LearnedEnsemble,
    Recipe,
    learn_ensemble,
    read_trial,
    shuffle_labels,
)
from wassemble.ensemble.learning.fitting import Fitter
from wassemble.ensemble.learning.recipes import list_recipes
from wassemble.ensemble.learning.search import Search
from wassemble.ensemble.plan import FusionPlan
from wassemble.metrics import ACCURACY, LOG_LOSS, MEAN_AVERAGE_PRECISION, cost_measure

LABELS = ["cat", "lynx", "dog", "wolf"]
BARYCENTER = ws.Barycenter(ws.Unbalanced(0.7, epsilon=0.3), max_sweeps=5, tolerance=None)


def noisy(rng, truth, n_labels, strength):
    logits = rng.normal(size=(len(truth), n_labels))
    logits[np.arange(len(truth)), truth] += strength
    scores = np.exp(logits)
    return scores / scores.sum(axis=1, keepdims=True)


@pytest.fixture
def plain(rng):
    """Three models of one label set, of different strength; nothing semantic about them."""
    truth = rng.integers(4, size=240)
    models = [
        Predictions(f"m{i}", range(240), LABELS, noisy(rng, truth, 4, s))
        for i, s in enumerate((0.3, 1.0, 2.0))
    ]
    return models, [LABELS[i] for i in truth]


def cross_space(rng, n_samples=300):
    """Attribute scores of noisy models; classes are sets of attributes."""
    table = (rng.uniform(size=(12, 6)) < 0.4).astype(float)
    table[rng.integers(12, size=6), np.arange(6)] = 1
    truth = rng.integers(6, size=n_samples)
    classes = [f"class {i}" for i in range(6)]
    attributes = [f"attribute {i}" for i in range(12)]
    models = []
    for i in range(2):
        scores = np.clip(table[:, truth].T * 0.6 + rng.uniform(0, 0.5, size=(n_samples, 12)), 0, 1)
        models.append(Predictions(f"m{i}", range(n_samples), attributes, scores, kind="multilabel"))
    kernel = ws.kernels.from_attributes(table, attributes, classes)
    return models, [classes[i] for i in truth], kernel


def assert_the_account_says_which_number_is_which(learned):
    reasons = [reason for reason in learned.choice.reasons if reason.endswith("taken")]
    compared = learned.choice.comparisons.values()
    for reason, found in zip(reasons, compared, strict=True):
        is_taken = found.difference > 0.5 * found.standard_error
        than = "more" if is_taken else "not more"
        assert f"gains {found} over it by nested choice, {than} than 0.5 standard errors" in reason
        assert f"of the paired difference ({found.standard_error:.4f})" in reason
        assert reason.endswith(": taken" if is_taken else ": not taken")
    table, honest = learned.report.splitlines()[-2:]
    assert "the table of rules" in table
    assert "the same folds" in table
    assert honest.startswith(f"{learned.metric} by nested choice, the honest estimate: ")
    assert f"{learned.choice.estimate:.4f}" in honest


def test_without_scikit_learn_all_but_stacking_is_tried(plain, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    learned = learn_ensemble(*plain)
    assert not any("logistic" in line.name for line in learned.leaderboard)
    assert any("stacked consensus" in line.name for line in learned.leaderboard)
    assert "stacking by logistic regression was not tried: scikit-learn is not" in learned.report


def test_what_was_learned_is_shown_in_a_line(plain):
    learned = learn_ensemble(*plain)
    name = learned.fitted.recipe.name
    told = f"3 models, 240 samples, {learned.n_tried} rules tried"
    assert repr(learned) == f"LearnedEnsemble({name!r}, {told})"


def test_where_nothing_is_to_be_gained_a_simple_rule_is_kept(plain):
    models, truth = plain
    kernel = ws.kernels.from_ratings(np.eye(4) * 0.6 + 0.4, LABELS, LABELS, symmetric=True)
    learned = learn_ensemble(models, truth, kernels={"blur": kernel}, n_folds=3)
    best = max(line.score for line in learned.leaderboard if line.is_simple)
    chosen = next(line for line in learned.leaderboard if line.is_chosen)
    assert chosen.score >= best - 1e-12 or not chosen.recipe.is_simple
    assert learned.fitted.recipe.is_simple
    assert "not taken" in learned.report
    assert_the_account_says_which_number_is_which(learned)
    names = [line.name for line in learned.leaderboard]
    assert "arithmetic mean" in names
    assert {"m0 alone", "m1 alone", "m2 alone", "logistic-regression stacking (C = 3)"} <= set(
        names
    )


def test_a_kernel_that_carries_the_meaning_is_chosen_and_beats_its_shuffle(rng):
    truth = rng.integers(4, size=400)
    # The first is unsure of everything; the second is sure, but of the kind of animal alone.
    models = [
        Predictions("wild", range(400), LABELS, noisy(rng, truth, 4, 1.0)),
        Predictions("kinds", range(400), ["feline", "canine"], noisy(rng, truth // 2, 2, 3.0)),
    ]
    kinds = np.array([[1, 1, 0.01, 0.01], [0.01, 0.01, 1, 1]])
    within = np.eye(4) + 0.01
    kernels = {
        "wild": ws.kernels.from_ratings(within, LABELS, LABELS),
        "kinds": ws.kernels.from_ratings(kinds, ["feline", "canine"], LABELS),
    }
    names = [LABELS[i] for i in truth]
    learned = learn_ensemble(models, names, kernels={"kinds": kernels}, target=LABELS, n_folds=3)
    by_name = max(
        x.score for x in learned.leaderboard if x.is_simple and x.recipe.kernel == "names"
    )
    chosen = next(line for line in learned.leaderboard if line.is_chosen)
    assert not learned.fitted.recipe.is_simple
    assert chosen.score > by_name + 0.05
    assert ": taken" in learned.report
    assert_the_account_says_which_number_is_which(learned)
    if learned.fitted.recipe.transports:
        assert learned.choice.control.meaning_helped


def test_classes_from_attributes_are_learned_through_the_kernel(rng):
    models, truth, kernel = cross_space(rng)
    learned = learn_ensemble(
        models, truth, kernels={"table": kernel}, target=kernel.target, n_folds=3
    )
    assert learned.task == "multiclass"
    assert learned.fusion.kind == "multilabel"
    control = learned.choice.control
    if learned.fitted.recipe.transports:
        assert control.meaning_helped
        assert "the meaning of the labels helped" in learned.report
    consensus = learned.predict(models)
    np.testing.assert_allclose(consensus.scores.sum(axis=1), 1)
    right = np.array(consensus.labels)[consensus.scores.argmax(axis=1)] == np.array(truth)
    assert right.mean() > 0.7


def test_multilabel_truth_learns_thresholds(rng):
    truth = (rng.uniform(size=(200, 5)) < 0.3).astype(float)
    labels = [f"l{i}" for i in range(5)]
    models = [
        Predictions(
            f"m{i}",
            range(200),
            labels,
            np.clip(truth * 0.5 + rng.uniform(0, 0.6, size=truth.shape), 0, 1),
            kind="multilabel",
        )
        for i in range(2)
    ]
    truth[0, 0] = np.nan
    learned = learn_ensemble(models, truth, n_folds=3)
    assert learned.metric == "mAP"
    assert learned.thresholds.shape == (5,)
    assert learned.temperature == 1
    rules = {type(line.recipe.rule) for line in learned.leaderboard}
    assert {ws.GatedMean, ws.GatedBarycenter, ws.PowerMean, ws.Single} <= rules


def test_labels_are_matched_once_for_each_kernel_and_not_for_each_rule(plain, monkeypatch):
    models, truth = plain
    made = []
    original = FusionPlan.__init__
    monkeypatch.setattr(
        FusionPlan, "__init__", lambda self, *given: made.append(given) or original(self, *given)
    )
    learned = learn_ensemble(models, truth, n_folds=2)
    # By name, and to look at the labels; through mistakes with three priors, on each of two folds
    # and on all samples; by the stacker.
    assert learned.n_tried > 40
    assert len(made) <= 3 + 3 * 3
    made.clear()
    learned.predict(models)
    learned.predict(models)
    assert not made


def test_a_search_goes_on_from_its_log(plain, tmp_path, monkeypatch):
    models, truth = plain
    log = tmp_path / "search.jsonl"
    first = learn_ensemble(models, truth, n_folds=2, log=log)
    lines = log.read_text().splitlines()
    assert len(lines) >= first.n_tried
    log.write_text("\n".join(lines[:10]) + "\n" + lines[10][:30])  # cut off in a line
    asked = []
    original = Search.predict
    monkeypatch.setattr(
        Search,
        "predict",
        lambda self, recipe: asked.append(recipe) or original(self, recipe),
    )
    again = learn_ensemble(models, truth, n_folds=2, log=log)
    assert again.fitted.recipe == first.fitted.recipe
    assert [x.score for x in again.leaderboard] == [x.score for x in first.leaderboard]
    for line in log.read_text().splitlines():
        json.loads(line)


def test_a_log_of_other_data_is_not_believed(plain, tmp_path):
    models, truth = plain
    log = tmp_path / "search.jsonl"
    learn_ensemble(models, truth, n_folds=2, log=log, time_budget=0)
    n_lines = len(log.read_text().splitlines())
    learn_ensemble(models[:2], truth, n_folds=2, log=log, time_budget=0)
    assert len(log.read_text().splitlines()) > n_lines
    log.write_text("what is this\n" + log.read_text())
    with pytest.raises(InvalidInputError, match="line 1: must be a line of an earlier search"):
        learn_ensemble(models, truth, n_folds=2, log=log)


def test_without_time_single_models_and_even_means_are_tried(plain):
    models, truth = plain
    learned = learn_ensemble(models, truth, n_folds=2, time_budget=0)
    plain_ones = [r for r in list_recipes(read_trial(models, truth), {}) if r.is_plain]
    assert learned.n_tried == len(plain_ones)
    assert "the time was over before every rule was tried" in learned.report
    assert learned.fitted.recipe.is_plain


def test_with_a_sample_for_each_label_nothing_is_learned_of_what_labels_mean(rng):
    # Otherwise the samples, each the only one of its label, teach that labels that were met are
    # never true, or that only those are.
    labels = ws.LabelSpace([f"label {i}" for i in range(60)])
    truth = rng.permutation(60)[:40]
    models = [
        Predictions(f"m{i}", range(40), labels, noisy(rng, truth, 60, 0.3 + i)) for i in range(3)
    ]
    trial = read_trial(models, [labels[i] for i in truth], target=labels)
    assert not trial.repeats_labels
    recipes = list_recipes(trial, {})
    assert not any(recipe.uses_mistakes for recipe in recipes)
    stacked = [recipe.rule for recipe in recipes if recipe.is_stacked]
    assert all(set(rule.sees) <= {"names", "rules", "frequencies"} for rule in stacked)
    learned = learn_ensemble(models, [labels[i] for i in truth], target=labels)
    assert "most samples are the only one of their label" in learned.report


def test_few_samples_need_a_larger_gain(plain):
    models, truth = plain
    few = slice(30)
    learned = learn_ensemble([model.take(few) for model in models], truth[few], n_folds=2)
    assert "counted 2.1 times as there are few samples" in learned.report


def test_a_time_budget_is_kept(plain):
    models, truth = plain
    started = time.process_time()
    learn_ensemble(models, truth, time_budget=1.0)
    # Of the processor, and generously: the machine may be busy.
    assert time.process_time() - started < 5


def test_an_interrupt_gives_the_best_so_far(plain, monkeypatch):
    models, truth = plain
    original = Search.try_one

    def interrupted(self, recipe):
        if recipe.tier == 3:
            raise KeyboardInterrupt
        return original(self, recipe)

    monkeypatch.setattr(Search, "try_one", interrupted)
    learned = learn_ensemble(models, truth, n_folds=2)
    assert "interrupted before every rule was tried: the best so far is taken" in learned.report
    assert learned.predict(models).n_samples == len(truth)


def test_the_same_seed_gives_the_same_choice(plain):
    models, truth = plain
    first, second = (
        learn_ensemble(models, truth, n_folds=2, time_budget=0, seed=3) for _ in range(2)
    )
    assert first.report == second.report


def test_of_a_loss_the_lowest_is_chosen(plain):
    models, truth = plain
    options = {"n_folds": 2, "time_budget": 0}
    right = learn_ensemble(models, truth, **options)
    cheap = learn_ensemble(models, truth, metric=cost_measure(1 - np.eye(4)), **options)
    assert cheap.choice.recipe == right.choice.recipe
    assert cheap.choice.estimate == pytest.approx(right.choice.estimate - 1)
    assert cheap.choice.estimate_error == pytest.approx(right.choice.estimate_error)


def test_nothing_of_a_fold_leaks_into_its_own_predictions(plain):
    """Swapping the truth of one fold changes nothing that is predicted there."""
    models, truth = plain
    trial = read_trial(models, truth)
    measure = ACCURACY
    recipe = Recipe(BARYCENTER, kernel="confusion", weights="greedy")
    search = Search(trial, measure, {}, 3, 0)
    inside = search.folds == 1
    changed = trial.truth.copy()
    changed[inside] = (changed[inside] + 1) % 4
    other = Search(type(trial)(trial.models, trial.target, trial.kind, changed), measure, {}, 3, 0)
    other.folds = search.folds
    np.testing.assert_array_equal(search.predict(recipe)[inside], other.predict(recipe)[inside])
    assert (search.predict(recipe)[~inside] != other.predict(recipe)[~inside]).any()


@pytest.mark.parametrize("weights", ["uniform", "metric", "greedy", "gradient"])
def test_learned_weights_lie_on_the_simplex_and_favour_the_strong(plain, weights):
    models, truth = plain
    trial = read_trial(models, truth)
    fitter = Fitter(trial, {}, ACCURACY)
    fitted = fitter.fit(Recipe(ws.ARITHMETIC, weights=weights))
    found = np.array(list(fitted.fusion.weights.values()))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    if weights != "uniform":
        assert found[2] == found.max()
        assert found[0] == found.min()


def test_gradient_weights_have_the_least_log_loss(plain):
    models, truth = plain
    trial = read_trial(models, truth)
    measure = LOG_LOSS
    fitted = Fitter(trial, {}, measure).fit(Recipe(ws.ARITHMETIC, weights="gradient"))
    best = measure.score(fitted.fuse(models), trial.truth, None)
    rng = np.random.default_rng(0)
    for _ in range(20):
        tried = rng.dirichlet(np.ones(3))
        mean = sum(w * m.scores for w, m in zip(tried, models, strict=True))
        assert measure.score(mean, trial.truth, None) <= best + 1e-6


def test_the_diagonal_kernel_is_the_solvers_fixed_point(rng):
    scores = rng.uniform(0.05, 0.9, size=(2, 6, 5))
    labels = [f"l{i}" for i in range(5)]
    models = [
        Predictions(f"m{i}", range(6), labels, s, kind="multilabel") for i, s in enumerate(scores)
    ]
    trial = read_trial(models, np.eye(6, 5))
    recipe = Recipe(ws.GatedBarycenter(0.7, n_top=2, floor=0.5))
    found = Fitter(trial, {}, MEAN_AVERAGE_PRECISION).fit(recipe).fuse(models)
    kernel = ws.kernels.top_labels(scores, n_top=2, floor=0.5)
    rule = ws.Barycenter(ws.Unbalanced(0.7, epsilon=0.3))
    expected = ws.fuse(scores, kernel=kernel, rule=rule, kind="multilabel")
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_shuffling_keeps_own_names_and_the_entries_of_each_row(rng):
    matrix = rng.uniform(size=(5, 7))
    target = [f"l{i}" for i in range(7)]
    kernel = ws.kernels.from_ratings(matrix / matrix.max(), [*target[:4], "other"], target)
    shuffled = shuffle_labels(kernel, 0)
    before, after = kernel.to_dense(), shuffled.to_dense()
    np.testing.assert_allclose(np.sort(after, axis=1), np.sort(before, axis=1))
    for i in range(4):
        assert after[i, i] == before[i, i]
    assert (after != before).any()


def test_a_learned_ensemble_is_saved_and_loaded_without_pickle(rng, tmp_path, plain):
    models, truth, kernel = cross_space(rng)
    learned = learn_ensemble(
        models, truth, kernels={"table": kernel}, target=kernel.target, n_folds=2
    )
    learned.save(tmp_path / "ensemble")
    loaded = LearnedEnsemble.load(tmp_path / "ensemble")
    np.testing.assert_array_equal(loaded.predict(models).scores, learned.predict(models).scores)
    assert loaded.report == learned.report
    assert loaded.leaderboard == learned.leaderboard
    for mine, theirs in zip(loaded.rivals, learned.rivals, strict=True):
        np.testing.assert_array_equal(mine.fuse(models), theirs.fuse(models))
    fitted = sorted((tmp_path / "ensemble").glob("rule-*.npz"))
    assert fitted
    np.savez(fitted[0], coefficients=np.eye(2), intercepts=np.ones(2))
    with pytest.raises(InvalidInputError, match="must come with the parameters that it was fitted"):
        LearnedEnsemble.load(tmp_path / "ensemble")
    fitted[0].unlink()
    with pytest.raises(InvalidInputError, match=r"rule-\d+\.npz: must be a \.npz file"):
        LearnedEnsemble.load(tmp_path / "ensemble")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must be JSON"),
        ("[]", "must be a learned ensemble"),
        ('{"format": "wassemble ensemble 1"}', "it lacks .fusion"),
    ],
)
def test_a_broken_ensemble_is_refused(tmp_path, text, message):
    (tmp_path / "ensemble.json").write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        LearnedEnsemble.load(tmp_path)
    with pytest.raises(InvalidInputError, match="which `wassemble fit` writes; there is none"):
        LearnedEnsemble.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"choice": {"reasons": "because"}}, "reasons must be a list of texts; got 'because'"),
        ({"choice": {"reasons": ["because", 3]}}, "reasons must be a list of texts"),
        ({"choice": {"estimate": "0.9"}}, "estimate must be a number; got '0.9'"),
        ({"choice": {"estimate_error": None}}, "estimate_error must be a number; got None"),
        ({"n_samples": "many"}, "`n_samples` must be a whole number; got 'many'"),
        ({"metric": 3}, "`metric` must be a text; got 3"),
    ],
)
def test_entries_of_other_types_are_refused_when_loaded(plain, tmp_path, change, message):
    models, truth = plain
    learn_ensemble(models[:2], truth, n_folds=2, time_budget=0).save(tmp_path)
    path = tmp_path / "ensemble.json"
    record = json.loads(path.read_text())
    for name, value in change.items():
        record[name] = record[name] | value if isinstance(value, dict) else value
    path.write_text(json.dumps(record))
    with pytest.raises(InvalidInputError, match=message):
        LearnedEnsemble.load(tmp_path)


def test_few_samples_that_are_all_right_do_not_make_it_certain():
    scores = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]
    models = [Predictions(name, range(4), ["cat", "dog"], scores) for name in "ab"]
    learned = learn_ensemble(models, ["cat", "cat", "dog", "dog"], n_folds=2, time_budget=0)
    assert "4 samples are few: on others the score may well be anything else" in learned.report


def test_doubtful_grounds_are_named(plain):
    models, truth = plain
    few = [model.take(slice(30)) for model in models]
    few.append(few[0].replace(model="twin"))
    true = ["lynx" if name == "cat" else name for name in truth[:30]]
    learned = learn_ensemble(few, ["cat", *true[1:]], n_folds=2, time_budget=0)
    assert "30 samples are few: on others the score may well be anything from 0." in learned.report
    assert "'m0', 'twin' give the same scores everywhere" in learned.report
    assert "true labels that occur once, 1 of 4, of which nothing" in learned.report
    enough = learn_ensemble(models, truth, n_folds=2, time_budget=0).report
    for words in ("are few", "the same scores", "occur once"):
        assert words not in enough


def test_an_ensemble_of_rows_that_were_divided_by_their_sums_divides_new_ones(plain, tmp_path):
    models, truth = plain
    counts = [model.replace(scores=50 * model.scores, kind="multilabel") for model in models]
    learn_ensemble(counts, truth, n_folds=2, time_budget=0, normalize=True).save(tmp_path)
    learned = LearnedEnsemble.load(tmp_path)
    assert learned.fusion.normalize
    expected = learn_ensemble(models, truth, n_folds=2, time_budget=0).predict(models)
    np.testing.assert_allclose(learned.predict(counts).scores, expected.scores, rtol=1e-6)
    run = learned.fusion.run(counts).consensus
    np.testing.assert_allclose(learned.sharpen(run.scores), expected.scores, rtol=1e-5)


def test_an_ensemble_file_cannot_leave_its_folder(rng, tmp_path):
    models, truth, kernel = cross_space(rng, 60)
    learned = learn_ensemble(
        models, truth, kernels={"table": kernel}, target=kernel.target, n_folds=2, time_budget=0
    )
    learned.save(tmp_path)
    path = tmp_path / "ensemble.json"
    path.write_text(path.read_text().replace("kernel-0.npz", "../kernel-0.npz"))
    with pytest.raises(InvalidInputError, match="a kernel must be a file of the folder"):
        LearnedEnsemble.load(tmp_path)


def test_models_are_matched_by_name_when_predicting(plain):
    models, truth = plain
    learned = learn_ensemble(models, truth, n_folds=2, time_budget=0)
    turned = [
        m.replace(labels=ws.LabelSpace(LABELS[::-1]), scores=m.scores[:, ::-1]) for m in models
    ]
    np.testing.assert_allclose(learned.predict(turned[::-1]).scores, learned.predict(models).scores)
    with pytest.raises(InvalidInputError, match="m0 is missing"):
        learned.predict(models[1:])
    strange = models[0].replace(labels=ws.LabelSpace(["a", "b", "c", "d"]))
    with pytest.raises(InvalidInputError, match="labels of 'm0' must be those"):
        learned.predict([strange, *models[1:]])


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (["cat"], "each of the 240 samples of the first model, 'm0'; got 1"),
        ({}, "known for some sample; got none"),
        ({"0": "tiger", "1": "cat"}, "among the 4 target labels, .*; got 'tiger'.\nhint: leave"),
        (np.zeros((2, 2)), r"= \(240, 4\), a row .*; got \(2, 2\)"),
    ],
)
def test_a_truth_that_does_not_fit_is_refused(plain, truth, message):
    with pytest.raises(InvalidInputError, match=message):
        read_trial(plain[0], truth, target=ws.LabelSpace(LABELS))


def test_truth_is_matched_by_sample_id(plain):
    models, truth = plain
    some = {str(i): truth[i] for i in range(0, 240, 3)}
    trial = read_trial(models, some)
    assert trial.n_samples == 80
    assert trial.models[0].samples.tolist() == list(range(0, 240, 3))
    table = Predictions("truth", range(240), LABELS, np.eye(4)[[LABELS.index(t) for t in truth]])
    np.testing.assert_array_equal(read_trial(models, table).truth, read_trial(models, truth).truth)


def test_folds_are_even_in_every_label(plain):
    trial = read_trial(*plain)
    folds = trial.folds(4, 0)
    for label in range(4):
        counts = np.bincount(folds[trial.truth == label], minlength=4)
        assert np.ptp(counts) <= 1
    with pytest.raises(InvalidInputError, match="at least 5 samples"):
        trial.take(np.arange(3)).folds(5, 0)


def test_bootstrap_draws_follow_sample_weights(plain):
    models, truth = plain
    weight = np.zeros(240)
    weight[:10] = 1
    trial = read_trial(models, truth, sample_weight=weight)
    search = Search(trial, ACCURACY, {}, 2, 0)
    [counts] = search.bootstrap.resamples.blocks()
    assert counts[:, 10:].sum() == 0
    assert (counts.sum(axis=1) == 240).all()


def test_rare_labels_get_no_more_folds_than_they_have_samples():
    models = [Predictions("a", range(12), ["x", "y", "z", "w"], np.full((12, 4), 0.25))]
    trial = read_trial(models, ["x", "y", "z", "w"] * 3)
    assert trial.usual_n_folds == 3
    # Each fold then leaves the same number of every label.
    kept = [np.bincount(trial.truth[trial.folds(3, seed=0) != k]) for k in range(3)]
    assert (np.array(kept) == 2).all()
    assert read_trial([models[0].take(slice(5))], ["x", "y", "z", "w", "x"]).usual_n_folds == 2
    many = Predictions("a", range(40), ["x", "y"], np.full((40, 2), 0.5))
    assert read_trial([many], ["x", "y"] * 20).usual_n_folds == 5


def test_samples_that_the_only_model_of_the_rule_lacks_are_told_from_those_nobody_answered(rng):
    truth = np.arange(40) % 4
    good, poor = noisy(rng, truth, 4, 6.0), np.full((40, 4), 0.25)
    a, b = (Predictions(n, range(40), LABELS, s) for n, s in (("a", good), ("b", poor)))
    learned = learn_ensemble([a, b], [LABELS[i] for i in truth], n_folds=2, time_budget=0)

    def choose(rule):
        fusion = learned.fusion.replace(rule=rule, weights=None)
        return replace(learned, fitted=FittedRecipe(Recipe(rule), fusion))

    poor[4] = np.nan
    given = [a.take(slice(0, 3)), b.replace(scores=poor).take(slice(0, 6))]
    with pytest.warns(ws.ConvergenceWarning) as caught:
        fused = choose(ws.Single("a")).predict(given)
    assert np.isnan(fused.scores).all(axis=1).tolist() == [False] * 3 + [True] * 3
    assert [str(w.message) for w in caught] == [
        "'a', the only model that the chosen rule uses, did not answer 3 of 6 samples: left empty;"
        " other models answered 2 of them."
    ]
    with pytest.warns(ws.ConvergenceWarning, match="^no model answered 1 of 6 samples: left empty"):
        choose(ws.ARITHMETIC).predict(given)
