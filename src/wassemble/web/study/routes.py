"""The study's pages: the operator's under ``/studies``, each rater's under a secret link."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.resources import files
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, HTTPException, Path, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import BaseModel

from wassemble.errors import InvalidInputError, fail
from wassemble.web.middleware import compute_slot
from wassemble.web.pages import attach, render
from wassemble.web.settings import Settings
from wassemble.web.study import rater_routes
from wassemble.web.study.charts import draw_charts
from wassemble.web.study.design import CONSENT, Design
from wassemble.web.study.items import SCALES, check_pictures, read_items
from wassemble.web.study.results import compute_results, to_csv, to_json
from wassemble.web.study.store import OpenStore, Store, Study, close_store

_EXAMPLE = files("wassemble.web.study") / "example.jsonl"
_PAPER = json.loads((files("wassemble.web.study") / "human_study.json").read_text(encoding="utf-8"))
_MAX_AT_ONCE = 500  # raters
_POST: Any = {"response_class": RedirectResponse, "status_code": 303}
_Turn = Depends(compute_slot, scope="function")
_NRaters = Annotated[int, Form(ge=1, le=_MAX_AT_ONCE)]
_RowId = Annotated[int, Path(ge=1, le=2**31 - 1)]
_WhichRaters = Annotated[
    Literal["all", "attentive"], Query(description="All, or only who failed no attention check.")
]

router = APIRouter(prefix="/studies", tags=["studies"])


def make_router(_: Settings) -> APIRouter:
    """All pages of studies."""
    both = APIRouter(lifespan=_lifespan)
    for part in (router, rater_routes.router):
        both.include_router(part)
    return both


@asynccontextmanager
async def _lifespan(app: Any) -> AsyncIterator[None]:
    yield
    close_store(app)


def _find_study(study: _RowId, store: OpenStore) -> Study:
    known = store.get_study(study)
    if known is None:
        raise HTTPException(404, "There is no such study.")
    return known


_FoundStudy = Annotated[Study, Depends(_find_study)]


class _NewStudy(BaseModel):
    """The form for a new study, as it is at first and as it was entered."""

    file: Annotated[UploadFile | None, File(description="JSON lines, one item each.")] = None
    is_example: Annotated[bool, Form(description="Take the example study.")] = False
    title: Annotated[str, Form(max_length=200)] = ""
    consent: Annotated[str, Form(max_length=20_000)] = CONSENT
    scales: list[Literal["correctness", "detail"]] = ["correctness", "detail"]
    items_per_rater: Annotated[int | None, Form(ge=1, le=10_000)] = None
    is_once: Annotated[bool, Form(description="Each item goes to one rater only.")] = False
    n_raters: _NRaters = 10
    seed: Annotated[int, Form(ge=0, le=2**31 - 1)] = 0

    def read_file(self) -> tuple[str, str]:
        """Name and text of the file that was sent, or of the example."""
        if self.is_example:
            return "example study", _EXAMPLE.read_text(encoding="utf-8")
        if self.file is None or not self.file.filename:
            fail("a study needs a file of items; got none.", hint="choose a JSON-lines file")
        name = PurePath(self.file.filename).name[:100]
        try:
            return name, self.file.file.read().decode("utf-8")
        except UnicodeDecodeError as error:
            fail(f"{name}: must be UTF-8 text; got another byte at {error.start}.")

    def design(self, name: str) -> Design:
        """The options of the study, titled after its file if it has no title."""
        return Design(
            self.title.strip() or PurePath(name).stem,
            self.consent.replace("\r\n", "\n").strip(),
            tuple(scale for scale in SCALES if scale in self.scales),
            self.items_per_rater,
            not self.is_once,
            self.seed,
        )


@router.get("", response_class=HTMLResponse)
def list_studies(request: Request, store: OpenStore) -> HTMLResponse:
    """All studies, and the form for a new one."""
    return _render_studies(request, store, _NewStudy())


@router.post("", dependencies=[_Turn], **_POST)
def create(
    request: Request,
    store: OpenStore,
    form: Annotated[_NewStudy, Form(media_type="multipart/form-data")],
) -> Response:
    """Create a study with links for so many raters."""
    try:
        name, text = form.read_file()
        items = read_items(text, name=name)
        check_pictures(request.app.state.settings.folder, items)
        study = store.create_study(form.design(name), items, form.n_raters)
    except InvalidInputError as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return _render_studies(request, store, form, str(error))
    return RedirectResponse(f"/studies/{study}", 303)


@router.get("/{study}", response_class=HTMLResponse)
def show(request: Request, study: _FoundStudy, store: OpenStore) -> HTMLResponse:
    """A study: its raters' links, and what can be done with it."""
    return render(
        request,
        "study/study.html",
        study=study,
        links=store.list_links(study.id),
        base=f"{request.base_url}rate/",
        max_raters=_MAX_AT_ONCE,
    )


@router.post("/{study}/raters", dependencies=[_Turn], **_POST)
def add_raters(study: _FoundStudy, store: OpenStore, n_raters: _NRaters) -> Response:
    """Make links for more raters."""
    store.add_raters(study.id, n_raters)
    return RedirectResponse(f"/studies/{study.id}#raters", 303)


@router.post("/{study}/raters/{rater}/closed", **_POST)
def close_link(
    study: _RowId, rater: _RowId, store: OpenStore, is_closed: Annotated[bool, Form()]
) -> Response:
    """Close a rater's link, or open it again; answers stay."""
    if not store.set_link_closed(study, rater, is_closed=is_closed):
        raise HTTPException(404, "There is no such rater.")
    return RedirectResponse(f"/studies/{study}#raters", 303)


@router.post("/{study}/closed", **_POST)
def close(study: _FoundStudy, store: OpenStore, is_closed: Annotated[bool, Form()]) -> Response:
    """Close a study to all raters, or open it again; answers stay."""
    store.set_study_closed(study.id, is_closed=is_closed)
    return RedirectResponse(f"/studies/{study.id}", 303)


@router.post("/{study}/delete", **_POST)
def delete(
    study: _FoundStudy, store: OpenStore, is_sure: Annotated[bool, Form()] = False
) -> Response:
    """Delete a study with all its answers, if the box is ticked."""
    if not is_sure:
        fail("a study is deleted only when the box beside the button is ticked; it was not.")
    store.delete_study(study.id)
    return RedirectResponse("/studies", 303)


def _render_studies(
    request: Request, store: Store, entered: _NewStudy, problem: str = ""
) -> HTMLResponse:
    return render(
        request,
        "study/studies.html",
        problem=problem,
        studies=store.list_studies(),
        entered=entered,
        all_scales=SCALES,
        max_raters=_MAX_AT_ONCE,
    )


@router.get("/{study}/results", dependencies=[_Turn], response_class=HTMLResponse)
def show_results(
    request: Request, study: _FoundStudy, store: OpenStore, raters: _WhichRaters = "all"
) -> HTMLResponse:
    """Mean opinion scores, best choices, agreement and attention checks."""
    snapshot = store.take_snapshot(study.id, only_answered=True)
    results = compute_results(snapshot, only_attentive=raters == "attentive")
    return render(
        request,
        "study/results.html",
        study=study,
        results=results,
        charts=draw_charts(results),
        raters=raters,
        n_checks=sum(item.check is not None for item in snapshot.items),
        paper=_PAPER,
    )


@router.get("/{study}/results.json", dependencies=[_Turn])
def get_results(study: _FoundStudy, store: OpenStore, raters: _WhichRaters = "all") -> JSONResponse:
    """The same figures, and the two charts as Plotly takes them."""
    snapshot = store.take_snapshot(study.id, only_answered=True)
    results = compute_results(snapshot, only_attentive=raters == "attentive")
    return JSONResponse({"results": asdict(results), "charts": draw_charts(results)})


def _file(media_type: str) -> Any:
    content: Any = {200: {"content": {media_type: {}}}}
    return {"response_class": Response, "responses": content, "dependencies": [_Turn]}


@router.get("/{study}/answers.csv", **_file("text/csv"))
def export_csv(study: _FoundStudy, store: OpenStore) -> Response:
    """Answers as a table: one row for each rater, item and system."""
    text = to_csv(store.take_snapshot(study.id, only_answered=True))
    return Response(text, media_type="text/csv", headers=attach(f"study-{study.id}.csv"))


@router.get("/{study}/study.json", **_file("application/json"))
def export_json(study: _FoundStudy, store: OpenStore) -> Response:
    """Everything: options, items, what each rater saw and answered, results."""
    text = to_json(store.take_snapshot(study.id))
    return Response(text, media_type="application/json", headers=attach(f"study-{study.id}.json"))
