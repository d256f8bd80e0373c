"""What answers cost where labels have an order or a tree: exact barycenters beside the mean.

Nothing is learned or tuned: models count alike. The answer of least expected cost after the mean is
the rival to beat, for it knows the distances between labels as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import wassemble as ws
from paper.cost_sensitive import answers, tree_steps
from paper.data.files import find_data
from paper.evidence.tasks import TASKS
from paper.record.findings import markdown_table
from paper.without_truth.sets import JUDGES, find_checking, load_set
from wassemble.ensemble import tree_barycenter
from wassemble.ensemble.without_truth.relatives import mark_answers
from wassemble.inputs import Edges, read_edges
from wassemble.metrics import compare

_MEAN = "mean"
_ON_LINE = {"exact W1": ws.LineBarycenter(1), "exact W2": ws.LineBarycenter(2)}
HEADER = ["task", "rule", "answer", "mean cost", "saved beside the mean's answer of least cost"]


@dataclass(frozen=True, eq=False)
class CostCase:
    """Models whose consensus is answered, and what answers cost."""

    title: str
    fuse: Callable[[ws.Rule], np.ndarray]  # to (n_samples, n_labels)
    rules: Mapping[str, ws.Rule]
    cost: np.ndarray
    truth: np.ndarray
    groups: np.ndarray


def judge_costs(case: CostCase) -> dict[str, Any]:
    """The mean cost of each rule's answers, and what it saves, ready for JSON."""
    costs = {}
    for name, rule in {_MEAN: ws.ARITHMETIC, **case.rules}.items():
        consensus = case.fuse(rule)
        for way, answer in answers(case.cost).items():
            costs[name, way] = case.cost[case.truth, answer(consensus)]
    rival = costs[_MEAN, "least cost"]
    rows = []
    for (name, way), own in costs.items():
        saved = compare(-own, -rival, groups=case.groups)
        figures = {"saved": saved.difference, "low": saved.low, "high": saved.high}
        rows.append({"rule": name, "answer": way, "cost": float(own.mean())} | figures)
    return {"title": case.title, "n_samples": len(case.truth), "rows": rows}


def load_cases() -> Iterator[tuple[str, CostCase | None]]:
    """Names and cases; None where data are not here."""
    yield "cifar100", _in_tree("cifar100", read_edges(find_data("cifar100/tree.txt")))
    families = find_checking("language_id", "languages.json")
    yield "languages", _in_tree("languages", _read_families(families)) if families else None
    yield "adult_content2", _on_line("adult_content2", "Grades of web sites by 825 workers")
    yield JUDGES, _on_line(JUDGES, "Grades of passages by 33 language models")


def _in_tree(name: str, edges: Edges) -> CostCase:
    """A task of the evidence whose labels are in a tree, on its test samples."""
    task = TASKS[name]()
    models, truth = task.part(True)

    def fuse(rule: ws.Rule) -> np.ndarray:
        return np.asarray(ws.Fusion(rule, **task.meanings).fuse(models).scores)

    groups = np.array(truth if task.groups is None else task.groups)
    return CostCase(
        f"{task.title}; steps in a tree",
        fuse,
        {"exact W1": tree_barycenter(task.target, edges)},
        tree_steps(task.target, edges),
        task.target.places(truth),
        np.arange(len(truth)) if task.groups is None else groups[task.is_test],
    )


def _read_families(path: Path) -> Edges:
    """Languages below their families, by Glottolog, all below one root."""
    languages = json.loads(path.read_text(encoding="utf-8"))["languages"]
    edges: dict[tuple[str, str], None] = {}
    for code, own in languages.items():
        above = ["languages", *(glottocode for glottocode, _ in own["glottolog_path"])]
        way = [*above, own.get("glottocode", f"{code}, no family"), code]
        edges |= dict.fromkeys(pairwise(way))
    return Edges(edges, origin="families of languages")


def _on_line(name: str, title: str) -> CostCase | None:
    """A set of votes for grades, on the samples whose truth is known."""
    given = load_set(name)
    if given is None:
        return None
    rows = given.tested
    marked = np.stack([each.toarray() for each in mark_answers(given.votes.on(rows))])
    stack = np.moveaxis(marked, 0, -1).swapaxes(0, 1).astype(float)
    n_labels = stack.shape[2]
    return CostCase(
        f"{title}; grades off",
        partial(_fuse_votes, stack),
        _ON_LINE,
        np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels))),
        given.truth[rows],
        given.groups[rows],
    )


def _fuse_votes(stack: np.ndarray, rule: ws.Rule) -> np.ndarray:
    said = stack.any(axis=2, keepdims=True)
    return np.asarray(rule.fuse(stack, weights=said / said.sum(axis=0), holds="partial").scores)


def list_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """A line for each task, rule and answer."""
    rows = []
    for case in found.values():
        for row in case["rows"]:
            is_rival = (row["rule"], row["answer"]) == (_MEAN, "least cost")
            interval = f"{row['saved']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})"
            saved = "" if is_rival else f"{interval} {_verdict(row)}"
            rows.append([case["title"], row["rule"], row["answer"], f"{row['cost']:.3f}", saved])
    return rows


def _verdict(row: Mapping[str, float]) -> str:
    if row["low"] > 0:
        return "better"
    return "worse" if row["high"] < 0 else "tie"


def to_markdown(found: Mapping[str, Any]) -> str:
    """The table, in Markdown."""
    return markdown_table(HEADER, list_rows(found))
