"""Connections that do nothing are closed: clients that send no request, and that do not read.

Uvicorn's own protocol does the talking. What is here stands between it and the event loop, sees
nothing but the calls of `asyncio.Protocol`, and learns from the app when a request is answered.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

_Peer = tuple[str, int]


class Connections:
    """The open connections of a server; each has ``seconds`` for whatever it does not do."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds
        self._open: dict[_Peer, _Connection] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The app; a connection has its time again once its request is answered."""
        connection = self._open.get(tuple(scope.get("client") or ()))
        if connection is None:
            return await self._app(scope, receive, send)
        connection.stop_clock("request")
        try:
            await self._app(scope, receive, send)
        finally:
            connection.start_clock("request")

    def make_protocol(self, *args: Any, **options: Any) -> asyncio.Protocol:
        """The protocol of a new connection, for `uvicorn.Config`."""
        return _Connection(self._open, self._seconds, H11Protocol(*args, **options))


class _Connection(asyncio.Protocol):
    """A connection with two clocks: until its next request, and until it reads what it was sent.

    When a clock runs out, what was not read is thrown away: a client that reads nothing would
    otherwise hold it for ever.
    """

    def __init__(
        self, others: dict[_Peer, _Connection], seconds: float, inner: asyncio.Protocol
    ) -> None:
        self._others, self._seconds, self._inner = others, seconds, inner
        self._clocks: dict[str, asyncio.TimerHandle] = {}

    def start_clock(self, name: str) -> None:
        """Close the connection in a while, unless the clock is stopped."""
        self.stop_clock(name)
        if self._is_open:
            loop = asyncio.get_running_loop()
            self._clocks[name] = loop.call_later(self._seconds, self._transport.abort)

    def stop_clock(self, name: str) -> None:
        """Let it live."""
        if name in self._clocks:
            self._clocks.pop(name).cancel()

    def connection_made(self, transport: Any) -> None:
        self._transport, self._is_open = transport, True
        # None for who is gone already.
        self._peer: _Peer = tuple((transport.get_extra_info("peername") or ("", 0))[:2])
        self._others[self._peer] = self
        self.start_clock("request")
        self._inner.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._is_open = False
        if self._others.get(self._peer) is self:
            del self._others[self._peer]
        for name in list(self._clocks):
            self.stop_clock(name)
        self._inner.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self.start_clock("reading")
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self.stop_clock("reading")
        self._inner.resume_writing()
