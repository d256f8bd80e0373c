"""How much of a time budget is left."""

import time


class Clock:
    """Seconds that are left of a budget; without one there is always time."""

    def __init__(self, budget: float | None = None) -> None:
        self._budget = budget
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self._started

    def has(self, seconds: float = 0.0, *, share: float = 1.0) -> bool:
        """Whether so many seconds are left of a share of the budget."""
        return self._budget is None or self.seconds + seconds < share * self._budget
