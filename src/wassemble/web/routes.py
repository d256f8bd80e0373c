"""What belongs to no part of the app: the front page, the operator's login, styles and scripts."""

import gzip
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, FastAPI, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

from wassemble.inputs.formats import ENDS
from wassemble.web.front import make_demo
from wassemble.web.pages import render
from wassemble.web.paths import list_files
from wassemble.web.security import Sessions, local_path
from wassemble.web.settings import Settings

_FOLDER = Path(__file__).parent / "static"
_FOR_LONG = "public, max-age=31536000, immutable"  # addresses carry the version
_FOR_NOW = "no-cache"  # ask whether it has changed


def make_router(settings: Settings) -> APIRouter:
    """The front page, and the operator's way in and out."""
    router = APIRouter(tags=["pages"])

    @router.get("/", response_class=HTMLResponse)
    def front(request: Request) -> HTMLResponse:
        """The front page: the way to the explorer and to the studies."""
        return render(
            request,
            "front.html",
            demo=make_demo(),
            examples=settings.examples,
            folder=settings.folder.name,
            n_files=len(list_files(settings.folder, ENDS)),
        )

    @router.get("/login", response_class=HTMLResponse)
    def login(
        request: Request, next_path: Annotated[str, Query(alias="next", max_length=2000)] = "/"
    ) -> Response:
        """The form that asks for the operator's token; straight on for who is known already."""
        if _sessions(request).is_operator(request):
            return RedirectResponse(local_path(next_path), 303)
        return render(request, "login.html", next_path=local_path(next_path), is_wrong=False)

    @router.post(
        "/login",
        response_class=RedirectResponse,
        status_code=303,
        responses={401: {"description": "The token is wrong.", "content": {"text/html": {}}}},
    )
    def enter(
        request: Request,
        token: Annotated[str, Form(max_length=1000)],
        next_path: Annotated[str, Form(alias="next", max_length=2000)] = "/",
    ) -> Response:
        """Log in: a right token gives the browser a cookie."""
        path = local_path(next_path)
        if settings.token is None:
            return RedirectResponse(path, 303)
        if not _sessions(request).knows_token(token):
            return render(request, "login.html", status_code=401, next_path=path, is_wrong=True)
        response = RedirectResponse(path, 303)
        _sessions(request).grant(request, response)
        return response

    @router.post("/logout", response_class=RedirectResponse, status_code=303)
    def leave(request: Request) -> Response:
        """Log out."""
        response = RedirectResponse("/login", 303)
        _sessions(request).revoke(request, response)
        return response

    return router


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


def serve_static(app: FastAPI) -> None:
    """Serve ``/static/``."""

    @app.get("/static/plotly.min.js", include_in_schema=False)
    def plotly(request: Request) -> Response:
        """Plotly's script, compressed where the client takes it."""
        headers = {"Cache-Control": _FOR_LONG, "Vary": "Accept-Encoding"}
        is_small = "gzip" in request.headers.get("accept-encoding", "")
        if is_small:
            headers["Content-Encoding"] = "gzip"
        script = _read_plotly(is_small=is_small)
        return Response(script, media_type="text/javascript", headers=headers)

    app.mount("/static", _Files(directory=_FOLDER), name="static")


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        is_versioned = b"v=" in scope["query_string"]
        response.headers["Cache-Control"] = _FOR_LONG if is_versioned else _FOR_NOW
        return response


@cache
def _read_plotly(*, is_small: bool) -> bytes:
    script = (files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return gzip.compress(script, mtime=0) if is_small else script
