"""What tuning makes of generic kernels, which transport: close to the identity, or worse."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paper.multilabel.study import Candidate, Study
from paper.record.findings import Cell, Plot, Table
from wassemble.kernels import Kernel, distance_to_identity
from wassemble.solvers import Barycenter, Unbalanced

_NOTE = """\
Tuned: the best pair of epsilon and mass_penalty on validation images. Distance is the Frobenius
norm of K - I; 0 moves nothing. Widest: the same kernel at the largest epsilon tried, with its
best mass_penalty. Scores of an unbalanced barycenter may leave [0, 1]: the last column has the
largest on test images. {ended}"""


def kernels_table(studies: Mapping[str, Study], sweeps: int) -> Table:
    """Each generic kernel as it was tuned, and as wide as was tried."""
    rows: list[list[Cell]] = []
    n_left = 0
    for title, study in studies.items():
        held_out, test = study.task.part(True), study.task.test
        for name in study.task.costs:
            tried = study.tried[name]
            tuned, widest = _tuned_and_widest(tried)
            few, converged = study.scores[name], tuned.with_sweeps(None).run(held_out)
            assert converged.result is not None
            n_left += int(np.sum(~np.asarray(converged.result.converged)))
            rows.append(
                [
                    f"{title}, {name}",
                    tuned.settings,
                    _distance(tuned),
                    tried[tuned],
                    _distance(widest),
                    tried[widest],
                    test.score(few),
                    test.score(converged.scores),
                    float(few.max()),
                ]
            )
    columns = [
        "kernel",
        "tuned",
        "distance to I",
        "validation mAP",
        "widest: distance to I",
        "widest: validation mAP",
        f"tuned, {sweeps} sweeps: test mAP",
        "tuned, converged: test mAP",
        "largest score",
    ]
    ended = f"{n_left:,} rows did not converge." if n_left else "Every row converged."
    return Table("Generic kernels", columns, rows, note=_NOTE.format(ended=ended))


def share_kept(study: Study) -> float:
    """Largest share of the widest kernel's distance to the identity that tuning keeps."""
    pairs = [_tuned_and_widest(study.tried[name]) for name in study.task.costs]
    return max(_distance(tuned) / _distance(widest) for tuned, widest in pairs)


def kernels_plot(title: str, study: Study) -> Plot:
    """Validation mAP over the distance to the identity."""
    series = {}
    for name in study.task.costs:
        best: dict[float, tuple[float, float]] = {}
        for candidate, score in study.tried[name].items():  # best first
            best.setdefault(_epsilon(candidate), (_distance(candidate), score))
        series[name] = [best[epsilon] for epsilon in sorted(best)]
    return Plot(
        "distance",
        f"{title}: generic kernels",
        "distance of K to the identity (best mass_penalty at each epsilon)",
        "validation mAP",
        series,
        log_x=True,
    )


def _tuned_and_widest(tried: Mapping[Candidate, float]) -> tuple[Candidate, Candidate]:
    """The best of all, and the best at the largest epsilon; ``tried`` has the best first."""
    epsilon = max(map(_epsilon, tried))
    return next(iter(tried)), next(each for each in tried if _epsilon(each) == epsilon)


def _epsilon(candidate: Candidate) -> float:
    assert isinstance(candidate.rule, Barycenter)
    assert isinstance(candidate.rule.mass, Unbalanced)
    return candidate.rule.mass.epsilon


def _distance(candidate: Candidate) -> float:
    assert isinstance(candidate.kernel, Kernel)
    return float(distance_to_identity(candidate.kernel))
