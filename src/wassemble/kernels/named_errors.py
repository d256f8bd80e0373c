"""Errors about entries of a kernel, with the labels' names in place of their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wassemble.errors import InvalidInputError

__all__ = ["named_labels"]


@contextmanager
def named_labels(source: Sequence[str], target: Sequence[str]) -> Iterator[None]:
    """Errors raised inside speak of labels by name, not by place."""
    try:
        yield
    except InvalidInputError as error:
        words = str(error)
        titles = {"source label": source, "target label": target}
        if "declared symmetric" in words:
            titles |= {"row": source, "column": target}
        for title, names in titles.items():
            pieces = re.split(rf"\b{title} (\d+)", words)
            pieces[1::2] = [f"{title} {names[int(place)]!r}" for place in pieces[1::2]]
            words = "".join(pieces)
        raise InvalidInputError(words) from None
