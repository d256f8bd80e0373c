"""An ASGI app called by hand: bodies in any pieces, and every message that it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What came back, and how many bytes of the body were taken."""

    status: int
    headers: dict[str, str]
    body: bytes
    n_read: int


def call(
    app: Any,
    method: str = "GET",
    path: str = "/",
    *,
    headers: dict[str, str] | None = None,
    chunks: Sequence[bytes] = (),
    client: str = "127.0.0.1",
) -> Answer:
    """One request from the start to its whole answer."""
    return asyncio.run(call_async(app, method, path, headers=headers, chunks=chunks, client=client))


async def call_async(
    app: Any,
    method: str = "GET",
    path: str = "/",
    *,
    headers: dict[str, str] | None = None,
    chunks: Sequence[bytes] = (),
    client: str = "127.0.0.1",
) -> Answer:
    """As `call`, inside a running event loop."""
    named = {"host": "localhost"} | (headers or {})
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        "client": (client, 50000),
        "server": ("localhost", 80),
        "state": {},
    }
    left, n_read, sent = list(chunks) or [b""], 0, []

    async def receive() -> dict[str, Any]:
        nonlocal n_read
        if not left:  # the client stays for its answer
            await asyncio.Event().wait()
        body = left.pop(0)
        n_read += len(body)
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    named = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], named, b"".join(m["body"] for m in rest), n_read)
