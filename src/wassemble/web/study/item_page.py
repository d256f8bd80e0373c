"""The page of an item: the same for raters and in an operator's preview."""

import time
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from wassemble.errors import InvalidInputError
from wassemble.web.pages import render
from wassemble.web.study.answers import TIE, Answer, field_name, letter
from wassemble.web.study.design import Design, Shown
from wassemble.web.study.items import Item
from wassemble.web.study.pictures import find_picture
from wassemble.web.study.questions import Question
from wassemble.web.study.store import Store

_TYPES = ("image/png", "image/jpeg", "image/webp", "image/svg+xml")
# Of operations that answer with a picture.
PICTURE: Any = {
    "response_class": Response,
    "responses": {200: {"content": {media_type: {} for media_type in _TYPES}}},
}


def render_item(
    request: Request,
    design: Design,
    item: Item,
    shown: Shown,
    answer: Answer,
    *,
    number: int,
    n_shown: int,
    here: str,
    picture: str,
    is_preview: bool = False,
    is_refused: bool = False,
    is_kept: bool = True,
) -> HTMLResponse:
    """The page of an item; if the answer was refused, with what is missing."""
    captions = [(letter(p), item.choices[choice]) for p, choice in enumerate(shown.order)]
    fields = list_fields(shown, answer, design.questions)
    missing = {each["id"]: each["words"] for each in fields if each["value"] is None}
    return render(
        request,
        "study/item.html",
        status_code=422 if is_refused else 200,
        title=design.title,
        here=here,
        picture=picture,
        number=number,
        n_shown=n_shown,
        text=item.text,
        captions=captions,
        fields=fields,
        visit=f"{time.time():.3f}",
        is_preview=is_preview,
        is_kept=is_kept,
        missing=missing if is_refused else {},
    )


def list_fields(
    shown: Shown, answer: Answer, questions: tuple[Question, ...]
) -> list[dict[str, Any]]:
    """The fields of the form: grades of captions in the rater's order, then all else.

    Nothing is asked where there is only one caption to choose from.
    """
    grades = [
        {
            **_field(question, field_name(at, position), letter(position)),
            "words": f"{question.name} of caption {letter(position)}",
            "choices": [(str(n), words) for n, words in enumerate(question.options, start=1)],
            "value": _text(answer.grades(question.name)[choice]),
        }
        for position, choice in enumerate(shown.order)
        for at, question in enumerate(questions)
        if question.kind == "grade"
    ]
    others = [
        {
            **_field(question, field_name(at), ""),
            "words": question.name,
            "choices": _list_choices(question, shown),
            "value": _value(question, shown, answer.said[question.name]),
        }
        for at, question in enumerate(questions)
        if question.kind != "grade" and not (question.kind == "best" and len(shown.order) == 1)
    ]
    return grades + others


def _field(question: Question, name: str, of: str) -> dict[str, Any]:
    return {"id": name, "kind": question.kind, "letter": of, "text": question.text}


def _list_choices(question: Question, shown: Shown) -> list[tuple[str, str]]:
    """Values of the form, and the words beside them."""
    if question.kind == "label":
        return [(str(n), words) for n, words in enumerate(question.options, start=1)]
    letters = [letter(position) for position in range(len(shown.order))]
    return [(each, each) for each in letters] + [("tie", words) for words in question.options]


def _value(question: Question, shown: Shown, said: Any) -> str | None:
    """What was said, as the form has it."""
    if said is None or question.kind == "words":
        return _text(said)
    if question.kind == "label":
        return str(question.options.index(said) + 1)
    return "tie" if said == TIE else letter(shown.order.index(said))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def send_picture(request: Request, store: Store, study: int, item: Item) -> Response:
    """The picture of an item, from the database or from the served folder."""
    if item.image is None:
        raise HTTPException(404, "This item has no picture.")
    picture = store.get_picture(study, item.image)
    if picture is None:
        try:
            picture = find_picture(request.app.state.settings.folder, item.image)
        except InvalidInputError:  # it was there when the study was made
            raise HTTPException(404, "The picture is no longer there.") from None
    headers = {"Cache-Control": "private, max-age=3600"}
    return Response(picture.content, media_type=picture.media_type, headers=headers)
