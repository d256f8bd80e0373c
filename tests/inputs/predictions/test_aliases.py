"""Aliases: what labels of models stand for, from Python and from files."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from wassemble import Aliases, InvalidInputError, LabelSpace, read_aliases


def test_a_model_has_the_rows_without_a_model_and_its_own():
    aliases = Aliases([(None, "sedan", "car"), ("a", "tram", "rail"), ("b", "tram", "bus")])
    assert aliases.of_model("a") == {"sedan": {"car": 1.0}, "tram": {"rail": 1.0}}
    assert aliases.of_model("c") == {"sedan": {"car": 1.0}}


def test_what_is_said_of_a_model_counts_before_what_is_said_of_all():
    aliases = Aliases([(None, "odd", "1"), ("parity", "odd", "3"), ("parity", "odd", "5")])
    assert aliases.of_model("parity") == {"odd": {"3": 1.0, "5": 1.0}}
    assert aliases.of_model("other") == {"odd": {"1": 1.0}}


def test_dicts_take_one_label_several_or_weights():
    aliases = Aliases.of({"sedan": "car", "odd": ["1", "3"], "tall": {"a": 2, "b": 1}, 7: "seven"})
    assert aliases.of_model("any") == {
        "sedan": {"car": 1.0},
        "odd": {"1": 1.0, "3": 1.0},
        "tall": {"a": 2.0, "b": 1.0},
        "7": {"seven": 1.0},
    }


def test_files_name_their_columns_in_any_order(tmp_path):
    path = tmp_path / "aliases.csv"
    path.write_text("target,model,weight,source\ncar,a,,sedan\n1,,2,odd\n3,,1,odd\n")
    assert read_aliases(path).rows == (
        ("a", "sedan", "car", 1.0),
        (None, "odd", "1", 2.0),
        (None, "odd", "3", 1.0),
    )


def test_two_columns_need_no_titles(tmp_path):
    path = tmp_path / "aliases.csv"
    path.write_text("sedan,car\ncoupe,car\n")
    assert [row[1:3] for row in read_aliases(path).rows] == [("sedan", "car"), ("coupe", "car")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("source,target\n", "got no row"),
        ("", "got no row"),
        ("sedan\n", "must hold source, target; got 1 columns"),
        ("source,target,colour\na,b,c\n", "columns must be model, source, target, weight"),
        ("source,target,weight\na,b,-1\n", "line 2: the weight of an alias must be a number above"),
        ("source,target,weight\na,b,much\n", "line 2: the weight of an alias"),
        ("source,target\n,b\n", "line 2: a label name must be a text that is not empty"),
        ("a,b\na,b\n", "line 2: says again what line 1 says"),
        ("a,b,c\n", "must hold source, target; got 3 columns"),
    ],
)
def test_a_damaged_table_is_one_clear_error(tmp_path, text, words):
    path = tmp_path / "aliases.csv"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"aliases\.csv") as error:
        read_aliases(path)
    assert words in str(error.value)


def test_rows_about_strangers_alone_are_refused():
    spaces = {"a": LabelSpace(["sedan"])}
    with pytest.raises(InvalidInputError, match="must be of the models 'a'; got 'b'"):
        Aliases([("b", "sedan", "car")]).check_models(spaces)
    several = Aliases([("b", "tram", "rail"), ("a", "sedan", "car")])
    several.check_models(spaces)
    assert several.strangers(spaces) == ("b",)
    assert several.unused(spaces, fold=False) == ()
    with pytest.raises(InvalidInputError, match="'a' has no 'coupe', but 'sedan'"):
        Aliases([("a", "coupe", "car")]).check_models(spaces)


@pytest.mark.parametrize("given", ["sedan", 3, [("a", "b")], [(None, "a", "b", 0)], {"a": 1.5}])
def test_what_is_no_alias_is_refused(given):
    with pytest.raises(InvalidInputError, match="alias"):
        Aliases.of(given)


def test_names_may_be_whole_numbers():
    aliases = Aliases.of({1: "odd", 2.0: [3, np.int64(4)], "x": {5: 0.5}})
    assert aliases.of_model("m") == {
        "1": {"odd": 1.0},
        "2": {"3": 1.0, "4": 1.0},
        "x": {"5": 0.5},
    }
    matching = LabelSpace([1, 2]).match(LabelSpace([7, 8]), aliases={1: 8, "2": {7: 1.0}})
    assert matching.places.tolist() == [1, 0]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_data_frame_has_the_columns_of_a_file(library):
    frame = library({"target": ["car", "1", "3"], "source": ["sedan", "odd", "odd"]})
    assert Aliases.of(frame).of_model("any") == {
        "sedan": {"car": 1.0},
        "odd": {"1": 1.0, "3": 1.0},
    }
    frame = library(
        {
            "model": ["a", None],
            "source": ["sedan", "odd"],
            "target": ["car", "1"],
            "weight": [2.0, None],
        }
    )
    assert Aliases.of(frame).rows == (("a", "sedan", "car", 2.0), (None, "odd", "1", 1.0))
    assert Aliases.of(library({"source": [7], "target": [8]})).rows == ((None, "7", "8", 1.0),)


def test_a_data_frame_with_other_columns_is_refused():
    with pytest.raises(InvalidInputError, match="columns source and target, and may have model"):
        Aliases.of(pd.DataFrame({"from": ["sedan"], "to": ["car"]}))


def test_a_dict_of_dicts_by_model_is_shown_how_to_say_it():
    with pytest.raises(InvalidInputError, match="must be a number above 0; got 'car'") as caught:
        Aliases.of({"wheels": {"sedan": "car"}})
    assert 'Aliases([("wheels", "sedan", "car"), ...])' in str(caught.value)


@pytest.mark.parametrize("path", ["aliases.csv", Path("aliases.csv")])
def test_a_path_is_shown_the_function_that_reads_it(path):
    with pytest.raises(InvalidInputError, match="must be a dict") as caught:
        Aliases.of(path)
    assert "`read_aliases(path)` reads a file" in str(caught.value)
