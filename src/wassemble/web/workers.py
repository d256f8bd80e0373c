"""Processes that open, unpack, rank and fuse, so that nothing a person opens can hurt the server.

The server's process speaks HTTP and holds no tables. A *zygote*, a process of its own, reads the
examples and forks workers when one is needed: a fork takes milliseconds, and has the examples in
memory already. A worker answers one question at a time under a memory limit and a clock. The
kernel enforces both: whatever a library does, the process ends, and another takes its place.

Questions and replies are JSON and text over a pair of sockets; nothing is ever unpickled.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import resource
import signal
import socket
import struct
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Annotated, NoReturn

from fastapi import HTTPException
from pydantic import Field, TypeAdapter

from wassemble._checks import fail
from wassemble.web.explorer.library import Library
from wassemble.web.explorer.questions import Question, What, answer_question
from wassemble.web.explorer.view import View
from wassemble.web.pages import FAULT
from wassemble.web.replies import Reply, reply_with
from wassemble.web.settings import Settings
from wassemble.web.study.reading import StudyFiles, read_study

# A worker is one of several processes; and Arrow's own pool would reserve a gigabyte at once.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "WASSEMBLE_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
_ASKED = struct.Struct("!dI")  # deadline, on the clock that all processes share; size of the text
_REPLIED = struct.Struct("!HHI")  # status, size of the name, size of the body
_FORK, _READY = b"f", b"r"
_N_REMEMBERED = 16
_READY_MADE: tuple[What, ...] = ("page", "all")
_SECONDS_TO_END = 5.0

Asked = Question | StudyFiles
_READER: TypeAdapter[Asked] = TypeAdapter(Annotated[Asked, Field(discriminator="what")])


class Workers:
    """The workers of a server: at most ``n_processes``, each with one question at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turns = asyncio.Semaphore(settings.n_processes)
        self._idle: list[_Worker] = []  # the first was asked longest ago
        self._zygote: BaseProcess | None = None
        self._calls: socket.socket | None = None
        self._is_closed = False

    def start(self) -> None:
        """Start the zygote, unless it runs, and wait until it has read the examples."""
        with suppress(OSError):  # closed meanwhile, by a signal
            if self._reach_zygote().recv(1) != _READY:
                fail("the process that reads the examples ended by itself.")

    def _reach_zygote(self) -> socket.socket:
        """The socket on which the zygote takes calls; it is started if it does not run."""
        if self._calls is not None and self._zygote is not None and not self._zygote.is_alive():
            self._calls.close()
            self._calls = None
        if self._calls is None:
            self._calls, theirs = socket.socketpair()
            process = multiprocessing.get_context("spawn").Process
            with _set_environment(), theirs:
                arguments = (self._settings, theirs)
                self._zygote = process(target=_run_zygote, args=arguments, daemon=True)
                self._zygote.start()
        return self._calls

    def close(self) -> None:
        """End every process at once, whatever it computes."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
        if self._calls is not None and self._zygote is not None:
            self._calls.close()  # the zygote ends all others, and itself
            self._zygote.join(_SECONDS_TO_END)
            self._calls = self._zygote = None

    async def ask(
        self, question: Asked, seconds: float, is_gone: Callable[[], Awaitable[bool]]
    ) -> Reply:
        """The reply to a question: in time, else 503, and within the memory, else 422.

        Who ``is_gone`` when the turn comes is not computed for.
        """
        deadline = time.monotonic() + seconds
        try:
            # Who waits long for a turn would be ended soon after, and a worker with it.
            async with asyncio.timeout(seconds / 2):
                await self._turns.acquire()
        except TimeoutError:
            raise _too_late("Others are computing. Try again in a moment.") from None
        try:
            if await is_gone():
                raise _too_late("The client did not wait for the answer.")
            async with asyncio.timeout(deadline - time.monotonic()):
                return await self._ask(question, deadline)
        except TimeoutError:
            took = f"This took longer than {self._settings.max_seconds:g} seconds"
            raise _too_late(f"{took} and was given up.") from None
        finally:
            self._turns.release()

    async def _ask(self, question: Asked, deadline: float) -> Reply:
        worker = self._pick(question)
        reply = await self._try(worker, question, deadline)
        # What it kept from before may have been in the way: a fresh one has the last word.
        if reply is None and worker.n_asked > 1 and time.monotonic() < deadline:
            reply = await self._try(self._fork(), question, deadline)
        if reply is None:
            self._refuse(deadline)
        return reply

    def _refuse(self, deadline: float) -> NoReturn:
        """Say why the process ended that had the last word."""
        if self._is_closed:
            raise HTTPException(503, "The server is ending.")
        if time.monotonic() >= deadline:
            raise TimeoutError
        fail(
            f"this takes more than {self._settings.max_memory:,} MB, the most this server gives to"
            " one request, or breaks the process that reads it.",
            hint="send or open less at once; `wassemble serve --max-memory` sets the limit",
        )

    async def _try(self, worker: _Worker, question: Asked, deadline: float) -> Reply | None:
        """The reply of a worker, which is idle again then; None if it died."""
        try:
            reply = await worker.ask(question, deadline)
        except (EOFError, ConnectionError):
            worker.close()
            return None
        except BaseException:  # nobody waits for it any longer; its clock ends it
            worker.close()
            raise
        if self._is_closed:
            worker.close()
        else:
            self._idle.append(worker)
        return reply

    def _pick(self, question: Asked) -> _Worker:
        """The idle worker that has the files open, or that was asked longest ago, or a new one."""
        if not self._idle:
            return self._fork()
        known = [each for each in self._idle if question.source in each.opened]
        chosen = [self._idle[0], *known][-1]
        self._idle.remove(chosen)
        return chosen

    def _fork(self) -> _Worker:
        if self._is_closed:
            raise HTTPException(503, "The server is ending.")
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._reach_zygote(), [_FORK], [theirs.fileno()])
        return _Worker(ours)


def _too_late(words: str) -> HTTPException:
    return HTTPException(503, words, {"Retry-After": "5"})


class _Worker:
    """One worker, as the server sees it."""

    def __init__(self, link: socket.socket) -> None:
        link.setblocking(False)
        self._link = link
        self.n_asked = 0
        self.opened: deque[object] = deque(maxlen=_N_REMEMBERED)

    def close(self) -> None:
        """Let it go."""
        self._link.close()

    async def ask(self, question: Asked, deadline: float) -> Reply:
        """Its reply; `EOFError` if it died."""
        self.n_asked += 1
        text = question.model_dump_json().encode()
        sent = _ASKED.pack(deadline, len(text)) + text
        await asyncio.get_running_loop().sock_sendall(self._link, sent)
        status, *sizes = _REPLIED.unpack(await self._read(_REPLIED.size))
        name, body = [await self._read(size) for size in sizes]
        self.opened.append(question.source)
        return Reply(status, bytes(body), name.decode())

    async def _read(self, size: int) -> bytearray:
        loop, found = asyncio.get_running_loop(), bytearray(size)
        left = memoryview(found)
        while left:
            n_read = await loop.sock_recv_into(self._link, left)
            if n_read == 0:
                raise EOFError
            left = left[n_read:]
        return found


@contextmanager
def _set_environment() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


# -- in other processes ---------------------------------------------------------------------------


def _run_zygote(settings: Settings, calls: socket.socket) -> None:
    """Fork a worker for each call until the server is gone, however it went."""
    os.setsid()  # a group of its own; Ctrl-C in a terminal is the server's affair
    signal.signal(signal.SIGTERM, _end_group)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
    library = Library(settings)
    for question in _list_examples(settings):
        _answer(library, question)
    gc.freeze()  # what is there already stays shared with all workers
    with suppress(ConnectionError):
        calls.send(_READY)
    while True:
        _take_call(library, calls, settings)


def _list_examples(settings: Settings) -> list[Question]:
    """Whose replies make ready what takes long: tables, kernels, and the verdict of each sample."""
    views = [
        View(example=example.name, kernel=kernel)
        for example in settings.examples
        for kernel in example.kernels
    ]
    return [Question(what=what, view=view) for view in views for what in _READY_MADE]


def _end_group(*_: object) -> NoReturn:
    os.killpg(0, signal.SIGKILL)
    raise SystemExit


def _take_call(library: Library, calls: socket.socket, settings: Settings) -> None:
    try:
        _, [link], _, _ = socket.recv_fds(calls, 1, 1)
    except (ConnectionError, ValueError):  # the end: neither a call nor a link
        _end_group()
    if os.fork() == 0:
        try:
            _work(library, socket.socket(fileno=link), settings.max_memory)
        finally:
            os._exit(0)
    os.close(link)


def _work(library: Library, link: socket.socket, max_memory: int) -> None:
    """Answer questions until nobody asks."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _limit_memory(max_memory)
    file = link.makefile("rwb")
    while asked := file.read(_ASKED.size):
        deadline, size = _ASKED.unpack(asked)
        question = _READER.validate_json(file.read(size))
        # Nobody handles the signal, so the kernel ends the process, even inside of a C function.
        signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-3))
        reply = _answer(library, question)
        signal.setitimer(signal.ITIMER_REAL, 0)
        name = reply.name.encode()
        file.write(_REPLIED.pack(reply.status, len(name), len(reply.body)) + name + reply.body)
        file.flush()


def _answer(library: Library, question: Asked) -> Reply:
    try:
        if isinstance(question, StudyFiles):
            return reply_with(lambda: read_study(question))
        return answer_question(library, question)
    except MemoryError:
        os._exit(0)
    except Exception:
        traceback.print_exc()
        return Reply(500, FAULT.encode())


def _limit_memory(megabytes: int) -> None:
    """Let this process take so much more than it has, on systems that say how much that is."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(FileNotFoundError):
        n_pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = n_pages * resource.getpagesize() + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
