"""Exceptions and warnings that wassemble raises; every one names what to do about it."""

__all__ = ["ConvergenceWarning", "InvalidInputError", "MissingExtraError", "WassembleError"]


class WassembleError(Exception):
    """Base of every error that wassemble raises on purpose."""


class InvalidInputError(WassembleError, ValueError):
    """An argument or a file does not hold what it must hold."""


class MissingExtraError(WassembleError, ImportError):
    """An optional dependency is needed for what was asked and is not installed."""


class ConvergenceWarning(UserWarning):
    """Some rows of a consensus are not the fixed point that was asked for."""
