"""Who may do what: the operator's token, and proof that a form came from one of our pages.

Cross-site requests are kept out twice: a browser names the page's origin, which must be ours,
and a form must repeat the random value of a cookie that other sites cannot read.
"""

import hmac
import re
import secrets
from typing import Any

from fastapi import HTTPException, Request
from itsdangerous import BadSignature, TimestampSigner
from starlette.requests import HTTPConnection
from starlette.responses import Response

from wassemble.web.settings import Settings

_CSRF_COOKIE = "wassemble_csrf"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SESSION_SECONDS = 12 * 3600
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_CSRF_SHAPE = re.compile(r"[\w-]{43}", re.ASCII)


class Sessions:
    """Who is logged in to a run of the server: signed cookies that expire, and can be revoked.

    When the server starts anew, nobody is logged in.
    """

    def __init__(self, settings: Settings) -> None:
        self._token = settings.token
        self._signer = TimestampSigner(f"{settings.token}{settings.run_id}", salt="operator")
        # Only who is logged in can log out, so there are few.
        self._revoked: set[bytes] = set()

    def is_operator(self, request: HTTPConnection) -> bool:
        """Whether the request knows the operator's token, or none is needed."""
        if self._token is None:
            return True
        if (sent := _bearer(request)) is not None:
            return self.knows_token(sent)
        return self._session(request) is not None

    def knows_token(self, sent: str) -> bool:
        """Whether ``sent`` is the operator's token."""
        return self._token is not None and _same(sent, self._token)

    def grant(self, request: Request, response: Response) -> None:
        """Let the browser that gets ``response`` be an operator for a while."""
        cookie = self._signer.sign(secrets.token_urlsafe(16)).decode()
        _set_cookie(request, response, _name(request), cookie, max_age=_SESSION_SECONDS)

    def revoke(self, request: Request, response: Response) -> None:
        """Let the cookie of the request be nobody's, whoever has a copy."""
        if (session := self._session(request)) is not None:
            self._revoked.add(session)
        response.delete_cookie(_name(request), httponly=True, samesite="lax")

    def _session(self, request: HTTPConnection) -> bytes | None:
        """What the cookie is signed for: the same signature can be spelt in several ways."""
        try:
            session = self._signer.unsign(request.cookies.get(_name(request), ""), _SESSION_SECONDS)
        except BadSignature:
            return None
        return None if session in self._revoked else session


def _name(request: HTTPConnection) -> str:
    """Of the operator's cookie: browsers send cookies to every port of a machine."""
    return f"wassemble_operator_{(request.scope.get('server') or ('', 0))[1]}"


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
    if origin is not None and origin != f"{request.url.scheme}://{request.headers.get('host')}":
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


def _same(sent: str, known: str) -> bool:
    """Whether two texts are equal, in a time that does not tell where they differ."""
    # A form in a strange encoding may hold half a character, which UTF-8 has no bytes for.
    return hmac.compare_digest(*(each.encode("utf-8", "surrogatepass") for each in (sent, known)))


def _set_cookie(
    request: Request, response: Response, name: str, value: str, max_age: int | None = None
) -> None:
    # Lax: a link to a view still opens for who is logged in; forms of other sites send nothing.
    is_https = request.url.scheme == "https"
    response.set_cookie(name, value, max_age, httponly=True, samesite="lax", secure=is_https)
