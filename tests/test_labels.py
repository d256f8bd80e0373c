"""Label spaces: ordered sets of names, matched and never guessed."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from wassemble import InvalidInputError, LabelSpace
from wassemble.labels import enumerate_names, fold_name

names = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=12, unique=True)


@given(names)
def test_places_undo_indexing(found):
    space = LabelSpace(found)
    assert [space[space.place(name)] for name in found] == found
    assert list(space) == found
    assert len(space) == len(found)
    assert space == LabelSpace(found)
    assert hash(space) == hash(LabelSpace(found))


@given(names, names)
def test_the_union_holds_every_name_once_in_order_of_appearance(first, second):
    union = LabelSpace.union(first, second)
    assert list(union) == list(dict.fromkeys(first + second))


@given(names, names)
def test_without_aliases_only_equal_names_match(first, second):
    matching = LabelSpace(first).match(LabelSpace(second))
    for name, place in zip(first, matching.places, strict=True):
        assert (second[place] == name) if place >= 0 else (name not in second)
    assert set(matching.unmatched) == set(first) - set(second)
    assert matching.declared.sum() == len(set(first) & set(second))
    assert not matching.aliased
    assert not matching.folded


def test_aliases_come_before_equal_names():
    target = LabelSpace(["car", "bicycle"])
    aliases = {"sedan": "car", "bicycle": "car", "tram": "nowhere"}
    matching = LabelSpace(["sedan", "bicycle"]).match(target, aliases=aliases)
    assert matching.places.tolist() == [0, 0]
    assert matching.aliased == (("sedan", "car"), ("bicycle", "car"))


def test_a_name_may_stand_for_several_labels():
    target = LabelSpace(["1", "2", "3"])
    matching = LabelSpace(["odd", "2", "x"]).match(target, aliases={"odd": {"1": 3, "3": 1}})
    assert matching.to_sparse().toarray().tolist() == [[0.75, 0, 0.25], [0, 1, 0], [0, 0, 0]]
    assert matching.unmatched == ("x",)
    assert matching.declared.all()


def test_the_complement_is_what_no_other_label_stands_for():
    target = LabelSpace(["1", "2", "3"])
    matching = LabelSpace(["2", "rest"]).match(target).with_complement("rest")
    assert matching.to_sparse().toarray().tolist() == [[0, 1, 0], [0.5, 0, 0.5]]
    whole = LabelSpace(["1", "2", "3", "rest"]).match(target).with_complement("rest")
    assert whole.unmatched == ("rest",)


def test_aliases_to_no_target_label_are_left_aside():
    meanings = {"tram": "rail", "odd": {"1": 1.0, "3": 1.0, "5": 2.0}, "1": "car"}
    found = LabelSpace(["tram", "odd", "1"]).match(LabelSpace(["1", "3"]), aliases=meanings)
    assert found.astray == (("tram", "rail"), ("odd", "5"), ("1", "car"))
    # What a label stands for counts before its spelling, also where that is not asked for.
    assert found.places.tolist() == [-1, -1, -1]
    assert found.shared == {1: {0: 0.5, 1: 0.5}}
    assert found.unmatched == ("tram", "1")


def test_names_are_folded_only_when_asked():
    source, target = LabelSpace(["Polar_Bear", "cat"]), LabelSpace(["polar bear", "cat"])
    assert source.match(target).unmatched == ("Polar_Bear",)
    folded = source.match(target, fold=True)
    assert folded.unmatched == ()
    assert folded.folded == (("Polar_Bear", "polar bear"),)


def test_a_folded_name_with_two_meanings_is_refused():
    with pytest.raises(InvalidInputError, match="'Us' for 'US', 'us'"):
        LabelSpace(["Us"]).match(LabelSpace(["US", "us"]), fold=True)


def test_an_unknown_label_is_named_with_what_is_near_it():
    with pytest.raises(InvalidInputError, match=r"got 'catt'\.\nhint: near it: 'cat'"):
        LabelSpace(["cat", "dog"]).place("catt")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "at least one label"),
        ("cat", "must come as a list"),
        (["cat", ""], "not empty, or a whole number; got '' at 1"),
        (["cat", 2.5], "got 2.5 at 1"),
        ([float("nan")], "got nan at 0"),
        ([None], "got None at 0"),
        (3, "must come as a list; got one int, 3"),
        ([2, "2"], "got more than once: '2'"),
        (["a", "b", "a", "a"], "got more than once: 'a'"),
    ],
)
def test_wrong_names_are_refused(wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        LabelSpace(wrong)


@pytest.mark.parametrize(
    "names",
    [[0, 1, 2], range(3), np.arange(3), np.arange(3, dtype="u1"), [0.0, 1.0, 2.0], ["0", 1, 2.0]],
)
def test_whole_numbers_are_names(names):
    space = LabelSpace(names)
    assert space.names == ("0", "1", "2")
    assert all(type(name) is str for name in space)
    for two in (2, "2", 2.0, np.int64(2), np.float32(2), np.str_("2")):
        assert two in space
        assert space.place(two) == 2
    assert 3 not in space
    assert 1.5 not in space
    assert None not in space


def test_flags_are_names_of_their_own():
    assert LabelSpace([False, np.True_]).names == ("False", "True")
    assert True not in LabelSpace([0, 1])


def test_folding_forgets_case_underscores_hyphens_and_spaces():
    assert fold_name("Straße_A-b") == fold_name("STRASSE  a B")


def test_long_lists_are_counted():
    assert enumerate_names("abcdefgh") == "'a', 'b', 'c', 'd', 'e', 'f' and 2 more"
    assert "20" in repr(LabelSpace([str(i) for i in range(20)]))


GRADES = LabelSpace(["low", "high", "middle"], positions=[0, 10, 4])


def test_positions_are_kept_in_the_order_of_the_names():
    assert GRADES.positions == (0, 10, 4)
    assert LabelSpace(GRADES) is GRADES
    assert LabelSpace(GRADES, positions=[1, 2, 3]).positions == (1, 2, 3)
    assert pickle.loads(pickle.dumps(GRADES)).positions == GRADES.positions
    assert LabelSpace.from_json(json.loads(json.dumps(GRADES.to_json()))).positions == (0, 10, 4)
    assert LabelSpace.from_json(["low", "high"]).positions is None
    assert LabelSpace(["low", "high"]).on_line().positions == (0, 1)


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        ([0, 1], "one for each of the 3 labels; got 2"),
        ([0, 1, 0], "must differ; got 0 for 'low' and 'middle'"),
        ([0, 1, np.nan], "must be finite; got nan for 'middle'"),
        ([-1e308, 0, 1e308], "at most 1e150 from 0, or the squares .* got -1e[+]308 for 'low'"),
        ([0, 1, "up"], "must be numbers"),
        (3, "must be numbers"),
        ("012", "one for each of the 3 labels; got 1"),
    ],
)
def test_positions_are_finite_and_distinct(positions, words):
    with pytest.raises(InvalidInputError, match=words):
        LabelSpace(["low", "high", "middle"], positions=positions)


def test_a_union_lies_on_the_line_if_all_of_its_labels_do():
    more = LabelSpace(["top", "high"], positions=[12, 10])
    assert LabelSpace.union(GRADES, more).positions == (0, 10, 4, 12)
    assert LabelSpace.union(["high", "low"], GRADES).positions == (10, 0, 4)
    assert LabelSpace.union(GRADES, ["unknown"]).positions is None
    # Two names of one grade, perhaps.
    assert LabelSpace.union(GRADES, LabelSpace(["bad"], positions=[0])).positions is None


def test_label_sets_must_agree_about_positions():
    with pytest.raises(InvalidInputError, match="where 'high' lies on the line; got 10 and 1"):
        LabelSpace.union(GRADES, LabelSpace(["high"], positions=[1]))
