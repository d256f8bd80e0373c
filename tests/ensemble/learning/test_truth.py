"""Truth by name: what is known of a sample goes by its id, labels may be whole numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import wassemble as ws
from wassemble import InvalidInputError, Predictions
from wassemble.ensemble.learning import learn_ensemble, read_trial
from wassemble.ensemble.learning.evaluation import evaluate_ensemble
from wassemble.errors import InputWarning

SAMPLES = ["p", "q", "r", "s"]
TRUTH = ["cat", "dog", "dog", "cat"]
SCORES = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.8, 0.2]])


def model(samples=SAMPLES, labels=("cat", "dog"), name="a"):
    return Predictions(name, samples, labels, SCORES)


def refused(truth, match, models=None, **options):
    with pytest.raises(InvalidInputError, match=match) as caught:
        read_trial(models or [model()], truth, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    "truth",
    [
        TRUTH,
        np.array(TRUTH),
        pl.Series(TRUTH),
        dict(zip(SAMPLES, TRUTH, strict=True)),
        pd.Series(TRUTH, index=SAMPLES),
        pd.Series(TRUTH, index=SAMPLES)[::-1],
        pd.Series(TRUTH[::-1], index=SAMPLES[::-1]).astype("category"),
        pd.DataFrame({"sample": SAMPLES[::-1], "label": TRUTH[::-1]}),
        pl.DataFrame({"label": TRUTH, "id": SAMPLES}),
        pl.DataFrame({"species": TRUTH, "id": SAMPLES}),
        pd.DataFrame({"species": TRUTH}, index=SAMPLES)[::-1],
        pd.DataFrame({"dog": [0, 1, 1, 0], "cat": [1, 0, 0, 1]}, index=SAMPLES)[::-1],
    ],
)
def test_truth_in_every_form_is_the_same(truth):
    trial = read_trial([model()], truth)
    assert trial.task == "multiclass"
    assert [trial.target[i] for i in trial.truth] == TRUTH
    assert trial.models[0].samples.tolist() == SAMPLES


@pytest.mark.parametrize(
    "truth",
    [
        [2, 7, 7, 2],
        np.array([2, 7, 7, 2]),
        np.array([2.0, 7.0, 7.0, 2.0]),
        ["2", "7", 7, 2.0],
        pd.Series([2, 7, 7, 2], index=SAMPLES, dtype="Int64"),
        {sample: np.int32(label) for sample, label in zip(SAMPLES, [2, 7, 7, 2], strict=True)},
        pd.DataFrame({"sample": SAMPLES, "label": [2, 7, 7, 2]}),
        pd.DataFrame({2: [1, 0, 0, 1], 7: [0, 1, 1, 0]}, index=SAMPLES),
    ],
)
def test_true_labels_may_be_whole_numbers(truth):
    for labels in ([2, 7], ["2", "7"]):
        trial = read_trial([model(labels=labels)], truth)
        assert trial.target.names == ("2", "7")
        assert trial.truth.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_samples_of_unknown_truth_are_left_out(gap):
    for truth in (
        pd.Series(["cat", gap, "dog", gap], index=SAMPLES, dtype=object),
        ["cat", gap, "dog", gap],
        {"p": "cat", "q": gap, "r": "dog"},
    ):
        assert read_trial([model()], truth).models[0].samples.tolist() == ["p", "r"]
    numbers = pd.Series([2.0, np.nan, 7.0, np.nan], index=SAMPLES)
    assert read_trial([model(labels=[2, 7])], numbers).truth.tolist() == [0, 1]


def test_a_series_may_know_fewer_samples_or_more():
    some = pd.Series(TRUTH, index=SAMPLES)[["s", "q"]]
    assert read_trial([model()], some).models[0].samples.tolist() == ["q", "s"]
    more = pd.Series([*TRUTH, "cat"], index=[*SAMPLES, "t"])
    assert read_trial([model()], more).n_samples == 4


def test_an_index_that_only_counts_matches_samples_that_are_counted():
    counted = pd.Series(TRUTH)
    assert read_trial([model(range(4))], counted).truth.tolist() == [0, 1, 1, 0]
    turned = read_trial([model([3, 2, 1, 0])], counted[:4])
    assert [turned.target[i] for i in turned.truth] == TRUTH[::-1]
    for samples, shown in (
        (SAMPLES, "the samples are 'p', 'q', 'r' ..."),
        ([1, 2, 3, 4], "the samples are 1, 2, 3 ..."),
        (["0", "1", "2", "3"], "the samples are '0', '1', '2' ..."),
    ):
        text = refused(counted, "it only counts: 0, 1, 2 ..., and", [model(samples)])
        assert shown in text
        assert "`truth.to_numpy()`, goes along with the samples of the first model" in text


def test_an_index_of_other_ids_is_refused():
    # As after a shuffled split, where predictions were counted anew.
    text = refused(
        pd.Series(TRUTH, index=[9, 3, 1, 12]), "it has other ids: 9, 3", [model(range(4))]
    )
    assert "the samples are 0, 1, 2 ..." in text
    refused(pd.Series(TRUTH, index=["x", "y", "z", "w"]), "it has other ids: 'x', 'y', 'z'")
    refused(pd.Series(TRUTH, index=["p", "p", "q", "r"]), "every sample once")


def test_tables_without_rows_are_refused():
    empty = Predictions("a", [], ["cat", "dog"], np.zeros((0, 2)), kind="multiclass")
    text = refused({"p": "cat"}, "some sample to learn from; got tables without rows", [empty])
    assert "hint" not in text


def test_ids_that_match_no_sample_are_shown_with_those_of_the_samples():
    for truth in (
        {"img1.jpg": "cat", "img2.jpg": "dog"},
        pd.DataFrame({"sample": ["img1.jpg", "img2.jpg"], "label": ["cat", "dog"]}),
    ):
        text = refused(truth, "some sample of the models; it knows none")
        assert "Ids of the models are such as 'p', 'q', 'r'" in text
        assert "those of the truth such as 'img1.jpg', 'img2.jpg'" in text


def test_whole_numbers_that_are_no_labels_are_taken_for_places():
    text = refused([0, 1, 1, 0], r"got whole numbers \('0', '1'\), and labels are such as 'cat'")
    assert "[labels[i] for i in truth]" in text
    named = read_trial([model()], [0, 1, 1, 0], target=ws.LabelSpace(["cat", "dog", 0, 1]))
    assert named.truth.tolist() == [2, 3, 3, 2]


def test_what_is_no_truth_is_refused():
    refused("cat", "a list of label names, or a dict of sample id to name; got 'cat'")
    refused(3, "a list of label names, or a dict of sample id to name; got 3")
    refused([0.5, 1, 1, 1], "whole number; got 0.5 in `truth`")


def test_weights_of_samples_go_by_name():
    weight = pd.Series([4.0, 3.0, 2.0, 1.0], index=SAMPLES[::-1])
    trial = read_trial([model()], TRUTH, sample_weight=weight)
    assert trial.sample_weight.tolist() == [1, 2, 3, 4]
    some = read_trial([model()], {"q": "dog", "s": "cat"}, sample_weight=weight)
    assert some.sample_weight.tolist() == [2, 4]
    refused(TRUTH, "number for each sample; got none for 'p'", sample_weight=weight[:3])
    refused(TRUTH, "the index of `sample_weight`", sample_weight=weight.reset_index(drop=True))


# Learning from data frames.


def frames(rng, n_samples=40):
    truth = rng.integers(2, size=n_samples)
    good = np.where(truth[:, None] == [0, 1], 0.8, 0.2)
    bad = np.full((n_samples, 2), 0.5)
    ids = [f"s{i}" for i in range(n_samples)]
    tables = {
        name: pd.DataFrame(scores, index=ids, columns=[0, 1])
        for name, scores in {"good": good, "bad": bad}.items()
    }
    return tables, pd.Series(truth, index=ids)


def test_data_frames_with_whole_numbers_are_learned_from_by_name(rng):
    tables, truth = frames(rng)
    turned = {"good": tables["good"][::-1][[1, 0]], "bad": tables["bad"]}
    kernel = pd.DataFrame([[0.2, 1.0], [1.0, 0.2]], index=[1, 0], columns=[0, 1])
    learned = learn_ensemble(
        turned, truth.sample(frac=1, random_state=0), kernels={"near": kernel}, time_budget=0
    )
    assert learned.choice.estimate == 1
    found = learned.predict(tables)
    assert [int(found.labels[i]) for i in found.scores.argmax(axis=1)] == truth.tolist()
    assert ws.evaluate_ensemble(learned, tables, truth).chosen.score == 1
    each = learn_ensemble(
        tables, truth, kernels={"near": {"good": kernel, "bad": kernel}}, time_budget=0
    )
    assert each.choice.estimate == 1
    with pytest.raises(InvalidInputError, match="'near' must be a LabelledKernel or a data frame"):
        learn_ensemble(tables, truth, kernels={"near": kernel.to_numpy()})


def test_learning_without_models_is_refused(rng):
    tables, truth = frames(rng)
    with pytest.raises(InvalidInputError, match="at least one model; got none"):
        learn_ensemble({}, truth)
    with pytest.raises(InvalidInputError, match="in a dict or a list; got one DataFrame"):
        learn_ensemble(tables["good"], truth)
    with pytest.raises(InvalidInputError, match="or all data frames; got 'ndarray'"):
        learn_ensemble([tables["good"].to_numpy()], truth)


def test_a_model_alone_is_judged_as_any_ensemble(rng):
    tables, truth = frames(rng)
    learned = learn_ensemble({"good": tables["good"]}, truth, time_budget=0)
    assert learned.fitted.recipe.model == "good"
    assert learned.choice.estimate == 1


def test_a_single_sample_of_each_label_is_enough():
    table = pd.DataFrame([[0.7, 0.3], [0.2, 0.8]], index=["x", "y"], columns=["p", "q"])
    assert learn_ensemble({"a": table, "b": table}, ["p", "q"], time_budget=0).n_samples == 2


def test_nothing_is_learned_from_a_single_label():
    table = pd.DataFrame([[0.7, 0.3], [0.2, 0.8]], index=["x", "y"], columns=["p", "q"])
    with pytest.raises(InvalidInputError, match="at least two labels to learn from; got 'p'"):
        learn_ensemble({"a": table, "b": table}, ["p", "p"])


def test_true_labels_that_no_model_knows_are_named(rng):
    scores = rng.dirichlet([1, 1], size=40)
    models = [Predictions(name, range(40), ["p", "q"], scores) for name in "ab"]
    truth = ["p", "q", "p", "zebra"] * 10
    with pytest.warns(InputWarning, match=r"no model knows: 'zebra \(10 samples\)'"):
        learn_ensemble(models, truth, time_budget=0)


def test_labels_that_nobody_knows_of_do_no_harm(rng):
    scores = rng.uniform(size=(8, 2))
    models = [Predictions(name, range(8), ["p", "q"], scores, kind="multilabel") for name in "ab"]
    truth = np.column_stack([np.arange(8) % 2, np.full(8, np.nan)])
    assert learn_ensemble(models, truth, time_budget=0).n_samples == 8


def test_rows_of_names_are_lists_of_labels():
    rows = np.array([["cat", "dog"], ["cat", "cat"], ["dog", "dog"], ["dog", "cat"]])
    trial = read_trial([model()], rows)
    assert trial.truth.tolist() == [[1, 1], [1, 0], [0, 1], [1, 1]]


def two_models():
    """Models whose samples differ: the second has them in another order, and two more."""
    more = Predictions("b", ["t", "s", "r", "q", "p", "u"], ["cat", "dog"], np.full((6, 2), 0.5))
    return [model(), more]


@pytest.mark.parametrize("truth", [TRUTH, np.array([[1, 0], [0, 1], [0, 1], [1, 0]])])
def test_a_truth_without_ids_goes_along_with_the_first_model(truth):
    target = ws.LabelSpace(["cat", "dog"])
    trial = read_trial(two_models(), truth, target=target, sample_weight=[1, 2, 3, 4])
    assert [each.samples.tolist() for each in trial.models] == [SAMPLES, SAMPLES]
    found = trial.truth if trial.truth.ndim == 1 else trial.truth.argmax(axis=1)
    assert [trial.target[i] for i in found] == TRUTH
    assert trial.sample_weight.tolist() == [1, 2, 3, 4]
    turned = read_trial(two_models()[::-1], ["cat", None, "dog", "cat", "cat", "dog"])
    assert turned.models[1].samples.tolist() == ["t", "r", "q", "p", "u"]


@pytest.mark.parametrize("n_known", [3, 6])
def test_a_truth_without_ids_that_is_not_of_the_first_model_says_so(n_known):
    said = refused(
        ["cat"] * n_known,
        rf"each of the 4 samples of the first model, 'a'; got {n_known}",
        two_models(),
    )
    assert "a dict of sample id to label" in said
    refused(
        np.zeros((n_known, 2)),
        rf"\(4, 2\), a row for each sample of the first model, 'a'; got \({n_known}, 2\)",
        two_models(),
        target=ws.LabelSpace(["cat", "dog"]),
    )


def test_weights_without_ids_do_not_reach_samples_that_the_first_model_lacks():
    truth = dict.fromkeys(["p", "t"], "cat")
    said = refused(
        truth, "weight of each sample; got none for 't'", two_models(), sample_weight=[1] * 4
    )
    assert "Series" in said
    weights = pd.Series(range(1, 7), index=["p", "q", "r", "s", "t", "u"])
    trial = read_trial(two_models(), truth, sample_weight=weights)
    assert trial.sample_weight.tolist() == [1, 5]


def test_a_truth_without_ids_goes_along_with_the_first_model_that_is_given_to_be_tested():
    good = np.eye(2)[[0, 1] * 10] * 0.8 + 0.1
    names = ["cat", "dog"] * 10
    a, b = (Predictions(name, range(20), ["cat", "dog"], good) for name in "ab")
    learned = learn_ensemble([a, b], names, n_folds=2, time_budget=0)
    rows = np.roll(np.arange(20), 1)
    turned = a.take(rows)
    for given in ([b, turned], {"b": b, "a": turned}, {"a": a, "b": b.take(rows)}):
        found = evaluate_ensemble(learned, given, names)
        assert found.outcomes[0].score == 1
