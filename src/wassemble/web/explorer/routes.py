"""Pages and answers of the explorer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, HTTPException, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from wassemble.errors import InvalidInputError
from wassemble.inputs.formats import ENDS
from wassemble.labels import enumerate_names
from wassemble.web.explorer.answers import Answer, Ranking, fuse_sample, get_ranking
from wassemble.web.explorer.cases import Case
from wassemble.web.explorer.library import Library
from wassemble.web.explorer.present import Shown, as_csv, as_json, file_name, present
from wassemble.web.explorer.uploads import KERNEL_ENDS
from wassemble.web.explorer.view import LARGEST, MAX_FILES, SMALLEST, View
from wassemble.web.middleware import compute_slot
from wassemble.web.pages import attach, render
from wassemble.web.paths import list_files
from wassemble.web.settings import Settings

_N_PER_PAGE = 20

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
_Turn = Depends(compute_slot, scope="function")


def make_router(settings: Settings) -> APIRouter:
    """Everything below ``/explorer``."""
    library = Library(settings)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
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
            ranking = get_ranking(case)
        except InvalidInputError as error:
            return _open_page(request, library, settings, view, problem=str(error))
        row, view = _settle(case, view)
        shown, problem = None, ""
        try:
            shown = _show(case, row, view)
        except InvalidInputError as error:
            problem = str(error)
        return render(
            request,
            "explorer/view.html",
            problem=problem,
            limits=(SMALLEST, LARGEST),
            case=case,
            view=view,
            shown=shown,
            data=None if shown is None else shown.model_dump(),
            models=[model.model for model in case.table.models],
            kernels=_kernels(library, view),
            text=case.table.texts.get(view.sample, ""),
            listed=_list_samples(case, ranking, view, row),
        )

    @router.get("/api/answer", dependencies=[_Turn])
    def answer(view: _View) -> Shown:
        """One sample, fused as the sliders stand: words, tables, plots and flows."""
        case = library.case(view)
        return _show(case, *_settle(case, view))

    @router.get("/data.csv", dependencies=[_Turn], response_class=_Csv)
    def data_csv(view: _View) -> Response:
        """Every label of every histogram of a view, as a long table."""
        _, answer, view = _answer(library, view)
        return _Csv(as_csv(answer), headers=attach(file_name(view.sample, "csv")))

    @router.get("/data.json", dependencies=[_Turn])
    def data_json(view: _View) -> JSONResponse:
        """Every label of every histogram of a view, with how it was made."""
        case, answer, view = _answer(library, view)
        body = as_json(case, answer, view)
        return JSONResponse(body, headers=attach(file_name(view.sample, "json")))

    @router.post("/upload", response_class=HTMLResponse)
    def upload(
        request: Request,
        files: Annotated[list[UploadFile], File(max_length=MAX_FILES)],
        kernel: Annotated[str, Form(max_length=2000)] = "names",
        kernel_file: Annotated[UploadFile | None, File()] = None,
    ) -> Response:
        """Keep files for a while, and go to the view that opens them."""
        try:
            keep = library.uploads.keep
            kept = tuple(keep(each.filename, each.file) for each in files if each.filename)
            view = View(file=kept, kernel="" if kernel == "names" else kernel)
            if kernel_file is not None and kernel_file.filename:
                view = view.but(kernel_file=keep(kernel_file.filename, kernel_file.file))
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


def _show(case: Case, row: int, view: View) -> Shown:
    """What a view shows; kept for a while, since links are opened again."""
    shown: Shown = case.answers.get(view, lambda: present(case, fuse_sample(case, row, view), view))
    return shown


def _answer(library: Library, view: View) -> tuple[Case, Answer, View]:
    case = library.case(view)
    row, view = _settle(case, view)
    return case, fuse_sample(case, row, view), view


def _settle(case: Case, view: View) -> tuple[int, View]:
    """The row of the sample, the most disputed if none was chosen, and the view with its id."""
    if not view.sample:
        row = int(get_ranking(case).order[0])
        return row, view.but(sample=case.table.samples[row])
    place = case.table.row(view.sample)
    if place is None:
        some = enumerate_names(case.table.samples[:4])
        raise HTTPException(404, f"there is no sample {view.sample!r}; there are {some} ...")
    return place, view


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


def _open_page(
    request: Request, library: Library, settings: Settings, view: View, *, problem: str = ""
) -> HTMLResponse:
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
        problem=problem,
        examples=settings.examples,
        files=list_files(settings.folder, ENDS),
        kernel_files=list_files(settings.folder, KERNEL_ENDS),
        kernels=KERNELS,
        folder=settings.folder.name,
        view=view,
        uploads=uploads,
        max_megabytes=settings.max_upload_bytes / 1e6,
    )
