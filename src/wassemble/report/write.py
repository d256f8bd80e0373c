"""`write_report`: the page and its JSON, written whole or not at all."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble._files import write_whole
from wassemble.ensemble.learning import LearnedEnsemble
from wassemble.inputs import Predictions
from wassemble.report.board import judge_members, make_board
from wassemble.report.disputes import find_disputes
from wassemble.report.evidence import Evidence, gather_evidence
from wassemble.report.figures import draw_all
from wassemble.report.headline import make_headline, make_reasons
from wassemble.report.kernel_effects import shuffle_neighbours, sweep_epsilon
from wassemble.report.labels import (
    compare_calibration,
    compare_precision,
    find_gains,
    show_weights,
)

_FORMAT = "wassemble report 1"
_PURPOSE = "the evidence report"


def write_report(
    learned: LearnedEnsemble,
    models: Sequence[Predictions] | Mapping[str, Predictions],
    truth: Any,
    path: str | Path,
    *,
    title: str | None = None,
    texts: Mapping[Any, str] | None = None,
    metric: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    fold: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Write whether fusing helped and why: a page to open offline, and its figures as JSON.

    Parameters
    ----------
    learned : LearnedEnsemble
    models : sequence of Predictions, or dict of them
        The models that were learned from, on samples that nothing was learned from.
    truth : see `read_trial`
    path : path
        Of the page, ending in ``.html``; the JSON is beside it, ending in ``.json``.
    title : str, optional
    texts : mapping of sample id to str, optional
        Short texts to show with the samples that models disagree about.
    metric, sample_weight, groups, fold, seed
        See `evaluate_ensemble`.

    Returns
    -------
    record : dict
        What the JSON holds.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        fail(f"`path` must end in .html, the JSON goes beside it; got {path.name!r}.")
    for module in ("jinja2", "plotly.graph_objects"):  # before anything is computed
        load_extra(module, "report", purpose=_PURPOSE)
    started = time.perf_counter()
    evidence = gather_evidence(
        learned,
        models,
        truth,
        metric=metric,
        sample_weight=sample_weight,
        groups=groups,
        fold=fold,
        seed=seed,
    )
    record = _plain(_make_record(evidence, title, texts))
    record["made"]["report_seconds"] = round(time.perf_counter() - started, 2)
    page = _render(record)
    write_whole(path.with_suffix(".json"), json.dumps(record, indent=1, allow_nan=False) + "\n")
    write_whole(path, page)
    return record


def _make_record(
    evidence: Evidence, title: str | None, texts: Mapping[Any, str] | None
) -> dict[str, Any]:
    one_label = evidence.learned.task == "multiclass"
    members = judge_members(evidence)
    return {
        "format": _FORMAT,
        "title": title or f"{len(evidence.learned.models)} models, one consensus",
        "headline": make_headline(evidence, members),
        "why": make_reasons(evidence),
        "leaderboard": make_board(evidence),
        "members": members,
        "evaluation": evidence.evaluation.to_dict(),
        "calibration": compare_calibration(evidence) if one_label else None,
        "precision": None if one_label else compare_precision(evidence),
        "gains": find_gains(evidence),
        "weights": show_weights(evidence),
        "sweep": sweep_epsilon(evidence),
        "shuffling": shuffle_neighbours(evidence),
        "disputed": find_disputes(evidence, texts),
        "made": _describe(evidence),
    }


def _describe(evidence: Evidence) -> dict[str, Any]:
    """How it was made."""
    learned = evidence.learned
    return {
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("wassemble", "numpy", "scipy", "plotly")},
        },
        "machine": platform.machine(),
        "task": learned.task,
        "models": {name: len(labels) for name, labels in learned.models},
        "n_target_labels": len(learned.target),
        "n_validation_samples": learned.n_samples,
        "n_test_samples": evidence.trial.n_samples,
        "n_samples_looked_into": evidence.few.n_samples,
        "has_sample_weight": evidence.trial.sample_weight is not None,
        "has_groups": evidence.trial.groups is not None,
        "n_tried": learned.n_tried,
        "caution": learned.caution,
        "learning_seconds": learned.seconds,
        "seed": evidence.seed,
    }


def _plain(value: Any) -> Any:
    """As JSON has it: nan and infinity are null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _render(record: dict[str, Any]) -> str:
    jinja = load_extra("jinja2", "report", purpose=_PURPOSE)
    offline = load_extra("plotly.offline", "report", purpose=_PURPOSE)
    markup = load_extra("markupsafe", "report", purpose=_PURPOSE).Markup
    environment = jinja.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    environment.filters["number"] = _number
    source = (files("wassemble.report") / "template.html").read_text(encoding="utf-8")
    plots = draw_all(record)
    page: str = environment.from_string(source).render(
        **record,
        plots=sorted(plots),
        plots_json=markup(_for_script(plots)),
        plotly=markup(offline.get_plotlyjs().replace("</script", "<\\/script")),
    )
    return page


def _for_script(value: Any) -> str:
    """JSON that nothing in it can end a script tag early."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _number(value: float | None, digits: int = 4) -> str:
    """A figure of a table; a dash where there is none."""
    return "\u2013" if value is None else f"{value:,.{digits}f}"
