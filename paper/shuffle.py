"""Robustness to semantic shuffling (the paper's section 6.3, right panel of figure 2).

Scores change places among labels and their neighbours, anew in each sample of each model. A mean
takes them at their word; the barycenter knows through K which labels are neighbours. The same is
done to captioners in `paper.captioning.shuffle`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paper.cost_sensitive import (
    Answer,
    histograms_of,
    minus_cost,
    share_right,
    sharpened_barycenter,
    tree_steps,
)
from paper.data.files import find_data
from paper.evidence.tasks import TASKS
from paper.record.findings import Claim, Findings, Plot, Progress, Table, fill, ticker
from paper.record.judging import Judge, simple_rules
from paper.record.verdicts import claim_gains, conclude
from paper.words.models import find_synonyms
from wassemble.ensemble.decisions import choose_best, choose_least_cost
from wassemble.ensemble.learning.fitting import shuffle_labels
from wassemble.ensemble.shuffling import label_similarity, make_stars, shuffle_stars
from wassemble.inputs import Predictions, read_edges
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace
from wassemble.metrics import Measure
from wassemble.solvers import ARITHMETIC

_TEXT = """\
A star is a label with its nearest by K, among the 100 classes of CIFAR-100 (three networks, one of
them weak; K from GloVe vectors, whose cost is half the squared distance of unit vectors, and from
steps in a tree of the classes). Synonyms, the paper's other K, are no third case: {n_synonyms} of
the {n_classes} class names have a synonym among the others. In each sample of each model the
scores in the stars of its {n_hubs} best labels change places at random, {n_shuffles} with fixed
seeds. Validation samples, which epsilon, the best single model and the order of the power mean are
tuned on for accuracy, have shuffles of their own. The barycenter is Algorithm 1 with {sweeps}
sweeps; untuned, epsilon is that of 3 effective neighbours. Tuned, it is chosen at each size. Claims
are about stars of {judged} labels; stars of 1 are no shuffle."""

_NOTE = """\
Stars of {size} labels. Gains are over the mean that is best on validation samples ({over}), paired,
with 95 % bootstrap intervals over images. "Arithmetic mean through K" is the barycenter of one
model, the arithmetic mean: K without a consensus of transports; "one sweep" is the barycenter after
its first, a geometric mean of what K makes of each model. Both are tuned likewise. "Least cost"
answers with the label of least expected cost; what is tuned is then tuned for cost. After the
arithmetic mean that answer is the "barycenter of one label": of all histograms with one label, the
one of least mean transport cost to the models. "Labels shuffled" is the barycenter through a kernel
that joins as many labels as strongly, but not those that belong together, tuned likewise: a blur
without meaning."""

_ALIKE_NOTE = """\
The same, but in each sample a star is shuffled in the same way by every model that has it: they are
then models that mean the other labels, and where K does not tell the labels of a star apart, no
rule can recover. Stars of {size} labels; gains are over the {over}, the best mean on validation
samples."""

_WHY = """\
nothing recovers what it had without shuffles; where K helps, it helps the arithmetic mean through K
as much or more, so that it is K that helps, not the transport"""

_DIFFERENCE = """\
the paper shuffled words under five captioners and plotted scores of captions, and gives no
numbers; its neighbourhoods grow with epsilon, ours are given and epsilon is tuned or fixed."""

_THROUGH, _ONE_SWEEP = "arithmetic mean through K", "one sweep"

_FIXED, _TUNED, SHUFFLED = (f"barycenter, {way}" for way in ("untuned", "tuned", "labels shuffled"))
_MEANS = ("arithmetic mean", "geometric mean", "power mean")
# Behind the name of a rule: its answer is the label of least expected cost.
_LEAST = ", least cost"
_ONE_LABEL = "barycenter of one label"
# Of the rules, those that a plot can hold.
_DRAWN = {
    "accuracy": ("best single model", *_MEANS, _FIXED, _TUNED, SHUFFLED),
    "cost": (*_MEANS, _ONE_LABEL, _FIXED, _TUNED, f"{_TUNED}{_LEAST}"),
}

_Curves = dict[str, list[tuple[int, float]]]
"""By rule: size of the neighbourhoods, and the figure."""


@dataclass(frozen=True)
class Config:
    """Knobs: sizes of stars, and what is tried on validation samples."""

    cases: tuple[str, ...] = ("GloVe", "tree")
    sizes: tuple[int, ...] = (1, 2, 3, 5, 10)
    judged: tuple[int, ...] = (5, 10)  # of the sizes: a label with its four nearest, and far more
    n_hubs: int = 10
    n_shuffles: int = 2
    sharpness: tuple[float, ...] = (0.5, 0.7, 1.0, 1.4, 2.0)
    sweeps: int = 5
    seed: int = 0


def run(config: Config, progress: Progress = None) -> Findings:
    """Accuracy and cost of each rule as stars grow, for each case."""
    tables: list[Table] = []
    plots: list[Plot] = []
    claims: list[Claim] = []
    n_judged = len({*config.sizes} & {*config.judged})
    tick = ticker(progress, len(config.cases) * (len(config.sizes) + n_judged))
    for name in config.cases:
        case = cifar100(name, config)
        curves: dict[str, _Curves] = {"accuracy": {}, "cost": {}}
        at_size: dict[int, _Judged] = {}
        for size in config.sizes:
            each = _Judged(case, case.shuffle(size, config.n_shuffles, config.seed), config.seed)
            for title, judge in each.judges.items():
                for rule, mine in each.test.items():
                    value = judge.measure.value(mine, judge.truth)
                    curves[title].setdefault(rule, []).append((size, value))
            if size in config.judged:
                at_size[size] = each
            tick()
        tables.append(_by_size(case, curves["accuracy"], config))
        for size, judged in at_size.items():
            alike = _Judged(case, case.shuffle(size, 1, config.seed, alike=True), config.seed)
            tick()
            tables += [judged.table(size), alike.alike_table(size)]
            claims += [judged.claim(title, size, each) for title, each in curves.items()]
        plots += [_plot(case, title, each) for title, each in curves.items()]
    n_shuffles = {1: "once", 2: "twice"}.get(config.n_shuffles, f"{config.n_shuffles} times")
    classes = TASKS["cifar100"]().target
    synonyms = find_synonyms(LabelSpace([name.replace("_", " ") for name in classes]))
    text = fill(
        _TEXT,
        config,
        n_shuffles=n_shuffles,
        judged=" and of ".join(map(str, config.judged)),
        n_classes=len(classes),
        n_synonyms=len({name for name, _ in synonyms}) or "none",
    )
    return Findings(text, tables, plots, claims, conclude(claims, _WHY), _DIFFERENCE)


def _fuse(case: Case, shuffled: Shuffled) -> dict[str, np.ndarray]:
    """Scores of every rule on all rows; knobs are tuned on the validation rows."""
    right = share_right(choose_best)
    truth, is_test = shuffled.truth, shuffled.is_test
    simple = simple_rules(shuffled.models, truth, is_test, right)
    # What was chosen differs from size to size; a curve needs one name.
    rules = {name.split(" (")[0]: scores for name, scores in simple.items()}

    def least(scores: np.ndarray) -> np.ndarray:
        """All mass on the answer of least expected cost."""
        answers = choose_least_cost(scores, case.cost)
        return np.eye(len(case.cost), dtype=np.float32)[answers]

    seen, held_out = shuffled.stack(False), shuffled.stack(True)
    rules[_FIXED] = case.barycenter(np.concatenate([seen, held_out], axis=1), case.untuned)
    cheap = {_by_cost(name): least(rules[name]) for name in _MEANS}
    aims: list[tuple[dict[str, np.ndarray], str, Measure, Answer]] = [
        (rules, "", right, np.asarray),
        (cheap, _LEAST, minus_cost(choose_best, case.cost), least),
    ]
    for name, fuse in {_TUNED: case.barycenter, **case.controls}.items():
        tried = [fuse(seen, knob) for knob in case.knobs]
        for into, way, measure, answer in aims:
            mine = [answer(each) for each in tried]
            best = int(np.argmax([measure.score(each, truth[~is_test]) for each in mine]))
            held = answer(fuse(held_out, case.knobs[best]))
            into[f"{name}{way}"] = np.concatenate([mine[best], held])
    return rules | cheap


def _by_cost(name: str) -> str:
    """The name of a rule whose answer is the label of least expected cost."""
    return _ONE_LABEL if name == "arithmetic mean" else f"{name}{_LEAST}"


class _Judged:
    """Every rule on shuffled test samples, in accuracy and in cost."""

    def __init__(self, case: Case, shuffled: Shuffled, seed: int) -> None:
        self.case, is_test = case, shuffled.is_test
        rules = _fuse(case, shuffled)
        self.test, self._seen = (
            {name: scores[rows] for name, scores in rules.items()} for rows in (is_test, ~is_test)
        )
        self._seen_truth = shuffled.truth[~is_test]
        truth, groups = shuffled.truth[is_test], shuffled.samples[is_test].tolist()
        self.judges = {
            measure.name: Judge(measure, truth, groups=groups, seed=seed)
            for measure in (share_right(choose_best), minus_cost(choose_best, case.cost))
        }

    def best(self, names: Sequence[str], measure: Measure) -> str:
        """The rule that is best on validation rows."""
        return max(names, key=lambda name: measure.score(self._seen[name], self._seen_truth))

    def table(self, size: int) -> Table:
        """Accuracy, gain and cost of each rule."""
        right, cheap = self.judges["accuracy"], self.judges["cost"]
        over = self.best(_MEANS, right.measure)
        rows = [
            [name, *cells, -cheap.score(self.test[name])]
            for name, cells in right.compare(self.test, over).items()
        ]
        note = _NOTE.format(size=size, over=over)
        columns = ["rule", "accuracy", "gain", f"cost ({self.case.cost_title})"]
        title = f"{self.case.title}, in stars of {size}"
        return Table(title, columns, rows, note=note)

    def alike_table(self, size: int) -> Table:
        """Accuracy and gain of a few rules, where all models were shuffled alike."""
        judge = self.judges["accuracy"]
        over = self.best(_MEANS, judge.measure)
        shown = {name: self.test[name] for name in (*_MEANS, _THROUGH, _ONE_SWEEP, _TUNED)}
        rows = [[name, *cells] for name, cells in judge.compare(shown, over).items()]
        title = f"{self.case.title}, all models shuffled alike in stars of {size}"
        note = _ALIKE_NOTE.format(size=size, over=over)
        return Table(title, ["rule", "accuracy", "gain"], rows, note=note)

    def claim(self, title: str, size: int, curves: _Curves) -> Claim:
        """Whether the barycenter beats the best mean, both chosen on validation rows."""
        is_cost, judge = title == "cost", self.judges[title]

        def best(*names: str) -> str:
            # Where costs count, both sides may answer with the label of least expected cost. After
            # the arithmetic mean that is a barycenter itself, and no mean.
            costs = [_by_cost(name) for name in names] if is_cost else []
            listed = [each for each in (*names, *costs) if each != _ONE_LABEL]
            return self.best(listed, judge.measure)

        over, mine, controls = best(*_MEANS), best(_TUNED), [*map(best, self.case.controls)]
        plain = self.best(_MEANS, judge.measure)
        others = dict.fromkeys([over, controls[0], plain, *controls[1:]])
        if is_cost:
            others[_ONE_LABEL] = None
        gains = {name: judge.gain(self.test[mine], self.test[name]) for name in others}
        main = gains.pop(over)
        words = ", ".join(f"{gain.words()} over the {name}" for name, gain in gains.items())
        through = gains[controls[0]]
        if main.low > 0 and through.low <= 0:
            verdict = "suffers less still" if through.high < 0 else "does as well"
            words += f"; the {controls[0]} {verdict}: what helps is K, after a mean too"
        ours, means = (dict(curves[rule]) for rule in (mine, over))
        first = min(ours)
        return claim_gains(
            "the barycenter suffers less than the best mean from shuffles among similar labels"
            f" ({self.case.title}, stars of {size}, {title})",
            "section 6.3, figure 2",
            {f"the {over}": main},
            beside=f"{words}; in stars of {size} {title} of the {mine} goes from {ours[first]:.3f}"
            f" to {ours[size]:.3f}, that of the {over} from {means[first]:.3f} to"
            f" {means[size]:.3f}",
        )


def _by_size(case: Case, scores: _Curves, config: Config) -> Table:
    columns = ["accuracy with stars of", *(str(size) for size in config.sizes)]
    rows = [
        [rule, *(value for _, value in points)]
        for rule, points in scores.items()
        if rule != _ONE_LABEL and not rule.endswith(_LEAST)
    ]
    return Table(case.title, columns, rows)


def _plot(case: Case, title: str, curves: _Curves) -> Plot:
    label = "accuracy" if title == "accuracy" else f"cost ({case.cost_title})"
    shown = {name: curves[name] for name in _DRAWN[title] if name in curves}
    return Plot(f"{case.name}-{title}", case.title, "labels in a star", label, shown)


Fuse = Callable[[np.ndarray, float], np.ndarray]
"""From a stack of models, (n_models, n_samples, n_source), and a knob to a consensus."""


@dataclass(frozen=True, eq=False)
class Shuffled:
    """Scores of all models after shuffles, validation samples first, and their truth."""

    models: dict[str, np.ndarray]
    truth: np.ndarray
    is_test: np.ndarray
    samples: np.ndarray  # of each row: a sample is there as often as it was shuffled

    def stack(self, is_test: bool) -> np.ndarray:
        """Scores of one side of the split."""
        return np.stack([each[self.is_test == is_test] for each in self.models.values()])


@dataclass(frozen=True, eq=False)
class Case:
    """Models on samples whose truth is known, and what is known about their labels."""

    name: str
    title: str
    models: list[Predictions]
    truth: np.ndarray
    is_test: np.ndarray
    n_hubs: int
    similar: np.ndarray  # (n_source, n_source): who is whose neighbour
    cost: np.ndarray  # (n_target, n_target), of each answer (column) for each true label (row)
    cost_title: str
    untuned: float  # knob of a barycenter that nothing is known about
    knobs: tuple[float, ...]
    barycenter: Fuse
    controls: dict[str, Fuse]  # other ways through the kernel, with the same knob

    def shuffle(self, size: int, n_shuffles: int, seed: int, *, alike: bool = False) -> Shuffled:
        """Scores shuffled inside stars of ``size`` labels, per sample and model, or all ``alike``.

        The two sides of the split have shuffles of their own.
        """
        stars = make_stars(self.similar, size)
        parts, rows = [], []
        for is_test in (False, True):
            mine = np.flatnonzero(self.is_test == is_test)
            for turn in range(n_shuffles if size > 1 else 1):
                moved = []
                for place, model in enumerate(self.models):
                    taken = model.take(mine)
                    drawn = [seed, size, turn, int(is_test), 0 if alike else place]
                    keys = np.random.default_rng(drawn).random(taken.scores.shape)
                    scores = shuffle_stars(taken.scores, stars, keys, n_hubs=self.n_hubs)
                    moved.append(taken.replace(scores=scores))
                parts.append(histograms_of(moved))
                rows.append(mine)
        places = np.concatenate(rows)
        models = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Shuffled(models, self.truth[places], self.is_test[places], places)


def cifar100(kernel_name: str, config: Config) -> Case:
    """CIFAR-100 by three networks; the knob is the power that K is raised to."""
    task = TASKS["cifar100"]()
    kernel = task.kernels[kernel_name]

    def through(kernel: LabelledKernel, sweeps: int = config.sweeps) -> Fuse:
        return lambda stack, knob: sharpened_barycenter(stack, kernel, knob, sweeps)

    real = through(kernel)
    return Case(
        name=f"cifar100-{kernel_name.lower()}",
        title=f"CIFAR-100, {kernel_name} neighbours",
        models=task.models,
        truth=task.target.places(task.truth),
        is_test=task.is_test,
        n_hubs=config.n_hubs,
        similar=label_similarity(kernel),
        cost=tree_steps(task.target, read_edges(find_data("cifar100/tree.txt"))),
        cost_title="steps in the tree",
        untuned=1.0,
        knobs=config.sharpness,
        barycenter=real,
        controls={
            _THROUGH: lambda stack, s: real(_mean(stack), s),
            _ONE_SWEEP: through(kernel, 1),
            SHUFFLED: through(shuffle_labels(kernel, config.seed)),
        },
    )


def _mean(stack: np.ndarray) -> np.ndarray:
    return np.asarray(ARITHMETIC.fuse(stack).scores)[None]
