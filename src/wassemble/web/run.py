"""A server from its settings: the socket first, so that a taken port is one clear error."""

from __future__ import annotations

import errno
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

import uvicorn
from threadpoolctl import threadpool_limits

from wassemble._checks import fail
from wassemble.web.app import create_app
from wassemble.web.connections import impatient_protocol
from wassemble.web.settings import Settings

__all__ = ["run"]


def run(settings: Settings, talk: Callable[[str], None], *, open_browser: bool = False) -> None:
    """Serve until interrupted; ``talk`` says where."""
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # addresses hold raters' secrets
        server_header=False,
        ws="none",
        http=impatient_protocol(settings.max_seconds),
        # Only a proxy in front of us may say whom it speaks for.
        proxy_headers=bool(settings.allowed_hosts),
        timeout_graceful_shutdown=5,
    )
    with _listen(settings) as listener, suppress(KeyboardInterrupt):
        address = _address(settings.host, listener.getsockname()[1])
        talk(f"serving {settings.folder.name}/ at {address}  (Ctrl-C stops it)")
        if settings.token is not None:
            # A terminal is read by the person who chose the token; anything else may be a log.
            secret = f"#{quote(settings.token)}" if sys.stderr.isatty() else ""
            talk(f"log in: {address}/login{secret}")
        if open_browser:  # without the token: other users of this machine see the command
            webbrowser.open(address)
        # Requests run side by side already: threads of their own would only be in each other's way.
        with threadpool_limits(limits=1, user_api="blas"):
            # A thread that comes back from a product waits this long for its turn; there are many.
            sys.setswitchinterval(0.0005)
            uvicorn.Server(config).run(sockets=[listener])
    talk("stopped")


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
