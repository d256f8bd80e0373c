"""Pages from templates: one environment, in which every name is escaped."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from wassemble.web.security import csrf_token, is_operator, keep_csrf_token

__all__ = ["render"]

_TEMPLATES = Path(__file__).parent / "templates"
_STATIC = Path(__file__).parent / "static"


def render(
    request: Request,
    name: str,
    *,
    status_code: int = 200,
    headers: dict[str, str] | None = None,
    **context: Any,
) -> HTMLResponse:
    """The page of the template ``name``, a path below ``templates/``.

    Templates extend ``base.html`` (blocks ``title``, ``head``, ``main``). They also know
    ``csrf`` (for a hidden field of that name in every form), ``request``, ``is_operator``,
    ``version`` and ``plotly_version`` (for addresses: ``/static/style.css?v={{ version }}``) and
    the filter ``json_script``, for data inside ``<script type="application/json">``.
    """
    settings = request.app.state.settings
    page = (
        _environment()
        .get_template(name)
        .render(
            request=request,
            csrf=csrf_token(request),
            is_operator=is_operator(request, settings),
            has_token=settings.token is not None,
            **context,
        )
    )
    # What was sent may hold half a character, which UTF-8 has no bytes for.
    response = HTMLResponse(
        page.encode("utf-8", "backslashreplace"), status_code=status_code, headers=headers
    )
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
    environment.globals.update(version=_digest(_STATIC), plotly_version=version("plotly"))
    return environment


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _json_script(value: Any) -> Markup:
    """JSON in which nothing can end a script element early."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)
