"""Threads: how many there may be, and work shared among them.

A thread that already is one of several workers gets no helpers of its own.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

from wassemble._checks import check_count, fail

_state = threading.local()


def count_threads(n_threads: int | None) -> int:
    """``n_threads``, else $WASSEMBLE_NUM_THREADS, else the cores this process may use.

    In a thread that somebody else started the default is one: they share the cores already.
    """
    if n_threads is not None:
        return check_count(n_threads, "n_threads")
    from_environment = os.environ.get("WASSEMBLE_NUM_THREADS")
    if from_environment is not None:
        if not from_environment.isdecimal():
            fail(f"WASSEMBLE_NUM_THREADS must be a whole number; got {from_environment!r}.")
        return check_count(int(from_environment), "WASSEMBLE_NUM_THREADS")
    if not is_main_thread():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_threads() -> int:
    """Threads that a product started here may use."""
    limit = getattr(_state, "limit", None)
    return count_threads(None) if limit is None else int(limit)


@contextmanager
def limited_threads(limit: int | None) -> Iterator[None]:
    """Work started in this thread uses at most ``limit`` threads (None: as many as there are)."""
    before = getattr(_state, "limit", None)
    _state.limit = limit
    try:
        yield
    finally:
        _state.limit = before


def share(calls: Sequence[Callable[[], object]]) -> None:
    """Make every call, on as many threads as are available; the first error is raised."""
    if len(calls) == 1 or available_threads() == 1:
        for call in calls:
            call()
        return
    for done in [_pool().submit(call) for call in calls]:
        done.result()


def single_threaded_blas() -> AbstractContextManager[Any]:
    """BLAS kept to one thread inside, so that it does not fight with threads over tiles.

    The setting belongs to the process. Only the main thread touches it: solves that
    overlap in a user's own threads would restore each other's limits.
    """
    if not is_main_thread():
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


def single_threaded_libraries() -> AbstractContextManager[Any]:
    """Every library that is loaded by now kept to one thread inside.

    For many small steps of SciPy and scikit-learn: their threads would wait for each other, on a
    busy machine most of the time.
    """
    return threadpool_limits(limits=1) if is_main_thread() else nullcontext()


def is_main_thread() -> bool:
    """Whether this is the thread that the process started with."""
    return threading.current_thread() is threading.main_thread()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries: once is enough


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="wassemble")


# Threads do not survive a fork: a child process starts a pool of its own.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
