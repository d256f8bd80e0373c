"""Files of a study come back from a worker as they were sent, and nothing stays behind."""

import asyncio
import io
import tempfile

import pytest
from web.study.people import make_items, make_lines

from wassemble import InvalidInputError
from wassemble.web.replies import reply_with
from wassemble.web.study.pictures import Picture
from wassemble.web.study.reading import read_files, read_study

PNG = b"\x89PNG\r\n\x1a\n and more"


@pytest.fixture
def read(tmp_path, monkeypatch):
    """`read(items, pictures)` reads files that are sent, in this process."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))

    async def ask(files):
        return reply_with(lambda: read_study(files))

    def read_them(items, pictures=()):
        sent = [(name, io.BytesIO(content)) for name, content in pictures]
        file = None if items is None else ("items.jsonl", io.BytesIO(items))
        limits = {"served": tmp_path, "max_bytes": 1000}
        return asyncio.run(read_files(file, sent, ask, **limits))

    yield read_them
    assert list((tmp_path / "temporary").iterdir()) == []


def test_items_come_back_as_they_are(read):
    items, pictures = read(make_lines().encode())
    assert items == make_items()
    assert pictures == {}


def test_pictures_come_back_under_the_names_that_items_have(read):
    line = b'{"id": "1", "image": "deep/a.png", "captions": {"x": "one", "y": "two"}}'
    items, pictures = read(line, [("a.png", PNG), ("not-asked-for.png", PNG)])
    assert [item.image for item in items] == ["deep/a.png"]
    assert pictures == {"deep/a.png": Picture("image/png", PNG)}


def test_pictures_alone_are_items(read):
    items, pictures = read(None, [("b.png", PNG), ("a.png", PNG + b"!")])
    assert [item.id for item in items] == ["a.png", "b.png"]
    assert pictures["a.png"].content == PNG + b"!"


@pytest.mark.parametrize(
    ("items", "pictures", "words"),
    [
        (b"\xff", (), "items.jsonl: must be UTF-8 text; got another byte at 0"),
        (b"[]", (), "items.jsonl, line 1: must be a JSON object"),
        (None, [("a.png", b"<svg>")], "PNG, JPEG or WebP by its content; 'a.png' is not"),
        (None, [("a.png", PNG + bytes(2000))], "too many or too large"),
        (b'{"id": "1", "image": "b.png"}', [("a.png", PNG)], "must be sent with the study"),
    ],
)
def test_what_is_wrong_comes_back_in_words(read, items, pictures, words):
    with pytest.raises(InvalidInputError, match=words):
        read(items, pictures)
