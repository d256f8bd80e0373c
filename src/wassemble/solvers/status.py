"""How each row of a solve ended."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Status"]


class Status(IntEnum):
    """How a row ended; each member carries its message.

    Examples
    --------
    >>> Status.MAX_SWEEPS.message
    'stopped after max_sweeps sweeps'
    """

    message: str

    CONVERGED = 0, "converged: the residual is at most the tolerance"
    MAX_SWEEPS = 1, "stopped after max_sweeps sweeps"
    UNREACHABLE_MASS = 2, "some mass has no target label to go to"
    DIVERGED = 3, "left the range of the floating type"
    NO_MASS = 4, "the models' mass meets at no target label, so the consensus is empty"

    def __new__(cls, value: int, message: str = "") -> Status:
        member = int.__new__(cls, value)
        member._value_ = value
        member.message = message
        return member
