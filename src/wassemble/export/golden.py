"""Golden vectors: inputs of a head with the answers that the library gave to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._files import write_whole
from wassemble.export.design import ANSWERED, Design

FORMAT = "wassemble golden vectors 1"
N_GOLDEN = 16
"""Samples that go with a head."""


def draw_samples(design: Design, n_samples: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs that nobody predicted, among them the hard ones.

    In turn: histograms with a few large scores, nearly even ones, sure ones (models are sure of
    different labels), and lists of the three best if the head takes gaps. One of eight is not
    answered if it may be; of scores one of eight is "none of these", and one hardly more.
    """
    rng = np.random.default_rng(seed)
    is_multiclass = design.plan.kind == "multiclass"
    inputs = {}
    for member in design.members:
        n_labels = len(member.labels)
        scores = rng.dirichlet(np.full(n_labels, 0.3), size=n_samples) + 1e-9
        scores[1::4] = rng.dirichlet(np.full(n_labels, 30.0), size=len(scores[1::4]))
        scores[2::4] = np.eye(n_labels)[rng.integers(n_labels, size=len(scores[2::4]))]
        if not is_multiclass:
            scores = scores / scores.max(axis=1, keepdims=True)
            scores *= rng.choice([0, 1e-9, 1], p=[1 / 8, 1 / 8, 3 / 4], size=(n_samples, 1))
        else:
            scores /= scores.sum(axis=1, keepdims=True)
        if design.gaps:
            best = np.argsort(-scores[3::4], axis=1).argsort(axis=1) < 3
            scores[3::4] = np.where(best, scores[3::4], np.nan)
        inputs[member.model] = scores
    if design.abstentions:
        answered = rng.random((n_samples, len(design.members))) > 1 / 8
        answered[np.arange(n_samples), rng.integers(answered.shape[1], size=n_samples)] = True
        answered[:1], answered[-1:] = True, False
        inputs[ANSWERED] = answered.astype(np.float64)
    return inputs


def find_gap(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> float:
    """The largest difference between scores, relative to those above 1; nan counts as infinite."""
    off = np.abs(found["scores"] - expected["scores"]) / np.maximum(expected["scores"], 1)
    return float(np.where(np.isnan(off), np.inf, off).max(initial=0))


def golden_path(path: Path) -> Path:
    """Where the golden vectors of a head are."""
    return path.with_suffix(".golden.json")


def request_path(path: Path) -> Path:
    """Where the example of a request to a head is."""
    return path.with_suffix(".request.json")


def save_golden(
    path: Path,
    inputs: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    about: Mapping[str, Any],
) -> None:
    """Write golden vectors; null stands for a label that was not reported."""
    record = {
        "format": FORMAT,
        "ensemble": about["ensemble"],
        "versions": about["versions"],
        "tolerance": about["tolerance"],
        "inputs": {name: _listed(array) for name, array in inputs.items()},
        "outputs": {name: _listed(array) for name, array in expected.items()},
    }
    write_whole(golden_path(path), json.dumps(record) + "\n")


def save_request(path: Path, inputs: Mapping[str, np.ndarray]) -> None:
    """Write the first sample as a request of the Open Inference Protocol."""
    tensors = [
        {
            "name": name,
            "shape": [1, array.shape[1]],
            "datatype": {"float32": "FP32", "float64": "FP64"}[array.dtype.name],
            "data": _listed(array[0]),
        }
        for name, array in inputs.items()
    ]
    write_whole(request_path(path), json.dumps({"inputs": tensors}, indent=1) + "\n")


def load_golden(path: Path) -> dict[str, Any]:
    """What `save_golden` wrote beside the head at ``path``, with arrays."""
    place = golden_path(path)
    try:
        record = json.loads(place.read_text(encoding="utf-8"))
    except OSError:
        fail(f"{path.name} must have its golden vectors beside it, in {place.name}; there is none.")
    except (ValueError, RecursionError) as error:
        fail(f"{place}: must be JSON; it is damaged ({error}).")
    try:
        return _read_record(record)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        fail(f"{place}: must hold golden vectors that `wassemble export` wrote.")


def _read_record(record: Any) -> dict[str, Any]:
    if record["format"] != FORMAT:
        raise ValueError
    sides = {
        side: {name: np.array(rows, dtype=float) for name, rows in record[side].items()}
        for side in ("inputs", "outputs")
    }
    return {"ensemble": record["ensemble"], **sides}


def _listed(array: np.ndarray) -> list[Any]:
    if array.dtype.kind != "f":
        return array.astype(int).tolist()
    told = array.astype(object)
    told[np.isnan(array)] = None
    return told.tolist()
