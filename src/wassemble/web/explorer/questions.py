"""What pages ask about the files that they show, and the replies: plain data, ready to be sent."""

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel

from wassemble.errors import InvalidInputError, speaking
from wassemble.labels import enumerate_names
from wassemble.web.explorer.answers import Answer, fuse_sample, get_ranking
from wassemble.web.explorer.cases import Case
from wassemble.web.explorer.judging import list_rows
from wassemble.web.explorer.learning import job_folder, learn
from wassemble.web.explorer.library import Library
from wassemble.web.explorer.present import (
    Shown,
    as_csv,
    as_json,
    file_name,
    list_as_csv,
    present_answer,
    present_board,
    present_frame,
    present_map,
    present_steps,
    settle,
)
from wassemble.web.explorer.view import View
from wassemble.web.replies import NotThereError, Reply, reply_with, to_bytes, to_json

What = Literal["page", "answer", "all", "map", "frame", "files", "csv", "json", "list", "learn"]


# What messages call options here: as the page does.
_FIELDS = {
    "normalize": ('"Divide each row by its sum"', ""),
    "kind": ('"Rows are"', "KIND"),
    "other": ('"Label for none of these"', "LABEL"),
}


class Question(BaseModel, frozen=True):
    """What of a view is wanted: a page, a part of one, or the data as a file."""

    what: What
    view: View
    job: str = ""  # what is learned
    seconds: float = 0.0  # that learning may take

    @property
    def source(self) -> tuple[str, ...]:
        """What must be open for it."""
        return self.view.source


def answer_question(library: Library, question: Question) -> Reply:
    """The reply, also to what cannot be answered; `MemoryError` where there is too little."""
    with speaking(_FIELDS):
        return reply_with(lambda: _reply(library, question))


def _reply(library: Library, question: Question) -> Reply:
    if question.what == "files":
        return Reply(200, to_json({"cards": library.describe(question.view)}))
    case = library.case(question.view)
    if question.what == "learn":
        folder = job_folder(library.uploads, question.job)
        return Reply(200, to_json(learn(case, question.view, folder, question.seconds)))
    return _REPLIES[question.what](case, settle(case, question.view))


def _pick(case: Case, view: View) -> tuple[int, View]:
    """The row of the sample, the first of the list if none was chosen, and the view with its id."""
    if not view.sample:
        row = next(iter(list_rows(case, view)), int(get_ranking(case).order[0]))
        return row, view.but(sample=case.table.samples[row])
    place = case.table.row(view.sample)
    if place is None:
        some = enumerate_names(case.table.samples[:4])
        raise NotThereError(f"there is no sample {view.sample!r}; there are {some} ...")
    return place, view


def _answer(case: Case, row: int, view: View) -> Answer:
    """A sample as the sliders stand; kept, for who looks at another of its labels."""
    key = (row, view.settings)
    answer: Answer = case.answers.get(key, lambda: fuse_sample(case, row, view))
    return answer


def _show(case: Case, row: int, view: View) -> Shown:
    """What is shown of a sample; kept, for who looks at it again."""

    def make() -> Shown:
        return present_answer(case, _answer(case, row, view), view)

    shown: Shown = case.shown.get(view, make)
    return shown


def _reply_page(case: Case, view: View) -> Reply:
    """A page about a sample; what a wrong slider leaves of it, with the words for it."""
    row, view = _pick(case, view)
    shown, problem = None, ""
    try:
        shown = _show(case, row, view)
    except InvalidInputError as error:
        problem = str(error)
    text = case.table.texts.get(view.sample, "")
    about = {"text": text, "steps": present_steps(case, view, row), "shown": shown}
    return Reply(200, to_json(present_frame(case, view) | about | {"problem": problem}))


def _reply_answer(case: Case, view: View) -> Reply:
    row, view = _pick(case, view)
    return Reply(200, to_json(_show(case, row, view)))


def _reply_all(case: Case, view: View) -> Reply:
    view = view.but(sample="", label="", model="")
    return Reply(200, to_json(present_frame(case, view) | {"board": present_board(case, view)}))


def _reply_map(case: Case, view: View) -> Reply:
    view = view.but(sample="", label="", model="")
    return Reply(200, to_json(present_frame(case, view) | {"map": present_map(case, view)}))


def _reply_frame(case: Case, view: View) -> Reply:
    return Reply(200, to_json(present_frame(case, view)))


def _reply_csv(case: Case, view: View) -> Reply:
    row, view = _pick(case, view)
    return Reply(200, to_bytes(as_csv(_answer(case, row, view))), file_name(view.sample, "csv"))


def _reply_json(case: Case, view: View) -> Reply:
    row, view = _pick(case, view)
    body = to_json(as_json(case, _answer(case, row, view), view))
    return Reply(200, body, file_name(view.sample, "json"))


def _reply_list(case: Case, view: View) -> Reply:
    return Reply(200, to_bytes(list_as_csv(case, view)), file_name(view.show or "all", "csv"))


_REPLIES: dict[str, Callable[[Case, View], Reply]] = {
    "page": _reply_page,
    "answer": _reply_answer,
    "all": _reply_all,
    "map": _reply_map,
    "frame": _reply_frame,
    "csv": _reply_csv,
    "json": _reply_json,
    "list": _reply_list,
}
