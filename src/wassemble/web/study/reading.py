"""Files that are sent for a new study: kept by the server, read by a worker, taken back.

The server opens none of them: a zip file may unpack to any size, and a line may be as long as the
file. Both meet in a folder, where the worker leaves the pictures that it unpacked.
"""

import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Literal

from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from wassemble.errors import fail
from wassemble.web.replies import Reply, raise_problem, to_json
from wassemble.web.study.items import Item, read_item, read_items
from wassemble.web.study.pictures import (
    Picture,
    check_pictures,
    make_items,
    match_pictures,
    read_pictures,
)

_ITEMS, _SENT, _UNPACKED = "items", "sent-{}", "unpacked-{}"


class StudyFiles(BaseModel, frozen=True):
    """What a worker is to read: files of a folder, by the names that they were sent under."""

    what: Literal["study"] = "study"
    folder: Path
    served: Path  # where pictures may lie that were not sent
    items: str  # empty: an item for each picture
    pictures: tuple[str, ...]
    max_bytes: int  # of all pictures, unpacked

    @property
    def source(self) -> tuple[str, ...]:
        """Nothing of it stays open."""
        return ()


async def read_files(
    items: tuple[str, BinaryIO] | None,
    pictures: list[tuple[str, BinaryIO]],
    ask: Callable[[StudyFiles], Awaitable[Reply]],
    *,
    served: Path,
    max_bytes: int,
) -> tuple[list[Item], dict[str, Picture]]:
    """The items of files that were sent, and the pictures that were sent for them.

    ``ask`` has a worker read them.
    """
    with TemporaryDirectory(prefix="wassemble-study-") as folder:
        files = StudyFiles(
            folder=Path(folder),
            served=served,
            items="" if items is None else items[0],
            pictures=tuple(name for name, _ in pictures),
            max_bytes=max_bytes,
        )
        sent = [file for _, file in pictures]
        await run_in_threadpool(_keep, files.folder, None if items is None else items[1], sent)
        reply = raise_problem(await ask(files))
        return await run_in_threadpool(_take, files.folder, reply)


def _keep(folder: Path, items: BinaryIO | None, pictures: list[BinaryIO]) -> None:
    kept = {_SENT.format(number): file for number, file in enumerate(pictures)}
    for name, file in (kept if items is None else kept | {_ITEMS: items}).items():
        with (folder / name).open("xb") as out:
            shutil.copyfileobj(file, out)


def _take(folder: Path, reply: Reply) -> tuple[list[Item], dict[str, Picture]]:
    said = json.loads(reply.body)
    pictures = {
        name: Picture(media_type, (folder / _UNPACKED.format(number)).read_bytes())
        for number, (name, media_type) in enumerate(said["pictures"])
    }
    return [read_item(record, "") for record in said["items"]], pictures


# -- in a worker -----------------------------------------------------------------------------------


def read_study(files: StudyFiles) -> Reply:
    """Items, and types of the pictures that are sent for them; the pictures go into the folder."""
    sent = read_pictures(_open_sent(files), max_bytes=files.max_bytes)
    items = _read_items(files) if files.items else make_items(sent)
    pictures = match_pictures(items, sent)
    check_pictures(files.served, items, pictures)
    for number, picture in enumerate(pictures.values()):
        (files.folder / _UNPACKED.format(number)).write_bytes(picture.content)
    types = [(name, picture.media_type) for name, picture in pictures.items()]
    return Reply(200, to_json({"items": [item.record() for item in items], "pictures": types}))


def _open_sent(files: StudyFiles) -> Iterator[tuple[str, BinaryIO]]:
    for number, name in enumerate(files.pictures):
        with (files.folder / _SENT.format(number)).open("rb") as file:
            yield name, file


def _read_items(files: StudyFiles) -> list[Item]:
    try:
        text = (files.folder / _ITEMS).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        fail(f"{files.items}: must be UTF-8 text; got another byte at {error.start}.")
    return read_items(text, name=files.items)
