"""The operator's pages: studies, and the links of their raters."""

from __future__ import annotations

from importlib.resources import files
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, HTTPException, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from wassemble.errors import InvalidInputError, fail
from wassemble.web.limits import compute_slot
from wassemble.web.pages import render
from wassemble.web.study.access import FoundStudy, OpenStore, RowId
from wassemble.web.study.design import CONSENT, Design
from wassemble.web.study.items import SCALES, read_items
from wassemble.web.study.pictures import check_pictures
from wassemble.web.study.store import Store

__all__ = ["router"]

_EXAMPLE = files("wassemble.web.study") / "example.jsonl"
_MAX_AT_ONCE = 500  # raters
_NRaters = Annotated[int, Form(ge=1, le=_MAX_AT_ONCE)]
_DEFAULTS = {
    "title": "",
    "consent": CONSENT,
    "scales": SCALES,
    "items_per_rater": None,
    "is_once": False,
    "n_raters": 10,
    "seed": 0,
}
_POST: Any = {"response_class": RedirectResponse, "status_code": 303}
_Turn = Depends(compute_slot, scope="function")

router = APIRouter(prefix="/studies", tags=["studies"])


@router.get("", response_class=HTMLResponse)
def list_studies(request: Request, store: OpenStore) -> HTMLResponse:
    """All studies, and the form for a new one."""
    return _render_studies(request, store, _DEFAULTS)


@router.post("", dependencies=[_Turn], **_POST)
def create(
    request: Request,
    store: OpenStore,
    file: Annotated[UploadFile | None, File(description="JSON lines, one item each.")] = None,
    is_example: Annotated[bool, Form(description="Take the example study.")] = False,
    title: Annotated[str, Form(max_length=200)] = "",
    consent: Annotated[str, Form(max_length=20_000)] = CONSENT,
    scales: Annotated[list[Literal["correctness", "detail"]] | None, Form()] = None,
    items_per_rater: Annotated[int | None, Form(ge=1, le=10_000)] = None,
    is_once: Annotated[bool, Form(description="Each item goes to one rater only.")] = False,
    n_raters: _NRaters = 10,
    seed: Annotated[int, Form(ge=0, le=2**31 - 1)] = 0,
) -> Response:
    """Create a study with links for so many raters."""
    asked = tuple(scale for scale in SCALES if scale in (scales or SCALES))
    try:
        if is_example:
            name, text = "example study", _EXAMPLE.read_text(encoding="utf-8")
        else:
            name, text = _read_upload(file)
        items = read_items(text, name=name)
        check_pictures(request.app.state.settings.folder, items)
        design = Design(
            title.strip() or PurePath(name).stem,
            consent.replace("\r\n", "\n").strip(),
            asked,
            items_per_rater,
            not is_once,
            seed,
        )
        study = store.create_study(design, items, n_raters)
    except InvalidInputError as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        entered = {
            "title": title,
            "consent": consent,
            "scales": asked,
            "items_per_rater": items_per_rater,
            "is_once": is_once,
            "n_raters": n_raters,
            "seed": seed,
        }
        return _render_studies(request, store, entered, str(error))
    return RedirectResponse(f"/studies/{study}", 303)


@router.get("/{study}", response_class=HTMLResponse)
def show(request: Request, found: FoundStudy, store: OpenStore) -> HTMLResponse:
    """A study: its raters' links, and what can be done with it."""
    return render(
        request,
        "study/study.html",
        study=found,
        links=store.list_links(found.id),
        base=f"{request.base_url}rate/",
        max_raters=_MAX_AT_ONCE,
    )


@router.post("/{study}/raters", dependencies=[_Turn], **_POST)
def add_raters(found: FoundStudy, store: OpenStore, n_raters: _NRaters) -> Response:
    """Make links for more raters."""
    store.add_raters(found.id, n_raters)
    return RedirectResponse(f"/studies/{found.id}#raters", 303)


@router.post("/{study}/raters/{rater}/closed", **_POST)
def close_link(
    study: RowId, rater: RowId, store: OpenStore, is_closed: Annotated[bool, Form()]
) -> Response:
    """Close a rater's link, or open it again; answers stay."""
    if not store.set_link_closed(study, rater, is_closed=is_closed):
        raise HTTPException(404, "There is no such rater.")
    return RedirectResponse(f"/studies/{study}#raters", 303)


@router.post("/{study}/closed", **_POST)
def close(found: FoundStudy, store: OpenStore, is_closed: Annotated[bool, Form()]) -> Response:
    """Close a study to all raters, or open it again; answers stay."""
    store.set_study_closed(found.id, is_closed=is_closed)
    return RedirectResponse(f"/studies/{found.id}", 303)


@router.post("/{study}/delete", **_POST)
def delete(
    found: FoundStudy, store: OpenStore, is_sure: Annotated[bool, Form()] = False
) -> Response:
    """Delete a study with all its answers, if the box is ticked."""
    if not is_sure:
        fail("a study is deleted only when the box beside the button is ticked; it was not.")
    store.delete_study(found.id)
    return RedirectResponse("/studies", 303)


def _render_studies(
    request: Request, store: Store, entered: dict[str, Any], error: str = ""
) -> HTMLResponse:
    message, _, hint = error.partition("\nhint: ")
    return render(
        request,
        "study/studies.html",
        status_code=422 if error else 200,
        studies=store.list_studies(),
        entered=entered,
        all_scales=SCALES,
        max_raters=_MAX_AT_ONCE,
        message=message,
        hint=hint,
    )


def _read_upload(file: UploadFile | None) -> tuple[str, str]:
    """Name and text of the file that was sent."""
    if file is None or not file.filename:
        fail("a study needs a file of items; got none.", hint="choose a JSON-lines file")
    name = PurePath(file.filename).name[:100]
    try:
        return name, file.file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        fail(f"{name}: must be UTF-8 text; got another byte at {error.start}.")
