"""Styles and scripts, and Plotly's own script from its package."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

__all__ = ["install"]

_FOLDER = Path(__file__).parent / "static"
_FOR_LONG = "public, max-age=31536000, immutable"  # addresses carry the version
_FOR_NOW = "no-cache"  # ask whether it has changed


def install(app: FastAPI) -> None:
    """Serve ``/static/``."""

    @app.get("/static/plotly.min.js", include_in_schema=False)
    def plotly(request: Request) -> Response:
        """Plotly's script, compressed where the client takes it."""
        headers = {"Cache-Control": _FOR_LONG, "Vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(_plotly(), media_type="text/javascript", headers=headers)
        headers["Content-Encoding"] = "gzip"
        return Response(_small_plotly(), media_type="text/javascript", headers=headers)

    app.mount("/static", _Files(directory=_FOLDER), name="static")


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        is_versioned = b"v=" in scope["query_string"]
        response.headers["Cache-Control"] = _FOR_LONG if is_versioned else _FOR_NOW
        return response


@cache
def _plotly() -> bytes:
    return (files("plotly") / "package_data" / "plotly.min.js").read_bytes()


@cache
def _small_plotly() -> bytes:
    return gzip.compress(_plotly(), mtime=0)
