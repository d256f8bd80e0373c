"""Pictures that are sent: by content, within limits, and never as paths."""

import io
import struct
import zipfile

import pytest

from wassemble.errors import InvalidInputError
from wassemble.web.study.items import Item
from wassemble.web.study.pictures import make_items, match_pictures, picture_type, read_pictures

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
JPEG = b"\xff\xd8\xff\xe1" + bytes(100)


def pack(members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def read(max_bytes=1_000_000, **files):
    return read_pictures(
        [(name.replace("_", "."), io.BytesIO(content)) for name, content in files.items()],
        max_bytes=max_bytes,
    )


def test_pictures_come_alone_and_in_zip_files():
    archive = pack({"b/": b"", "b/2.jpg": JPEG, "b/.DS_Store": b"x", "__MACOSX/b/2.jpg": b"x"})
    found = read(a_png=PNG, all_zip=archive)
    assert {name: each.media_type for name, each in found.items()} == {
        "a.png": "image/png",
        "b/2.jpg": "image/jpeg",
    }
    assert found["b/2.jpg"].content == JPEG


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "PNG, JPEG or WebP by its content"),
        (lambda: b"", "PNG, JPEG or WebP by its content"),
        (lambda: pack({"a.png": b"<script>"}), "PNG, JPEG or WebP by its content; 'a.png' is not"),
        (lambda: pack({"../../a.png": b"#!/bin/sh"}), "by its content"),
        (lambda: pack({"a.png": PNG}, zipfile.ZIP_LZMA), "stored or deflated; 'a.png' is not"),
        (lambda: pack({"a.png": PNG})[:-30], "must be a whole zip file"),
        (lambda: b"PK\3\4" + bytes(200), "must be a whole zip file"),
        (
            lambda: pack({"a.png": PNG}, zipfile.ZIP_STORED).replace(PNG[:4], b"...."),
            "got: BadZipFile",
        ),
        (
            lambda: pack({"a.png": PNG + bytes(11_000_000)}),
            "at most 10,000,000 bytes; 'a.png' has more",
        ),
        (
            lambda: pack({f"{n}.png": PNG + bytes(9_000_000) for n in range(3)}),
            "too many or too large",
        ),
        (
            lambda: pack({f"{n:060}.png": b"" for n in range(60_000)}),
            "at most 10,000 pictures; got more",
        ),
    ],
    ids=range(11),
)
def test_what_is_no_picture_or_too_large_is_refused(make, words):
    content = make()  # here, as every worker of pytest imports this file
    with pytest.raises(InvalidInputError, match=words):
        read(max_bytes=20_000_000, x_zip=content)


def test_a_zip_file_that_lies_about_its_list_of_members_is_refused():
    whole = bytearray(pack({"a.png": PNG}))
    at = whole.rfind(b"PK\5\6")
    struct.pack_into("<L", whole, at + 12, 5_000_000)
    with pytest.raises(InvalidInputError, match="at most 10,000 pictures"):
        read(x_zip=bytes(whole))


def test_a_name_in_a_zip_file_never_becomes_a_path():
    """It is the name of a row in a database, whatever it looks like."""
    found = read(x_zip=pack({"../../etc/a.png": PNG}))
    assert list(found) == ["../../etc/a.png"]
    item = Item("1", {}, image="a.png")
    assert match_pictures([item], found) == {"a.png": found["../../etc/a.png"]}


def test_names_are_matched_whole_or_by_their_end_where_only_one_ends_so():
    sent = read(x_zip=pack({"one/1.png": PNG, "two/1.png": PNG, "two/2.png": JPEG[:3] + PNG}))
    items = [Item(name, {}, image=name) for name in ("1.png", "one/1.png", "2.png", "3.png")]
    matched = match_pictures(items, sent)
    assert set(matched) == {"one/1.png", "2.png"}
    assert matched["2.png"].media_type == "image/jpeg"


def test_the_same_name_twice_is_refused():
    with pytest.raises(InvalidInputError, match=r"names of their own; got 'a\.png' twice"):
        read_pictures([("a.png", io.BytesIO(PNG)) for _ in range(2)], max_bytes=999)


def test_pictures_alone_are_items():
    assert make_items(["b.png", "a.png"]) == [
        Item("a.png", {}, image="a.png"),
        Item("b.png", {}, image="b.png"),
    ]


@pytest.mark.parametrize(
    ("beginning", "wanted"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe1........", "image/jpeg"),
        (b"RIFF\x10\0\0\0WEBP", "image/webp"),
        (b"RIFF\x10\0\0\0WAVE", None),
        (b"<svg xmlns=", None),
        (b"<!doctype ht", None),
        (b"GIF89a......", None),
        (b"", None),
    ],
)
def test_a_picture_is_known_by_its_first_bytes(beginning, wanted):
    assert picture_type(beginning) == wanted
