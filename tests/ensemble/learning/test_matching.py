"""Which model is which: by name, by label sets, or an error that says how to say it."""

import numpy as np
import pytest

from wassemble import InvalidInputError, LabelSpace, Predictions, learn_ensemble
from wassemble.ensemble.learning import evaluate_ensemble
from wassemble.ensemble.learning.matching import match_models

PETS, WILD, FARM = ("cat", "dog"), ("cat", "lynx"), ("cow", "dog")


def model(name, labels):
    return Predictions(name, ["x"], labels, np.full((1, len(labels)), 1 / len(labels)))


def learned(**models):
    return [(name, LabelSpace(labels)) for name, labels in models.items()]


def names(matched):
    return [(each.model, each.labels.names) for each in matched.models]


def test_names_come_first_in_any_order():
    given = [model("b", WILD), model("a", PETS)]
    matched = match_models(learned(a=PETS, b=WILD), given)
    assert names(matched) == [("a", PETS), ("b", WILD)]
    assert matched.by_labels == {}


def test_names_come_before_label_sets():
    given = [model("b", PETS), model("a", PETS)]
    matched = match_models(learned(a=PETS, b=PETS), given)
    assert matched.models[0].labels == given[1].labels
    assert matched.by_labels == {}


def test_label_sets_tell_where_names_are_new():
    given = [model("new_b", ("lynx", "cat")), model("new_a", PETS)]
    matched = match_models(learned(a=PETS, b=WILD), given)
    assert names(matched) == [("a", PETS), ("b", WILD)]
    assert matched.by_labels == {"a": "new_a", "b": "new_b"}
    assert str(matched) == "models told apart by their labels: new_a is a, new_b is b"


def test_label_sets_tell_the_rest_where_some_names_are_known():
    given = [model("new", PETS), model("b", PETS)]
    assert match_models(learned(a=PETS, b=PETS), given).by_labels == {"a": "new"}


def test_the_keys_of_a_dict_are_names():
    given = {"a": model("x", PETS), "b": model("x", PETS)}
    assert [name for name, _ in names(match_models(learned(a=PETS, b=PETS), given))] == ["a", "b"]


@pytest.mark.parametrize(
    ("before", "given", "message"),
    [
        (
            learned(a=PETS, b=WILD),
            [("n", PETS), ("m", FARM)],
            "neither names nor labels tell which model is which: b (learned from), 'm' (given).",
        ),
        (learned(a=PETS, b=WILD), [("a", PETS)], "b is missing.\nhint: learned from: a, b"),
        (learned(a=PETS, b=WILD, c=FARM), [("a", PETS)], "b, c are missing."),
        (
            learned(a=PETS, b=WILD),
            [("a", PETS), ("c", FARM), ("d", FARM)],
            "which model is which: b (learned from), 'c', 'd' (given).",
        ),
        (learned(a=PETS), [("a", PETS), ("c", FARM)], "one that was learned from; got 'c'"),
        (learned(a=PETS, b=WILD), [("a", PETS), ("a", WILD)], "more than once: 'a'"),
        (learned(a=PETS), [("a", FARM)], "it lacks 'cat' and it has 'cow' besides"),
    ],
)
def test_what_cannot_be_told_is_an_error_that_says_what_to_do(before, given, message):
    with pytest.raises(InvalidInputError) as error:
        match_models(before, [model(*each) for each in given])
    assert message in str(error.value)


def refused(before, given, **options):
    with pytest.raises(InvalidInputError) as error:
        match_models(before, [model(*each) for each in given], **options)
    return str(error.value)


def test_names_that_look_alike_prove_nothing():
    said = refused(learned(a=PETS, b=PETS), [("new_b", PETS), ("new_a", PETS)])
    assert said.endswith("hint: {\"a\": ..., \"b\": ...}, where 'new_b' and 'new_a' may be a or b")


def test_the_hint_shows_what_labels_prove_and_leaves_the_rest_open():
    before = learned(full=PETS, wild=WILD, farm=FARM, top=PETS)
    given = [("x1", PETS), ("x2", WILD), ("x3", FARM), ("x4", PETS)]
    said = refused(before, given)
    assert "which model is which: full, top (learned from), 'x1', 'x4' (given)." in said
    assert said.endswith(
        '{"full": ..., "wild": ..., "farm": ..., "top": ...}, where \'x2\' is wild, \'x3\' is farm,'
        " 'x1' and 'x4' may be full or top"
    )
    seen = []
    refused(before, given, remedy=lambda *found: seen.append(found) or "so")
    assert seen == [({"full": None, "wild": "x2", "farm": "x3", "top": None}, ["x1", "x4"])]


def test_only_what_labels_do_not_find_is_missing():
    before = learned(full=PETS, wild=WILD, farm=FARM, top=(*PETS, "cow"))
    given = [("full", PETS), ("new_wild", WILD), ("new_farm", FARM)]
    said = refused(before, given)
    assert "every model that was learned from must be there; top is missing." in said


def test_only_what_labels_do_not_find_is_too_much():
    said = refused(learned(a=PETS, b=WILD), [("a", PETS), ("n", WILD), ("c", FARM)])
    assert "every model must be one that was learned from; got 'c'." in said


def test_a_learned_ensemble_takes_new_names_and_says_so(rng):
    truth = rng.integers(2, size=40)
    scores = np.where(truth[:, None] == [0, 1], 0.8, 0.2)
    first = Predictions("a", range(40), PETS, scores)
    second = Predictions("b", range(40), ("cat", "dog", "cow"), np.c_[scores, np.zeros(40)])
    labels = [PETS[i] for i in truth]
    made = learn_ensemble([first, second], labels, n_folds=2, time_budget=0)
    known = made.predict([first, second])
    renamed = [second.replace(model="new_b"), first.replace(model="new_a")]
    with pytest.warns(UserWarning, match="new_a is a, new_b is b"):
        np.testing.assert_array_equal(made.predict(renamed).scores, known.scores)
    with pytest.warns(UserWarning, match="new_a is a, new_b is b"):
        found = evaluate_ensemble(made, renamed, labels)
    assert found.chosen.score == 1
    np.testing.assert_array_equal(
        made.predict({"a": renamed[1], "b": renamed[0]}).scores, known.scores
    )
