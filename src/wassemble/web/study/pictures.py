"""Pictures of a study: in the served folder, or sent with the study and kept in the database."""

import re
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from wassemble.errors import InvalidInputError, fail
from wassemble.web.paths import inside
from wassemble.web.study.items import Item

_MAX_PICTURES = 10_000
_MAX_BYTES = 10_000_000  # of one picture
_DIRECTORY_BYTES = 4_000_000  # the list of a zip file's members; a member takes about 100
_END = struct.Struct("<4s4H2LH")  # what a zip file ends with


@dataclass(frozen=True)
class Picture:
    """A picture, and what it is by its content."""

    media_type: str
    content: bytes


def picture_type(beginning: bytes) -> str | None:
    """The media type of a PNG, JPEG or WebP file, from its first 12 bytes; None for all else.

    Examples
    --------
    >>> picture_type(b"<svg xmlns="), picture_type(bytes.fromhex("ffd8ffe0"))
    (None, 'image/jpeg')
    """
    if beginning.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if beginning.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return None


def read_pictures(files: Iterable[tuple[str, BinaryIO]], *, max_bytes: int) -> dict[str, Picture]:
    """Pictures by name, from files that were sent: pictures, and zip files of them.

    Names are kept as texts and never become paths. ``max_bytes`` bounds all of them, unpacked.
    """
    pictures: dict[str, Picture] = {}
    for name, content in _unpack(files):
        max_bytes -= len(content)
        if max_bytes < 0 or len(pictures) == _MAX_PICTURES:
            fail(
                "the pictures of a study are too many or too large for this server.",
                hint="make them smaller, or put them into the served folder",
            )
        media_type = picture_type(content[:12])
        if media_type is None:
            fail(f"a picture must be PNG, JPEG or WebP by its content; {name!r} is not.")
        if name in pictures:
            fail(f"pictures must have names of their own; got {name!r} twice.")
        pictures[name] = Picture(media_type, content)
    return pictures


def match_pictures(items: Iterable[Item], sent: Mapping[str, Picture]) -> dict[str, Picture]:
    """The pictures that were sent for items, by what the items call them.

    A picture goes by its whole name, or by the last part of it where no other ends so.
    """
    by_end: dict[str, list[str]] = {}
    for name in sent:
        by_end.setdefault(PurePosixPath(name).name, []).append(name)
    matched = {}
    for item in items:
        if item.image is not None:
            ends = by_end.get(PurePosixPath(item.image).name, [])
            if item.image in sent:
                matched[item.image] = sent[item.image]
            elif len(ends) == 1:
                matched[item.image] = sent[ends[0]]
    return matched


def make_items(pictures: Iterable[str]) -> list[Item]:
    """An item for each picture, for studies that ask for labels."""
    return [Item(name, {}, image=name) for name in sorted(pictures)]


def find_picture(folder: Path, name: str) -> Picture:
    """A picture inside ``folder``."""
    path = inside(folder, name)
    if not path.is_file():
        fail(
            f"the picture {name!r} must be sent with the study, or be in the served folder; it is"
            " not."
        )
    with path.open("rb") as file:
        content = file.read(_MAX_BYTES + 1)
    media_type = picture_type(content[:12])
    if media_type is None or len(content) > _MAX_BYTES:
        fail(
            f"a picture must be PNG, JPEG or WebP by its content, of at most {_MAX_BYTES:,} bytes;"
            f" {name!r} is not."
        )
    return Picture(media_type, content)


def check_pictures(folder: Path, items: Iterable[Item], sent: Mapping[str, Picture]) -> None:
    """Refuse items whose pictures can neither be found in the folder nor were sent."""
    for item in items:
        if item.image is not None and item.image not in sent:
            find_picture(folder, item.image)


def _unpack(files: Iterable[tuple[str, BinaryIO]]) -> Iterator[tuple[str, bytes]]:
    """Names and contents, those inside zip files included."""
    for name, file in files:
        if file.read(4) in (b"PK\3\4", b"PK\5\6"):
            yield from _unzip(name, file)
        else:
            file.seek(0)
            yield name, _read_whole(file, name)


def _unzip(name: str, file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    _check_directory(name, file)
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if _is_wanted(member):
                    _check_method(name, member)
                    with archive.open(member) as content:
                        yield member.filename, _read_whole(content, member.filename)
    except InvalidInputError:
        raise
    except Exception as error:  # a broken archive fails in many ways, all of them its own fault
        fail(f"{name}: must be a zip file that can be unpacked; got: {type(error).__name__}.")


def _check_directory(name: str, file: BinaryIO) -> None:
    """Refuse a zip file whose list of members is too long to be read into memory."""
    size = file.seek(0, 2)
    file.seek(max(0, size - (1 << 16) - _END.size))
    end = file.read()
    at = end.rfind(b"PK\5\6")
    is_whole = at >= 0 and len(end) - at >= _END.size
    # Beside zip files of more than 4 GB, the longer record may tell of a longer list.
    if not is_whole or b"PK\6\7" in end[max(0, at - 20) : at]:
        fail(f"{name}: must be a whole zip file of at most 4 GB; it is not.")
    if _END.unpack_from(end, at)[5] > _DIRECTORY_BYTES:
        fail(f"{name}: a zip file must have at most {_MAX_PICTURES:,} pictures; got more.")
    file.seek(0)


def _is_wanted(member: zipfile.ZipInfo) -> bool:
    """Whether a member of a zip file is meant: not a folder, not what a desktop adds."""
    return not member.is_dir() and not re.search(r"(^|/)(\.(?!\.?/)|__MACOSX/)", member.filename)


def _check_method(name: str, member: zipfile.ZipInfo) -> None:
    """Refuse methods that may take any amount of memory to unpack."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        fail(f"{name}: must be a zip file that is stored or deflated; {member.filename!r} is not.")


def _read_whole(file: IO[bytes], name: str) -> bytes:
    content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        fail(f"a picture must have at most {_MAX_BYTES:,} bytes; {name!r} has more.")
    return content
