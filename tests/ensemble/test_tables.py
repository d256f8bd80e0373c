"""Fusing by name: samples by id, labels by name, silence is not a "no"."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from problems import fusion_with

import wassemble as ws
from wassemble import InvalidInputError, Predictions

nan = np.nan


def make(model, labels, scores, samples=None, **options):
    scores = np.array(scores, dtype=float)
    samples = [f"s{i}" for i in range(len(scores))] if samples is None else samples
    return Predictions(model, samples, labels, scores, **options)


def histograms(rng, n_samples, n_labels):
    scores = rng.uniform(0.05, 1, size=(n_samples, n_labels))
    return scores / scores.sum(axis=1, keepdims=True)


def test_the_same_labels_and_samples_give_what_arrays_give(rng):
    scores = [histograms(rng, 4, 3) for _ in range(2)]
    kernel = ws.kernels.DenseKernel(rng.uniform(0.1, 1, size=(3, 3)))
    labels = ["cat", "dog", "cow"]
    fusion = ws.Fusion(kernel=kernel).run(
        [make("a", labels, scores[0]), make("b", labels, scores[1])]
    )
    np.testing.assert_allclose(fusion.consensus.scores, ws.fuse(scores, kernel=kernel))
    assert fusion.plan.rule.mass == ws.Unbalanced(2.0, epsilon=0.3)


@given(st.permutations(range(3)), st.permutations(range(4)))
def test_the_order_of_columns_and_rows_means_nothing(columns, rows):
    rng = np.random.default_rng(0)
    first, second = histograms(rng, 4, 3), histograms(rng, 4, 3)
    labels, samples = ["cat", "dog", "cow"], ["p", "q", "r", "s"]
    straight = ws.Fusion().run(
        [make("a", labels, first, samples), make("b", labels, second, samples)]
    )
    turned = make(
        "b",
        [labels[i] for i in columns],
        second[np.ix_(rows, columns)],
        [samples[i] for i in rows],
    )
    found = ws.Fusion().run([make("a", labels, first, samples), turned])
    assert found.consensus.samples.tolist() == samples
    np.testing.assert_allclose(found.consensus.scores, straight.consensus.scores, rtol=1e-9)


def test_a_label_that_a_model_does_not_declare_is_not_its_no():
    knows = make("knows", ["cat", "lynx"], [[0.1, 0.9]])
    cats = make("cats", ["cat", "dog"], [[0.55, 0.45]])
    fusion = ws.Fusion().run([knows, cats])
    best = fusion.consensus.labels[int(fusion.consensus.scores[0].argmax())]
    assert best == "lynx"
    plain = ws.Fusion(leftover=1, rule=ws.ARITHMETIC).run([knows, cats])
    np.testing.assert_allclose(plain.consensus.scores, [[0.325, 0.45, 0.225]])
    aware = ws.Fusion(leftover=0, rule=ws.ARITHMETIC).run([knows, cats])
    np.testing.assert_allclose(aware.consensus.scores * 1.675, [[0.325, 0.9, 0.45]])
    assert "one that does not declare a label has no say on it" in fusion.report


def test_label_weights_leave_a_share_where_mistakes_reach():
    pets = ["cat", "dog"]
    a = make("a", pets, [[0.5, 0.5]])
    b = make("b", ["cat"], [[1.0]])
    kernels = {each.model: ws.kernels.from_confusion(each, ["dog"], target=pets) for each in (a, b)}
    fusion = ws.Fusion(kernel=kernels, target=pets, leftover=0.1).run([a, b])
    np.testing.assert_allclose(fusion.plan.label_weights, [[0.5, 1 / 1.1], [0.5, 0.1 / 1.1]])
    assert "has no say on it, or 10% where its kernel reaches it" in fusion.report


def test_a_target_of_labels_that_nobody_declares_has_the_models_weights():
    kernel = ws.kernels.from_ratings([[1, 0], [0.5, 0.5]], ["furry", "wet"], ["bear", "fish"])
    a, b = make("a", ["furry", "wet"], [[0.9, 0.1]]), make("b", ["furry", "wet"], [[0.4, 0.6]])
    fusion = ws.Fusion(kernel=kernel, target=["bear", "fish"], weights={"a": 0.9, "b": 0.1}).run(
        [a, b]
    )
    assert not fusion.plan.is_label_aware
    assert fusion.consensus.labels.names == ("bear", "fish")
    np.testing.assert_allclose(fusion.consensus.scores.sum(axis=1), 1)


def test_models_that_did_not_answer_have_no_vote():
    rng = np.random.default_rng(1)
    labels = ["cat", "dog"]
    first, second = histograms(rng, 3, 2), histograms(rng, 3, 2)
    second[1] = nan
    a = make("a", labels, first, ["x", "y", "z"])
    b = make("b", labels, second[:2], ["x", "y"])
    fusion = ws.Fusion(weights={"a": 0.3, "b": 0.7}).run([a, b])
    np.testing.assert_allclose(fusion.consensus.scores[1:], first[1:])
    both = ws.fuse([first[:1], second[:1]], weights=[0.3, 0.7])
    np.testing.assert_allclose(fusion.consensus.scores[:1], both / both.sum())
    assert "b: no answer for 2 of 3 samples" in fusion.report


@pytest.mark.parametrize("ids", [np.array([7, 9]), np.array(["x", "y"], dtype=object)])
def test_a_model_without_samples_has_no_vote(ids):
    scores = np.array([[0.9, 0.1], [0.2, 0.8]])
    a, b = (make(name, ["cat", "dog"], scores, ids) for name in "ab")
    nothing = make("b", ["cat", "dog"], np.empty((0, 2)), [])
    for models in ([a, nothing], [nothing, b], [nothing, b.take(slice(0, 0)), a]):
        named = [model.replace(model=str(place)) for place, model in enumerate(models)]
        with pytest.warns(ws.InputWarning, match="answered none of 2 samples"):
            consensus = ws.Fusion().run(named).consensus
        np.testing.assert_allclose(consensus.scores, scores, rtol=1e-6)
        assert consensus.samples.dtype == ids.dtype
        assert consensus.samples.tolist() == ids.tolist()


def test_a_sample_that_nobody_answered_is_left_empty_and_said():
    a = make("a", ["cat", "dog"], [[nan, nan], [0.5, 0.5]])
    with pytest.warns(ws.ConvergenceWarning, match="1 of 2 samples: no model answered"):
        fusion = ws.Fusion().run([a])
    assert np.isnan(fusion.consensus.scores[0]).all()
    assert fusion.statuses.tolist() == [-1, ws.Status.CONVERGED]
    assert "1 of 2 samples: no model answered" in fusion.report


def test_common_samples_only_when_asked():
    a = make("a", ["cat", "dog"], [[0.5, 0.5], [0.5, 0.5]], ["x", "y"])
    b = make("b", ["cat", "dog"], [[0.5, 0.5], [0.5, 0.5]], ["y", "z"])
    assert ws.Fusion().run([a, b]).consensus.samples.tolist() == ["x", "y", "z"]
    assert ws.Fusion(samples="common").run([a, b]).consensus.samples.tolist() == ["y"]
    with pytest.raises(InvalidInputError, match="samples in common; got none"):
        ws.Fusion(samples="common").run([a, b.take([1])])


def test_whole_numbers_match_their_texts():
    a = make("a", ["cat", "dog"], [[0.5, 0.5], [0.9, 0.1]], [1, 2])
    b = make("b", ["cat", "dog"], [[0.9, 0.1], [0.5, 0.5]], ["2", "1"])
    fusion = ws.Fusion().run([a, b])
    assert fusion.consensus.samples.tolist() == ["1", "2"]
    np.testing.assert_allclose(fusion.consensus.scores, [[0.5, 0.5], [0.9, 0.1]])


def test_a_smaller_target_leaves_out_the_rest_and_says_how_much():
    a = make("a", ["cat", "dog", "cow"], [[0.5, 0.3, 0.2]])
    fusion = ws.Fusion(target=["cat", "dog"]).run([a])
    np.testing.assert_allclose(fusion.consensus.scores, [[0.625, 0.375]])
    assert "1 of 3 labels are not target labels by name: 'cow'" in fusion.report
    assert "1 of 3 labels lead to no target label; 20.0% of its mass is there" in fusion.report


def test_multilabel_scores_are_not_divided_by_their_mass():
    a = make("a", ["cat", "dog"], [[0.9, 0.8]])
    fusion = ws.Fusion().run([a, a.replace(model="b")])
    assert fusion.plan.rule.mass == ws.Unbalanced(2.0, epsilon=0.3)
    assert fusion.consensus.kind == "multilabel"
    assert fusion.consensus.scores.sum() > 1.2


def test_partial_answers_are_completed_and_said():
    a = make("a", ["cat", "dog", "cow"], [[0.8, nan, nan]])
    fusion = ws.Fusion().run([a])
    np.testing.assert_allclose(fusion.consensus.scores, [[0.8, 0.1, 0.1]])
    assert "1 answer was partial, 20.0% of its mass unobserved" in fusion.report
    assert "spread evenly" in fusion.report
    hard = make("h", ["cat", "dog", "cow"], [[1.0, nan, nan]], is_hard=True)
    assert "hard labels, taken with confidence 0.9" in ws.Fusion().run([hard]).report


@pytest.mark.parametrize(
    ("options", "confidence"),
    [
        ({}, "0.9"),
        ({"hard_confidence": 0.8}, "0.8"),
        ({"unobserved": "renormalize"}, "1"),
        ({"kind": "multilabel"}, "1"),
    ],
)
def test_the_confidence_of_hard_labels_that_is_said_is_theirs(options, confidence):
    hard = make("h", ["cat", "dog", "cow"], [[1.0, nan, nan]], is_hard=True)
    fusion = ws.Fusion(ws.ARITHMETIC, **options).run([hard])
    assert fusion.consensus.scores[0, 0] == pytest.approx(float(confidence))
    assert f"h: hard labels, taken with confidence {confidence}\n" in fusion.report
    account = ws.Fusion().open_account([hard])
    account.add_inputs([hard])
    assert account.input_lines()[-1] == "h: hard labels, without scores"


def test_aliases_and_folded_names_are_said():
    a = make("a", ["Polar_Bear", "sedan"], [[0.5, 0.5]])
    b = make("b", ["polar bear", "car"], [[0.5, 0.5]])
    fusion = ws.Fusion(aliases={"sedan": "car"}, fold=True).run([b, a])
    assert fusion.consensus.labels.names == ("polar bear", "car")
    assert "a: by alias 'sedan -> car'" in fusion.report
    assert "a: by folded name 'Polar_Bear -> polar bear'" in fusion.report


def test_the_account_is_ready_for_json():
    import json

    a = make("a", ["cat", "dog"], [[0.5, nan]])
    account = json.loads(json.dumps(ws.Fusion().run([a]).account.to_dict()))
    assert account["models"][0]["n_partial"] == 1
    assert account["ends"] == {"converged": 1}


def test_the_account_counts_what_a_mean_would_answer_alike(rng):
    knows = make("knows", ["cat", "lynx"], rng.dirichlet([0.3, 0.3], size=200))
    some = make("some", ["cat", "dog", "lynx"], rng.dirichlet([0.3] * 3, size=200))
    some.scores[:9] = nan
    for models in ([knows, some], [some, make("b", ["cat", "dog", "lynx"], some.scores[::-1])]):
        fusion = ws.Fusion().run(models)
        mean = ws.Fusion(ws.ARITHMETIC).run(models)
        has_answer = fusion.statuses >= 0
        same = fusion.consensus.scores.argmax(axis=1) == mean.consensus.scores.argmax(axis=1)
        account = fusion.account.to_dict()
        assert account["n_same_as_mean"] == int(same[has_answer].sum())
        assert account["n_compared_with_mean"] == int(has_answer.sum())
        assert 0 < account["n_same_as_mean"] < account["n_compared_with_mean"]
        assert mean.account.to_dict()["n_same_as_mean"] is None
        aware = "label-aware " if fusion.plan.is_label_aware else ""
        n_other = int((~same[has_answer]).sum())
        assert (
            f"the {aware}arithmetic mean gives the same label on {same[has_answer].sum()} of"
            f" {has_answer.sum()} samples; only the truth can tell which is better on the other"
            f" {n_other} (metrics.accuracy, learn_ensemble)"
        ) in fusion.report
        assert "the same label" not in mean.report
    alike = ws.Fusion().run([knows, knows.replace(model="b")])
    assert "mean gives the same label on all 200 samples" in alike.report


def test_a_tie_is_no_other_label_than_that_of_the_mean():
    a = make("a", ["cat", "dog", "lynx"], [[0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])
    b = make("b", ["cat", "dog", "lynx"], [[0.7, 0.1, 0.2], [0.2, 0.2, 0.6]])
    fusion = ws.Fusion().run([a, b])
    scores = fusion.consensus.scores[0]
    assert scores[0] == pytest.approx(scores[1], rel=1e-12)
    scores[1] = np.nextafter(scores[0], 1)  # by rounding in first place alone
    assert fusion.account.to_dict()["n_same_as_mean"] == 2


def test_no_mean_is_compared_where_there_is_none_or_labels_are_too_many(monkeypatch):
    a = make("a", ["cat", "dog"], [[0.5, 0.9]], kind="multilabel")
    assert ws.Fusion().run([a]).account.to_dict()["n_same_as_mean"] is None
    monkeypatch.setattr("wassemble.ensemble.account._MOST_LABELS_OF_MEAN", 1)
    one = make("a", ["cat", "dog"], [[0.1, 0.9]])
    many = ws.Fusion().run([one, one.replace(model="b")])
    assert many.account.to_dict()["n_same_as_mean"] is None
    assert "not compared with the arithmetic mean: that takes long for 2 labels" in many.report
    assert "arithmetic mean" not in ws.Fusion().run([one]).report


def test_kernels_are_put_in_order_by_name(rng):
    matrix = rng.uniform(0.1, 1, size=(3, 2))
    kernel = ws.kernels.from_ratings(matrix, ["x", "y", "z"], ["cat", "dog"])
    a = make("a", ["z", "x", "y"], histograms(rng, 2, 3))
    found = ws.Fusion(kernel=kernel, target=["dog", "cat"]).run([a]).consensus.scores
    dense = kernel.kernel.to_dense()[[2, 0, 1]][:, [1, 0]]
    np.testing.assert_allclose(found, ws.fuse([a.scores], kernel=dense))


def test_a_kernel_for_other_labels_is_refused(rng):
    kernel = ws.kernels.from_ratings(np.eye(2), ["x", "y"], ["cat", "dog"])
    with pytest.raises(InvalidInputError, match="'w'"):
        ws.Fusion(kernel=kernel, target=["cat", "dog"]).run([make("a", ["w", "x"], [[0.5, 0.5]])])


def test_a_function_makes_a_kernel_for_each_label_set():
    asked = []

    def build(source, target):
        asked.append((source.names, target.names))
        return ws.kernels.from_names(source, target)

    a, b = make("a", ["cat", "dog"], [[0.5, 0.5]]), make("b", ["dog"], [[1.0]])
    ws.Fusion(kernel=build).run([a, a.replace(model="c"), b])
    assert asked == [(("cat", "dog"), ("cat", "dog")), (("dog",), ("cat", "dog"))]


def test_fuse_takes_tables_and_returns_the_same_library():
    import pandas as pd
    import polars as pl

    data = {"sample": ["x", "y"], "cat": [0.5, 0.1], "dog": [0.5, 0.9]}
    for library in (pd, pl):
        frame = library.DataFrame(data)
        fused = ws.fuse({"a": frame, "b": frame})
        assert isinstance(fused, library.DataFrame)
        assert list(fused.columns) == ["sample", "cat", "dog"]
        np.testing.assert_allclose(fused["dog"].to_numpy(), [0.5, 0.9])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_column_of_ids_may_be_named_for_all_tables_or_for_each(library):
    frames = pytest.importorskip(library)
    numbered = {"image": [7, 3], "cat": [0.9, 0.2], "dog": [0.1, 0.8]}
    turned = {"photo": [3, 7], "cat": [0.2, 0.9], "dog": [0.8, 0.1]}
    one, two = frames.DataFrame(numbered), frames.DataFrame(turned)
    for models, named in (
        ({"a": one, "b": one}, "image"),
        ({"a": one, "b": two}, {"a": "image", "b": "photo"}),
    ):
        fused = ws.fuse(models, id_column=named)
        assert list(fused.columns) == ["image", "cat", "dog"]
        assert fused["image"].to_list() == [7, 3]
        np.testing.assert_allclose(fused["cat"].to_numpy(), [0.9, 0.2])
        assert ws.Fusion(id_column=named).run(models).account.id_column == "image"


def test_a_column_of_ids_of_nothing_is_refused():
    import pandas as pd

    frame = pd.DataFrame({"image": [7], "cat": [0.9], "dog": [0.1]})
    with pytest.raises(InvalidInputError, match="must be of the models 'a'; got 'b'"):
        ws.Fusion(id_column={"b": "image"}).run({"a": frame})
    with pytest.raises(InvalidInputError, match="must have a column 'photo'"):
        ws.Fusion(id_column="photo").run({"a": frame})
    with pytest.raises(InvalidInputError, match="`id_column` must go with data frames"):
        ws.Fusion(id_column="image").run([make("a", ["cat"], [[1.0]])])
    with pytest.raises(InvalidInputError, match="must go with predictions that have names"):
        ws.fuse([[0.5, 0.5], [0.5, 0.5]], id_column="image")


def test_predictions_in_give_predictions_out():
    a = make("a", ["cat", "dog"], [[0.5, 0.5]])
    assert isinstance(ws.fuse([a, a.replace(model="b")]), Predictions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": {"a": 1.0}}, "must name each of 'a', 'b'"),
        ({"weights": {"a": 0.5, "b": 0.2, "c": 0.3}}, "got 'c'"),
        ({"kernel": {"a": np.eye(2)}}, "none for 'b'"),
        ({"kernel": np.eye(3)}, "from its 2 labels to the 2 target labels"),
        ({"kind": "multilabel", "mass": ws.Balanced()}, "have no mass in common"),
        ({"unobserved": "drop", "mass": ws.Balanced()}, "less mass than 1"),
        ({"unobserved": "guess"}, "one of spread, renormalize, drop; got 'guess'"),
        ({"leftover": 2}, "from 0 to 1; got 2"),
        ({"hard_confidence": 0}, "must be above 0"),
        ({"samples": "some"}, "must be one of all, common"),
        ({"target": "cat"}, "must come as a list"),
        ({"max_sweeps": 0}, "at least 1"),
    ],
)
def test_wrong_options_are_refused(options, message):
    a, b = make("a", ["cat", "dog"], [[0.5, 0.5]]), make("b", ["cat", "dog"], [[0.5, 0.5]])
    with pytest.raises(InvalidInputError, match=message):
        fusion_with(**options).run([a, b])


def test_a_fixed_number_of_sweeps_ends_well_either_way(rng):
    a = make("a", ["cat", "dog"], histograms(rng, 3, 2))
    for kernel in (None, np.array([[1, 0.5], [0.5, 1]])):
        fusion = fusion_with(kernel=kernel, max_sweeps=3, tolerance=None).run([a])
        assert not any("samples:" in line for line in fusion.account.lines())


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilon'"):
        ws.Fusion(epsilon=1)


def test_models_of_two_kinds_or_one_name_are_refused():
    a, b = make("a", ["cat", "dog"], [[0.5, 0.5]]), make("b", ["cat", "dog"], [[0.9, 0.9]])
    with pytest.raises(InvalidInputError, match="got a multiclass, b multilabel"):
        ws.Fusion().run([a, b])
    with pytest.raises(InvalidInputError, match="more than once: 'a'") as error:
        ws.Fusion().run([a, a])
    assert "FILE" not in str(error.value)  # these are tables
    with pytest.raises(InvalidInputError, match="at least one model"):
        ws.Fusion().run([])
    with pytest.raises(InvalidInputError, match="all Predictions or all data frames; got 'int'"):
        ws.Fusion().run([3])
