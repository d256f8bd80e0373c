"""How much of a time budget is left."""

import math
import time


class Clock:
    """Seconds that are left of a budget; without one there is always time."""

    def __init__(self, budget: float | None = None) -> None:
        self._budget = budget
        self._started, self._started_work = time.monotonic(), time.process_time()

    @property
    def budget(self) -> float:
        """Seconds in all; infinite without a budget."""
        return math.inf if self._budget is None else self._budget

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self._started

    @property
    def slowness(self) -> float:
        """Seconds that a second of work has taken so far: more than 1 on a busy machine."""
        work = time.process_time() - self._started_work
        return max(1.0, self.seconds / work) if work > 0 else 1.0

    def has(self, seconds: float = 0.0, *, share: float = 1.0) -> bool:
        """Whether so many seconds are left of a share of the budget."""
        return self._budget is None or self.seconds + seconds < share * self._budget
