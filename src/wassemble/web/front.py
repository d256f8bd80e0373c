"""The front page: what can be opened here."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from wassemble.inputs.formats import ENDS
from wassemble.web.pages import render
from wassemble.web.paths import list_files
from wassemble.web.settings import Settings

__all__ = ["make_router"]


def make_router(settings: Settings) -> APIRouter:
    """The front page."""
    router = APIRouter()

    @router.get("/", response_class=HTMLResponse, tags=["pages"])
    def front(request: Request) -> HTMLResponse:
        """The front page: the way to the explorer and to the studies."""
        return render(
            request,
            "front.html",
            examples=settings.examples,
            folder=settings.folder.name,
            n_files=len(list_files(settings.folder, ENDS)),
        )

    return router
