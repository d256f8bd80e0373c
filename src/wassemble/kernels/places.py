"""How errors speak of labels: by their places, or by their names where these are known."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_names: ContextVar[tuple[Sequence[str], Sequence[str]]] = ContextVar("names", default=((), ()))


@contextmanager
def named_labels(source: Sequence[str], target: Sequence[str]) -> Iterator[None]:
    """Errors raised inside speak of labels by name, not by place."""
    before = _names.set((source, target))
    try:
        yield
    finally:
        _names.reset(before)


def source_label(place: int, title: str = "source label") -> str:
    """The source label at ``place``, for a message.

    Examples
    --------
    >>> with named_labels(["cat"], ["dog"]):
    ...     entry_at(0, 0)
    "source label 'cat', target label 'dog'"
    >>> entry_at(0, 0)
    'source label 0, target label 0'
    """
    return f"{title} {_name(_names.get()[0], place)}"


def entry_at(
    row: int, column: int, titles: tuple[str, str] = ("source label", "target label")
) -> str:
    """The labels of the entry at ``row`` and ``column``, for a message."""
    return f"{source_label(row, titles[0])}, {titles[1]} {_name(_names.get()[1], column)}"


def _name(names: Sequence[str], place: int) -> str:
    return repr(names[place]) if place < len(names) else str(place)
