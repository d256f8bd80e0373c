"""What a study found: the page of results, and files to take away."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from wassemble.web.limits import compute_slot
from wassemble.web.pages import render
from wassemble.web.study.access import FoundStudy, OpenStore
from wassemble.web.study.charts import draw_charts
from wassemble.web.study.exports import to_csv, to_json
from wassemble.web.study.results import compute_results

__all__ = ["router"]

_PAPER = json.loads((files("wassemble.web.study") / "human_study.json").read_text(encoding="utf-8"))

_Raters = Annotated[
    Literal["all", "attentive"], Query(description="All, or only who failed no attention check.")
]

router = APIRouter(
    prefix="/studies/{study}",
    tags=["studies"],
    dependencies=[Depends(compute_slot, scope="function")],
)


@router.get("/results", response_class=HTMLResponse)
def show_results(
    request: Request, found: FoundStudy, store: OpenStore, raters: _Raters = "all"
) -> HTMLResponse:
    """Mean opinion scores, best choices, agreement and attention checks."""
    snapshot = store.take_snapshot(found.id, only_answered=True)
    results = compute_results(snapshot, only_attentive=raters == "attentive")
    return render(
        request,
        "study/results.html",
        study=found,
        results=results,
        charts=draw_charts(results),
        raters=raters,
        n_checks=sum(item.check is not None for item in snapshot.items),
        paper=_PAPER,
    )


@router.get("/results.json")
def get_results(found: FoundStudy, store: OpenStore, raters: _Raters = "all") -> JSONResponse:
    """The same figures, and the two charts as Plotly takes them."""
    snapshot = store.take_snapshot(found.id, only_answered=True)
    results = compute_results(snapshot, only_attentive=raters == "attentive")
    return JSONResponse({"results": asdict(results), "charts": draw_charts(results)})


def _file(media_type: str) -> Any:
    return {"response_class": Response, "responses": {200: {"content": {media_type: {}}}}}


@router.get("/answers.csv", **_file("text/csv"))
def export_csv(found: FoundStudy, store: OpenStore) -> Response:
    """Answers as a table: one row for each rater, item and system."""
    text = to_csv(store.take_snapshot(found.id, only_answered=True))
    return _download(text, f"study-{found.id}.csv", "text/csv")


@router.get("/study.json", **_file("application/json"))
def export_json(found: FoundStudy, store: OpenStore) -> Response:
    """Everything: options, items, what each rater saw and answered, results."""
    text = to_json(store.take_snapshot(found.id))
    return _download(text, f"study-{found.id}.json", "application/json")


def _download(text: str, name: str, media_type: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=media_type, headers=headers)
