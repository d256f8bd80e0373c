"""An ensemble learned from models alone."""

import numpy as np
import pytest
from simulated_models import LABELS, accuracy_of, as_model, draw_answers, draw_models, draw_truth

import wassemble as ws
from wassemble.ensemble.without_truth.learn import _burden, hear, to_recipe
from wassemble.ensemble.without_truth.rungs import RUNGS


def test_a_reliable_model_outvotes_many_that_guess(rng):
    truth = draw_truth(rng, 600)
    models = draw_models(rng, truth, [0.95, 0.4, 0.4, 0.4, 0.4, 0.4])
    learned = ws.learn_ensemble(models)
    mean = ws.fuse(models, rule=ws.ARITHMETIC)
    assert accuracy_of(learned.predict(models), truth) > accuracy_of(mean, truth) + 0.1
    assert "reliability" in learned.fitted.recipe.name
    assert learned.n_gold == 0
    assert "known truth: none" in learned.report


def test_equally_good_models_get_what_the_mean_gives(rng):
    truth = draw_truth(rng, 400)
    models = draw_models(rng, truth, [0.7] * 5)
    learned, mean = ws.learn_ensemble(models), ws.fuse(models, rule=ws.ARITHMETIC)
    clear = np.sort(mean.scores, axis=1)[:, -1] > np.sort(mean.scores, axis=1)[:, -2] + 1e-9
    same = learned.predict(models).scores.argmax(axis=1) == mean.scores.argmax(axis=1)
    assert same[clear].mean() > 0.97


def test_a_timid_model_counts_by_how_often_it_is_right(rng):
    truth = draw_truth(rng, 600)
    bold = draw_models(rng, truth, [0.6, 0.6, 0.6, 0.6])
    answers = draw_answers(rng, truth, 0.95)
    shares = np.full((600, 3), 0.3) + 0.1 * np.eye(3)[answers]
    models = [*bold, ws.Predictions("timid", range(600), LABELS, shares, kind="multiclass")]
    learned = ws.learn_ensemble(models)
    assert accuracy_of(learned.predict(models), truth) > 0.9
    assert ws.rank_models(models).models[0].model == "timid"


@pytest.mark.parametrize("rung", RUNGS, ids=str)
def test_the_fusion_of_a_rung_believes_what_the_rung_believes(rng, rung):
    truth = draw_truth(rng, 200)
    models = draw_models(rng, truth, [0.9, 0.6, 0.5, 0.5])
    soft = rng.integers(1, 4, size=(200, 3)).astype(float)  # often two labels are equally good
    models[3] = ws.Predictions("m3", range(200), LABELS, soft).normalized()
    models[1].scores[::3] = np.nan  # it was asked, and said nothing
    models[2] = models[2].take(slice(0, 150))  # it was not asked
    heard = hear(models)
    fitted = rung.fit(heard.votes, heard.known)
    aligned = [*models[:2], models[2], models[3]]
    consensus = to_recipe(fitted, heard.fusion, heard.kernel).fusion.fuse(aligned).scores
    where = slice(0, 150)  # a fusion of new samples takes any silence for one that was meant
    np.testing.assert_allclose(consensus[where], fitted.consensus[where], atol=1e-6)


def test_it_is_saved_and_loaded_like_any_other(rng, tmp_path):
    truth = draw_truth(rng, 300)
    models = draw_models(rng, truth, [0.9, 0.5, 0.5, 0.4])
    learned = ws.learn_ensemble(models)
    learned.save(tmp_path / "ensemble")
    loaded = ws.LearnedEnsemble.load(tmp_path / "ensemble")
    np.testing.assert_array_equal(loaded.predict(models).scores, learned.predict(models).scores)
    assert loaded.report == learned.report
    evaluation = ws.evaluate_ensemble(loaded, models, [LABELS[i] for i in truth])
    assert evaluation.outcomes[0].score > 0.8


def test_each_model_may_have_labels_of_its_own(rng):
    truth = draw_truth(rng, 500)
    answers = draw_answers(rng, truth, 0.9)
    models = draw_models(rng, truth, [0.9, 0.5, 0.5])
    two = np.where((answers == 2)[:, None], np.nan, np.eye(3)[answers])[:, :2]
    models.append(ws.Predictions("two", range(500), LABELS[:2], two, kind="multiclass"))
    learned = ws.learn_ensemble(models)
    assert learned.target.names == tuple(LABELS)
    mean = ws.fuse(models, rule=ws.ARITHMETIC)
    assert accuracy_of(learned.predict(models), truth) > accuracy_of(mean, truth)


def test_gold_is_believed(rng):
    truth = draw_truth(rng, 300)
    # Three models share a mistake that only gold can tell.
    wrong = np.where(truth == 0, 1, truth)
    right = as_model("right", draw_answers(rng, truth, 0.8))
    models = [*draw_models(rng, wrong, [0.9] * 3), right]
    gold = {i: LABELS[truth[i]] for i in range(200)}
    heard = hear(models, gold=gold)
    for rung in RUNGS[2:]:
        told = rung.fit(heard.votes, heard.known).consensus
        np.testing.assert_array_equal(told[:200].argmax(axis=1), truth[:200])
    with_gold = np.mean(told[200:].argmax(axis=1) == truth[200:])
    blind = hear(models)
    without = rung.fit(blind.votes, blind.known).consensus
    assert with_gold > np.mean(without[200:].argmax(axis=1) == truth[200:]) + 0.05


def test_gold_that_suffices_is_learned_from_alone(rng):
    truth = draw_truth(rng, 300)
    wrong = np.where(truth == 0, 1, truth)
    models = [*draw_models(rng, wrong, [0.9] * 3), as_model("right", draw_answers(rng, truth, 0.8))]
    gold = {i: LABELS[truth[i]] for i in range(120)}
    learned = ws.learn_ensemble(models, gold=gold)
    alone = ws.learn_ensemble([model.take(slice(0, 120)) for model in models], gold)
    assert learned.fitted.recipe == alone.fitted.recipe
    assert learned.n_samples == 120
    assert learned.choice.comparisons["the consensus without truth"].difference > 0.1
    assert "over the consensus without truth" in learned.report


def test_gold_that_says_nothing_new_leaves_the_consensus_as_it_is(rng):
    truth = draw_truth(rng, 300)
    models = draw_models(rng, truth, [0.9] * 5)  # together they are nearly always right
    few = ws.learn_ensemble(models, gold={i: LABELS[truth[i]] for i in range(99)})
    assert few.n_gold == 99
    assert "that of 99 samples" in few.report
    assert "alone" not in few.report
    more = ws.learn_ensemble(models, gold={i: LABELS[truth[i]] for i in range(100)}, caution=2)
    assert more.n_gold == 100
    assert "learned from 100 gold samples alone, gains" in more.report
    assert more.report.count("over the consensus without truth: not taken") == 1


def test_the_more_gold_there_is_the_more_a_tie_speaks_for_it():
    assert [_burden(n_gold) for n_gold in (100, 150, 200, 5000)] == [1, 0, -1, -1]


def test_the_balance_of_labels_may_be_given(rng):
    truth = draw_truth(rng, 200)
    models = draw_models(rng, truth, [0.8, 0.6, 0.5])
    balance = {"ant": 0.2, "bee": 0.3, "cow": 0.5}
    heard = hear(models, balance=balance)
    assert RUNGS[2].fit(heard.votes, heard.known).balance.tolist() == [0.2, 0.3, 0.5]
    with pytest.raises(ws.InvalidInputError, match=r"`balance` must sum to 1; got 1\.5"):
        ws.learn_ensemble(models, balance={"ant": 0.5, "bee": 0.5, "cow": 0.5})
    with pytest.raises(ws.InvalidInputError, match="`balance` must name each of"):
        ws.learn_ensemble(models, balance={"ant": 0.5, "bee": 0.5})


def test_what_needs_truth_is_refused_without(rng):
    truth = draw_truth(rng, 50)
    models = draw_models(rng, truth, [0.8, 0.6, 0.5])
    for options in ({"metric": "accuracy"}, {"groups": list(range(50))}, {"n_folds": 3}):
        (name,) = options
        with pytest.raises(ws.InvalidInputError, match=f"without truth .* got `{name}`"):
            ws.learn_ensemble(models, **options)
    with pytest.raises(ws.InvalidInputError, match="must go without `truth`"):
        ws.learn_ensemble(models, [LABELS[i] for i in truth], gold={0: "ant"})
    with pytest.raises(ws.InvalidInputError, match="at least three models"):
        ws.learn_ensemble(models[:2])


def test_multi_label_scores_are_refused(rng):
    models = [
        ws.Predictions(f"m{i}", range(9), LABELS, rng.random((9, 3)), kind="multilabel")
        for i in range(3)
    ]
    with pytest.raises(ws.InvalidInputError, match="samples must have one label each"):
        ws.learn_ensemble(models)
