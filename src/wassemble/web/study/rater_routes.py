"""A rater's pages: consent, items one by one, thanks. They work without any script.

A link shows its own items only, by their number in the rater's order. Nothing on a page, its
address or its form says which system wrote a caption.
"""

import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData

from wassemble.web.pages import render
from wassemble.web.study.answers import Answer, read_answer
from wassemble.web.study.design import Shown
from wassemble.web.study.item_page import PICTURE, render_item, send_picture
from wassemble.web.study.items import Item
from wassemble.web.study.store import SECRET, OpenStore, Rater

_FIELDS: Any = {
    "csrf": {"type": "string"},
    "go": {"type": "string", "enum": ["next", "back"]},
    "visit": {"type": "string", "description": "When the page was made; seconds since 1970."},
    "away": {"type": "string", "description": "Seconds for which the page was out of sight."},
    "q1-A": {"type": "string", "enum": [str(grade) for grade in range(1, 6)]},
    "q3": {"type": "string", "enum": ["A", "B"]},
}
_SCHEMA = {"type": "object", "properties": _FIELDS, "additionalProperties": {"type": "string"}}
_FORM = {"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": _SCHEMA}}}}
DECLINED: Any = {"description": "They do not want to.", "content": {"text/html": {}}}
_MOST_SECONDS = 24 * 3600
_Number = Annotated[int, Path(ge=1, le=1_000_000, description="In the rater's order.")]
_CLOSED = {
    None: "This link is closed. Thank you for your interest.",
    "late": "The time for this study is over, and your place was given to somebody else. What you"
    " answered is kept.",
    "withdrawn": "You have left this study, and your answers were deleted.",
}

router = APIRouter(
    prefix="/rate/{secret}",
    tags=["rating"],
    responses={410: {"description": "The link, or its study, is closed."}},
)


def _find_rater(secret: Annotated[str, Path(max_length=100)], store: OpenStore) -> Rater:
    rater = store.find_rater(secret) if SECRET.fullmatch(secret) else None
    if rater is None:
        raise HTTPException(404, "There is no such link. Check that it was copied whole.")
    if rater.is_closed:
        raise HTTPException(410, _CLOSED.get(rater.left, _CLOSED[None]))
    return rater


_FoundRater = Annotated[Rater, Depends(_find_rater)]


async def _read_form(request: Request) -> FormData:
    return await request.form()


@router.get("", response_class=HTMLResponse)
def begin(request: Request, rater: _FoundRater, secret: str) -> Response:
    """What a link leads to: the consent text, the next item, or the page of thanks."""
    if rater.has_consented and rater.next_number is not None:
        return RedirectResponse(f"/rate/{secret}/items/{rater.next_number}", 303)
    return render(
        request,
        "study/thanks.html" if rater.has_consented else "study/consent.html",
        design=rater.design,
        n_shown=len(rater.shown),
        here=f"/rate/{secret}",
        return_url=rater.design.fill_return_url(rater.person.participant),
    )


@router.post(
    "/consent", response_class=RedirectResponse, status_code=303, responses={200: DECLINED}
)
def consent(
    request: Request,
    rater: _FoundRater,
    store: OpenStore,
    secret: str,
    agrees: Annotated[bool, Form()],
) -> Response:
    """Agree to take part, or decline."""
    if not agrees:
        store.decline(rater.id)
        return render(request, "study/left.html", design=rater.design, was_here=False)
    store.consent(rater.id)
    return RedirectResponse(f"/rate/{secret}", 303)


@router.get("/leave", response_class=HTMLResponse)
def ask_to_leave(request: Request, rater: _FoundRater, secret: str) -> HTMLResponse:
    """Whether a rater wants to leave for good."""
    return render(
        request,
        "study/leave.html",
        design=rater.design,
        n_done=len(rater.done),
        here=f"/rate/{secret}",
    )


@router.post("/leave", response_class=HTMLResponse)
def leave(request: Request, rater: _FoundRater, store: OpenStore) -> HTMLResponse:
    """Leave the study: answers are deleted, and the place is somebody else's."""
    store.withdraw(rater.id)
    return render(request, "study/left.html", design=rater.design, was_here=True)


@router.get("/items/{number}", response_class=HTMLResponse)
def show(
    request: Request, rater: _FoundRater, store: OpenStore, secret: str, number: _Number
) -> Response:
    """One item, with what was answered so far."""
    shown = _find_shown(rater, number)
    if not rater.has_consented:
        return RedirectResponse(f"/rate/{secret}", 303)
    item = store.get_item(rater.study, shown.item)
    answer = store.get_answer(rater.id, shown.item)
    if answer is None:
        answer = Answer.empty(item, shown, rater.design.questions)
    return _render(request, rater, secret, number, item, answer)


@router.post(
    "/items/{number}", response_class=RedirectResponse, status_code=303, openapi_extra=_FORM
)
def rate(
    request: Request,
    rater: _FoundRater,
    store: OpenStore,
    secret: str,
    number: _Number,
    form: Annotated[FormData, Depends(_read_form)],
) -> Response:
    """Keep an answer, and go on; where something is missing, say what.

    Whatever was entered is on disk when this answers, but for a part of an answer where the
    whole was given before.
    """
    shown = _find_shown(rater, number)
    if not rater.has_consented:
        return RedirectResponse(f"/rate/{secret}", 303)
    item = store.get_item(rater.study, shown.item)
    answer = read_answer(form, item, shown, rater.design.questions)
    is_kept = store.save_answer(rater.id, shown.item, answer, **_measure_visit(form))
    if form.get("go") == "back":
        return RedirectResponse(f"/rate/{secret}/items/{max(1, number - 1)}", 303)
    if not answer.is_complete:
        return _render(
            request, rater, secret, number, item, answer, is_refused=True, is_kept=is_kept
        )
    after = "" if number == len(rater.shown) else f"/items/{number + 1}"
    return RedirectResponse(f"/rate/{secret}{after}", 303)


@router.get("/items/{number}/image", **PICTURE)
def image(request: Request, rater: _FoundRater, store: OpenStore, number: _Number) -> Response:
    """The picture of an item, for who has agreed to take part."""
    if not rater.has_consented:
        raise HTTPException(403, "Pictures are shown to who has agreed to take part.")
    item = store.get_item(rater.study, _find_shown(rater, number).item)
    return send_picture(request, store, rater.study, item)


def _find_shown(rater: Rater, number: int) -> Shown:
    if number > len(rater.shown):
        raise HTTPException(404, "There is no such item.")
    return rater.shown[number - 1]


def _measure_visit(form: FormData) -> dict[str, Any]:
    """How long the page was in sight, as far as its form can be believed."""
    visit = str(form.get("visit", ""))[:20]
    try:
        seconds = time.time() - float(visit) - max(0.0, float(str(form.get("away") or 0)))
    except ValueError:
        return {}
    is_likely = 0 <= seconds <= _MOST_SECONDS
    return {"seconds": round(seconds, 1), "visit": visit} if is_likely else {}


def _render(
    request: Request,
    rater: Rater,
    secret: str,
    number: int,
    item: Item,
    answer: Answer,
    **more: Any,
) -> HTMLResponse:
    here = f"/rate/{secret}"
    return render_item(
        request,
        rater.design,
        item,
        rater.shown[number - 1],
        answer,
        number=number,
        n_shown=len(rater.shown),
        here=here,
        picture=f"{here}/items/{number}/image",
        **more,
    )
