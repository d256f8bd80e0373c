"""Objects in images (the paper's section 6.2 and appendix B.1): which kernel helps, and why.

Models score the same labels, so averaging works, and a generic kernel has little to add.
The paper's best kernel is a diagonal of each image's top labels. It moves nothing between
labels: it is a gate, and the same gate on a plain mean stands beside it in every table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from paper.multilabel.data import LabelTask, load_task
from paper.multilabel.decisions import decisions_table, models_table
from paper.multilabel.kernels import kernels_plot, kernels_table, share_kept
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
    Study,
    generics,
    study,
    without_transport,
)
from paper.record.findings import Cell, Claim, Figure, Findings, Progress, Table
from paper.record.paper_figures import PaperFigures, paper_figures
from wassemble.solvers import GEOMETRIC as GEOMETRIC_RULE

_TEXT = """\
Two tasks. COCO: eight linear heads on frozen CNN features score 80 categories in {n_coco:,}
val2017 images ({n_coco_test:,} for test). VOC: eight published detectors score 20 classes in
the {n_voc:,} test images of VOC 2007 ({n_voc_test:,} for our test), each alone with a test mAP
of {voc_least:.3f} to {voc_most:.3f}. What has settings is tuned for mAP on the other images.
Detectors say nothing below their threshold; scores of VOC are raised to at least
{least_score:g}, so that one silent detector does not veto a label in a geometric mean (whose
test mAP is {with_veto:.3f} without that).

Generic kernels are K = exp(-cost / epsilon), one for all images. GloVe: distance of the names'
unit vectors. Visual embeddings: distance of the unit mean ResNet-50 features of the training
images that have a category (no features for VOC). Co-occurrence: cost = -log of how often one
label is there when the other is, in training images. They run {sweeps} sweeps, as in the
paper. Diagonal kernels differ by image: labels in some model's top N have the mean of the
models' scores (the paper's) or 1 (pure gate), all others zeta; they have a closed form and are
converged, with the paper's {sweeps} sweeps at the same settings beside.

A diagonal kernel transports nothing. It multiplies a power mean of the scores by a power of
its diagonal, so whatever it gains is the work of a gate and of that mean. Both stand beside it
alone: "gated arithmetic mean" is a top-N gate on the plain mean, "K = I" the power mean without
a gate. Each gate is tuned for its own rule. {verdict}

Generic kernels do transport. Tuning pulls them towards the identity: they keep at most
{kept:.0f} % of the distance to it that the widest of their kind has. A claim of a gain is marked
held if its interval lies above 0."""

_RULES_NOTE = """\
Gains over the arithmetic mean are paired, with 95 % bootstrap intervals. Intervals of mAP
itself lean upwards: a resample repeats images and can lose the positives of a rare label."""

_GATE_NOTE = """\
Paired gains in test mAP. K = I is a barycenter without a gate, the gated mean a gate without
a barycenter; settings of each are those of the tables above."""

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
    studies = study(config, partial(_candidates, config=config), progress)
    coco, voc = studies["COCO"].task, studies["VOC"].task
    expected = paper_figures("multilabel")
    gains = {title: _gains(each) for title, each in studies.items()}
    gate = _gate_table(studies)
    alone = [voc.test.score(scores) for scores in voc.part(True)]
    return Findings(
        text=_TEXT.format(
            n_coco=len(coco.task.is_test),
            n_coco_test=len(coco.test.truth),
            n_voc=len(voc.task.is_test),
            n_voc_test=len(voc.test.truth),
            sweeps=config.sweeps,
            least_score=config.least_score,
            with_veto=_geometric_with_veto(),
            voc_least=min(alone),
            voc_most=max(alone),
            verdict=_verdict(gate),
            kept=100 * max(map(share_kept, studies.values())),
        ),
        tables=[
            _rules_table("COCO", studies["COCO"], gains["COCO"], config, expected),
            _rules_table("VOC", studies["VOC"], gains["VOC"], config),
            gate,
            kernels_table(studies, config.sweeps),
            models_table(coco, expected),
            decisions_table(studies["COCO"], config.threshold_step),
        ],
        plots=[kernels_plot("COCO", studies["COCO"])],
        claims=_claims(studies, gains),
        difference=_DIFFERENCE,
    )


def _geometric_with_veto() -> float:
    """Test mAP on VOC where silence is a zero."""
    task = load_task("voc", least_score=0.0)
    return task.test.score(GEOMETRIC_RULE.fuse(task.part(True)).scores)


def _candidates(task: LabelTask, config: Config) -> dict[str, list[Candidate]]:
    return without_transport(task.models, config) | {
        name: generics(cost, config.epsilons, config.mass_penalties, config.sweeps)
        for name, cost in task.costs.items()
    }


def _rules_table(
    title: str,
    study: Study,
    gains: Mapping[str, Figure],
    config: Config,
    expected: PaperFigures | None = None,
) -> Table:
    task = study.task
    rows: list[list[Cell]] = []
    for name, best in study.best.items():
        seen, figure = study.tried[name][best], task.test.figure(study.scores[name])
        row: list[Cell] = [name, best.settings, seen, figure, gains.get(name)]
        rows.append([*row, expected.get(name, "mAP") if expected else None])
        if name == PAPERS:
            few = best.with_sweeps(config.sweeps)
            seen, scores = (
                task.validation.score(few.fuse(task.part(False))),
                few.fuse(task.part(True)),
            )
            gain = task.test.gain(scores, study.scores[ARITHMETIC])
            title_few = f"{name}, {config.sweeps} sweeps"
            rows.append([title_few, "the same", seen, task.test.figure(scores), gain, None])
    columns = ["rule", "chosen on validation", "validation", "test", f"gain over {ARITHMETIC}"]
    if expected is None:
        return Table(f"{title}: mAP", columns, [row[:-1] for row in rows], note=_RULES_NOTE)
    return Table(f"{title}: mAP", [*columns, "paper, test"], rows, note=_RULES_NOTE)


def _gains(study: Study) -> dict[str, Figure]:
    """Of each rule over the arithmetic mean."""
    return {name: study.gain(name, ARITHMETIC) for name in study.best if name != ARITHMETIC}


_PAIRS = (
    (GATE, IDENTITY),
    (PAPERS, IDENTITY),
    (GATE, GATED_MEAN),
    (PAPERS, GATED_MEAN),
)


def _gate_table(studies: Mapping[str, Study]) -> Table:
    rows: list[list[Cell]] = [
        [name, over, *(each.gain(name, over) for each in studies.values())] for name, over in _PAIRS
    ]
    return Table("Gate and barycenter apart", ["rule", "over", *studies], rows, 4, _GATE_NOTE)


def _verdict(gate: Table) -> str:
    """Whether a barycenter adds anything to the gated mean, on any task."""
    better = [
        f"{row[0]} ({task})"
        for row in gate.rows
        if row[1] == GATED_MEAN
        for task, gain in zip(gate.columns[2:], row[2:], strict=True)
        if isinstance(gain, Figure) and gain.low > 0
    ]
    if better:
        return f"Better than the gated mean beyond the interval: {', '.join(better)}."
    return "No diagonal kernel is better than the gated mean beyond the interval."


def _claims(studies: Mapping[str, Study], gains: Mapping[str, Mapping[str, Figure]]) -> list[Claim]:
    """Judged on COCO, the paper's task; what VOC says stands beside."""
    coco = studies["COCO"]
    means = {name: coco.gain(name, BEST) for name in (ARITHMETIC, GEOMETRIC)}
    over = {
        "COCO, over arithmetic": gains["COCO"][PAPERS],
        "over geometric": coco.gain(PAPERS, GEOMETRIC),
        "VOC, over arithmetic": gains["VOC"][PAPERS],
    }
    generic = {name: gains["COCO"][name] for name in coco.task.costs}
    gate = coco.best[PAPERS].kernel
    assert isinstance(gate, partial)
    n_top = gate.keywords["n_top"]
    return [
        Claim(
            "both means improve on the single models",
            "section 6.2",
            all(gain.low > 0 for gain in means.values()),
            f"over {coco.best[BEST].settings}: {_say(means)}",
        ),
        Claim(
            "the barycenter with the diagonal K outperforms arithmetic and geometric means",
            "table 6",
            all(gain.low > 0 for name, gain in over.items() if "VOC" not in name),
            f"{_say(over)}; the gated mean over arithmetic: {gains['COCO'][GATED_MEAN].words(4)}",
        ),
        Claim(
            "it is challenging to find a generic K that works well",
            "section 6.2",
            all(gain.low <= 0 for gain in generic.values()),
            f"over the arithmetic mean: {_say(generic)}",
        ),
        Claim(
            "top 2 per model is best",
            "section 6.2",
            n_top == 2,
            f"top {n_top} on validation images",
        ),
    ]


def _say(gains: Mapping[str, Figure]) -> str:
    return ", ".join(f"{name} {gain.words(4)}" for name, gain in gains.items())
