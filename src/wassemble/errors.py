"""Exceptions and warnings that wassemble raises; every one names what to do about it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

_UNSAID: Any = object()
# Flags of the command that is running, by the name of the argument that each stands for: how it
# is spelled, and what follows it. Without a command, messages speak Python.
_flags: ContextVar[Mapping[str, tuple[str, str]]] = ContextVar("flags", default={})  # noqa: B039


class WassembleError(Exception):
    """Base of every error that wassemble raises on purpose."""


class InvalidInputError(WassembleError, ValueError):
    """An argument or a file does not hold what it must hold."""


class ConvergenceWarning(UserWarning):
    """Some rows of a consensus are not the fixed point that was asked for."""


class InputWarning(UserWarning):
    """Tables look as if they meant something else than was made of them."""


class MissingExtraError(WassembleError, ImportError):
    """A part that was asked for needs a package that is not installed."""


def fail(message: str, *, hint: str | None = None) -> NoReturn:
    """Raise `InvalidInputError` with ``message`` and, on a line of its own, ``hint``."""
    raise InvalidInputError(message if hint is None else f"{message}\nhint: {hint}")


def tell_count(number: int, thing: str) -> str:
    """A number of things in words, such as "1 model" and "2,000 models"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def option(name: str, value: Any = _UNSAID) -> str:
    """An argument as the reader of a message types it: in Python, or as a flag of the command.

    Parameters
    ----------
    name : str
    value : optional
        What to give it; ``...`` is for the reader to fill in.

    Examples
    --------
    >>> option("weights"), option("normalize", True), option("kind", "multilabel")
    ('`weights`', 'normalize=True', 'kind="multilabel"')
    >>> with speaking({"weights": ("--weights", "W"), "kind": ("--kind", "KIND")}):
    ...     option("weights"), option("normalize", True), option("kind", "multilabel")
    ('--weights', 'normalize=True', '--kind multilabel')
    """
    if name not in _flags.get():
        if value is _UNSAID:
            return f"`{name}`"
        is_text = isinstance(value, str | list | dict)
        said = json.dumps(value, ensure_ascii=False) if is_text else repr(value)
        return f"{name}={'...' if value is ... else said}"
    flag, placeholder = _flags.get()[name]
    if value is _UNSAID or value is True:
        return flag
    if value is ... or isinstance(value, list):
        return f"{flag} {placeholder}".rstrip()
    if isinstance(value, dict):
        return f"{flag} {','.join(f'{key}={each}' for key, each in value.items())}"
    return f"{flag} {'none' if value is None else value}"


def option_or(python: str, **values: Any) -> str:
    """Options with these values where the command has them all, else ``python``.

    Examples
    --------
    >>> option_or("mass=Balanced()", balanced=True)
    'mass=Balanced()'
    """
    if not values.keys() <= spoken_flags().keys():
        return python
    return " ".join(option(name, value) for name, value in values.items())


def spoken_flags() -> Mapping[str, tuple[str, str]]:
    """What `speaking` was told, for whoever works for the command in another process."""
    return _flags.get()


@contextmanager
def speaking(flags: Mapping[str, tuple[str, str]]) -> Iterator[None]:
    """Messages composed inside name arguments by these flags: spelling, and what follows it."""
    token = _flags.set(flags)
    try:
        yield
    finally:
        _flags.reset(token)
