"""Exceptions and warnings that wassemble raises; every one names what to do about it."""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "ConvergenceWarning",
    "InputWarning",
    "InvalidInputError",
    "MissingExtraError",
    "WassembleError",
    "fail",
    "tell_count",
]


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
