"""Connections that send no request are closed: each holds a place that others may want."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["impatient_protocol"]


def impatient_protocol(seconds: float) -> type[asyncio.Protocol]:
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
