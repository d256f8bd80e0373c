"""Who may do what: the operator's token, and proof that a form came from one of our pages.

Cross-site requests are kept out twice: a browser names the page's origin, which must be ours,
and a form must repeat the random value of a cookie that other sites cannot read.
"""

import hashlib
import hmac
import re
import secrets
from typing import Any

from fastapi import HTTPException, Request
from starlette.requests import HTTPConnection
from starlette.responses import Response

from wassemble.web.settings import Settings

_CSRF_COOKIE = "wassemble_csrf"
_OPERATOR_COOKIE = "wassemble_operator"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_CSRF_SHAPE = re.compile(r"[\w-]{43}", re.ASCII)


def is_operator(request: HTTPConnection, settings: Settings) -> bool:
    """Whether the request knows the operator's token, or none is needed."""
    if settings.token is None:
        return True
    if (sent := _bearer(request)) is not None:
        return knows_token(sent, settings)
    return _same(request.cookies.get(_OPERATOR_COOKIE, ""), _proof(settings))


def knows_token(sent: str, settings: Settings) -> bool:
    """Whether ``sent`` is the operator's token."""
    return settings.token is not None and _same(sent, settings.token)


def grant_operator(request: Request, response: Response, settings: Settings) -> None:
    """Let the browser that gets ``response`` be an operator until it is closed."""
    _set_cookie(request, response, _OPERATOR_COOKIE, _proof(settings))


def revoke_operator(response: Response) -> None:
    """Forget that the browser is an operator's."""
    response.delete_cookie(_OPERATOR_COOKIE, httponly=True, samesite="lax")


def csrf_token(request: Request) -> str:
    """The value to send back with every unsafe request: field ``csrf`` or ``X-CSRF-Token``."""
    known = request.cookies.get(_CSRF_COOKIE, "")
    if _CSRF_SHAPE.fullmatch(known):
        return known
    if not hasattr(request.state, "new_csrf"):
        request.state.new_csrf = secrets.token_urlsafe(32)
    fresh: str = request.state.new_csrf
    return fresh


def keep_csrf_token(request: Request, response: Response) -> None:
    """Give the browser the cookie that goes with `csrf_token`, if it has none yet."""
    if hasattr(request.state, "new_csrf"):
        _set_cookie(request, response, _CSRF_COOKIE, request.state.new_csrf)


async def check_csrf(request: Request) -> None:
    """Refuse an unsafe request that does not come from one of our pages (a dependency)."""
    if request.method in _SAFE_METHODS or _bearer(request) is not None:
        return  # a bearer token is never sent by a browser on its own
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise HTTPException(403, "This request was sent by another site.")
    sent: Any = request.headers.get("x-csrf-token")
    if sent is None and request.headers.get("content-type", "").startswith(_FORMS):
        sent = (await request.form()).get("csrf")
    known = request.cookies.get(_CSRF_COOKIE)
    if not known or not isinstance(sent, str) or not _same(sent, known):
        raise HTTPException(
            403, "This form is out of date, or cookies are off. Reload the page and send it again."
        )


def local_path(path: str | None) -> str:
    """``path`` if it is one of this server; the front page otherwise."""
    if path and re.fullmatch(r"/(?![/\\])[^\x00-\x20\\]*", path):
        return path
    return "/"


def _bearer(request: HTTPConnection) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token if kind.lower() == "bearer" else None


def _proof(settings: Settings) -> str:
    """What the cookie holds: shows that its owner knew the token, without holding it.

    When the server starts anew, nobody is logged in.
    """
    assert settings.token is not None
    key, text = settings.token.encode(), f"wassemble operator {settings.run_id}".encode()
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _same(sent: str, known: str) -> bool:
    """Whether two texts are equal, in a time that does not tell where they differ."""
    # A form in a strange encoding may hold half a character, which UTF-8 has no bytes for.
    return hmac.compare_digest(*(each.encode("utf-8", "surrogatepass") for each in (sent, known)))


def _set_cookie(request: Request, response: Response, name: str, value: str) -> None:
    # Lax: a link to a view still opens for who is logged in; forms of other sites send nothing.
    is_https = request.url.scheme == "https"
    response.set_cookie(name, value, httponly=True, samesite="lax", secure=is_https)
