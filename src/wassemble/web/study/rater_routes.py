"""A rater's pages: consent, items one by one, thanks. They work without any script.

A link shows its own items only, by their number in the rater's order. Nothing on a page, its
address or its form says which system wrote a caption.
"""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Path, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData

from wassemble.errors import InvalidInputError
from wassemble.web.pages import render
from wassemble.web.study.answers import Answer, field_name, letter, read_answer
from wassemble.web.study.design import Shown
from wassemble.web.study.items import SCORES, Item, find_picture
from wassemble.web.study.store import OpenStore, Rater

_FIELDS: Any = {
    "csrf": {"type": "string"},
    "go": {"type": "string", "enum": ["next", "back"]},
    "correctness-A": {"type": "string", "enum": [str(score) for score in SCORES]},
    "best-correctness": {"type": "string", "enum": ["A", "B"]},
}
_SCHEMA = {"type": "object", "properties": _FIELDS, "additionalProperties": {"type": "string"}}
_FORM = {"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": _SCHEMA}}}}
_SECRET = re.compile(r"[\w-]{32}", re.ASCII)
_Number = Annotated[int, Path(ge=1, le=1_000_000, description="In the rater's order.")]

router = APIRouter(
    prefix="/rate/{secret}",
    tags=["rating"],
    responses={410: {"description": "The link, or its study, is closed."}},
)


def _find_rater(secret: Annotated[str, Path(max_length=100)], store: OpenStore) -> Rater:
    rater = store.find_rater(secret) if _SECRET.fullmatch(secret) else None
    if rater is None:
        raise HTTPException(404, "There is no such link. Check that it was copied whole.")
    if rater.is_closed:
        raise HTTPException(410, "This link is closed. Thank you for your interest.")
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
    )


@router.post("/consent", response_class=RedirectResponse, status_code=303)
def consent(
    rater: _FoundRater, store: OpenStore, secret: str, agrees: Annotated[bool, Form()]
) -> Response:
    """Agree to take part."""
    if agrees:
        store.consent(rater.id)
    return RedirectResponse(f"/rate/{secret}", 303)


@router.get("/items/{number}", response_class=HTMLResponse)
def show(
    request: Request, rater: _FoundRater, store: OpenStore, secret: str, number: _Number
) -> Response:
    """One item, with what was answered so far."""
    shown = _find_shown(rater, number)
    if not rater.has_consented:
        return RedirectResponse(f"/rate/{secret}", 303)
    answer = store.get_answer(rater.id, shown.item)
    if answer is None:
        answer = Answer.empty(len(shown.order), rater.design.scales)
    item = store.get_item(rater.study, shown.item)
    return _render_item(request, rater, number, item, answer)


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
    answer = read_answer(form, shown, rater.design.scales)
    is_kept = store.save_answer(rater.id, shown.item, answer)
    if form.get("go") == "back":
        return RedirectResponse(f"/rate/{secret}/items/{max(1, number - 1)}", 303)
    if not answer.is_complete:
        item = store.get_item(rater.study, shown.item)
        return _render_item(request, rater, number, item, answer, is_refused=True, is_kept=is_kept)
    after = "" if number == len(rater.shown) else f"/items/{number + 1}"
    return RedirectResponse(f"/rate/{secret}{after}", 303)


@router.get("/items/{number}/image", response_class=FileResponse)
def image(request: Request, rater: _FoundRater, store: OpenStore, number: _Number) -> Response:
    """The picture of an item, for who has agreed to take part."""
    if not rater.has_consented:
        raise HTTPException(403, "Pictures are shown to who has agreed to take part.")
    item = store.get_item(rater.study, _find_shown(rater, number).item)
    if item.image is None:
        raise HTTPException(404, "This item has no picture.")
    try:
        path, media_type = find_picture(request.app.state.settings.folder, item.image)
    except InvalidInputError:  # it was there when the study was made
        raise HTTPException(404, "The picture is no longer there.") from None
    return FileResponse(path, media_type=media_type)


def _find_shown(rater: Rater, number: int) -> Shown:
    if number > len(rater.shown):
        raise HTTPException(404, "There is no such item.")
    return rater.shown[number - 1]


def _render_item(
    request: Request,
    rater: Rater,
    number: int,
    item: Item,
    answer: Answer,
    *,
    is_refused: bool = False,
    is_kept: bool = True,
) -> HTMLResponse:
    """The page of an item; if it was refused, with what is missing."""
    shown = rater.shown[number - 1]
    fields = _fields(shown, answer, rater.design.scales)
    return render(
        request,
        "study/item.html",
        status_code=422 if is_refused else 200,
        title=rater.design.title,
        here=request.url.path,
        number=number,
        n_shown=len(rater.shown),
        text=item.text,
        captions=[(letter(p), item.choices[choice]) for p, choice in enumerate(shown.order)],
        fields=fields,
        scores=SCORES,
        is_kept=is_kept,
        missing={each["name"]: each["words"] for each in fields if each["value"] is None}
        if is_refused
        else {},
    )


def _fields(shown: Shown, answer: Answer, scales: tuple[str, ...]) -> list[dict[str, Any]]:
    """The fields of the form: scores of captions in the rater's order, then best choices.

    Best choices have no letter, and there are none where there is nothing to choose from.
    """
    fields: list[dict[str, Any]] = [
        {
            "letter": letter(position),
            "scale": scale,
            "name": field_name(scale, position),
            "value": answer.scores[scale][choice],
            "words": f"{scale} of caption {letter(position)}",
        }
        for position, choice in enumerate(shown.order)
        for scale in scales
    ]
    for scale, chosen in answer.best.items() if len(shown.order) > 1 else ():
        value = None if chosen is None else letter(shown.order.index(chosen))
        words = f"best caption for {scale}"
        fields.append(
            {"letter": "", "scale": scale, "name": f"best-{scale}", "value": value, "words": words}
        )
    return fields
