"""An ensemble learned from what is open: in a worker, while a page shows how far it is.

The server and the worker meet in a folder: the worker writes there how far it is and what it
learned; where the folder is gone, nobody waits any longer.
"""

import asyncio
import os
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from fastapi import HTTPException

from wassemble._checks import fail
from wassemble.ensemble.learning import LearnedEnsemble, learn_ensemble
from wassemble.web.explorer.cases import Case
from wassemble.web.explorer.similarity import NAMES
from wassemble.web.explorer.uploads import Uploads
from wassemble.web.explorer.view import View

SECONDS = (10, 30, 60, 120)  # that learning may take
_N_KEPT = 8
_PROGRESS, _ARCHIVE = "progress", "ensemble.zip"


def job_folder(uploads: Uploads, job: str) -> Path:
    """Where server and worker meet; hidden from the list of uploads."""
    return uploads.folder / f".job-{job}"


# -- in a worker -----------------------------------------------------------------------------------


def learn(case: Case, view: View, folder: Path, seconds: float) -> dict[str, Any]:
    """What was learned, in words; the ensemble itself goes into the folder."""
    table = case.table
    is_single = all(len(true) == 1 for true in table.truth.values())
    truth = {id_: true[0] if is_single else list(true) for id_, true in table.truth.items()}
    kernel = case.similarity.at(view.epsilon or case.epsilon)
    learned = learn_ensemble(
        table.models,
        truth or None,
        kernels=None if case.similarity is NAMES else {case.similarity.origin: kernel},
        target=table.target,
        kind=table.kind,
        time_budget=seconds if truth else None,
        progress=lambda n_done, n_all: _tell(folder, n_done, n_all),
    )
    learned.save(folder / "ensemble")
    shutil.make_archive(str(folder / "ensemble"), "zip", folder / "ensemble")
    return _describe(learned)


def _tell(folder: Path, n_done: int, n_all: int) -> None:
    try:
        (folder / _PROGRESS).write_text(f"{n_done} {n_all}")
    except FileNotFoundError:
        os._exit(0)


def _describe(learned: LearnedEnsemble) -> dict[str, Any]:
    return {
        "chosen": learned.fitted.recipe.name,
        "report": learned.report.splitlines(),
        "metric": learned.metric if learned.n_gold is None else "log likelihood",
        "n_samples": learned.n_samples,
        "n_tried": learned.n_tried,
        "seconds": learned.seconds,
        "rows": [
            {
                "name": line.name,
                "score": f"{line.score:.4f}",
                "interval": f"{line.low:.4f} to {line.high:.4f}",
                "is_chosen": line.is_chosen,
            }
            for line in learned.leaderboard
        ],
    }


# -- in the server ---------------------------------------------------------------------------------


@dataclass(eq=False)
class Job:
    """What is learned, or was."""

    ident: str
    view: View
    folder: Path
    task: "asyncio.Task[dict[str, Any]]"

    @property
    def progress(self) -> tuple[int, int]:
        """Rules tried, and how many there are; 0 and 0 before it begins."""
        try:
            n_done, n_all = (self.folder / _PROGRESS).read_text().split()
            return int(n_done), int(n_all)
        except (FileNotFoundError, ValueError):  # not there, or not whole
            return 0, 0

    @property
    def archive(self) -> Path:
        """The ensemble as one file."""
        return self.folder / _ARCHIVE

    @property
    def outcome(self) -> dict[str, Any] | None:
        """What was learned, or the ``problem``; None while it is learned."""
        if not self.task.done():
            return None
        error = self.task.exception()
        if error is None:
            return self.task.result()
        words = error.detail if isinstance(error, HTTPException) else str(error)
        return {"problem": words.replace("\nhint: ", " Hint: ")}


@dataclass
class Jobs:
    """Those of a server: one at a time, and the last ones that are done."""

    uploads: Uploads
    _jobs: dict[str, Job] = field(default_factory=dict)

    def start(self, view: View, work: Any) -> Job:
        """Begin: ``work`` is called with the name of the job, and gives what was learned."""
        if any(not job.task.done() for job in self._jobs.values()):
            fail("one ensemble is learned at a time; got another.", hint="wait for it, or cancel")
        while len(self._jobs) >= _N_KEPT:
            self.cancel(next(iter(self._jobs)))
        ident = secrets.token_urlsafe(12)
        folder = job_folder(self.uploads, ident)
        folder.mkdir(mode=0o700, parents=True)
        self._jobs[ident] = Job(ident, view, folder, asyncio.create_task(work(ident)))
        return self._jobs[ident]

    def find(self, ident: str) -> Job:
        """The job of that name."""
        return self._jobs.get(ident) or _refuse()

    def cancel(self, ident: str) -> Job:
        """End a job and forget it; its worker ends when it next tells how far it is."""
        job = self.find(ident)
        job.task.cancel()
        shutil.rmtree(job.folder, ignore_errors=True)
        return self._jobs.pop(ident)

    def close(self) -> None:
        """End all."""
        for ident in list(self._jobs):
            self.cancel(ident)


def _refuse() -> NoReturn:
    raise HTTPException(404, "There is nothing learned of that name, or it is no longer kept.")
