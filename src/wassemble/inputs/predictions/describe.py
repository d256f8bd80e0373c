"""What is in predictions, or in a file of them, read once in flat memory."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from wassemble.inputs.formats.sources import PredictionFile
from wassemble.inputs.predictions.value import Predictions

_CHUNK_SCORES = 2**22


def describe_predictions(predictions: Predictions | PredictionFile) -> dict[str, Any]:
    """Counts and examples, ready for JSON.

    Examples
    --------
    >>> found = describe_predictions(Predictions("m", ["a"], ["cat", "dog"], [[0.9, 0.1]]))
    >>> found["n_samples"], found["kind"], found["most_often_first"]
    (1, 'multiclass', {'cat': 1})
    """
    labels = predictions.labels
    chunks: Iterable[Predictions] = (
        [predictions]
        if isinstance(predictions, Predictions)
        else predictions.chunks(max(1, _CHUNK_SCORES // len(labels)))
    )
    firsts = np.zeros(len(labels), dtype=np.int64)
    n_answered = n_observed = 0
    unobserved_mass, least, most = 0.0, np.inf, 0.0
    dtype = "float64"
    for chunk in chunks:
        observed = ~np.isnan(chunk.scores)
        answered = chunk.answered
        best = np.where(observed, chunk.scores, -1).argmax(axis=1)[answered]
        firsts += np.bincount(best, minlength=len(labels))
        n_answered += int(answered.sum())
        n_observed += int(observed.sum())
        unobserved_mass += float(chunk.unobserved_mass[answered].sum())
        sums = np.asarray(np.nansum(chunk.scores, axis=1, dtype=np.float64))[answered]
        least, most = min(least, sums.min(initial=np.inf)), max(most, sums.max(initial=0))
        dtype = str(chunk.scores.dtype)
    n_samples = len(predictions.samples)
    often = np.argsort(-firsts, kind="stable")[:5]
    return {
        "model": predictions.model,
        "n_samples": n_samples,
        "n_labels": len(labels),
        "kind": predictions.kind,
        "kind_is_detected": predictions.kind_is_detected,
        "is_hard": predictions.is_hard,
        "dtype": dtype,
        "n_abstentions": n_samples - n_answered,
        "unobserved_scores": 1 - n_observed / max(n_samples * len(labels), 1),
        "unobserved_mass": unobserved_mass / max(n_answered, 1),
        "row_sums": [float(least), float(most)] if n_answered else [],
        "most_often_first": {labels[i]: int(firsts[i]) for i in often.tolist() if firsts[i]},
        "first_samples": [str(sample) for sample in predictions.samples[:3]],
        "first_labels": list(labels[:5]),
        "file": predictions.origin.file,
        "id_column": predictions.origin.id_column,
        "ids": predictions.origin.ids,
        "doubts": list(predictions.origin.doubts),
    }
