"""The study's pages: the operator's under ``/studies``, each rater's under a secret link."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter

from wassemble.web.settings import Settings
from wassemble.web.study import operator_routes, rater_routes, result_routes
from wassemble.web.study.access import close_store

__all__ = ["make_router"]


def make_router(_: Settings) -> APIRouter:
    """All pages of studies."""
    router = APIRouter(lifespan=_lifespan)
    for part in (operator_routes, result_routes, rater_routes):
        router.include_router(part.router)
    return router


@asynccontextmanager
async def _lifespan(app: Any) -> AsyncIterator[None]:
    yield
    close_store(app)
