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

__all__ = ["HEADERS", "HostCheck", "OperatorOnly", "SecurityHeaders"]

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


class HostCheck:
    """Refuses names that are not the server's: another site's name may lead to loopback."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        names = (*LOOPBACK_NAMES, settings.host, *settings.allowed_hosts)
        # Without a list, a server for others answers to any name; its token protects it.
        is_open = settings.is_public and not settings.allowed_hosts
        self._names = None if is_open else {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._names is not None:
            request = Request(scope)
            name = _without_port(request.headers.get("host", "")).lower()
            if name not in self._names:
                detail = (
                    f"This server does not go by the name {name!r}.\n"
                    "hint: `wassemble serve --allowed-host` adds a name"
                )
                answer = answer_problem(request, 400, detail)
                return await answer(scope, receive, send)
        return await self._app(scope, receive, send)


def _without_port(host: str) -> str:
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() else host


class OperatorOnly:
    """Keeps everything but raters' pages from those who do not know the token."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._may_pass(scope):
            return await self._app(scope, receive, send)
        return await self._refuse(Request(scope))(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        path: str = scope["path"]
        is_public = path == "/login" or path.startswith(_PUBLIC_PATHS)
        return is_public or is_operator(Request(scope), self._settings)

    def _refuse(self, request: Request) -> Response:
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?next={quote(wanted)}", 303)
        detail = "The operator's token is needed: `Authorization: Bearer TOKEN`."
        return answer_problem(request, 401, detail, {"WWW-Authenticate": "Bearer"})
