"""What a worker says: plain data ready to be sent, or the words for what is wrong."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException

from wassemble.errors import InvalidInputError


@dataclass(frozen=True)
class Reply:
    """The body of an answer; unless ``status`` is 200, the words that say what went wrong."""

    status: int
    body: bytes
    name: str = ""  # of a file


class NotThereError(InvalidInputError):
    """What was asked for by its name is not there."""


def reply_with(make: Callable[[], Reply]) -> Reply:
    """What ``make`` gives, or what it raises in words; `MemoryError` where there is too little."""
    try:
        return make()
    except InvalidInputError as error:
        _refuse_lack_of_memory(error)
        status = 404 if isinstance(error, NotThereError) else 422
        return Reply(status, to_bytes(str(error)))


def _refuse_lack_of_memory(error: BaseException) -> None:
    """Readers take a file for broken that needs more memory than there is; it may not be."""
    cause = error.__cause__
    while cause is not None:
        if isinstance(cause, MemoryError):
            raise cause
        cause = cause.__cause__


def to_bytes(text: str) -> bytes:
    """Text as it is sent; a name may hold half a character."""
    return text.encode("utf-8", "backslashreplace")


def to_json(value: Any) -> bytes:
    """Plain data as it is sent."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def raise_problem(reply: Reply) -> Reply:
    """The reply of a worker, unless it says what is wrong."""
    if reply.status == 422:
        raise InvalidInputError(reply.body.decode())
    if reply.status != 200:
        raise HTTPException(reply.status, reply.body.decode())
    return reply
