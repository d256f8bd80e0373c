"""Learned ensembles as a folder: JSON for what is said, npz for what is counted; no pickle."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._files import whole_file, write_whole
from wassemble.ensemble.learning.choice import Choice, Comparison, Control, Standing
from wassemble.ensemble.learning.learn import LearnedEnsemble
from wassemble.ensemble.learning.recipes import FittedRecipe, Recipe
from wassemble.ensemble.learning.stacking import Stacking
from wassemble.errors import InvalidInputError
from wassemble.inputs import Aliases, Kind
from wassemble.kernels import LabelledKernel, load as load_kernel
from wassemble.labels import LabelSpace

__all__ = ["load_ensemble", "save_ensemble"]

_FORMAT = "wassemble ensemble 1"
_STACKING = "stacking.npz"
_LEARN_AGAIN = "`wassemble fit` writes it anew"


def save_ensemble(learned: LearnedEnsemble, folder: str | Path) -> None:
    """Write a learned ensemble into ``folder``: ``ensemble.json`` and its kernels.

    ``ensemble.json`` is written last: a folder without it is not an ensemble.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kernels: dict[int, str] = {}
    for fitted in (learned.fitted, *learned.rivals):
        for kernel in (fitted.kernels or {}).values():
            if id(kernel) not in kernels:
                name = f"kernel-{len(kernels)}.npz"
                kernel.save(folder / name)
                kernels[id(kernel)] = name
    if learned.stacking is not None:
        with whole_file(folder / _STACKING) as temporary:
            np.savez(
                temporary,
                coefficients=learned.stacking.coefficients,
                intercepts=learned.stacking.intercepts,
            )
    choice = learned.choice
    record = {
        "format": _FORMAT,
        "task": learned.task,
        "kind": learned.fitted.kind,
        "metric": learned.metric,
        "target": list(learned.target),
        "models": {name: list(labels) for name, labels in learned.fitted.models},
        "aliases": [list(row) for row in learned.fitted.aliases.rows],
        "other": dict(learned.fitted.other),
        "chosen": _fitted_to_dict(learned.fitted, kernels),
        "rivals": [_fitted_to_dict(rival, kernels) for rival in learned.rivals],
        "choice": {
            "reasons": list(choice.reasons),
            "comparisons": {name: asdict(found) for name, found in choice.comparisons.items()},
            "control": None if choice.control is None else asdict(choice.control),
            "estimate": choice.estimate,
            "estimate_error": choice.estimate_error,
        },
        "leaderboard": [line.to_dict() for line in learned.leaderboard],
        "temperature": learned.temperature,
        "thresholds": None if learned.thresholds is None else learned.thresholds.tolist(),
        "n_samples": learned.n_samples,
        "n_tried": learned.n_tried,
        "seconds": learned.seconds,
        "has_stacking": learned.stacking is not None,
    }
    write_whole(folder / "ensemble.json", json.dumps(record, indent=1) + "\n")


def load_ensemble(folder: str | Path) -> LearnedEnsemble:
    """The ensemble that `save_ensemble` wrote."""
    path = Path(folder) / "ensemble.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        fail(f"{folder}: must hold an ensemble.json, which `wassemble fit` writes; there is none.")
    except OSError as error:
        fail(f"{path}: must be a file that can be read; {(error.strerror or str(error)).lower()}.")
    except (ValueError, RecursionError) as error:
        fail(f"{path}: must be JSON; it is damaged ({error}).", hint=_LEARN_AGAIN)
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        fail(f"{path}: must be a learned ensemble, format {_FORMAT!r}.")
    try:
        learned = _read(record, path.parent)
        learned.fitted.plan()  # and what a recipe says of itself: entries of wrong types show
        for fitted in (learned.fitted, *learned.rivals):
            str(fitted.recipe.name)
    except InvalidInputError as error:
        told, _, _ = str(error).partition("\nhint: ")
        fail(f"{path}: the ensemble is damaged: {told}", hint=_LEARN_AGAIN)
    except KeyError as error:
        fail(f"{path}: the ensemble is damaged: it lacks {error}.", hint=_LEARN_AGAIN)
    except (TypeError, AttributeError, IndexError, ValueError) as error:
        fail(
            f"{path}: the ensemble is damaged: something is not of its type ({error}).",
            hint=_LEARN_AGAIN,
        )
    return learned


def _read(record: dict[str, Any], folder: Path) -> LearnedEnsemble:
    target = LabelSpace(record["target"])
    models = tuple((name, LabelSpace(labels)) for name, labels in record["models"].items())
    loaded: dict[str, LabelledKernel] = {}

    def read_fitted(entry: dict[str, Any]) -> FittedRecipe:
        kernels = None
        if entry["kernels"] is not None:
            for name in entry["kernels"].values():
                if Path(name).name != name:  # a file of this folder, nowhere else
                    fail(f"{folder}: a kernel must be a file of the folder; got {name!r}.")
                if name not in loaded:
                    loaded[name] = load_kernel(folder / name)
            kernels = {model: loaded[name] for model, name in entry["kernels"].items()}
        weights = np.array(entry["weights"], dtype=np.float64)
        return FittedRecipe(
            Recipe(**entry["recipe"]),
            record["kind"],
            target,
            models,
            weights,
            kernels,
            Aliases(record["aliases"]),
            record["other"],
        )

    def read_comparison(entry: dict[str, Any] | None) -> Comparison | None:
        return None if entry is None else Comparison(**entry)

    chosen = read_fitted(record["chosen"])
    given = record["choice"]
    control = None
    if given["control"] is not None:
        comparison = Comparison(**given["control"]["comparison"])
        control = Control(given["control"]["score"], comparison, given["control"]["n_shuffles"])
    choice = Choice(
        chosen.recipe,
        tuple(given["reasons"]),
        {name: Comparison(**found) for name, found in given["comparisons"].items()},
        control,
        given["estimate"],
        given["estimate_error"],
    )
    leaderboard = tuple(
        Standing(
            **{
                **line,
                "recipe": None if line["recipe"] is None else Recipe(**line["recipe"]),
                "against_chosen": read_comparison(line["against_chosen"]),
            }
        )
        for line in record["leaderboard"]
    )
    thresholds, stacking = record["thresholds"], None
    if record.get("has_stacking"):  # ensembles of before do not say
        stacking = _read_stacking(folder / _STACKING, chosen, record["task"])
    return LearnedEnsemble(
        fitted=chosen,
        choice=choice,
        leaderboard=leaderboard,
        rivals=tuple(read_fitted(entry) for entry in record["rivals"]),
        task=record["task"],
        metric=record["metric"],
        temperature=float(record["temperature"]),
        thresholds=None if thresholds is None else np.array(thresholds, dtype=np.float64),
        n_samples=record["n_samples"],
        n_tried=record["n_tried"],
        seconds=record["seconds"],
        stacking=stacking,
    )


def _read_stacking(path: Path, chosen: FittedRecipe, task: Kind) -> Stacking:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = Stacking(task, arrays["coefficients"], arrays["intercepts"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        fail(f"{path}: must hold the coefficients of stacking; {error}.")
    n_target, n_features = len(chosen.target), sum(len(labels) for _, labels in chosen.models)
    if (found.coefficients.shape, found.intercepts.shape) != ((n_target, n_features), (n_target,)):
        fail(f"{path}: must hold {n_target} x {n_features} coefficients.")
    return found


def _fitted_to_dict(fitted: FittedRecipe, kernels: dict[int, str]) -> dict[str, Any]:
    named = None
    if fitted.kernels is not None:
        named = {model: kernels[id(kernel)] for model, kernel in fitted.kernels.items()}
    return {
        "name": fitted.recipe.name,
        "recipe": fitted.recipe.to_dict(),
        "weights": fitted.weights.tolist(),
        "kernels": named,
    }
