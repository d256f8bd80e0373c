"""What every request passes on its way in, and every answer on its way out.

Who may come in, under which name, and how much one client may ask for: requests, bytes, seconds.
All of it is pure ASGI: bodies stream through and are never gathered.
"""

import asyncio
import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from urllib.parse import quote

from fastapi import HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wassemble._checks import fail
from wassemble.web.pages import answer_problem
from wassemble.web.settings import LOOPBACK_NAMES, Settings

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",  # Plotly puts its rules into the page by script
    "img-src": "'self' data: blob:",
    "connect-src": "'self'",
    "font-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Raters' links are secrets: no other site learns them. Not `no-referrer`, under which
    # browsers hide the origin of a form from ourselves as well.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_PUBLIC_PATHS = ("/static/", "/rate/", "/join/")
_SMALL_BODY = 100_000  # what a rater or a login sends
_MAX_BUCKETS = 10_000
_SLOW_SENDER = 12  # a body that keeps coming may take this many times `max_seconds`

_log = logging.getLogger("wassemble.web")


class Gate:
    """Answers the requests that it refuses, and lets all others pass."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._refuse(Request(scope)) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        """The answer to a request that may not pass; None for one that may."""
        raise NotImplementedError


class SecurityHeaders:
    """Adds `HEADERS`, except those that an answer has of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_more)


class HeadAsGet:
    """HEAD is answered as GET is, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "HEAD":
            return await self._app(scope, receive, send)

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if "body" in message else message)

        return await self._app({**scope, "method": "GET"}, receive, send_head)


class HostCheck(Gate):
    """Refuses names that are not the server's: another site's name may lead to loopback."""

    def _refuse(self, request: Request) -> Response | None:
        settings = self._settings
        if settings.is_public and not settings.allowed_hosts:
            return None  # without a list, any name will do: the token protects the server
        host, colon, port = request.headers.get("host", "").rpartition(":")
        name = (host if colon and port.isdigit() else f"{host}{colon}{port}").lower()
        if name in map(str.lower, (*LOOPBACK_NAMES, settings.host, *settings.allowed_hosts)):
            return None
        detail = (
            f"This server does not go by the name {name!r}.\n"
            "hint: `wassemble serve --allowed-host` adds a name"
        )
        return answer_problem(request, 400, detail)


class OperatorOnly(Gate):
    """Keeps everything but raters' pages from those who do not know the token."""

    def _refuse(self, request: Request) -> Response | None:
        path: str = request.scope["path"]
        is_public = path == "/login" or path.startswith(_PUBLIC_PATHS)
        if is_public or request.app.state.sessions.is_operator(request):
            return None
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?next={quote(wanted)}", 303)
        detail = "The operator's token is needed: `Authorization: Bearer TOKEN`."
        return answer_problem(request, 401, detail, {"WWW-Authenticate": "Bearer"})


def check_label_count(n_labels: int, settings: Settings) -> None:
    """Refuse a label set that is too large for this server (422)."""
    if n_labels > settings.max_labels:
        fail(
            f"this server takes at most {settings.max_labels:,} labels; got {n_labels:,}.",
            hint="`wassemble serve --max-labels` sets the limit",
        )


class Buckets:
    """Token buckets by name: one second's worth of requests at once, then ``rate`` a second.

    The least recently used are forgotten when there are too many, so memory is bounded.
    """

    def __init__(
        self,
        rate: float,
        *,
        at_most: int = _MAX_BUCKETS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._at_most, self._clock = rate, at_most, clock
        self._capacity = max(1.0, rate)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, name: str) -> float:
        """Seconds to wait before the next request is taken; 0: this one was."""
        now = self._clock()
        left, last = self._buckets.pop(name, (self._capacity, now))
        left = min(self._capacity, left + (now - last) * self._rate)
        # Rounding may leave a hair less than one after exactly the time that was asked for.
        wait = 0.0 if left > 1 - 1e-9 else (1 - left) / self._rate
        self._buckets[name] = (left - 1 if wait == 0 else left, now)
        if len(self._buckets) > self._at_most:
            self._buckets.popitem(last=False)
        return wait


class RateLimit(Gate):
    """429 with ``Retry-After`` for a client address, or a rater's link, that asks too often."""

    def __init__(
        self, app: ASGIApp, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(app, settings)
        self._buckets = Buckets(settings.max_requests_per_second, clock=clock)

    def _refuse(self, request: Request) -> Response | None:
        wait = max(self._buckets.take(name) for name in _client_names(request.scope))
        detail = "Too many requests in a second. Wait a moment and try again."
        headers = {"Retry-After": str(math.ceil(wait))}
        return answer_problem(request, 429, detail, headers) if wait > 0 else None


def _client_names(scope: Scope) -> list[str]:
    client = scope.get("client")
    address = client[0] if client else "unknown"
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        pass
    else:
        if parsed.version == 6:  # one client commands a whole /64 network
            address = str(ipaddress.ip_network((parsed, 64), strict=False))
    names = [address]
    _, *parts = scope["path"].split("/", 3)  # "*" has none
    if parts[:1] == ["rate"] and len(parts) > 1:
        names.append("rate/" + parts[1][:100])
    return names


class UploadLimit:
    """413 for a body above the limit, announced or not; no more than the limit is ever kept."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        limit = self._settings.max_upload_bytes
        if scope["path"].startswith(("/rate/", "/join/", "/login")):
            limit = min(limit, _SMALL_BODY)
        detail = f"This server takes at most {limit:,} bytes here; more were sent."
        announced = dict(scope["headers"]).get(b"content-length", b"0")[:20]  # digits enough
        if announced.isdigit() and int(announced) > limit:
            answer = answer_problem(Request(scope), 413, detail)
            return await answer(scope, receive, send)
        n_read = 0

        async def counted() -> Message:
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            if n_read > limit:  # FastAPI lets it pass while it reads a body
                raise HTTPException(413, detail)
            return message

        return await self._app(scope, counted, send)


class TimeLimit:
    """503 when an answer has not begun in time; what was started ends by itself, unheard.

    A thread cannot be stopped, so the request's task is left to finish and its answer is
    dropped. The time begins anew with each piece of a body that comes in.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._seconds = settings.max_seconds
        self._left_behind: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        call = _Call(receive, send, self._seconds)
        scope["wassemble.call"] = call
        task = asyncio.ensure_future(self._app(scope, call.receive, call.send))
        try:
            while not task.done() and not call.has_begun and call.remaining > 0:
                await asyncio.wait({task}, timeout=call.remaining)
            if not task.done() and not call.has_begun:
                call.is_over = True
                self._left_behind.add(task)
                task.add_done_callback(self._forget)
                detail = f"This took longer than {self._seconds:g} seconds and was given up."
                answer = answer_problem(Request(scope), 503, detail, {"Retry-After": "5"})
                return await answer(scope, receive, send)
            return await task
        except asyncio.CancelledError:
            task.cancel()
            raise

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a request failed after its time was over", exc_info=task.exception())


class _Call:
    """The two channels of a request, until its time is over."""

    def __init__(self, receive: Receive, send: Send, seconds: float) -> None:
        self._receive, self._send, self._seconds = receive, send, seconds
        self._end = time.monotonic() + _SLOW_SENDER * seconds
        self._deadline = time.monotonic() + seconds
        self.has_begun = False
        self.is_over = False

    @property
    def remaining(self) -> float:
        return min(self._deadline, self._end) - time.monotonic()

    async def receive(self) -> Message:
        if self.is_over:
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message.get("body"):
            self._deadline = time.monotonic() + self._seconds
        return message

    async def send(self, message: Message) -> None:
        if not self.is_over:
            self.has_begun = True
            await self._send(message)


def seconds_left(request: Request) -> float:
    """How long the answer to a request may still take."""
    call: _Call = request.scope["wassemble.call"]
    return call.remaining


async def compute_slot(request: Request) -> AsyncIterator[None]:
    """A turn to compute; at most ``n_processes`` requests have one (a dependency).

    Use it as ``Depends(compute_slot, scope="function")`` on endpoints that compute: those that
    wait hold no thread, so pages are still served. Who has gone meanwhile is not computed for,
    and whose time is over waits no longer.
    """
    slots: asyncio.Semaphore = request.app.state.compute_slots
    call: _Call | None = request.scope.get("wassemble.call")
    try:
        async with asyncio.timeout(None if call is None else call.remaining):
            await slots.acquire()
    except TimeoutError:
        raise HTTPException(503, "Others are computing. Try again later.") from None
    try:
        if (call is not None and call.is_over) or await request.is_disconnected():
            raise HTTPException(503, "The client did not wait for the answer.")
        yield
    finally:
        slots.release()
