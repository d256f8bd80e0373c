"""Learning from what is open: begin, see how far it is, cancel, and take away what was learned."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Path, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from wassemble.web.explorer.learning import SECONDS, Jobs
from wassemble.web.explorer.questions import Question
from wassemble.web.explorer.view import View
from wassemble.web.pages import attach, render
from wassemble.web.replies import raise_problem
from wassemble.web.workers import Workers

_Job = Annotated[str, Path(max_length=100)]


def add_learning(router: APIRouter, jobs: Jobs) -> None:
    """Everything about ensembles that are learned."""

    @router.post("/learn", response_class=RedirectResponse, status_code=303)
    async def begin(
        request: Request,
        opened: Annotated[str, Form(max_length=20_000)],
        seconds: Annotated[int, Form(ge=SECONDS[0], le=SECONDS[-1])] = SECONDS[1],
    ) -> Response:
        """Begin to learn an ensemble from what is open, with truth or without."""
        view = View.from_query(opened)
        workers: Workers = request.app.state.workers

        async def work(job: str) -> dict[str, Any]:
            question = Question(what="learn", view=view, job=job, seconds=seconds)
            # The budget is for the search; reading and fitting the chosen rule come on top.
            reply = await workers.ask(question, 3.0 * seconds + 30, _is_never)
            learned: dict[str, Any] = json.loads(raise_problem(reply).body)
            return learned

        job = jobs.start(view, work)
        return RedirectResponse(f"/explorer/learn/{job.ident}", status_code=303)

    @router.get("/learn/{job}", response_class=HTMLResponse)
    async def learned_page(request: Request, job: _Job) -> HTMLResponse:
        """How far it is, or what was learned and why."""
        found = jobs.find(job)
        name = "explorer/learned.html" if is_part(request) else "explorer/learned_page.html"
        return render(request, name, job=found, outcome=found.outcome, view=found.view)

    @router.post("/learn/{job}/cancel", response_class=RedirectResponse, status_code=303)
    async def cancel(job: _Job) -> Response:
        """End what is learned, and forget it."""
        view = jobs.cancel(job).view
        return RedirectResponse(view.address("/explorer/learn"), status_code=303)

    @router.get("/learn/{job}/ensemble.zip", response_class=FileResponse)
    async def ensemble_zip(job: _Job) -> Response:
        """The learned ensemble: the folder that `wassemble predict` takes, as one file."""
        found = jobs.find(job)
        if not found.archive.is_file():
            raise HTTPException(404, "It is not learned yet.")
        headers = attach("wassemble-ensemble.zip")
        return FileResponse(found.archive, media_type="application/zip", headers=headers)


async def _is_never() -> bool:
    return False


def is_part(request: Request) -> bool:
    """Whether a script asks for what a slider or a link changes, and not for a whole page."""
    headers = request.headers
    return "hx-request" in headers and "hx-history-restore-request" not in headers
