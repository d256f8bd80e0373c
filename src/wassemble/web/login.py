"""The operator's way in and out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from wassemble.web.pages import render
from wassemble.web.security import (
    grant_operator,
    is_operator,
    knows_token,
    local_path,
    revoke_operator,
)
from wassemble.web.settings import Settings

__all__ = ["make_router"]


def make_router(settings: Settings) -> APIRouter:
    """The login page, its answer, and the way out."""
    router = APIRouter(tags=["pages"])

    @router.get("/login", response_class=HTMLResponse)
    def login(
        request: Request, next_path: Annotated[str, Query(alias="next", max_length=2000)] = "/"
    ) -> Response:
        """The form that asks for the operator's token; straight on for who is known already."""
        if is_operator(request, settings):
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
        if not knows_token(token, settings):
            return render(request, "login.html", status_code=401, next_path=path, is_wrong=True)
        response = RedirectResponse(path, 303)
        grant_operator(request, response, settings)
        return response

    @router.post("/logout", response_class=RedirectResponse, status_code=303)
    def leave() -> Response:
        """Log out."""
        response = RedirectResponse("/login", 303)
        revoke_operator(response)
        return response

    return router
