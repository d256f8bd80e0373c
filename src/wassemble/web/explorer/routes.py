"""Pages, parts of pages and files of the explorer.

A page that a script asks for a part of (htmx says so in a header) is answered with that part.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, HTTPException, Query, Request, UploadFile
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response

from wassemble.errors import InvalidInputError
from wassemble.inputs.formats import ENDS
from wassemble.web.explorer.learn_routes import add_learning, is_part
from wassemble.web.explorer.learning import SECONDS, Jobs
from wassemble.web.explorer.questions import Question, What
from wassemble.web.explorer.uploads import KERNEL_ENDS, Uploads
from wassemble.web.explorer.view import LARGEST, MAX_FILES, SMALLEST, View
from wassemble.web.middleware import seconds_left
from wassemble.web.pages import attach, render
from wassemble.web.paths import inside, list_files
from wassemble.web.replies import Reply, raise_problem
from wassemble.web.settings import Settings
from wassemble.web.workers import Workers

# What joins labels, in words; whether it needs a file.
KERNELS = {
    "names": ("equal names", False),
    "spelling": ("similar spelling", False),
    "embeddings": ("word vectors", True),
    "synonyms": ("synonyms", True),
    "tree": ("a tree", True),
    "graph": ("a graph", True),
    "attributes": ("a table of attributes", True),
    "ratings": ("a table of similarities", True),
    "costs": ("a table of costs", True),
    "kernel": ("a saved kernel", True),
}
_PICTURES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif"}
# What files are usually called.
_NAMES_NAME = re.compile(r"(^|[^a-z])names([^a-z]|$)", re.IGNORECASE)
_TRUTH_NAME = re.compile(r"truth|gold|true|label", re.IGNORECASE)

_View = Annotated[View, Query()]


def make_router(settings: Settings) -> APIRouter:
    """Everything below ``/explorer``."""
    uploads = Uploads.of(settings)
    jobs = Jobs(uploads)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        yield
        jobs.close()
        app.state.workers.close()
        uploads.close()

    router = APIRouter(prefix="/explorer", tags=["explorer"], lifespan=lifespan)

    @router.get("", response_class=HTMLResponse)
    async def start(request: Request, view: _View) -> HTMLResponse:
        """What can be opened: examples, files of the folder, and files that are sent here."""
        return await _open_page(request, uploads, settings, view)

    @router.get("/view", response_class=HTMLResponse)
    async def view_page(request: Request, view: _View) -> HTMLResponse:
        """One sample of what the view opens; without files, what can be opened."""
        if is_part(request):
            shown = json.loads((await _ask(request, "answer", view)).body)
            # A label that is followed can be gone back from; a slider that moves leaves no trace.
            name = "HX-Push-Url" if "hx-boosted" in request.headers else "HX-Replace-Url"
            headers = {name: f"/explorer/view?{shown['query']}"}
            return render(
                request,
                "explorer/answer.html",
                headers=headers,
                view=View.from_query(shown["query"]),
                kernels=_kernels(settings, view),
                shown=shown,
            )
        return await _page(request, uploads, settings, view, "page", "explorer/sample.html")

    @router.get("/all", response_class=HTMLResponse)
    async def all_page(request: Request, view: _View) -> HTMLResponse:
        """Every sample: how right each rule is, and a list of samples to filter and sort."""
        if is_part(request):
            return await _part(request, settings, view, "all", "explorer/board.html")
        return await _page(request, uploads, settings, view, "all", "explorer/all.html")

    @router.get("/map", response_class=HTMLResponse)
    async def map_page(request: Request, view: _View) -> HTMLResponse:
        """A map of the labels: what the kernel sends the same way lies close together."""
        if is_part(request):
            return await _part(request, settings, view, "map", "explorer/points.html")
        return await _page(request, uploads, settings, view, "map", "explorer/map.html")

    @router.get("/learn", response_class=HTMLResponse)
    async def learn_page(request: Request, view: _View) -> HTMLResponse:
        """The form that begins to learn how to fuse what is open."""
        about = {"seconds": SECONDS}
        return await _page(request, uploads, settings, view, "frame", "explorer/learn.html", about)

    _add_files(router, settings, uploads)
    add_learning(router, jobs)
    return router


def _add_files(router: APIRouter, settings: Settings, uploads: Uploads) -> None:
    """Data to take away, pictures, and files that are sent."""

    @router.get("/data.csv", response_class=_Csv)
    async def data_csv(request: Request, view: _View) -> Response:
        """Every label of every histogram of a sample, as a long table."""
        reply = await _ask(request, "csv", view)
        return _Csv(reply.body, headers=attach(reply.name))

    @router.get("/data.json", response_class=JSONResponse)
    async def data_json(request: Request, view: _View) -> Response:
        """Every label of every histogram of a sample, with how it was made."""
        reply = await _ask(request, "json", view)
        return Response(reply.body, media_type="application/json", headers=attach(reply.name))

    @router.get("/all.csv", response_class=_Csv)
    async def list_csv(request: Request, view: _View) -> Response:
        """The samples that are listed: their truth, and what consensus, mean and best model say."""
        reply = await _ask(request, "list", view)
        return _Csv(reply.body, headers=attach(reply.name))

    @router.get("/picture", response_class=FileResponse)
    def picture(name: Annotated[str, Query(max_length=2000)]) -> Response:
        """A picture in the served folder, which a sample is called after."""
        kind = _picture_kind(settings, name)
        if not kind:
            raise HTTPException(404, "There is no such picture in the served folder.")
        return FileResponse(inside(settings.folder, name), media_type=f"image/{kind}")

    @router.post("/upload", response_class=RedirectResponse, status_code=303)
    def upload(
        request: Request,
        files: Annotated[list[UploadFile], File(max_length=MAX_FILES)],
        opened: Annotated[str, Form(max_length=20_000)] = "",
    ) -> Response:
        """Keep files for a while, and show what is in them, beside what was ``opened`` before."""
        try:
            view = View.from_query(opened)
            for each in files:
                if each.filename:
                    view = _add(view, uploads.keep(each.filename, each.file), each.filename)
        except InvalidInputError as error:
            return _render_open(request, uploads, settings, View(), [], problem=str(error))
        return RedirectResponse(view.address("/explorer") + "#chosen", status_code=303)


def _add(view: View, reference: str, name: str) -> View:
    """A view with one more file: a model's, names, the truth, or what a kernel is made from."""
    if _NAMES_NAME.search(name) and not view.names:
        return view.but(names=reference)
    if _TRUTH_NAME.search(name) and not view.truth:
        return view.but(truth=reference)
    if not name.lower().endswith(ENDS):
        kernel = view.kernel if KERNELS.get(view.kernel, ("", False))[1] else "embeddings"
        return view.but(kernel=kernel, kernel_file=reference)
    return view.but(example="", file=(*view.file, reference)[-MAX_FILES:])


async def _ask(request: Request, what: What, view: View) -> Reply:
    """The reply of a worker; what is wrong is raised."""
    workers: Workers = request.app.state.workers
    question, seconds = Question(what=what, view=view), seconds_left(request)
    return raise_problem(await workers.ask(question, seconds, request.is_disconnected))


async def _part(
    request: Request, settings: Settings, view: View, what: What, template: str
) -> HTMLResponse:
    """What sliders change on a page; the address says how they stand."""
    page = json.loads((await _ask(request, what, view)).body)
    now = page["view"] = View(**page["view"])
    headers = {"HX-Replace-Url": now.address(request.url.path)}
    return render(request, template, headers=headers, kernels=_kernels(settings, view), **page)


async def _page(
    request: Request,
    uploads: Uploads,
    settings: Settings,
    view: View,
    what: What,
    template: str,
    about: dict[str, Any] | None = None,
) -> HTMLResponse:
    """A whole page about what a view opens; without files, or with wrong ones, the way to them."""
    if not view.example and not view.file:
        return await _open_page(request, uploads, settings, view)
    try:
        page = json.loads((await _ask(request, what, view)).body)
    except InvalidInputError as error:
        return await _open_page(request, uploads, settings, view, problem=str(error))
    now = page["view"] = View(**page["view"])
    name = now.sample if _picture_kind(settings, now.sample) else ""
    page |= {"limits": (SMALLEST, LARGEST), "kernels": _kernels(settings, view), "picture": name}
    return render(request, template, tab=what, **page, **(about or {}))


def _kernels(settings: Settings, view: View) -> tuple[str, ...]:
    """Kernels to choose from, where an example has more than one."""
    for example in settings.examples:
        if example.name == view.example and len(example.kernels) > 1:
            return example.kernels
    return ()


def _picture_kind(settings: Settings, name: str) -> str:
    """The kind of the picture of that name in the served folder; empty if there is none."""
    kind = _PICTURES.get(name[name.rfind(".") :].lower(), "") if "." in name else ""
    try:
        return kind if kind and inside(settings.folder, name).is_file() else ""
    except InvalidInputError:
        return ""


class _Csv(Response):
    media_type = "text/csv"


async def _open_page(
    request: Request, uploads: Uploads, settings: Settings, view: View, *, problem: str = ""
) -> HTMLResponse:
    """The way to files, with a card for each that is chosen."""
    cards = []
    if view.file:
        try:
            cards = json.loads((await _ask(request, "files", view)).body)["cards"]
        except InvalidInputError as error:
            problem = problem or str(error)
    return _render_open(request, uploads, settings, view, cards, problem=problem)


def _render_open(
    request: Request,
    uploads: Uploads,
    settings: Settings,
    view: View,
    cards: list[dict[str, Any]],
    *,
    problem: str = "",
) -> HTMLResponse:
    return render(
        request,
        "explorer/open.html",
        problem=problem,
        examples=settings.examples,
        files=list_files(settings.folder, ENDS),
        kernel_files=list_files(settings.folder, KERNEL_ENDS),
        kernels=KERNELS,
        usual_names=settings.names.name if settings.names else "",
        folder=settings.folder.name,
        view=view,
        cards=cards,
        uploads=uploads.list_kept(),
        max_megabytes=settings.max_upload_bytes / 1e6,
    )
