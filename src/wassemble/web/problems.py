"""Errors as answers: a page for people, JSON for programs, by what the client accepts."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from wassemble.errors import InvalidInputError
from wassemble.web.pages import render

__all__ = ["ANSWERS", "answer_problem", "install_handlers"]


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


def answer_problem(
    request: Request, status: int, detail: str, headers: dict[str, str] | None = None
) -> Response:
    """A page, or ``{"detail": ...}`` where none is asked for."""
    detail = detail.encode("utf-8", "backslashreplace").decode()  # no half characters
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"detail": detail}, status_code=status, headers=headers)
    title = HTTPStatus(status).phrase
    message, _, hint = detail.partition("\nhint: ")
    return render(
        request,
        "problem.html",
        status_code=status,
        headers=headers,
        title=title,
        message=message,
        hint=hint,
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
        detail = "Something went wrong on the server. Nothing of your request is to blame."
        return answer_problem(request, 500, detail, headers)


def _word(error: dict[str, Any]) -> str:
    """One sentence of a validation error: where, what must hold, what was got."""
    place = ".".join(str(part) for part in error["loc"][1:]) or str(error["loc"][0])
    message = f"`{place}`: {error['msg'][:1].lower()}{error['msg'][1:]}"
    got = error.get("input")
    if isinstance(got, str | int | float):
        message += f"; got {str(got)[:100]!r}"
    return message + "."
