"""What learning how to fuse takes: real tasks, a wide one, and a time budget."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from paper.evidence.tasks import TASKS
from wassemble.ensemble.learning import learn_ensemble
from wassemble.inputs import Predictions

# Seconds that a task may take on two idle cores.
BOUNDS = {"languages": 30, "encodings": 30, "voc": 20, "wide": 60}
_BUDGET = 10.0


def run(*, quick: bool) -> dict:
    """Seconds on each task, and how well a budget is kept."""
    names = ["languages"] if quick else list(BOUNDS)
    rows = [_learn(name) for name in names]
    return {"rows": rows, "budget": _learn("languages", time_budget=_BUDGET)}


def _learn(name: str, **options: Any) -> dict[str, Any]:
    models, truth, more = _wide() if name == "wide" else _real(name)
    started, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = learn_ensemble(models, truth, **more, **options)
    return {
        "task": name,
        "n_samples": learned.n_samples,
        "n_models": len(models),
        "n_target": len(learned.target),
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - processor,
        "n_tried": learned.n_tried,
        "chosen": learned.fitted.recipe.name,
        "bound": options.get("time_budget", BOUNDS[name]),
    }


def _real(name: str) -> tuple[list[Predictions], Any, dict[str, Any]]:
    task = TASKS[name]()
    models, truth = task.part(False)
    return models, truth, {"kernels": task.kernels, **task.meanings}


def _wide() -> tuple[list[Predictions], Any, dict[str, Any]]:
    """1,000 samples, 12 models, 1,000 labels, of which each model knows two thirds."""
    rng = np.random.default_rng(0)
    labels = [f"label {i}" for i in range(1000)]
    truth = rng.integers(1000, size=1000)
    models = []
    for place in range(12):
        known = np.sort(rng.choice(1000, 667, replace=False))
        logits = rng.normal(size=(1000, 667)) + 6 * (known == truth[:, None])
        scores = np.exp(logits - logits.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        models.append(Predictions(f"m{place}", range(1000), [labels[i] for i in known], scores))
    return models, [labels[i] for i in truth], {"target": labels}
