"""The operator's pages of studies, under ``/studies``."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, HTTPException, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from wassemble.errors import InvalidInputError, fail
from wassemble.web.middleware import compute_slot, seconds_left
from wassemble.web.pages import attach, render
from wassemble.web.replies import Reply
from wassemble.web.settings import Settings
from wassemble.web.study import exports, join_routes, rater_routes
from wassemble.web.study.answers import Answer
from wassemble.web.study.charts import draw_charts
from wassemble.web.study.design import assign
from wassemble.web.study.item_page import PICTURE, render_item, send_picture
from wassemble.web.study.new_study import MAX_AT_ONCE, NewStudy, NRaters
from wassemble.web.study.questions import KINDS, PAPER, TEMPLATES, Question
from wassemble.web.study.reading import StudyFiles
from wassemble.web.study.results import compute_results
from wassemble.web.study.store import OpenStore, Study, close_store

_PAPER = json.loads((files("wassemble.web.study") / "human_study.json").read_text(encoding="utf-8"))
_POST: Any = {"response_class": RedirectResponse, "status_code": 303}
_Turn = Depends(compute_slot, scope="function")
_RowId = Annotated[int, Path(ge=1, le=2**31 - 1)]
_Number = Annotated[int, Path(ge=1, le=1_000_000, description="In a rater's order.")]
_WhichRaters = Annotated[
    Literal["all", "attentive"], Query(description="All, or only who failed no attention check.")
]

router = APIRouter(prefix="/studies", tags=["studies"])


def make_router(_: Settings) -> APIRouter:
    """All pages of studies."""
    every = APIRouter(lifespan=_lifespan)
    for part in (router, rater_routes.router, join_routes.router):
        every.include_router(part)
    return every


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


@router.get("", response_class=HTMLResponse)
def list_studies(request: Request, store: OpenStore) -> HTMLResponse:
    """All studies, and how far each is."""
    return render(request, "study/studies.html", studies=store.list_studies())


@router.get("/new", response_class=HTMLResponse)
def begin(request: Request) -> HTMLResponse:
    """The form for a new study."""
    return _render_form(request, NewStudy())


@router.post("", dependencies=[_Turn], **_POST)
async def create(
    request: Request,
    store: OpenStore,
    form: Annotated[NewStudy, Form(media_type="multipart/form-data")],
) -> Response:
    """Create a study with links for so many raters, or places to join."""
    workers = request.app.state.workers

    async def ask(files: StudyFiles) -> Reply:
        reply: Reply = await workers.ask(files, seconds_left(request), request.is_disconnected)
        return reply

    try:
        design, items, pictures = await form.read(request.app.state.settings, ask)
        study = await run_in_threadpool(
            store.create_study,
            design,
            items,
            form.n_raters,
            pictures=pictures,
            is_joinable=form.access == "join",
        )
    except InvalidInputError as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return _render_form(request, form, str(error))
    return RedirectResponse(f"/studies/{study}", 303)


def _render_form(request: Request, entered: NewStudy, problem: str = "") -> HTMLResponse:
    return render(
        request,
        "study/new.html",
        problem=problem,
        entered=entered,
        rows=entered.rows or [_as_row(question) for question in PAPER],
        templates={
            name: {"rows": [_as_row(each) for each in questions], "is_pairwise": name == "pairs"}
            for name, questions in TEMPLATES.items()
        },
        kinds=KINDS,
        max_raters=MAX_AT_ONCE,
    )


def _as_row(question: Question) -> tuple[str, str, str, str]:
    return question.name, question.kind, question.text, ", ".join(question.options)


@router.get("/{study}", response_class=HTMLResponse)
def show(request: Request, study: _FoundStudy, store: OpenStore) -> HTMLResponse:
    """A study: its raters' links, and what can be done with it."""
    links = store.list_links(study.id)
    return render(
        request,
        "study/study.html",
        study=study,
        links=[link for link in links if study.join_key is None or link.has_joined],
        n_places=sum(not link.is_closed or link.is_finished for link in links),
        n_finished=sum(link.is_finished for link in links),
        n_free=store.count_free(study),
        base=str(request.base_url),
        max_raters=MAX_AT_ONCE,
    )


@router.get("/{study}/preview", response_class=HTMLResponse)
def preview(request: Request, study: _FoundStudy, store: OpenStore) -> HTMLResponse:
    """The consent page, as raters see it."""
    return render(
        request,
        "study/consent.html",
        design=study.design,
        n_shown=len(assign(store.list_items(study.id), study.design, 0)),
        here=f"/studies/{study.id}/preview",
        is_preview=True,
    )


@router.get("/{study}/preview/{number}", response_class=HTMLResponse)
def preview_item(
    request: Request, study: _FoundStudy, store: OpenStore, number: _Number
) -> Response:
    """An item, as the first rater would see it; nothing is kept."""
    items = store.list_items(study.id)
    order = assign(items, study.design, 0)
    if number > len(order):
        return RedirectResponse(f"/studies/{study.id}", 303)
    shown = order[number - 1]
    return render_item(
        request,
        study.design,
        items[shown.item],
        shown,
        Answer.empty(items[shown.item], shown, study.design.questions),
        number=number,
        n_shown=len(order),
        here=f"/studies/{study.id}/preview",
        picture=f"/studies/{study.id}/pictures/{shown.item}",
        is_preview=True,
    )


@router.get("/{study}/pictures/{place}", **PICTURE)
def show_picture(
    request: Request,
    study: _FoundStudy,
    store: OpenStore,
    place: Annotated[int, Path(ge=0, le=1_000_000)],
) -> Response:
    """The picture of an item, by its place in the study's file."""
    return send_picture(request, store, study.id, store.get_item(study.id, place))


@router.post("/{study}/raters", dependencies=[_Turn], **_POST)
def add_raters(study: _FoundStudy, store: OpenStore, n_raters: NRaters) -> Response:
    """Make links for more raters, or places to join."""
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


@router.get("/{study}/results", dependencies=[_Turn], response_class=HTMLResponse)
def show_results(
    request: Request, study: _FoundStudy, store: OpenStore, raters: _WhichRaters = "all"
) -> HTMLResponse:
    """Means, best choices, labels, agreement, times and attention checks."""
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
        pictures={at for at, item in enumerate(snapshot.items) if item.image is not None},
        commands={
            question.name: exports.jury_command(study.id, question)
            for question in study.design.questions
            if question.kind != "words"
        },
        paper=_PAPER if study.design.is_papers else None,
    )


@router.get("/{study}/results.json", dependencies=[_Turn])
def get_results(study: _FoundStudy, store: OpenStore, raters: _WhichRaters = "all") -> JSONResponse:
    """The same figures, and the charts as Plotly takes them."""
    snapshot = store.take_snapshot(study.id, only_answered=True)
    results = compute_results(snapshot, only_attentive=raters == "attentive")
    return JSONResponse({"results": asdict(results), "charts": draw_charts(results)})


def _file(media_type: str) -> Any:
    content: Any = {200: {"content": {media_type: {}}}}
    return {"response_class": Response, "responses": content, "dependencies": [_Turn]}


@router.get("/{study}/answers.csv", **_file("text/csv"))
def export_csv(study: _FoundStudy, store: OpenStore) -> Response:
    """Answers as a table: one row for each rater, item and system."""
    text = exports.to_csv(store.take_snapshot(study.id, only_answered=True))
    return Response(text, media_type="text/csv", headers=attach(f"study-{study.id}.csv"))


@router.get("/{study}/links.csv", **_file("text/csv"))
def export_links(request: Request, study: _FoundStudy, store: OpenStore) -> Response:
    """All links of raters, with their secrets; of a study to join, only those of who joined."""
    links = store.list_links(study.id)
    known = [link for link in links if study.join_key is None or link.has_joined]
    text = exports.list_links(known, f"{request.base_url}rate/")
    return Response(text, media_type="text/csv", headers=attach(f"study-{study.id}-links.csv"))


@router.get("/{study}/verdicts.jsonl", **_file("application/jsonl"))
def export_verdicts(
    study: _FoundStudy, store: OpenStore, question: Annotated[str, Query(max_length=60)]
) -> Response:
    """What raters said to one question, as `wassemble jury` reads it."""
    known = {each.name: each for each in study.design.questions if each.kind != "words"}
    if question not in known:
        fail(f"`question` must be one of {', '.join(known)}; got {question!r}.")
    asked = known[question]
    text = exports.to_verdicts(store.take_snapshot(study.id, only_answered=True), asked)
    headers = attach(exports.verdicts_name(study.id, asked))
    return Response(text, media_type="application/jsonl", headers=headers)


@router.get("/{study}/study.json", **_file("application/json"))
def export_json(study: _FoundStudy, store: OpenStore) -> Response:
    """Everything: options, items, what each rater saw and answered, results."""
    text = exports.to_json(store.take_snapshot(study.id))
    return Response(text, media_type="application/json", headers=attach(f"study-{study.id}.json"))
