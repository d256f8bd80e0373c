"""`wassemble study items`: captions of several systems become a study file."""

import json

import pytest

from paper.captioning.drawings import DRAWINGS, frame
from paper.commands import main as paper
from paper.data.captions import load_captions
from wassemble.cli import main
from wassemble.web.study import example
from wassemble.web.study.items import read_items


@pytest.fixture
def captions(tmp_path):
    """Two systems' captions of the first three test images, and how the command takes them."""
    numbers = load_captions("test").image_ids[:3].tolist()
    given = []
    for system in ("glove", "geometric mean"):
        path = tmp_path / f"{system}.jsonl"
        records = [{"image_id": str(n), "caption": f"{system[:2]} {n}"} for n in numbers]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        given.append(f"{system}={path}")
    return given


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """Files of the reference captions of two splits, by name."""
    folder = tmp_path_factory.mktemp("references")
    for split in ("test", "val"):
        assert paper(["references", split, "--out", str(folder / f"{split}.jsonl")]) == 0
    return {split: str(folder / f"{split}.jsonl") for split in ("test", "val")}


def run(*arguments):
    return main(["study", "items", *map(str, arguments), "--quiet"])


def test_references_stand_for_the_pictures(captions, references, capsys):
    assert run(*captions, "--references", references["test"]) == 0
    items = read_items(capsys.readouterr().out)
    data = load_captions("test")
    for place, item in enumerate(items):
        number = str(data.image_ids[place])
        assert item.id == number
        assert item.captions == {"glove": f"gl {number}", "geometric mean": f"ge {number}"}
        assert all(reference in item.text for reference in data.captions[place])
    assert len(items) == 3


def test_pictures_may_be_named_by_a_pattern(captions, tmp_path):
    assert run(*captions, "--image", "p/{image_id}.jpg", "--out", tmp_path / "study.jsonl") == 0
    items = read_items((tmp_path / "study.jsonl").read_text())
    assert [item.image for item in items] == [f"p/{item.id}.jpg" for item in items]


def test_references_may_come_from_a_file(captions, tmp_path, capsys):
    numbers = load_captions("test").image_ids[:3].tolist()
    path = tmp_path / "references.jsonl"
    records = [{"image_id": n, "captions": [f"reference {n}"]} for n in numbers]
    path.write_text("\n".join(map(json.dumps, records)))
    assert run(*captions, "--references", path) == 0
    assert all(f"- reference {i.id}" in i.text for i in read_items(capsys.readouterr().out))


def test_checks_are_of_other_images_and_say_what_is_right(captions, references, capsys):
    assert run(*captions, "--references", references["test"], "--checks", "3") == 0
    items = read_items(capsys.readouterr().out)
    rated, checks = items[:3], items[3:]
    data = load_captions("test")
    written = dict(zip(map(str, data.image_ids), data.captions, strict=True))
    for check in checks:
        number = check.id.removeprefix("check ")
        assert number not in [item.id for item in rated]
        own, *shown = written[number]
        assert check.captions["reference"] == own
        assert all(each in check.text for each in shown)
        wrong = check.check.grades["correctness"]
        assert set(wrong) == set(check.captions) - {"reference"}
        assert set(wrong.values()) == {(1, 2)}
        for system in wrong:
            assert check.captions[system] == written[system.removeprefix("image ")][0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["glove"], "captions must be given as SYSTEM=FILE; got 'glove'"),
        (["{0}", "{0}"], "systems must have different names; got 'glove' twice"),
        (["{0}", "{1}"], "either references or pictures must be shown"),
        (["{0}", "{1}", "--image", "x", "--checks", "1"], "--checks are made of references"),
        (["{0}", "--references", "{test}"], "`captions` must be 2 to 10, or none; got 1"),
        (["{0}", "{1}", "--references", "{val}"], "must have a reference caption; got none"),
        (["{0}", "x=nowhere.jsonl", "--references", "{test}"], "must be a UTF-8 file of captions"),
    ],
)
def test_what_cannot_be_joined_is_said_in_words(captions, references, capsys, arguments, words):
    assert run(*(each.format(*captions, **references) for each in arguments)) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{}", "line 4: must be a JSON object with image_id"),
        ("nonsense", "line 4: must be a JSON object; got 'nonsense'"),
        ('{"image_id": 785, "caption": "again"}', "image_id must come once; got '785' again"),
        ('{"image_id": 5}', "image 5 must have `caption`; got None"),
        ('{"image_id": 5, "caption": "more"}', "geometric mean must have a caption for image 5"),
    ],
)
def test_a_wrong_line_is_named(captions, references, capsys, line, words):
    with open(captions[0].partition("=")[2], "a") as file:
        file.write(line)
    assert run(*captions, "--references", references["test"]) == 2
    assert words in capsys.readouterr().err


def test_the_shipped_example_is_a_study_of_the_first_test_images_that_are_drawn():
    items = example.read_items()
    rated = [item for item in items if item.check is None]
    known = [str(n) for n in load_captions("test").image_ids[:20]]
    assert [item.id for item in rated] == [number for number in known if number in DRAWINGS]
    assert len(items) - len(rated) == 2


def test_the_shipped_drawings_are_those_that_the_items_show_and_that_are_drawn():
    pictures = {name: each.content.decode() for name, each in example.read_pictures().items()}
    assert {item.image for item in example.read_items()} == set(pictures)
    assert pictures == {f"{name}.svg": frame(draw()) for name, draw in DRAWINGS.items()}
