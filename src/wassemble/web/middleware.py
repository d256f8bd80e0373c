"""What every request passes on its way in, and every answer on its way out."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wassemble.web.pages import answer_problem
from wassemble.web.security import is_operator
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
_PUBLIC_PATHS = ("/static/", "/rate/")


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
        if is_public or is_operator(request, self._settings):
            return None
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?next={quote(wanted)}", 303)
        detail = "The operator's token is needed: `Authorization: Bearer TOKEN`."
        return answer_problem(request, 401, detail, {"WWW-Authenticate": "Bearer"})
