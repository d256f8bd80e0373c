"""Things that are dear to make: made once, kept while there is room, the oldest let go first."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Kept"]

Thing = TypeVar("Thing")


class Kept(Generic[Thing]):
    """At most ``n_items`` things, of a total size of at most ``n_bytes``, by key.

    Threads that ask for the same thing wait for the one that makes it.

    Parameters
    ----------
    n_items, n_bytes : int
    size : callable
        How large a thing is; its ``n_bytes`` unless told, or 0 if it has none.

    Examples
    --------
    >>> kept = Kept(2)
    >>> [kept.get(key, lambda: key.upper()) for key in "aba"]
    ['A', 'B', 'A']
    """

    def __init__(
        self,
        n_items: int,
        *,
        n_bytes: float = math.inf,
        size: Callable[[Thing], int] = lambda thing: getattr(thing, "n_bytes", 0),
    ) -> None:
        self._n_items, self._n_bytes, self._size = n_items, n_bytes, size
        self._things: OrderedDict[Hashable, Thing] = OrderedDict()
        self._making: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        """The thing of that key; made if it is not there."""
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                return self._things[key]
            making = self._making.setdefault(key, Lock())
        with making:
            with self._lock:
                if key in self._things:
                    return self._things[key]
            try:
                thing = make()
                with self._lock:
                    self._things[key] = thing
                    self._let_go()
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return thing

    def _let_go(self) -> None:
        total = sum(map(self._size, self._things.values()))
        while len(self._things) > 1 and (
            len(self._things) > self._n_items or total > self._n_bytes
        ):
            _, old = self._things.popitem(last=False)
            total -= self._size(old)

    def __len__(self) -> int:
        return len(self._things)
