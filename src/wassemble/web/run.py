"""A server from its settings: the socket first, so that a taken port is one clear error."""

import asyncio
import errno
import os
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import FrameType
from typing import Any, cast
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from wassemble._checks import fail
from wassemble.web.app import create_app
from wassemble.web.connections import Connections
from wassemble.web.explorer.uploads import Uploads
from wassemble.web.settings import Settings
from wassemble.web.workers import Workers

_MAX_HEAD = 64_000  # bytes of a request before its body
_MAX_CONNECTIONS = 1000


def run(
    settings: Settings,
    talk: Callable[[str], None],
    *,
    open_browser: bool = False,
    tells_token: bool = False,
) -> None:
    """Serve until interrupted; ``talk`` says where, and with ``tells_token`` how to log in."""
    app = create_app(settings)
    with _listen(settings) as listener, suppress(KeyboardInterrupt), _ended(app, settings):
        # Whoever reads where it serves may end it at once: it is ready to be ended by then.
        server = _make_server(app, settings)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, server.handle_exit)
        app.state.workers.start()
        address = _address(settings.host, listener.getsockname()[1])
        talk(f"serving {settings.folder.name}/ at {address}  (Ctrl-C stops it)")
        login = address
        if settings.token is not None:
            login = f"{address}/login#{quote(settings.token)}"
            # A terminal is read by the person who chose the token; anything else may be a log.
            is_told = tells_token or sys.stderr.isatty()
            talk(f"log in: {login if is_told else login.partition('#')[0]}")
        with _page_to(login) if open_browser else nullcontext() as page:
            if page is not None:
                webbrowser.open(page)
            server.run(sockets=[listener])
    talk("stopped")


@contextmanager
def _ended(app: FastAPI, settings: Settings) -> Iterator[None]:
    """Leave neither processes nor files behind."""
    try:
        yield
    finally:
        app.state.workers.close()
        Uploads.of(settings).close()


@contextmanager
def _page_to(link: str) -> Iterator[str]:
    """The address of a page, for its owner alone, that leads to ``link``.

    Other users of this machine see with which arguments a browser is started.
    """
    with NamedTemporaryFile("w", prefix="wassemble-", suffix=".html") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">')
        file.flush()
        yield Path(file.name).as_uri()


class _Server(uvicorn.Server):
    """Told to end, it also ends what is being computed: nobody will see the answer."""

    def __init__(self, config: uvicorn.Config, workers: Workers) -> None:
        super().__init__(config)
        self._workers = workers

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._workers.close()
        super().handle_exit(sig, frame)


def _make_server(app: FastAPI, settings: Settings) -> _Server:
    known: Any = app
    if settings.allowed_hosts:  # only a proxy in front of us may say whom it speaks for
        known = ProxyHeadersMiddleware(known, os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1"))
    connections = Connections(known, settings.max_seconds)
    config = uvicorn.Config(
        connections,
        log_level="warning",
        access_log=False,  # addresses hold raters' secrets
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=cast("type[asyncio.Protocol]", connections.make_protocol),
        h11_max_incomplete_event_size=_MAX_HEAD,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=1,
    )
    return _Server(config, app.state.workers)


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
