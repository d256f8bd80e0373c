"""Records of evidence: rivals and ours apart, one of each for a task and a draw of its samples.

A record is written whole when it is finished, so that a run that was cut off goes on with the next.
It holds what a rule reached on each resample of the test samples; these are the same for every
rule, so that records made at different times are compared pair by pair.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from paper.evidence import rivals as rivals_module
from paper.evidence.cases import Case, Draw, list_draws
from paper.evidence.rivals import ORACLE, RIVALS, Answer, Rival, oracle
from paper.record.findings import Progress, follow
from paper.record.fingerprint import used_files
from wassemble._extras import load_extra
from wassemble._files import write_whole
from wassemble.ensemble.learning import LearnedEnsemble, learn_ensemble
from wassemble.errors import WassembleError, fail

N_DIGITS = 6
"""Of a figure in a record."""

Record = dict[str, Any]


def record_path(out: Path, name: str, draw: Draw, side: str) -> Path:
    """Where the record of ``side``, "rivals" or "ours", is kept."""
    return out / "evidence" / name / f"{draw.name}-{side}.json"


def keep(path: Path, made_by: str, make: Callable[[], Record]) -> tuple[Record, bool]:
    """The record at ``path`` if ``made_by`` made it, else a new one; and whether it is new."""
    known = read_record(path)
    if known is not None and known["made_by"] == made_by:
        return known, False
    record = make() | {"made_by": made_by}
    write_whole(path, json.dumps(record) + "\n")
    return record, True


def read_record(path: Path) -> Record | None:
    """A record, if there is one."""
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        found["made_by"], found["rules"]
    except (ValueError, KeyError, TypeError):
        fail(f"{path} must be a record of evidence; it is not.", hint="delete or move it")
    return dict(found)


def rivals_made_by(case: Case) -> str:
    """What makes a record of rivals: the case, and how rivals are fitted.

    The library is left out: means and scikit-learn do not change when learning does.
    """
    return _digest(case.fingerprint, Path(rivals_module.__file__).read_bytes())


def ours_made_by(case: Case, time_budget: float | None) -> str:
    """What makes a record of ours: the case, and everything that learning uses."""
    return _digest(case.fingerprint, repr(time_budget).encode(), _learning())


def judge_rivals(case: Case, progress: Progress = None) -> Record:
    """Every rival on the test samples of a case, and where any model is right."""
    every = RIVALS | {ORACLE: oracle}
    # Threads of small trees and products wait for each other where cores are busy: on one thread
    # rivals are up to fifty times faster there. Only what is loaded by now can be held back.
    load_extra("sklearn.ensemble", "learn", purpose="rivals of learning")
    with threadpool_limits(1):
        rules = {name: _judge(case, every[name]) for name in follow(list(every), progress)}
    return _about(case) | {"rules": rules}


def judge_ours(
    case: Case, *, time_budget: float | None = None, progress: Progress = None
) -> tuple[Record, LearnedEnsemble | None]:
    """What learning chose, on the same samples, and the ensemble itself if there is one."""
    kept: list[LearnedEnsemble] = []

    groups = case.task.groups

    def answer(case: Case) -> Answer:
        learned = learn_ensemble(
            case.models(case.known),
            case.names(case.known),
            kernels=case.task.kernels,
            groups=None if groups is None else [groups[i] for i in case.known],
            time_budget=time_budget,
            progress=progress,
            **case.task.meanings,
        )
        kept.append(learned)
        scores = learned.predict(case.models(case.test)).scores
        return Answer(np.nan_to_num(scores), learned.fitted.recipe.name)

    rule = _judge(case, answer)
    learned = kept[0] if kept else None
    words = [] if learned is None else learned.report.splitlines()
    return _about(case) | {"rules": {"ours": rule}, "words": words}, learned


def find_records(out: Path, names: list[str]) -> dict[str, dict[Draw, tuple[Record, Record]]]:
    """Records of rivals and of ours that are both there and of the same samples, by task."""
    found: dict[str, dict[Draw, tuple[Record, Record]]] = {}
    for name in names:
        for draw in list_draws(has_been_seen=True):
            rivals = read_record(record_path(out, name, draw, "rivals"))
            ours = read_record(record_path(out, name, draw, "ours"))
            if rivals is not None and ours is not None and rivals["case"] == ours["case"]:
                found.setdefault(name, {})[draw] = rivals, ours
    return found


def _judge(case: Case, rule: Rival) -> dict[str, Any]:
    """What a rule reached, and on each resample; or why it could not be fitted."""
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores, picked = rule(case)
    except (ValueError, WassembleError) as error:
        return {"failed": str(error).splitlines()[0]}
    seconds = time.perf_counter() - started
    estimate = case.bootstrap.estimate(scores)
    return {
        "score": round(estimate.score, N_DIGITS),
        "drawn": np.round(estimate.drawn, N_DIGITS).tolist(),
        "picked": picked,
        "seconds": round(seconds, 1),
    }


def _about(case: Case) -> Record:
    task = case.task
    groups = None if task.groups is None else len({task.groups[i] for i in case.test})
    return {
        "case": case.fingerprint,
        "title": task.title,
        "metric": case.measure.name,
        "n_models": len(task.models),
        "n_target": len(task.target),
        "n_known": len(case.known),
        "n_test": len(case.test),
        "n_groups": groups,
    }


@cache
def _learning() -> bytes:
    """Every file that learning uses."""
    return b"".join(path.read_bytes() for path in sorted(used_files("wassemble.ensemble.learning")))


def _digest(case: str, *parts: bytes) -> str:
    digest = hashlib.sha256(case.encode())
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]
