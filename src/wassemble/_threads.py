"""Threads: how many there may be, and work shared among them.

A thread that already is one of several workers gets no helpers of its own.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
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
    """Make every call, on as many threads as are available; the first error is raised.

    After an error or an interrupt nobody wants the other calls any more: none of them begins, and
    those that run are stopped, as an interrupt would stop them, before it is raised.
    """
    if len(calls) == 1 or available_threads() == 1:
        for call in calls:
            call()
        return
    shared = _Shared()
    given: list[Future[None]] = []
    try:
        given.extend(_pool().submit(shared.make, call) for call in calls)
        for done in given:
            done.result()
    except BaseException:
        # Whatever is left in the pool, the interpreter waits for at exit.
        shared.call_off()
        wait([begun for begun in given if not begun.cancel()])
        raise


class _CalledOffError(BaseException):
    """Raised in a thread whose work nobody wants any more; like an interrupt, no `Exception`."""


class _Shared:
    """Calls on threads of the pool, which can be called off while they run.

    An exception that is raised from another thread comes at the next step of Python code: it needs
    no looking out for, which a regression of scikit-learn's would not do. It must not hit a thread
    that has gone on to something else: `_working` says which have not, and changes under `_lock`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._working: set[int] = set()
        self._is_off = False

    def make(self, call: Callable[[], object]) -> None:
        """Make a call, unless it was called off."""
        own = threading.get_ident()
        with suppress(_CalledOffError):
            try:
                with self._lock:
                    if self._is_off:
                        return
                    self._working.add(own)
                call()
            finally:
                with self._lock:
                    self._working.discard(own)
                    if self._is_off:
                        _raise_in(own, None)  # what was to be raised, and was not yet

    def call_off(self) -> None:
        """Stop the calls that are being made, and begin no other."""
        with self._lock:
            self._is_off = True
            for thread in self._working:
                _raise_in(thread, _CalledOffError)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Have an error raised in a thread, in place of one that waits to be; None takes that back."""
    import ctypes

    raised = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


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
