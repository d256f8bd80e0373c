"""Pages and answers of the explorer."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, HTTPException, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from wassemble.errors import InvalidInputError
from wassemble.inputs.formats import ENDS
from wassemble.web.explorer.present import Shown
from wassemble.web.explorer.questions import Question, Reply, What
from wassemble.web.explorer.uploads import KERNEL_ENDS, PREFIX, Uploads
from wassemble.web.explorer.view import LARGEST, MAX_FILES, SMALLEST, View
from wassemble.web.explorer.workers import Workers
from wassemble.web.middleware import seconds_left
from wassemble.web.pages import attach, render
from wassemble.web.paths import list_files
from wassemble.web.settings import Settings

KERNELS = {
    "names": "equal names",
    "spelling": "similar spelling",
    "embeddings": "word vectors, from a file",
    "synonyms": "synonyms, from a file",
    "tree": "a tree, from a file",
    "graph": "a graph, from a file",
    "attributes": "a table of attributes, from a file",
    "ratings": "a table of similarities, from a file",
    "costs": "a table of costs, from a file",
    "kernel": "a saved kernel, from a file",
}

_View = Annotated[View, Query()]


def make_router(settings: Settings) -> APIRouter:
    """Everything below ``/explorer``."""
    uploads = Uploads.of(settings)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        yield
        app.state.workers.close()
        uploads.close()

    router = APIRouter(prefix="/explorer", tags=["explorer"], lifespan=lifespan)

    @router.get("", response_class=HTMLResponse)
    def start(request: Request, view: _View) -> HTMLResponse:
        """What can be opened: examples, files of the folder, and files that are sent here."""
        return _open_page(request, uploads, settings, view)

    @router.get("/view", response_class=HTMLResponse)
    async def view_page(request: Request, view: _View) -> HTMLResponse:
        """One sample of what the view opens; without files, what can be opened."""
        if not view.example and not view.file:
            return _open_page(request, uploads, settings, view)
        try:
            reply = await _ask(request, "page", view)
        except InvalidInputError as error:
            return _open_page(request, uploads, settings, view, problem=str(error))
        page = json.loads(reply.body)
        page["view"] = View(**page["view"])
        kernels = _kernels(settings, view)
        return render(
            request, "explorer/view.html", limits=(SMALLEST, LARGEST), kernels=kernels, **page
        )

    @router.get("/api/answer", response_model=Shown)
    async def answer(request: Request, view: _View) -> Response:
        """One sample, fused as the sliders stand: words, tables, plots and flows."""
        reply = await _ask(request, "answer", view)
        return Response(reply.body, media_type="application/json")

    @router.get("/data.csv", response_class=_Csv)
    async def data_csv(request: Request, view: _View) -> Response:
        """Every label of every histogram of a view, as a long table."""
        reply = await _ask(request, "csv", view)
        return _Csv(reply.body, headers=attach(reply.name))

    @router.get("/data.json", response_class=JSONResponse)
    async def data_json(request: Request, view: _View) -> Response:
        """Every label of every histogram of a view, with how it was made."""
        reply = await _ask(request, "json", view)
        return Response(reply.body, media_type="application/json", headers=attach(reply.name))

    @router.post("/upload", response_class=HTMLResponse)
    def upload(
        request: Request,
        files: Annotated[list[UploadFile], File(max_length=MAX_FILES)],
        kernel: Annotated[str, Form(max_length=2000)] = "names",
        kernel_file: Annotated[UploadFile | None, File()] = None,
    ) -> Response:
        """Keep files for a while, and go to the view that opens them."""
        try:
            keep = uploads.keep
            kept = tuple(keep(each.filename, each.file) for each in files if each.filename)
            view = View(file=kept, kernel="" if kernel == "names" else kernel)
            if kernel_file is not None and kernel_file.filename:
                view = view.but(kernel_file=keep(kernel_file.filename, kernel_file.file))
        except InvalidInputError as error:
            return _open_page(request, uploads, settings, View(), problem=str(error))
        return RedirectResponse(view.address(), status_code=303)

    return router


async def _ask(request: Request, what: What, view: View) -> Reply:
    """The reply of a worker; what is wrong is raised."""
    workers: Workers = request.app.state.workers
    question, seconds = Question(what=what, view=view), seconds_left(request)
    reply = await workers.ask(question, seconds, request.is_disconnected)
    if reply.status == 422:
        raise InvalidInputError(reply.body.decode())
    if reply.status != 200:
        raise HTTPException(reply.status, reply.body.decode())
    return reply


def _kernels(settings: Settings, view: View) -> tuple[str, ...]:
    """Kernels to choose from, where an example has more than one."""
    for example in settings.examples:
        if example.name == view.example and len(example.kernels) > 1:
            return example.kernels
    return ()


class _Csv(Response):
    media_type = "text/csv"


def _open_page(
    request: Request, uploads: Uploads, settings: Settings, view: View, *, problem: str = ""
) -> HTMLResponse:
    sent = []
    for reference in (*view.file, view.kernel_file):
        if reference.startswith(PREFIX):
            try:
                sent.append((reference, uploads.find(reference).name))
            except InvalidInputError:  # no longer kept
                continue
    return render(
        request,
        "explorer/open.html",
        problem=problem,
        examples=settings.examples,
        files=list_files(settings.folder, ENDS),
        kernel_files=list_files(settings.folder, KERNEL_ENDS),
        kernels=KERNELS,
        folder=settings.folder.name,
        view=view,
        uploads=sent,
        max_megabytes=settings.max_upload_bytes / 1e6,
    )
