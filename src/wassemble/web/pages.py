"""What requests are answered with: pages from templates, errors in words, and files to take away.

Errors are a page for people and JSON for programs, by what the client accepts.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from starlette.exceptions import HTTPException

from wassemble.errors import InvalidInputError
from wassemble.web.security import csrf_token, keep_csrf_token

_TEMPLATES = Path(__file__).parent / "templates"
_STATIC = Path(__file__).parent / "static"
FAULT = "Something went wrong on the server. Nothing of your request is to blame."
_PROBLEM = {
    "type": "object",
    "properties": {"detail": {"type": "string", "description": "What went wrong, in words."}},
    "required": ["detail"],
}
_REASONS = {
    400: "The body cannot be read.",
    401: "The operator's token is needed.",
    403: "The request was not sent by one of this server's pages.",
    404: "There is nothing at this address.",
    413: "The body is larger than the server takes.",
    422: "The input is not what it must be.",
    429: "Too many requests in a second.",
    503: "The answer took too long.",
}
# Of every operation in the OpenAPI description.
ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": reason,
        "content": {"application/json": {"schema": _PROBLEM}, "text/html": {}},
    }
    for status, reason in _REASONS.items()
}
ANSWERS[303] = {"description": "Go on at another address."}


def render(
    request: Request,
    name: str,
    *,
    problem: str = "",
    status_code: int | None = None,
    headers: dict[str, str] | None = None,
    **context: Any,
) -> HTMLResponse:
    """The page of the template ``name``, a path below ``templates/``; 422 if it has a problem.

    Templates extend ``base.html`` (blocks ``title``, ``head``, ``main``). They also know
    ``message`` and ``hint`` of the problem, ``csrf`` (for a hidden field of that name in every
    form), ``request``, ``is_operator``, ``version`` and ``plotly_version`` (for addresses:
    ``/static/style.css?v={{ version }}``) and the filter ``json_script``, for data inside
    ``<script type="application/json">``.
    """
    settings = request.app.state.settings
    message, _, hint = problem.partition("\nhint: ")
    page = (
        _environment()
        .get_template(name)
        .render(
            request=request,
            csrf=csrf_token(request),
            is_operator=request.app.state.sessions.is_operator(request),
            has_token=settings.token is not None,
            message=message,
            hint=hint,
            **context,
        )
    )
    # What was sent may hold half a character, which UTF-8 has no bytes for.
    content, status = page.encode("utf-8", "backslashreplace"), 422 if problem else 200
    response = HTMLResponse(content, status_code=status_code or status, headers=headers)
    keep_csrf_token(request, response)
    return response


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["json_script"] = _json_script
    # Addresses of scripts and styles say what is in them: browsers may keep them for long.
    content = b"".join(path.read_bytes() for path in sorted(_STATIC.iterdir()))
    digest = hashlib.sha256(content).hexdigest()[:12]
    environment.globals.update(version=digest, plotly_version=version("plotly"))
    return environment


def _json_script(value: Any) -> Markup:
    """JSON in which nothing can end a script element early."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def answer_problem(
    request: Request, status: int, detail: str, headers: dict[str, str] | None = None
) -> Response:
    """A page, or ``{"detail": ...}`` where none is asked for."""
    detail = detail.encode("utf-8", "backslashreplace").decode()  # no half characters
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"detail": detail}, status_code=status, headers=headers)
    title = HTTPStatus(status).phrase
    return render(
        request, "problem.html", problem=detail, status_code=status, headers=headers, title=title
    )


def install_handlers(app: FastAPI, headers: dict[str, str]) -> None:
    """Answer every error of the app; ``headers`` go with those that no middleware sees."""

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        known = dict(error.headers or {})
        detail = str(error.detail)
        if error.status_code == 404 and detail == "Not Found":
            detail = "There is nothing at this address."
        return answer_problem(request, error.status_code, detail, known)

    @app.exception_handler(RequestValidationError)
    async def on_validation(request: Request, error: RequestValidationError) -> Response:
        return answer_problem(request, 422, "\n".join(map(_word, error.errors())))

    @app.exception_handler(InvalidInputError)
    async def on_input(request: Request, error: InvalidInputError) -> Response:
        return answer_problem(request, 422, str(error))

    @app.exception_handler(Exception)
    async def on_fault(request: Request, error: Exception) -> Response:
        return answer_problem(request, 500, FAULT, headers)


def _word(error: dict[str, Any]) -> str:
    """One sentence of a validation error: where, what must hold, what was got."""
    place = ".".join(str(part) for part in error["loc"][1:]) or str(error["loc"][0])
    message = f"`{place}`: {error['msg'][:1].lower()}{error['msg'][1:]}"
    got = error.get("input")
    if isinstance(got, str | int | float):
        message += f"; got {str(got)[:100]!r}"
    return message + "."


# A spreadsheet takes cells that begin so for formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(rows: Iterable[Iterable[Any]], *, line_end: str = "\n") -> str:
    """Rows as CSV; a text that a spreadsheet would run as a formula gets an apostrophe in front.

    Examples
    --------
    >>> print(write_csv([["=1+1", "cat", -1]]), end="")
    '=1+1,cat,-1
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=line_end)
    for row in rows:
        writer.writerow(
            f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
            for cell in row
        )
    return out.getvalue()


def attach(name: str) -> dict[str, str]:
    """Headers that make an answer a file of that name."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
