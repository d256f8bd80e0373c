"""Pages and answers of the explorer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import (
    APIRouter,
    Depends,
    FastAPI,
    File,
    Form,
    HTTPException,
    Query,
    Request,
    UploadFile,
)
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import StringConstraints

from wassemble.errors import InvalidInputError
from wassemble.labels import enumerate_names
from wassemble.web.explorer.answers import Answer, Knobs, fuse_sample
from wassemble.web.explorer.cases import Case
from wassemble.web.explorer.exports import as_csv, as_json, file_name
from wassemble.web.explorer.library import Library
from wassemble.web.explorer.present import Shown, present
from wassemble.web.explorer.ranking import Ranking
from wassemble.web.explorer.view import LIMITS, MassChoice, View
from wassemble.web.limits import compute_slot
from wassemble.web.pages import render
from wassemble.web.settings import Settings

__all__ = ["make_router"]

_N_PER_PAGE = 20
_N_FILES = 20
_Name = Annotated[str, StringConstraints(max_length=2000)]
_Number = Annotated[float, Query(ge=LIMITS["epsilon"][0], le=LIMITS["epsilon"][1])]
_Weight = Annotated[float, Query(ge=LIMITS["weight"][0], le=LIMITS["weight"][1])]

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


def read_view(
    example: Annotated[_Name, Query(description="A shipped example.")] = "",
    file: Annotated[
        list[_Name], Query(max_length=_N_FILES, description="Prediction files, one per model.")
    ] = [],  # noqa: B006  # FastAPI copies it
    kernel: Annotated[_Name, Query(description="What the kernel is made from.")] = "",
    kernel_file: Annotated[_Name, Query(description="The file that the kernel needs.")] = "",
    sample: Annotated[_Name, Query(description="Its id; the most disputed if empty.")] = "",
    epsilon: _Number | None = None,
    mass: Annotated[MassChoice, Query(description="Whether mass is kept.")] = "",
    mass_penalty: _Number | None = None,
    weight: Annotated[list[_Weight], Query(max_length=_N_FILES, description="One per model.")] = [],  # noqa: B006
    label: Annotated[_Name, Query(description="The label that is looked into.")] = "",
    model: Annotated[_Name, Query(description="Whose label it is.")] = "",
    page: Annotated[int, Query(ge=LIMITS["page"][0], le=LIMITS["page"][1])] = 1,
    search: Annotated[_Name, Query(description="Part of the ids that are listed.")] = "",
) -> View:
    """The view that an address asks for."""
    return View(
        example,
        tuple(file),
        kernel,
        kernel_file,
        sample,
        epsilon,
        mass,
        mass_penalty,
        tuple(weight),
        label,
        model,
        page,
        search,
    )


_View = Annotated[View, Depends(read_view)]
_Turn = Depends(compute_slot, scope="function")


def make_router(settings: Settings) -> APIRouter:
    """Everything below ``/explorer``."""
    library = Library(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        library.uploads.close()  # a server that is told to end may not get to its last lines

    router = APIRouter(prefix="/explorer", tags=["explorer"], lifespan=lifespan)

    @router.get("", response_class=HTMLResponse)
    def start(request: Request, view: _View) -> HTMLResponse:
        """What can be opened: examples, files of the folder, and files that are sent here."""
        return _open_page(request, library, settings, view)

    @router.get("/view", response_class=HTMLResponse, dependencies=[_Turn])
    def view_page(request: Request, view: _View) -> HTMLResponse:
        """One sample of what the view opens; without files, what can be opened."""
        if not view.example and not view.file:
            return _open_page(request, library, settings, view)
        try:
            case = library.case(view)
            ranking = library.ranking(case)
        except InvalidInputError as error:
            return _open_page(request, library, settings, view, problem=str(error))
        row, view = _settle(case, ranking, view)
        shown, problem = None, ""
        try:
            shown = _show(case, row, view)
        except InvalidInputError as error:
            problem = str(error)
        return render(
            request,
            "explorer/view.html",
            status_code=422 if problem else 200,
            case=case,
            view=view,
            shown=shown,
            data=None if shown is None else shown.model_dump(),
            problem=problem,
            models=[model.model for model in case.table.models],
            kernels=_kernels(library, view),
            text=case.table.texts.get(view.sample, ""),
            listed=_list_samples(case, ranking, view, row),
        )

    @router.get("/api/answer", dependencies=[_Turn])
    def answer(view: _View) -> Shown:
        """One sample, fused as the sliders stand: words, tables, figures and flows."""
        return _show(*_find(library, view))

    @router.get("/data.csv", dependencies=[_Turn], response_class=_Csv)
    def data_csv(view: _View) -> Response:
        """Every label of every histogram of a view, as a long table."""
        _, found, view = _answer(library, view)
        return _Csv(as_csv(found), headers=_attached(file_name(view.sample, "csv")))

    @router.get("/data.json", dependencies=[_Turn])
    def data_json(view: _View) -> JSONResponse:
        """Every label of every histogram of a view, with how it was made."""
        case, found, view = _answer(library, view)
        top = found.consensus.top(1)
        label = view.label or (top[0][0] if top else case.target[0])
        body = as_json(case, found, label, view.model, view.to_query())
        return JSONResponse(body, headers=_attached(file_name(view.sample, "json")))

    @router.post("/upload", response_class=HTMLResponse)
    def upload(
        request: Request,
        files: Annotated[list[UploadFile], File(max_length=_N_FILES)],
        kernel: Annotated[_Name, Form()] = "names",
        kernel_file: Annotated[UploadFile | None, File()] = None,
    ) -> Response:
        """Keep files for a while, and go to the view that opens them."""
        try:
            kept = tuple(_keep(library, files))
            view = View(file=kept, kernel="" if kernel == "names" else kernel)
            if kernel_file is not None and kernel_file.filename:
                (own,) = _keep(library, [kernel_file])
                view = view.but(kernel_file=own)
        except InvalidInputError as error:
            return _open_page(request, library, settings, View(), problem=str(error))
        return RedirectResponse(view.address(), status_code=303)

    return router


def _kernels(library: Library, view: View) -> tuple[str, ...]:
    """Kernels to choose from, where an example has more than one."""
    example = library.find_example(view.example)
    return () if example is None or len(example.kernels) < 2 else example.kernels


class _Csv(Response):
    media_type = "text/csv"


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _keep(library: Library, files: list[UploadFile]) -> Iterator[str]:
    for file in files:
        if file.filename:
            yield library.uploads.keep(file.filename, file.file)


def _find(library: Library, view: View) -> tuple[Case, int, View]:
    """What a view opens, the row of its sample, and the view with the sample's id."""
    case = library.case(view)
    ranking = None if view.sample else library.ranking(case)
    return case, *_settle(case, ranking, view)


def _show(case: Case, row: int, view: View) -> Shown:
    """What a view shows; kept for a while, since links are opened again."""

    def make() -> Shown:
        return present(case, fuse_sample(case, row, Knobs.of(case, view)), view)

    shown: Shown = case.answers.get(view, make)
    return shown


def _answer(library: Library, view: View) -> tuple[Case, Answer, View]:
    case, row, view = _find(library, view)
    return case, fuse_sample(case, row, Knobs.of(case, view)), view


def _settle(case: Case, ranking: Ranking | None, view: View) -> tuple[int, View]:
    """The row of the sample, and the view with its id."""
    if not view.sample:
        assert ranking is not None
        row = int(ranking.order[0])
        return row, view.but(sample=case.table.samples[row])
    found = case.table.row(view.sample)
    if found is None:
        some = enumerate_names(case.table.samples[:4])
        raise HTTPException(404, f"there is no sample {view.sample!r}; there are {some} ...")
    return found, view


@dataclass(frozen=True)
class _Listed:
    """A page of the list of samples."""

    rows: list[dict[str, Any]]
    n_found: int
    n_pages: int
    page: int
    rank: int
    before: str
    after: str
    note: str


def _list_samples(case: Case, ranking: Ranking, view: View, row: int) -> _Listed:
    found = ranking.find(view.search)
    n_pages = max(1, -(-len(found) // _N_PER_PAGE))
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
        for i in found[(page - 1) * _N_PER_PAGE : page * _N_PER_PAGE]
    ]
    order = ranking.order.tolist()
    rank = order.index(row)
    sides = [order[at] if 0 <= at < len(order) else None for at in (rank - 1, rank + 1)]
    before, after = ("" if i is None else fresh.address(sample=samples[i]) for i in sides)
    note = f"Disagreement: {ranking.measure}."
    if ranking.n_compared < len(samples):
        note += f" {ranking.n_compared:,} of {len(samples):,} samples were compared."
    return _Listed(rows, len(found), n_pages, page, rank + 1, before, after, note)


def _open_page(
    request: Request, library: Library, settings: Settings, view: View, *, problem: str = ""
) -> HTMLResponse:
    message, _, hint = problem.partition("\nhint: ")
    uploads = []
    for reference in (*view.file, view.kernel_file):
        if reference.startswith("upload:"):
            try:
                uploads.append((reference, library.shown_name(reference)))
            except InvalidInputError:  # no longer kept
                continue
    return render(
        request,
        "explorer/open.html",
        status_code=422 if problem else 200,
        examples=settings.examples,
        files=library.files(),
        kernel_files=library.kernel_files(),
        kernels=KERNELS,
        folder=settings.folder.name,
        view=view,
        uploads=uploads,
        message=message,
        hint=hint,
        max_megabytes=settings.max_upload_bytes / 1e6,
    )
