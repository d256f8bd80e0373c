"""The link by which anybody joins a study: ``/join/KEY?pid=...``.

Platforms of crowds add who comes to the link. A place is taken when somebody agrees, not when
the link is opened: previews of links and people who only look take none.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, HTTPException, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from wassemble.web.pages import render
from wassemble.web.study.answers import Person
from wassemble.web.study.items import is_readable
from wassemble.web.study.rater_routes import DECLINED
from wassemble.web.study.store import SECRET, OpenStore, Store, Study

_MAX_LETTERS = 200
# MTurk's, while a worker only looks at a task.
_NOT_YET = "ASSIGNMENT_ID_NOT_AVAILABLE"
_Id = Annotated[str, Query(max_length=_MAX_LETTERS)]
_FormId = Annotated[str, Form(max_length=_MAX_LETTERS)]

router = APIRouter(
    prefix="/join/{key}",
    tags=["rating"],
    responses={
        409: {"description": "All places are taken."},
        410: {"description": "The study is closed."},
    },
)


def _find_study(key: Annotated[str, Path(max_length=100)], store: OpenStore) -> Study:
    study = store.find_open_study(key) if is_readable(key) else None
    if study is None:
        raise HTTPException(404, "There is no such study. Check that the link was copied whole.")
    if study.is_closed:
        raise HTTPException(410, "This study is closed. Thank you for your interest.")
    return study


_FoundStudy = Annotated[Study, Depends(_find_study)]


def _read_person(
    pid: _Id = "",
    prolific_pid: Annotated[_Id, Query(alias="PROLIFIC_PID")] = "",
    study_id: Annotated[_Id, Query(alias="STUDY_ID")] = "",
    session_id: Annotated[_Id, Query(alias="SESSION_ID")] = "",
    worker_id: Annotated[_Id, Query(alias="workerId")] = "",
    hit_id: Annotated[_Id, Query(alias="hitId")] = "",
    assignment_id: Annotated[_Id, Query(alias="assignmentId")] = "",
) -> Person:
    """Who the address says that somebody is."""
    return Person(
        _clean(pid or prolific_pid or worker_id),
        _clean(study_id or hit_id),
        _clean(session_id or assignment_id),
    )


def _clean(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable()).strip()


@router.get("", response_class=HTMLResponse)
def look(
    request: Request,
    study: _FoundStudy,
    store: OpenStore,
    person: Annotated[Person, Depends(_read_person)],
) -> Response:
    """The consent text; straight on for who has joined before."""
    secret = _find_secret(request, store, study, person)
    if secret is not None:
        return RedirectResponse(f"/rate/{secret}", 303)
    n_free = store.count_free(study)
    return render(
        request,
        "study/consent.html",
        status_code=200 if n_free else 409,
        design=study.design,
        n_shown=store.count_shown(study.id),
        here=f"/join/{study.join_key}",
        person=person,
        is_full=not n_free,
        is_only_looking=person.session == _NOT_YET,
    )


@router.post("", response_class=RedirectResponse, status_code=303, responses={200: DECLINED})
def join(
    request: Request,
    study: _FoundStudy,
    store: OpenStore,
    agrees: Annotated[bool, Form()],
    participant: _FormId = "",
    task: _FormId = "",
    session: _FormId = "",
) -> Response:
    """Agree and take a place, or decline."""
    if not agrees:
        store.count_declined(study.id)
        return render(request, "study/left.html", design=study.design, was_here=False)
    person = Person(*map(_clean, (participant, task, session)))
    secret = _find_secret(request, store, study, person) or store.join(study, person)
    if secret is None:
        raise HTTPException(409, _full(study))
    response = RedirectResponse(f"/rate/{secret}", 303)
    if not person.participant:  # nothing else tells that they come again
        is_https = request.url.scheme == "https"
        response.set_cookie(
            _cookie(study), secret, path="/join", httponly=True, samesite="lax", secure=is_https
        )
    return response


def _full(study: Study) -> str:
    return (
        "All places of this study are taken. A place that is not finished within"
        f" {study.design.hold_minutes} minutes is offered again: you may try later."
    )


def _cookie(study: Study) -> str:
    return f"wassemble_place_{study.id}"


def _find_secret(request: Request, store: Store, study: Study, person: Person) -> str | None:
    """The place that somebody has: by their name, or else by what their browser remembers."""
    if person.participant:
        return store.find_secret(study.id, person.participant)
    known = request.cookies.get(_cookie(study), "")
    return known if SECRET.fullmatch(known) else None
