"""What tuning makes of generic kernels, which transport: close to the identity, or worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from paper.multilabel.rules import Generic
from paper.multilabel.study import Study
from paper.record.findings import Cell, Plot, Table
from wassemble.kernels import distance_to_identity

__all__ = ["kernels_plot", "kernels_table", "share_kept"]

_NOTE = """\
Tuned: the best pair of epsilon and mass_penalty on validation images. Distance is the Frobenius
norm of K - I; 0 moves nothing. Widest: the same kernel at the largest epsilon tried, with its
best mass_penalty. Scores of an unbalanced barycenter may leave [0, 1]: the last column has the
largest on test images. {ended}"""


def kernels_table(studies: Mapping[str, Study]) -> Table:
    """Each generic kernel as it was tuned, and as wide as was tried."""
    rows: list[list[Cell]] = []
    n_left = 0
    for title, found in studies.items():
        held_out, test = found.task.part(True), found.task.test
        for name in found.task.costs:
            tried = _tried(found, name)
            tuned, widest = _tuned_and_widest(tried)
            few, converged = tuned.solve(held_out), replace(tuned, sweeps=None).solve(held_out)
            n_left += int(np.sum(~np.asarray(converged.converged)))
            rows.append(
                [
                    f"{title}, {name}",
                    tuned.settings,
                    _distance(tuned),
                    tried[tuned],
                    _distance(widest),
                    tried[widest],
                    test.score(few.barycenter),
                    test.score(converged.barycenter),
                    float(few.barycenter.max()),
                ]
            )
    columns = [
        "kernel",
        "tuned",
        "distance to I",
        "validation mAP",
        "widest: distance to I",
        "widest: validation mAP",
        f"tuned, {tuned.sweeps} sweeps: test mAP",
        "tuned, converged: test mAP",
        "largest score",
    ]
    ended = f"{n_left:,} rows did not converge." if n_left else "Every row converged."
    return Table("Generic kernels", columns, rows, note=_NOTE.format(ended=ended))


def share_kept(found: Study) -> float:
    """Largest share of the widest kernel's distance to the identity that tuning keeps."""
    pairs = [_tuned_and_widest(_tried(found, name)) for name in found.task.costs]
    return max(_distance(tuned) / _distance(widest) for tuned, widest in pairs)


def kernels_plot(title: str, found: Study) -> Plot:
    """Validation mAP over the distance to the identity."""
    series = {}
    for name in found.task.costs:
        best: dict[float, tuple[float, float]] = {}
        for rule, score in _tried(found, name).items():  # best first
            best.setdefault(rule.epsilon, (_distance(rule), score))
        series[name] = [best[epsilon] for epsilon in sorted(best)]
    return Plot(
        "distance",
        f"{title}: generic kernels",
        "distance of K to the identity (best mass_penalty at each epsilon)",
        "validation mAP",
        series,
        log_x=True,
    )


def _tried(found: Study, name: str) -> dict[Generic, float]:
    return {rule: at for rule, at in found.tried[name].items() if isinstance(rule, Generic)}


def _tuned_and_widest(tried: Mapping[Generic, float]) -> tuple[Generic, Generic]:
    """The best of all, and the best at the largest epsilon; ``tried`` has the best first."""
    epsilon = max(rule.epsilon for rule in tried)
    return next(iter(tried)), next(rule for rule in tried if rule.epsilon == epsilon)


def _distance(rule: Generic) -> float:
    return float(distance_to_identity(rule.kernel()))
