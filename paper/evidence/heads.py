"""Ensembles of real tasks, frozen into heads, and compared with the library on test samples."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from paper.evidence.tasks import TASKS
from wassemble.ensemble.learning import LearnedEnsemble, learn_ensemble
from wassemble.export import export_onnx, load_head
from wassemble.inputs import Predictions


def compare_task(name: str, out: Path, time_budget: float | None) -> list[dict[str, Any]]:
    """Every rule of what is learned on a task, frozen; how far each is from the library."""
    task = TASKS[name]()
    (known, truth), (test, _) = task.part(False), task.part(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rules that need not converge
        learned = learn_ensemble(
            known, truth, kernels=task.kernels, time_budget=time_budget, **task.meanings
        )
        folder = out / "heads" / name
        folder.mkdir(parents=True, exist_ok=True)
        rules = [("chosen", learned), *((r.recipe.name, r.fusion) for r in learned.rivals)]
        return [
            {"task": name, "rule": f"{title}: {learned.fitted.recipe.name}" if not place else title}
            | _compare(what, learned, folder / f"{place}.onnx", known, test)
            for place, (title, what) in enumerate(rules)
        ]


def _compare(
    what: Any,
    learned: LearnedEnsemble,
    path: Path,
    known: list[Predictions],
    test: list[Predictions],
) -> dict[str, Any]:
    models = None if isinstance(what, LearnedEnsemble) else dict(learned.models)
    dtype: Any = str(np.result_type(*(model.scores for model in known)))
    about = export_onnx(what, path, models=models, samples=known, dtype=dtype)
    found = load_head(path).fuse(test).scores
    if isinstance(what, LearnedEnsemble):
        expected = what.predict(test).scores
    else:
        expected = what.run(test).consensus.scores
    gap = float(np.abs(np.nan_to_num(found) - np.nan_to_num(expected)).max())
    said = {key: about[key] for key in ("dtype", "arithmetic", "sweeps")}
    size = path.stat().st_size
    return said | {"n_samples": len(expected), "gap": gap, "bytes": size}
