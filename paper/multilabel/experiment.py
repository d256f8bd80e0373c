"""Objects in images (the paper's section 6.2 and appendix B.1): which kernel helps, and why.

Models score the same labels, so averaging works, and a generic kernel has little to add.
The paper's best kernel is a diagonal of each image's top labels. It moves nothing between
labels: it is a gate, and the same gate on a plain mean stands beside it in every table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from paper.multilabel.study import (
    ARITHMETIC,
    BEST,
    GATE,
    GATED_MEAN,
    GEOMETRIC,
    IDENTITY,
    PAPERS,
    Candidate,
    Grid,
    LabelTask,
    Study,
    generics,
    load_task,
    study_tasks,
    without_transport,
)
from paper.record.findings import (
    Claim,
    Figure,
    Findings,
    Plot,
    Progress,
    Table,
    fill,
    paper_figures,
)
from paper.record.judging import Judge
from paper.record.verdicts import claim_gains, conclude, held, smallest_visible
from wassemble.kernels import Kernel, distance_to_identity
from wassemble.metrics import precision_recall_f1
from wassemble.solvers import GEOMETRIC as GEOMETRIC_RULE, Barycenter, Unbalanced

_TEXT = """\
Two tasks. COCO: eight linear heads on frozen CNN features score 80 categories in {n_coco:,} val2017
images ({n_coco_test:,} for test). VOC: eight published detectors score 20 classes in the {n_voc:,}
test images of VOC 2007 ({n_voc_test:,} for our test), each alone with a test mAP of {voc_least:.3f}
to {voc_most:.3f}. What has settings is tuned for mAP on the other images. Detectors say nothing
below their threshold; scores of VOC are raised to at least {least_score:g}, so that one silent
detector does not veto a label in a geometric mean (whose test mAP is {with_veto:.3f} without that).

Generic kernels are K = exp(-cost / epsilon), one for all images. GloVe: squared distance of the
names' unit vectors. Visual embeddings: squared distance of the unit mean ResNet-50 features of the
training images that have a category (no features for VOC). "Local": the same, measured by how far
both labels' fifth neighbours are (ours, not the paper's, and tried on this one split alone).
Co-occurrence: cost = -log of how often one label is there when the other is, in training images.
WordNet, a graph of knowledge (ours): a fifth of the fewest steps between any meanings of the names.
They run {sweeps} sweeps, as in the paper. Diagonal kernels differ by image: labels in some model's
top N have the mean of the models' scores (the paper's) or 1 (pure gate), all others zeta; they have
a closed form and are converged, with the paper's {sweeps} sweeps at the same settings beside.

A diagonal kernel transports nothing. It multiplies a power mean of the scores by a power of its
diagonal, so whatever it gains is the work of a gate and of that mean. Both stand beside it alone:
"gated arithmetic mean" is a top-N gate on the plain mean, "K = I" the power mean without a gate.
Each gate is tuned for its own rule. {verdict}

Generic kernels do transport. Tuning pulls them towards the identity: they keep at most {kept:.0f} %
of the distance to it that the widest of their kind has."""

_RULES_NOTE = """\
Gains over the arithmetic mean are paired, with 95 % bootstrap intervals. Intervals of mAP
itself lean upwards: a resample repeats images and can lose the positives of a rare label."""

_GATE_NOTE = """\
Paired gains in test mAP. K = I is a barycenter without a gate, the gated mean a gate without
a barycenter; settings of each are those of the tables above."""

_KERNELS_NOTE = """\
Tuned: the best pair of epsilon and mass_penalty on validation images. Distance is the Frobenius
norm of K - I; 0 moves nothing. Widest: the same kernel at the largest epsilon tried, with its
best mass_penalty. Scores of an unbalanced barycenter may leave [0, 1]: the last column has the
largest on test images. {ended}"""

_MODELS_NOTE = """\
Decisions at 0.5. F1-C is the harmonic mean of P-C and R-C, which is what the paper's own rows
have. The paper's models are not ours; their rows show the level of its table."""

_DECISIONS_NOTE = """\
The paper's table 10 announces these rows and has only those of single models. At 0.5, a
barycenter is not judged like a mean: Algorithm 2 raises scores to the power mass_penalty /
(mass_penalty + epsilon), which lifts small ones, while a gate (zeta below 1) lowers what is
outside the top N, and mean scores as K lower everything. The last two columns have the
threshold of best F1-O on validation images (steps of {step:g}), and F1-O on test images there."""

_DIFFERENCE = """\
the paper fine-tuned ResNets on 82,000 images and tested on 35,000; here linear heads on frozen
features saw 3,000 images, and 1,300 are for test. Intervals are wide against the paper's
differences of half a point. Word2vec of the paper's visual kernel is not to be had; means of
CNN features take its place."""


@dataclass(frozen=True)
class Config(Grid):
    """What is tried on validation images: that of `Grid`, and generic kernels."""

    epsilons: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.5)
    sweeps: int = 5
    threshold_step: float = 0.05


def run(config: Config, progress: Progress = None) -> Findings:
    """Figures of each model, mean and barycenter, with the paper's beside them."""

    def candidates(task: LabelTask) -> dict[str, list[Candidate]]:
        return without_transport(task.described, config) | {
            name: generics(cost, config.epsilons, config.mass_penalties, config.sweeps)
            for name, cost in task.costs.items()
        }

    studies = study_tasks(config, candidates, progress)
    coco, voc = studies["COCO"].task, studies["VOC"].task
    silent = load_task("voc", least_score=0.0)  # where silence is a zero, and a veto
    gate = _gate_table(studies)
    alone = [voc.test.score(scores) for scores in voc.part(True)]
    claims = _claims(*studies.values())
    return Findings(
        text=fill(
            _TEXT,
            config,
            n_coco=len(coco.task.is_test),
            n_coco_test=len(coco.test.truth),
            n_voc=len(voc.task.is_test),
            n_voc_test=len(voc.test.truth),
            with_veto=silent.test.score(GEOMETRIC_RULE.fuse(silent.part(True)).scores),
            voc_least=min(alone),
            voc_most=max(alone),
            verdict=_verdict(gate),
            kept=100 * max(map(_share_kept, studies.values())),
        ),
        tables=[
            _rules_table("COCO", studies["COCO"], config, paper="multilabel"),
            _rules_table("VOC", studies["VOC"], config),
            gate,
            _kernels_table(studies, config.sweeps),
            _models_table(coco),
            _decisions_table(studies["COCO"], config.threshold_step),
        ],
        plots=[_kernels_plot("COCO", studies["COCO"])],
        claims=claims,
        verdict=conclude(claims, _why(studies["COCO"])),
        difference=_DIFFERENCE,
    )


def _why(study: Study) -> str:
    """What the paper's gain is made of, and what our images could show of it."""
    expected = paper_figures("multilabel")
    shown = [
        f"over the {name} from {smallest_visible(study.gain(PAPERS, name)):.4f} on (the paper's is"
        f" {expected.gain(PAPERS, name, 'mAP'):.4f})"
        for name in (ARITHMETIC, GEOMETRIC)
    ]
    mine, gated = (study.gain(name, GEOMETRIC).words(4) for name in (PAPERS, GATED_MEAN))
    return (
        "the diagonal K moves nothing between labels, and what it does, a gate, a plain mean can do"
        f" as well ({mine} over the geometric mean with it, {gated} with one on the"
        f" arithmetic mean); {len(study.task.test.truth):,} test images show a gain"
        f" {' and '.join(shown)}"
    )


def _rules_table(title: str, study: Study, config: Config, paper: str | None = None) -> Table:
    task, expected = study.task, paper_figures(paper) if paper else None

    def row(name: str, settings: str, seen: float, scores: np.ndarray) -> dict[str, Any]:
        over = study.scores[ARITHMETIC]
        cells = {
            "rule": name,
            "chosen on validation": settings,
            "validation": seen,
            "test": task.test.figure(scores),
            f"gain over {ARITHMETIC}": None if scores is over else task.test.gain(scores, over),
        }
        return cells | ({"paper, test": expected.get(name, "mAP")} if expected else {})

    rows = []
    for name, best in study.best.items():
        rows.append(row(name, best.settings, study.tried[name][best], study.scores[name]))
        if name == PAPERS:
            few = best.with_sweeps(config.sweeps)
            seen = task.validation.score(few.fuse(task.part(False)))
            few_name = f"{name}, {config.sweeps} sweeps"
            rows.append(row(few_name, "the same", seen, few.fuse(task.part(True))))
    return Table.of(f"{title}: mAP", rows, note=_RULES_NOTE)


def _gate_table(studies: Mapping[str, Study]) -> Table:
    pairs = ((GATE, IDENTITY), (PAPERS, IDENTITY), (GATE, GATED_MEAN), (PAPERS, GATED_MEAN))
    rows = [
        [name, over, *(each.gain(name, over) for each in studies.values())] for name, over in pairs
    ]
    return Table("Gate and barycenter apart", ["rule", "over", *studies], rows, 4, _GATE_NOTE)


def _verdict(gate: Table) -> str:
    """Whether a barycenter adds anything to the gated mean, on any task."""
    better = [
        f"{row[0]} ({task})"
        for row in gate.rows
        if row[1] == GATED_MEAN
        for task, gain in zip(gate.columns[2:], row[2:], strict=True)
        if gain.low > 0
    ]
    if better:
        return f"Better than the gated mean beyond the interval: {', '.join(better)}."
    return "No diagonal kernel is better than the gated mean beyond the interval."


# What tuning makes of generic kernels, which transport: close to the identity, or worse.


def _kernels_table(studies: Mapping[str, Study], sweeps: int) -> Table:
    """Each generic kernel as it was tuned, and as wide as was tried."""
    rows: list[dict[str, Any]] = []
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
                {
                    "kernel": f"{title}, {name}",
                    "tuned": tuned.settings,
                    "distance to I": _distance(tuned),
                    "validation mAP": tried[tuned],
                    "widest: distance to I": _distance(widest),
                    "widest: validation mAP": tried[widest],
                    f"tuned, {sweeps} sweeps: test mAP": test.score(few),
                    "tuned, converged: test mAP": test.score(converged.scores),
                    "largest score": float(few.max()),
                }
            )
    ended = f"{n_left:,} rows did not converge." if n_left else "Every row converged."
    return Table.of("Generic kernels", rows, note=_KERNELS_NOTE.format(ended=ended))


def _share_kept(study: Study) -> float:
    """Largest share of the widest kernel's distance to the identity that tuning keeps."""
    pairs = [_tuned_and_widest(study.tried[name]) for name in study.task.costs]
    return max(_distance(tuned) / _distance(widest) for tuned, widest in pairs)


def _kernels_plot(title: str, study: Study) -> Plot:
    """Validation mAP over the distance to the identity."""
    series = {}
    for name in study.task.costs:
        best: dict[float, tuple[float, float]] = {}
        for candidate, score in study.tried[name].items():  # best first
            best.setdefault(_epsilon(candidate), (_distance(candidate), score))
        series[name] = [best[epsilon] for epsilon in sorted(best)]
    x_label = "distance of K to the identity (best mass_penalty at each epsilon)"
    title = f"{title}: generic kernels"
    return Plot("distance", title, x_label, "validation mAP", series, log_x=True)


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


# Precision, recall and F1 of decisions (appendix B.1, table 10).
_MEASURES = {
    "F1-C": "f1_of_means",
    "P-C": "precision_per_class",
    "R-C": "recall_per_class",
    "F1-O": "f1_overall",
    "P-O": "precision_overall",
    "R-O": "recall_overall",
}


def _models_table(task: LabelTask) -> Table:
    """Ours and the paper's (its tables 5 and 10)."""
    expected = paper_figures("multilabel")
    models = zip(task.described.items(), task.part(True), strict=True)
    rows = [
        [name, described, task.test.figure(scores), *_decisions(scores, task)]
        for (name, described), scores in models
    ]
    rows += [
        [f"paper: {name}", row["trained"], *(expected.get(name, m) for m in ("mAP", *_MEASURES))]
        for name, row in expected.figures.items()
        if "trained" in row
    ]
    columns = ["model", "trained on", "mAP", *_MEASURES]
    return Table("COCO: the models, and the paper's", columns, rows, note=_MODELS_NOTE)


def _decisions(scores: np.ndarray, task: LabelTask) -> list[Any]:
    measured = precision_recall_f1(scores, task.test.truth, threshold=0.5)
    return [getattr(measured, name) for name in _MEASURES.values()]


def _f1_overall(scores: np.ndarray, judge: Judge, threshold: float) -> float:
    return precision_recall_f1(scores, judge.truth, threshold=threshold).f1_overall


def _decisions_table(study: Study, step: float) -> Table:
    """Each rule at 0.5 and at a threshold of validation images."""
    task, thresholds = study.task, np.arange(step, 1, step)
    rows: list[list[Any]] = []
    for name, candidate in study.best.items():
        seen, scores = candidate.fuse(task.part(False)), study.scores[name]
        f1 = [_f1_overall(seen, task.validation, each) for each in thresholds]
        tuned = float(thresholds[int(np.argmax(f1))])
        there = _f1_overall(scores, task.test, tuned)
        rows.append([name, *_decisions(scores, task), tuned, there])
    columns = ["rule", *_MEASURES, "tuned threshold", "F1-O there"]
    note = _DECISIONS_NOTE.format(step=step)
    return Table("COCO: decisions at 0.5", columns, rows, note=note)


def _claims(coco: Study, voc: Study) -> list[Claim]:
    """Judged on COCO, the paper's task; what VOC says stands beside."""
    expected = paper_figures("multilabel")

    def stated(name: str, others: Iterable[str]) -> dict[str, float | None]:
        return {over: expected.gain(name, over, "mAP") for over in others}

    means = {name: coco.gain(name, BEST) for name in (ARITHMETIC, GEOMETRIC)}
    papers = {name: expected.gain(name, BEST, "mAP") for name in means}
    over = {name: coco.gain(PAPERS, name) for name in (ARITHMETIC, GEOMETRIC)}
    generic = {name: coco.gain(name, ARITHMETIC) for name in coco.task.costs}
    largest = expected.gain(PAPERS, ARITHMETIC, "mAP")
    denied = " (which the paper's own table 6 denies: 63.9 beside 64.1)"
    return [
        *(
            Claim(
                f"the {name} improves on the single models{denied if name == GEOMETRIC else ''}",
                "section 6.2",
                held(gain, papers[name]),
                f"{gain.words(4)} over {coco.best[BEST].settings}",
                f"{smallest_visible(gain):.4f}",
            )
            for name, gain in means.items()
        ),
        *(
            claim_gains(
                f"the barycenter with the diagonal K outperforms the {name}",
                "table 6",
                {name: gain},
                stated=stated(PAPERS, over),
                beside=f"VOC {voc.gain(PAPERS, name).words(4)}; the gated mean over it:"
                f" {coco.gain(GATED_MEAN, name).words(4)}",
                digits=4,
            )
            for name, gain in over.items()
        ),
        Claim(
            "it is challenging to find a generic K that works well",
            "section 6.2",
            none_gains(generic.values(), largest),
            f"over the arithmetic mean: {_say(generic)}",
            ", ".join(f"{smallest_visible(gain):.4f}" for gain in generic.values()),
        ),
        claim_gains("top 2 per model is best", "section 6.2", _top_two(coco), digits=4),
    ]


def none_gains(gains: Iterable[Figure], worth: float | None) -> bool | None:
    """Whether no gain is above 0; told only if each is also surely below what is ``worth`` it."""
    found = [held(gain, worth) for gain in gains]
    return False if True in found else None if None in found else True


def _top_two(study: Study) -> dict[str, Figure]:
    """Test gains of the paper's kernel from each model's top 2 over other numbers, each tuned."""
    best: dict[int, Candidate] = {}
    for candidate in study.tried[PAPERS]:  # best first
        assert isinstance(candidate.kernel, partial)
        best.setdefault(candidate.kernel.keywords["n_top"], candidate)
    fused = {n_top: each.fuse(study.task.part(True)) for n_top, each in best.items()}
    return {
        f"top {n_top}": study.task.test.gain(fused[2], scores)
        for n_top, scores in sorted(fused.items())
        if n_top != 2
    }


def _say(gains: Mapping[str, Figure]) -> str:
    return ", ".join(f"{name} {gain.words(4)}" for name, gain in gains.items())
