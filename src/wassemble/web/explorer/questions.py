"""What pages ask about the files that they show, and the replies: plain data, ready to be sent."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from wassemble.errors import InvalidInputError
from wassemble.labels import enumerate_names
from wassemble.web.explorer.answers import Ranking, fuse_sample, get_ranking
from wassemble.web.explorer.cases import Case
from wassemble.web.explorer.library import Library
from wassemble.web.explorer.present import Shown, as_csv, as_json, file_name, present
from wassemble.web.explorer.view import View

_N_PER_PAGE = 20

What = Literal["page", "answer", "csv", "json"]


class Question(BaseModel, frozen=True):
    """What of a view is wanted: its page, one answer, or the data as a file."""

    what: What
    view: View


@dataclass(frozen=True)
class Reply:
    """The body of an answer; unless ``status`` is 200, the words that say what went wrong."""

    status: int
    body: bytes
    name: str = ""  # of a file


class _NoSampleError(InvalidInputError):
    pass


def answer_question(library: Library, question: Question) -> Reply:
    """The reply, also to what cannot be answered; `MemoryError` where there is too little."""
    try:
        case = library.case(question.view)
        row, view = _settle(case, question.view)
        if question.what == "page":
            return Reply(200, _to_json(_describe(case, row, view)))
        if question.what == "answer":
            return Reply(200, _to_json(_show(case, row, view).model_dump()))
        answer = fuse_sample(case, row, view)
        name = file_name(view.sample, question.what)
        if question.what == "csv":
            return Reply(200, _to_bytes(as_csv(answer)), name)
        return Reply(200, _to_json(as_json(case, answer, view)), name)
    except InvalidInputError as error:
        _refuse_lack_of_memory(error)
        status = 404 if isinstance(error, _NoSampleError) else 422
        return Reply(status, _to_bytes(str(error)))


def _refuse_lack_of_memory(error: BaseException) -> None:
    """Readers take a file for broken that needs more memory than there is; it may not be."""
    cause = error.__cause__
    while cause is not None:
        if isinstance(cause, MemoryError):
            raise cause
        cause = cause.__cause__


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")  # a name may hold half a character


def _to_json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _settle(case: Case, view: View) -> tuple[int, View]:
    """The row of the sample, the most disputed if none was chosen, and the view with its id."""
    if not view.sample:
        row = int(get_ranking(case).order[0])
        return row, view.but(sample=case.table.samples[row])
    place = case.table.row(view.sample)
    if place is None:
        some = enumerate_names(case.table.samples[:4])
        raise _NoSampleError(f"there is no sample {view.sample!r}; there are {some} ...")
    return place, view


def _show(case: Case, row: int, view: View) -> Shown:
    """What is shown of a sample; kept, for who looks at it again."""
    shown: Shown = case.answers.get(view, lambda: present(case, fuse_sample(case, row, view), view))
    return shown


def _describe(case: Case, row: int, view: View) -> dict[str, Any]:
    """All that a page shows; what a wrong knob leaves of it, with the words for it."""
    shown, problem = None, ""
    try:
        shown = _show(case, row, view).model_dump()
    except InvalidInputError as error:
        problem = str(error)
    return {
        "view": view.model_dump(),
        "title": case.table.title,
        "n_samples": len(case.table.samples),
        "models": [model.model for model in case.table.models],
        "text": case.table.texts.get(view.sample, ""),
        "listed": _list_samples(case, get_ranking(case), view, row),
        "shown": shown,
        "problem": problem,
    }


def _list_samples(case: Case, ranking: Ranking, view: View, row: int) -> dict[str, Any]:
    """A page of the list of samples."""
    listed = ranking.find(view.search)
    n_pages = max(1, -(-len(listed) // _N_PER_PAGE))
    page = min(view.page, n_pages)
    samples = case.table.samples
    fresh = view.but(label="", model="")
    rows = [
        {
            "sample": samples[i],
            "href": fresh.address(sample=samples[i]),
            "disagreement": f"{ranking.disagreement[i]:.3g}",
            "text": case.table.texts.get(samples[i], ""),
            "current": i == row,
        }
        for i in listed[(page - 1) * _N_PER_PAGE : page * _N_PER_PAGE]
    ]
    order = ranking.order.tolist()
    rank = order.index(row)
    sides = [order[at] if 0 <= at < len(order) else None for at in (rank - 1, rank + 1)]
    before, after = ("" if i is None else fresh.address(sample=samples[i]) for i in sides)
    note = f"Disagreement: {ranking.measure}."
    if ranking.n_compared < len(samples):
        note += f" {ranking.n_compared:,} of {len(samples):,} samples were compared."
    return {
        "rows": rows,
        "n_pages": n_pages,
        "page": page,
        "rank": rank + 1,
        "before": before,
        "after": after,
        "note": note,
    }
