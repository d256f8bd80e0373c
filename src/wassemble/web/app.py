"""The app: its state, what every request passes, and its pages."""

import asyncio

from fastapi import Depends, FastAPI
from starlette.middleware import Middleware

from wassemble import __version__
from wassemble.web import routes as site
from wassemble.web.explorer import routes as explorer
from wassemble.web.middleware import (
    HEADERS,
    HeadAsGet,
    HostCheck,
    OperatorOnly,
    RateLimit,
    SecurityHeaders,
    TimeLimit,
    UploadLimit,
)
from wassemble.web.pages import ANSWERS, install_handlers
from wassemble.web.security import Sessions, check_csrf
from wassemble.web.settings import Settings
from wassemble.web.study import routes as study
from wassemble.web.workers import Workers

_DESCRIPTION = """Look into a consensus of several models, and let people judge captions.

Unsafe requests need the header `X-CSRF-Token` with the value of the cookie `wassemble_csrf`, or,
where the server has a token, `Authorization: Bearer TOKEN`.
"""


def create_app(settings: Settings) -> FastAPI:
    """The app as ASGI, ready to be served."""
    app = FastAPI(
        title="wassemble",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,  # both would load scripts from another site
        redoc_url=None,
        responses=ANSWERS,
        dependencies=[Depends(check_csrf)],
        middleware=[  # the first is the outermost
            Middleware(SecurityHeaders),
            Middleware(HeadAsGet),
            Middleware(HostCheck, settings=settings),
            Middleware(RateLimit, settings=settings),
            Middleware(OperatorOnly, settings=settings),
            Middleware(TimeLimit, settings=settings),
            Middleware(UploadLimit, settings=settings),
        ],
    )
    app.state.settings = settings
    app.state.workers = Workers(settings)
    app.state.sessions = Sessions(settings)
    app.state.compute_slots = asyncio.Semaphore(settings.n_processes)
    install_handlers(app, HEADERS)
    for part in (site, explorer, study):
        app.include_router(part.make_router(settings))
    site.serve_static(app)
    return app
