"""Exceptions and warnings that wassemble raises; every one names what to do about it."""

__all__ = ["ConvergenceWarning", "InvalidInputError", "MissingExtraError", "WassembleError"]


class WassembleError(Exception):
    """Base of every error that wassemble raises on purpose."""


class InvalidInputError(WassembleError, ValueError):
    """An argument or a file does not hold what it must hold."""


class ConvergenceWarning(UserWarning):
    """Some rows of a consensus are not the fixed point that was asked for."""


class MissingExtraError(WassembleError, ImportError):
    """A part that was asked for needs a package that is not installed."""
