import json
from dataclasses import replace

import pytest
from web.study.people import SYSTEMS, make_items, make_lines

from wassemble.errors import InvalidInputError
from wassemble.web.study.design import Design
from wassemble.web.study.items import Check, Item, read_items, system_names
from wassemble.web.study.questions import PAPER, Question

GOOD = {"id": "7", "text": "A dog.", "captions": {"one": "a dog", "two": "a cat"}}


def lines(*records):
    return "\n".join(json.dumps(record) for record in records)


def test_an_item_is_read_with_all_that_it_has():
    check = {"best": "one", "detail": {"two": [1, 2]}}
    [plain, checked] = read_items(
        lines(GOOD, {"id": 8, "image": "p/8.jpg", "captions": GOOD["captions"], "check": check})
    )
    assert (plain.id, plain.text, plain.image, plain.check) == ("7", "A dog.", None, None)
    assert (checked.id, checked.text, checked.image) == ("8", None, "p/8.jpg")
    assert checked.check.best == "one"
    assert checked.check.grades == {"detail": {"two": (1, 2)}}


def test_a_record_reads_back_as_the_same_item():
    items = make_items(4, n_checks=2)
    assert read_items(lines(*(item.record() for item in items))) == items


def test_captions_that_are_the_same_are_one_choice():
    items = make_items(3, n_checks=0)
    assert [len(item.choices) for item in items] == [3, 2, 1]
    assert [items[1].choice_of(system) for system in SYSTEMS] == [0, 0, 1]


def test_empty_lines_and_a_byte_order_mark_are_passed_over():
    assert len(read_items("\ufeff\n" + lines(GOOD) + "\r\n\n")) == 1


def test_a_line_separator_inside_a_text_does_not_end_the_line():
    text = json.dumps(GOOD | {"text": "one\u2028two"}, ensure_ascii=False)
    assert read_items(text)[0].text == "one\u2028two"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ([1], r"line 2: must be a JSON object; got \[1\]"),
        (GOOD | {"id": ""}, "line 2: `id` must be a text that is not empty; got ''"),
        (GOOD | {"id": True}, "line 2: `id` must be a text"),
        (GOOD | {"text": 5}, "line 2: `text` must be a text that is not empty; got 5"),
        (GOOD | {"text": "x" * 5001}, "`text` must have at most 5000 letters; got 5001"),
        (GOOD | {"text": "a\0b"}, "`text` must be readable text"),
        (GOOD | {"text": "\ud800"}, "`text` must be readable text"),
        (GOOD | {"image": "a.png"}, "must have either `image` or `text`; got both"),
        ({"id": "8", "captions": {}}, "must have either `image` or `text`; got neither"),
        (GOOD | {"extra": 1}, "keys must be of captions, check, id, image, text; got 'extra'"),
        (GOOD | {"captions": ["a"]}, "`captions` must be an object of captions by system; got"),
        (GOOD | {"captions": {"one": "a"}}, "`captions` must be 2 to 10, or none; got 1"),
        (GOOD | {"captions": {"one": "a", "two": None}}, "`captions, two` must be a text"),
        (
            GOOD | {"id": "8", "captions": {"one": "a", "three": "b"}},
            "`captions` must have the systems one, two, as item '7'; got one, three",
        ),
        (GOOD, "line 2: `id` must be unlike all others; got '7' of line 1"),
        (GOOD | {"check": {}}, "`check` must be an object with best, or with questions; got"),
        (GOOD | {"check": {"worst": 1}}, "worst must be grades by system, or a list of labels"),
        (GOOD | {"check": {"animal": [1]}}, "`animal` must be a text that is not empty; got 1"),
        (GOOD | {"check": {"best": "three"}}, "`check`, best must be one of one, two; got 'thr"),
        (GOOD | {"check": {"best": None}}, "`check`, best must be one of one, two; got nothing"),
        (GOOD | {"check": {"detail": {"x": [1]}}}, "`check`, detail must name one of one, two"),
        (
            GOOD | {"check": {"detail": {"one": [0]}}},
            "detail, one must list grades, counted from 1",
        ),
        (GOOD | {"check": {"detail": {"one": [True]}}}, "detail, one must list grades"),
    ],
)
def test_an_error_names_the_line_and_the_key(record, words):
    with pytest.raises(InvalidInputError, match=words) as caught:
        read_items(lines(GOOD, record), name="mine.jsonl")
    assert str(caught.value).startswith("mine.jsonl, line 2: ")


@pytest.mark.parametrize("text", ["{", "nan nan", "[" * 100_000])
def test_what_is_not_json_is_named(text):
    with pytest.raises(InvalidInputError, match="line 1: must be a JSON object"):
        read_items(text)


def test_a_file_of_checks_alone_is_refused():
    with pytest.raises(InvalidInputError, match="an item that is not an attention check"):
        read_items(lines(GOOD | {"check": {"best": "one"}}))


def test_systems_are_those_of_items_that_are_no_checks():
    assert system_names(make_items(2, n_checks=1)) == SYSTEMS
    assert "Walrus-right" in make_lines(2, n_checks=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"title": " "}, "`title` must be a text of 1 to 200 letters"),
        ({"title": "x" * 201}, "`title` must be .*; got 201 letters"),
        ({"consent": "a\0"}, "`consent` must be readable text"),
        ({"title": "a\ud800"}, r"`title` must be readable text; got 'a\\ud800'"),
        ({"questions": ()}, "a study must have 1 to 12 questions; got 0"),
        ({"questions": PAPER[:1] * 2}, "questions must have names of their own"),
        ({"hold_minutes": 0}, "`hold_minutes` must be at least 1; got 0"),
        ({"return_url": "javascript:alert(1)"}, "`return_url` must be a web address"),
        ({"code": "x" * 101}, "`code` must be a text of 0 to 100 letters"),
        ({"items_per_rater": 0}, "`items_per_rater` must be at least 1; got 0"),
        ({"seed": -1}, "`seed` must be at least 0; got -1"),
    ],
)
def test_options_out_of_range_are_refused(options, words):
    with pytest.raises(InvalidInputError, match=words):
        Design(**{"title": "A study"} | options)


def test_options_must_go_with_the_items():
    items = make_items(3)
    with pytest.raises(InvalidInputError, match="`items_per_rater` must be at most 3"):
        Design("A study", items_per_rater=4).check_items(items)
    with pytest.raises(InvalidInputError, match="`check` must be on a question that is asked"):
        Design("A study", questions=PAPER[1:2]).check_items(items)
    Design("A study", items_per_rater=3).check_items(items)
    bare = [Item("1", {}, text="Miau."), Item("2", {}, text="Wau.", check=Check(labels=DOG))]
    with pytest.raises(InvalidInputError, match="item '1' must have captions"):
        Design("A study").check_items(bare)
    Design("A study", questions=(LABEL,)).check_items(bare)
    cats = replace(LABEL, options=("cat", "none"))
    with pytest.raises(InvalidInputError, match="animal must be of cat, none; got dog"):
        Design("A study", questions=(cats,)).check_items(bare)


LABEL = Question("animal", "label", "What is it?", ("cat", "dog"))
DOG = {"animal": ("dog",)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "essay"}, "a question must be one of grade, best, label, words; got 'essay'"),
        ({"name": " "}, "the name of a question must be a text of 1 to 60 letters"),
        ({"text": "a\nb"}, "the text of a question must be readable text in one line"),
        ({"options": ("cat",)}, "a label for the item must have 2 to 20 options; got 1"),
        ({"options": ("cat", "cat")}, "options must differ; got cat, cat"),
        ({"kind": "best", "options": ("a", "b")}, "must have 0 to 1 options; got 2"),
        ({"kind": "words"}, "words of their own must have 0 to 0 options; got 2"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(change, words):
    with pytest.raises(InvalidInputError, match=words):
        replace(LABEL, **change)


def test_a_table_is_read_as_the_same_lines():
    table = (
        "\ufeffid,image,text,one,two,check\r\n"
        '7,a.png,,"a dog, or not",b,\r\n'
        "8,,A dog.,a,b,two\r\n"
        '9,,A dog.,a,b,"{""taste"": {""one"": [1]}}"\r\n'
    )
    items = read_items(table, name="mine.csv")
    assert [item.record() for item in items] == [
        {"id": "7", "image": "a.png", "captions": {"one": "a dog, or not", "two": "b"}},
        {
            "id": "8",
            "text": "A dog.",
            "captions": {"one": "a", "two": "b"},
            "check": {"best": "two"},
        },
        {
            "id": "9",
            "text": "A dog.",
            "captions": {"one": "a", "two": "b"},
            "check": {"taste": {"one": [1]}},
        },
    ]
    assert read_items(table.replace(",", "\t").replace('"a dog\t or not"', "x"), name="a.tsv")
    [bare] = read_items("id,text\n1,Miau.\n", name="a.csv")
    assert bare == Item("1", {}, text="Miau.")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("id,text,a,b\n1,x,one,two,three\n", "line 2: must have as many cells as the first line"),
        ("id,text,a,a\n1,x,one,two\n", "columns must have names of their own"),
        ("id,text,a,b\n1,x,one,\n", "line 2: `captions` must be 2 to 10, or none; got 1"),
        ("id,text,a,b\n,x,one,two\n", "line 2: `id` must be a text"),
        ("id,text,a,b,check\n1,x,one,two,{\n", "`check`, line 1: must be a JSON object"),
        ('id,text\n1,"' + "x" * 200_000 + '"\n', "must be a row of a table; got: field larger"),
        ("", "must have an item that is not an attention check"),
    ],
)
def test_a_wrong_table_is_named(table, words):
    with pytest.raises(InvalidInputError, match=words):
        read_items(table, name="mine.csv")
