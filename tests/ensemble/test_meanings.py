"""What labels stand for: none of these, several labels, one of several names."""

import numpy as np
import pytest
from problems import fusion_with

from wassemble import (
    ARITHMETIC,
    GEOMETRIC,
    Aliases,
    Balanced,
    Fusion,
    InvalidInputError,
    Predictions,
    Status,
    Unbalanced,
    explain,
)
from wassemble.errors import ConvergenceWarning, InputWarning
from wassemble.kernels import DenseKernel, from_ratings
from wassemble.scale import fuse_stream

DIGITS = [str(digit) for digit in range(4)]
RULES = [{}, {"mass": Balanced()}, {"rule": ARITHMETIC}, {"rule": GEOMETRIC}]


def one(model, labels, scores):
    return Predictions(model, ["x"], labels, [scores])


def scores_of(fusion):
    return dict(zip(fusion.consensus.labels, fusion.consensus.scores[0], strict=True))


# -- mass that leads nowhere ------------------------------------------------------------


def test_none_of_these_is_no_confident_vote():
    all_digits = one("all", DIGITS, [0.05, 0.05, 0.2, 0.7])
    few = one("few", ["2", "other"], [0.02, 0.98])
    found = scores_of(Fusion(target=DIGITS).run([all_digits, few]))
    assert max(found, key=found.get) == "3"
    assert found["2"] < 0.2


@pytest.mark.parametrize("options", RULES[1:])  # in Algorithm 2 mass counts besides weight
@pytest.mark.parametrize("lost", [0.3, 0.9, 0.999])
def test_mass_that_leads_nowhere_weakens_the_say_by_as_much(options, lost):
    first = one("first", DIGITS[:2], [0.7, 0.3])
    second = one("second", [*DIGITS[:2], "other"], [0.2 * (1 - lost), 0.8 * (1 - lost), lost])
    found = fusion_with(target=DIGITS[:2], **options).run([first, second]).consensus.scores
    weights = np.array([1, 1 - lost]) / (2 - lost)
    bare = one("second", DIGITS[:2], [0.2, 0.8])
    if "rule" in options:  # means take what is left as it is
        bare = bare.replace(kind="multilabel", scores=bare.scores * (1 - lost))
        first = first.replace(kind="multilabel")
    expected = fusion_with(weights=weights, **options).run([first, bare]).consensus.scores
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-6)


def test_the_more_a_model_says_none_of_these_the_less_it_moves_the_consensus():
    sure = one("sure", DIGITS[:2], [0.9, 0.1])
    found = []
    for lost in (0.0, 0.5, 0.9, 0.99):
        doubtful = one("doubtful", [*DIGITS[:2], "other"], [0, 1 - lost, lost])
        found.append(scores_of(Fusion(target=DIGITS[:2]).run([sure, doubtful]))["1"])
    assert (np.diff(found) < 0).all()
    assert found[-1] < 0.2


def test_a_label_that_only_the_doubtful_model_has_gets_no_more_than_it_gave():
    sure = one("sure", ["0", "1"], [0.9, 0.1])
    doubtful = one("doubtful", ["2", "other"], [0.012, 0.988])
    with pytest.warns(InputWarning, match="have no label in common"):
        fusion = Fusion(target=["0", "1", "2"]).run([sure, doubtful])
    assert scores_of(fusion)["2"] < 0.1


def test_a_model_that_only_says_none_of_these_has_no_vote():
    sure = one("sure", DIGITS[:2], [0.9, 0.1])
    silent = one("silent", [*DIGITS[:2], "other"], [0, 0, 1.0])
    both = Fusion(target=DIGITS[:2]).run([sure, silent])
    alone = Fusion(target=DIGITS[:2]).run([sure])
    np.testing.assert_allclose(both.consensus.scores, alone.consensus.scores)


def test_a_sample_that_all_call_none_of_these_is_left_empty_and_counted():
    silent = [one(name, [*DIGITS[:2], "other"], [0, 0, 1.0]) for name in "ab"]
    with pytest.warns(ConvergenceWarning, match="no model answered"):
        fusion = Fusion(target=DIGITS[:2]).run(silent)
    assert np.isnan(fusion.consensus.scores).all()


def test_scores_of_labels_that_do_not_exclude_each_other_are_not_weakened():
    first = Predictions("a", ["x"], ["cat", "dog"], [[0.9, 0.2]], kind="multilabel")
    second = Predictions("b", ["x"], ["cat", "dog", "cow"], [[0.5, 0.4, 0.9]], kind="multilabel")
    with_cow = Fusion(target=["cat", "dog"]).run([first, second])
    without = Predictions("b", ["x"], ["cat", "dog"], [[0.5, 0.4]], kind="multilabel")
    np.testing.assert_allclose(
        with_cow.consensus.scores, Fusion().run([first, without]).consensus.scores
    )


def test_the_account_gives_the_share_that_leads_nowhere_and_the_remedy():
    models = [one("all", DIGITS, [0.1, 0.2, 0.3, 0.4]), one("few", ["2", "other"], [0.25, 0.75])]
    report = Fusion(target=DIGITS).run(models).report
    assert "few: 1 of 2 labels lead to no target label; 75.0% of its mass is there" in report
    assert 'other={"few": "other"}' in report


def test_what_is_asked_of_all_is_not_mistaken_for_doubt():
    """If only some labels are wanted, every model is conditioned on them alike."""
    models = [one(name, ["cat", "dog", "cow"], [0.06, 0.04, 0.9]) for name in "ab"]
    found = fusion_with(target=["cat", "dog"], mass=Balanced()).run(models).consensus.scores
    np.testing.assert_allclose(found, [[0.6, 0.4]])


# -- the complement ---------------------------------------------------------------------


def test_other_stands_for_what_the_model_does_not_declare():
    unsure = one("unsure", DIGITS, [0.3, 0.3, 0.3, 0.1])
    few = one("few", ["2", "3", "other"], [0.01, 0.01, 0.98])
    fusion = Fusion(other="other").run([unsure, few])
    assert list(fusion.consensus.labels) == DIGITS
    found = scores_of(fusion)
    assert found["0"] == pytest.approx(found["1"])
    assert found["0"] > 0.4
    assert found["2"] < 0.15
    assert "'other' stands for every label that it does not declare" in fusion.report


def test_other_with_little_mass_speaks_for_the_declared_labels():
    unsure = one("unsure", DIGITS, [0.25, 0.25, 0.25, 0.25])
    few = one("few", ["2", "3", "other"], [0.9, 0.05, 0.05])
    found = scores_of(Fusion(other={"few": "other"}).run([unsure, few]))
    assert max(found, key=found.get) == "2"


def test_other_beside_a_model_that_declares_everything_leads_nowhere():
    everything = one("few", [*DIGITS, "other"], [0.1, 0.1, 0.1, 0.2, 0.5])
    fusion = Fusion(other="other").run([one("all", DIGITS, [0.1, 0.2, 0.3, 0.4]), everything])
    assert "1 of 5 labels lead to no target label" in fusion.report


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("rest", "none has 'rest'"),
        ({"nobody": "other"}, "must be of the models 'a'; got 'nobody'"),
        ({"a": "rest"}, "'a' has no 'rest', but 'cat', 'other'"),
    ],
)
def test_another_that_is_no_label_is_refused(other, words):
    with pytest.raises(InvalidInputError, match=words):
        Fusion(other=other).run([one("a", ["cat", "other"], [0.4, 0.6])])


# -- labels by other names --------------------------------------------------------------


@pytest.mark.parametrize("options", RULES)
def test_two_labels_of_one_name_are_summed(options):
    cars = one("cars", ["sedan", "coupe", "bicycle"], [0.3, 0.3, 0.4])
    bikes = one("bikes", ["car", "bicycle"], [0.5, 0.5])
    aliases = {"sedan": "car", "coupe": "car"}
    fusion = fusion_with(aliases=aliases, **options).run([cars, bikes])
    summed = one("cars", ["car", "bicycle"], [0.6, 0.4])
    np.testing.assert_allclose(
        fusion.consensus.scores, fusion_with(**options).run([summed, bikes]).consensus.scores
    )
    assert "cars: 'sedan', 'coupe' are one label, 'car': added up" in fusion.report


def test_two_confidences_of_one_name_have_their_maximum_taken():
    cars = Predictions(
        "cars", ["x"], ["sedan", "coupe", "tram"], [[0.9, 0.8, 0.1]], kind="multilabel"
    )
    fusion = Fusion(aliases={"sedan": "car", "coupe": "car"}).run([cars])
    largest = Predictions("cars", ["x"], ["car", "tram"], [[0.9, 0.1]], kind="multilabel")
    np.testing.assert_allclose(
        fusion.consensus.scores, Fusion().run([largest]).consensus.scores, rtol=1e-12
    )
    assert "are one label, 'car': the largest of their scores" in fusion.report


def test_names_that_fold_to_one_label_are_summed():
    cars = one("cars", ["Car", "car", "Tram"], [0.2, 0.3, 0.5])
    fusion = Fusion(target=["car", "tram"], fold=True).run([cars])
    np.testing.assert_allclose(fusion.consensus.scores, [[0.5, 0.5]])


def test_a_label_may_stand_for_several():
    parity = one("parity", ["odd", "even"], [0.9, 0.1])
    digits = one("digits", DIGITS, [0.05, 0.30, 0.35, 0.30])
    aliases = Aliases([("parity", "odd", d) for d in "13"] + [("parity", "even", d) for d in "02"])
    fusion = Fusion(aliases=aliases).run([parity, digits])
    assert list(fusion.consensus.labels) == [*"13", *"02"]
    found = scores_of(fusion)
    assert found["1"] == pytest.approx(found["3"])
    assert found["1"] > found["2"]


def test_weights_share_a_label_out():
    alone = one("alone", ["big", "small"], [0.6, 0.4])
    fusion = fusion_with(aliases={"big": {"a": 3, "b": 1}, "small": "c"}, mass=Balanced()).run(
        [alone]
    )
    assert scores_of(fusion) == pytest.approx({"a": 0.45, "b": 0.15, "c": 0.4})


def test_models_that_are_not_listed_go_by_name():
    first = one("first", ["1", "2"], [0.8, 0.2])
    second = one("second", ["1", "2"], [0.8, 0.2])
    swapped = Aliases([("second", "1", "2"), ("second", "2", "1")])
    found = scores_of(Fusion(aliases=swapped).run([first, second]))
    assert found["1"] == pytest.approx(found["2"])


def test_an_alias_counts_before_the_spelling():
    model = one("model", ["1", "one"], [0.3, 0.7])
    with pytest.warns(InputWarning, match="'1' cannot be reached"):
        fusion = Fusion(aliases={"1": "one"}, target=["1", "one"]).run([model])
    assert scores_of(fusion)["one"] == pytest.approx(1)


def test_labels_reached_by_alias_are_declared():
    """Else the model would keep only its leftover there."""
    cars = one("cars", ["sedan", "bicycle"], [0.8, 0.2])
    bikes = one("bikes", ["car", "bicycle"], [0.2, 0.8])
    plan = Fusion(aliases={"sedan": "car"}).run([cars, bikes]).plan
    assert not plan.is_label_aware


def test_labels_reached_by_a_kernel_are_declared():
    cars = one("cars", ["sedan", "bicycle"], [0.8, 0.2])
    bikes = one("bikes", ["car", "bicycle"], [0.2, 0.8])
    kernel = {
        "cars": from_ratings([[1, 0], [0, 1]], ["sedan", "bicycle"], ["car", "bicycle"]),
        "bikes": from_ratings([[1, 0], [0, 1]], ["car", "bicycle"], ["car", "bicycle"]),
    }
    plan = Fusion(kernel=kernel, target=["car", "bicycle"]).run([cars, bikes]).plan
    assert not plan.is_label_aware


def test_explain_names_the_labels_that_were_summed():
    cars = one("cars", ["sedan", "coupe", "tram"], [0.3, 0.3, 0.4])
    fusion = Fusion(aliases={"sedan": "car", "coupe": "car", "tram": "rail"}).run([cars])
    found = explain(fusion, "x", "car")
    assert [c.label for c in found.contributions] == ["car (sedan + coupe)"]
    assert explain(fusion, "x", "rail").contributions[0].label == "tram"


def test_aliases_that_nobody_uses_are_named():
    fusion = Fusion(aliases={"cow": "cat"}).run([one("a", ["cat", "dog"], [0.5, 0.5])])
    assert "aliases of labels that no model has: 'cow'" in fusion.report


def test_a_table_of_aliases_may_serve_several_tasks():
    aliases = Aliases([("b", "tram", "rail"), (None, "sedan", "car"), (None, "tram", "rail")])
    model = one("a", ["sedan", "tram", "bus"], [0.5, 0.3, 0.2])
    fusion = Fusion(aliases=aliases, target=["car", "bus"])
    result = fusion.run([model])
    assert "aliases of models that are not here: 'b'" in result.report
    assert "left aside, for they lead to no target label: 'tram -> rail'" in result.report
    assert "by alias 'sedan -> car'" in result.report
    with pytest.raises(InvalidInputError, match=r"'sedan' -> 'car', .* none\.\nhint: .*'cars'"):
        Fusion(aliases={"sedan": "car"}, target=["cars", "bus"]).run([model])


def test_a_kernel_between_the_rest_leaves_shared_labels_where_they_were_put():
    parity = one("parity", ["odd", "2"], [0.9, 0.1])

    def similar(source, target):
        table = [[1.0 if a == b else 0.1 for b in target] for a in source]
        return from_ratings(table, source, target)

    fusion = Fusion(kernel=similar, target=["1", "2", "3"], aliases={"odd": ["1", "3"]}).run(
        [parity]
    )
    kernel = fusion.plan.members[0].kernel.to_dense()
    rows = dict(zip(fusion.plan.members[0].fused, kernel.tolist(), strict=True))
    assert rows["odd"] == [0.5, 0, 0.5]
    assert rows["2"] == pytest.approx([0.1, 1, 0.1])


# -- rows without mass ------------------------------------------------------------------


def test_models_that_are_sure_of_different_labels_leave_no_empty_answer():
    models = [one("a", ["yes", "no"], [1, 0]), one("b", ["yes", "no"], [0, 1])]
    fusion = Fusion().run(models)
    np.testing.assert_allclose(fusion.consensus.scores, [[0.5, 0.5]])
    assert fusion.report.splitlines()[0].startswith("rule: barycenter, Unbalanced(")
    assert "no model rules out a label by itself" in fusion.report.splitlines()[0]


@pytest.mark.parametrize("options", [{"mass": Balanced()}, {"rule": GEOMETRIC}])
def test_a_row_without_mass_is_a_status_with_a_remedy(options):
    models = [one("a", ["yes", "no"], [1, 0]), one("b", ["yes", "no"], [0, 1])]
    with pytest.warns(ConvergenceWarning, match="1 of 1 samples"):
        fusion = fusion_with(**options).run(models)
    assert fusion.statuses.tolist() == [Status.NO_MASS]
    assert fusion.account.to_dict()["ends"] == {"no_mass": 1}
    assert "Unbalanced" in fusion.report


def test_leftover_does_not_change_the_mass_rule():
    models = [one("a", ["yes", "no"], [0.9, 0.1]), one("b", ["yes", "maybe"], [0.5, 0.5])]
    for leftover in (0.0, 0.05, 1.0):
        assert Fusion(leftover=leftover).run(models).plan.rule.mass == Unbalanced(2.0, epsilon=0.3)


def test_samples_with_several_best_labels_are_counted():
    models = [one("a", ["yes", "no"], [1, 0]), one("b", ["yes", "no"], [0, 1])]
    fusion = Fusion().run(models)
    assert fusion.account.to_dict()["n_tied"] == 1
    assert "1 of 1 samples have several labels in first place" in fusion.report


def test_others_of_different_label_sets_are_not_one_label():
    low = one("low", ["0", "1", "other"], [0.1, 0.1, 0.8])
    high = one("high", ["2", "3", "other"], [0.5, 0.3, 0.2])
    with pytest.warns(InputWarning, match=r"'other' of 'low', 'high' became one label.*other="):
        Fusion().run([low, high])
    found = scores_of(Fusion(other="other").run([low, high]))
    assert max(found, key=found.get) == "2"


def test_an_other_that_all_models_share_is_a_label_like_any():
    models = [one(name, ["cat", "other"], [0.4, 0.6]) for name in "ab"]
    assert "other=" not in Fusion().run(models).report


# -- names, weights and what was left out -----------------------------------------------


@pytest.mark.parametrize("make", [np.eye, lambda n: DenseKernel(np.eye(n))])
def test_a_kernel_without_names_is_no_kernel_for_labels_in_another_order(make):
    first, second = one("a", ["cat", "dog"], [0.3, 0.7]), one("b", ["dog", "cat"], [0.7, 0.3])
    words = "must go with models that have the same labels in the same order"
    with pytest.raises(InvalidInputError, match=words):
        Fusion(kernel=make(2)).run([first, second])
    with pytest.raises(InvalidInputError, match=words):
        Fusion(kernel=[DenseKernel(np.eye(2)), DenseKernel(np.eye(2))]).run([first, second])
    same = Fusion(kernel=make(2)).run([first, first.replace(model="b")])
    np.testing.assert_allclose(same.consensus.scores, [[0.3, 0.7]], rtol=1e-6)


def test_a_model_of_weight_0_takes_no_part_even_where_it_is_alone():
    first = Predictions("a", ["x"], ["cat", "dog"], [[0.3, 0.7]])
    second = Predictions("b", ["x", "y"], ["cat", "dog"], [[0.9, 0.1], [0.8, 0.2]])
    with pytest.warns(ConvergenceWarning, match="1 of 2 samples: no model answered"):
        fusion = Fusion(weights={"a": 1, "b": 0}).run([first, second])
    np.testing.assert_allclose(fusion.consensus.scores[0], [0.3, 0.7])
    assert np.isnan(fusion.consensus.scores[1]).all()


def test_a_label_on_which_nobody_who_answered_has_a_say_gets_nothing():
    first = Predictions("a", ["x"], ["cat", "dog"], [[0.3, 0.7]])
    second = Predictions("b", ["x", "y"], ["cat", "dog"], [[0.9, 0.1], [0.8, 0.2]])
    fusion = Fusion(weights=[[0.5, 1.0], [0.5, 0.0]]).run([first, second])
    assert fusion.consensus.scores[1].tolist() == [1, 0]
    assert "weights per model and label, as given" in fusion.report
    assert "has no say on it" not in fusion.report


def test_what_a_list_leaves_out_is_no_more_than_what_it_names():
    few = Predictions("few", ["y"], ["cat", "dog", "cow"], [[0.2, 0.1, np.nan]])
    found = Fusion(kind="multiclass").run([few]).consensus.scores
    np.testing.assert_allclose(found, [[0.5, 0.25, 0.25]])


def test_folded_names_have_aliases_too():
    model = one("a", ["Sedan", "Car", "tram"], [0.2, 0.3, 0.5])
    fusion = Fusion(aliases={"sedan": "car"}, fold=True).run([model])
    assert scores_of(fusion) == pytest.approx({"car": 0.5, "tram": 0.5})


def test_a_stream_must_be_told_what_it_holds():
    models = [one(name, ["yes", "no"], [0.3, 0.7]) for name in "ab"]
    with pytest.raises(InvalidInputError, match="`kind` must be given for a stream"):
        list(fuse_stream([models], Fusion()))
    chunks = [[[[0.3, 0.7]], [[0.5, 0.5]]], [[[0.3, 0.3]], [[0.5, 0.5]]]]
    with pytest.raises(InvalidInputError, match="must sum to 1 in each row"):
        list(fuse_stream(chunks, Fusion()))
    found = list(fuse_stream(chunks, Fusion(kind="multilabel")))
    assert abs(found[0].sum() - 1) > 1e-3
