"""A server from its settings: the socket first, so that a taken port is one clear error."""

import asyncio
import errno
import multiprocessing
import os
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from threading import Thread
from typing import Any
from urllib.parse import quote

import uvicorn
from threadpoolctl import threadpool_limits
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from wassemble._checks import fail
from wassemble.web.app import create_app
from wassemble.web.explorer.uploads import remove_uploads
from wassemble.web.settings import Settings


def run(settings: Settings, talk: Callable[[str], None], *, open_browser: bool = False) -> None:
    """Serve until interrupted; ``talk`` says where."""
    with _listen(settings) as listener, suppress(KeyboardInterrupt):
        address = _address(settings.host, listener.getsockname()[1])
        server = None
        if settings.n_processes == 1:
            # Whoever reads where it serves may end it at once: it is ready to be ended by then.
            server = _make_server(settings)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, server.handle_exit)
        talk(f"serving {settings.folder.name}/ at {address}  (Ctrl-C stops it)")
        if settings.token is not None:
            # A terminal is read by the person who chose the token; anything else may be a log.
            secret = f"#{quote(settings.token)}" if sys.stderr.isatty() else ""
            talk(f"log in: {address}/login{secret}")
        if open_browser:  # without the token: other users of this machine see the command
            webbrowser.open(address)
        if server is None:
            _serve_by_processes(settings, listener)
        else:
            _serve(server, listener)
    talk("stopped")


def _make_server(settings: Settings) -> uvicorn.Server:
    config = uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,  # addresses hold raters' secrets
        server_header=False,
        ws="none",
        http=_impatient_protocol(settings.max_seconds),
        # Only a proxy in front of us may say whom it speaks for.
        proxy_headers=bool(settings.allowed_hosts),
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    # A thread that comes back from a product waits this long for its turn; there are many.
    sys.setswitchinterval(0.0005)
    # Requests run side by side already: threads of their own would only be in each other's way.
    with threadpool_limits(limits=1, user_api="blas"):
        server.run(sockets=[listener])


def _serve_by_processes(settings: Settings, listener: socket.socket) -> None:
    """Processes that take connections from one socket; when one ends, all do."""

    def end(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    context = multiprocessing.get_context("spawn")
    children = [
        context.Process(target=_serve_as_child, args=(settings, listener))
        for _ in range(settings.n_processes)
    ]
    try:
        for child in children:
            child.start()
        wait([child.sentinel for child in children])
        fail("a process of the server ended by itself, so the server has.", hint="start it again")
    finally:
        for child in children:
            if child.pid is not None:
                child.terminate()
        for child in children:
            if child.pid is not None:
                child.join()
        remove_uploads(settings.run_id)
        signal.signal(signal.SIGTERM, before)


def _serve_as_child(settings: Settings, listener: socket.socket) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()  # a parent that was killed could not say so
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=follow, daemon=True).start()
    with suppress(KeyboardInterrupt):
        _serve(_make_server(settings), listener)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    host = settings.host.strip("[]")
    try:
        listener = socket.create_server((host, settings.port), family=family, backlog=2048)
        # Else the second piece of an answer waits until the first is acknowledged: 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            fail(f"port {settings.port} is in use.", hint="--port 0 takes a free one")
        fail(f"cannot listen at {settings.host!r}, port {settings.port}: {error.strerror}.")


def _address(host: str, port: int) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    return f"http://{name}:{port}"


def _impatient_protocol(seconds: float) -> type[asyncio.Protocol]:
    """Uvicorn's own protocol, but a connection must have sent the head of a request in time.

    It is looked at every ``seconds``, and closed if no request was begun since the last time.
    """

    class Impatient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch = self.loop.call_later(seconds, self._look, None)

        def connection_lost(self, error: Exception | None) -> None:
            self._watch.cancel()
            super().connection_lost(error)

        def _look(self, last: Any) -> None:
            if self.cycle is last and (last is None or last.response_complete):
                self.transport.close()
            self._watch = self.loop.call_later(seconds, self._look, self.cycle)

    return Impatient
