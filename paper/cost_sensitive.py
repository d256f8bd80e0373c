"""When mistakes cost differently (the paper's table 1, row 3).

A kernel can bring the cost of mistakes into the consensus. So can the answer alone: the
label of least expected cost, after any mean, for nearly nothing. After the arithmetic mean that
*is* a barycenter: of all histograms with one label, the one of least mean transport cost to the
models. Both are tried, also together.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from paper.data.files import find_data
from paper.data.imagenet import load_imagenet, score_ranks
from paper.evidence.tasks import TASKS, Task
from paper.record.findings import Claim, Findings, Progress, Table, follow
from paper.record.judging import Judge, simple_rules
from paper.record.verdicts import claim_gains, conclude, held
from wassemble.ensemble.completion import complete_scores
from wassemble.ensemble.decisions import choose_best, choose_least_cost
from wassemble.ensemble.learning.fitting import shuffle_labels
from wassemble.inputs import Edges, Predictions, read_edges
from wassemble.kernels import DenseKernel, LabelledKernel, from_cost_table, from_tree
from wassemble.labels import LabelSpace
from wassemble.metrics import Measure, mean_cost_of_mistakes
from wassemble.solvers import Barycenter

_TEXT = """\
Two tasks, three costs. CIFAR-100: the twenty best softmax scores of three networks on 5,000
images, with the steps between two classes in a tree as cost, and with the costs that a user
might set for a camera on the road, which differ both ways: a person overlooked costs 10 or
12, a false alarm 4 or 5 (a table of six kinds, spread over the classes). ImageNet: the five
best classes of eight networks on 4,040 images, with the steps in WordNet as cost; a rank's
score is how often the truth stood there on the other 45,960 images. Mass that a list leaves
out is spread evenly over the other classes, each of which has at least 1e-6. A hash of the
image number decides what is test.

Each rule answers in two ways: "largest" is the label of the largest score, "least cost" that
of least expected cost. After the arithmetic mean the latter is itself a barycenter, restricted to
one label: its expected cost is the models' mean transport cost to that label. It is called so. The
barycenter is balanced, as in the paper, through K = exp(-cost /
epsilon). K ^ s is K at an s-th of the epsilon that gives the median label 3 effective
neighbours. s and the number of sweeps are tuned on validation images for accuracy and for
cost; so are the best single model and the order of the power mean."""

_NOTE = """\
Cost is the mean over all images, cost of a mistake that over the wrong answers. Saved is the
cost below that of the barycenter of one label (the arithmetic mean with the answer of least cost),
paired, with a 95 % bootstrap interval. Other means with the answer of least cost are ours: the
paper compares with means alone. "Labels shuffled" is the barycenter through a kernel that joins as
many labels as strongly but not those that belong together, tuned likewise: what it reaches is not
owed to meaning. Where a large s was chosen, K is close to the identity, and the barycenter to
the geometric mean."""

# How a plain rule does beside the barycenter, by whether the barycenter saves cost.
_BESIDE = {True: "costs more", False: "costs less", None: "cannot be told from it"}

_WHY = """\
costs can enter by the answer as well as by the kernel, and the barycenter of one label is that
answer"""

_DIFFERENCE = """\
the paper names the task in its table 1 and has no figure for it."""

_LARGEST, _LEAST = "largest", "least cost"
_ONE_LABEL = "barycenter of one label"
_MEANS = ("arithmetic mean", "geometric mean")
_SHUFFLED = ", labels shuffled"


@dataclass(frozen=True)
class Config:
    """Knobs: what is tried on validation images."""

    tasks: tuple[str, ...] = ("tree", "user", "imagenet")
    sharpness: tuple[float, ...] = (0.7, 1.0, 1.4, 2.0, 3.0, 5.0)
    sweeps: tuple[int, ...] = (2, 5, 10)
    imagenet_sharpness: tuple[float, ...] = (0.7, 1.4, 2.8)
    imagenet_sweeps: tuple[int, ...] = (2, 5)
    seed: int = 0


def run(config: Config, progress: Progress = None) -> Findings:
    """Accuracy and cost of each rule and answer, on each task."""
    grids = {"imagenet": (config.imagenet_sharpness, config.imagenet_sweeps)}
    compared = []
    for name in follow(config.tasks, progress):
        grid = grids.get(name, (config.sharpness, config.sweeps))
        settings = [Setting(*each) for each in product(*grid)]
        compared.append(_compare(_TASKS[name](), settings, config))
    tables, claims = zip(*compared, strict=True)
    return Findings(
        text=_TEXT,
        tables=tables,
        claims=claims,
        verdict=conclude(claims, _WHY),
        difference=_DIFFERENCE,
    )


class Setting(NamedTuple):
    """Knobs of a barycenter."""

    sharpness: float
    sweeps: int

    def __str__(self) -> str:
        return f"K ^ {self.sharpness:g}, {self.sweeps} sweeps"


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule with one answer, on both sides of the split."""

    name: str
    answer: str
    validation: np.ndarray
    test: np.ndarray

    @property
    def title(self) -> str:
        """In words."""
        is_told = self.answer == _LEAST and self.name != _ONE_LABEL
        return self.name + (" with the answer of least cost" if is_told else "")

    @property
    def transports(self) -> bool:
        """Whether it is a barycenter."""
        return self.name.startswith("barycenter")


def _compare(task: CostTask, settings: Sequence[Setting], config: Config) -> tuple[Table, Claim]:
    rules = [*_simple(task), *_barycenters(task, settings, config.seed)]
    truth = task.truth[task.is_test]
    right = Judge(share_right(lambda places: places), truth, seed=config.seed)
    cheap = Judge(minus_cost(lambda places: places, task.cost), truth, seed=config.seed)
    over = next(rule for rule in rules if rule.name == _ONE_LABEL)
    rows = [
        {
            "rule": rule.name,
            "answer": rule.answer,
            "accuracy": right.figure(rule.test),
            "cost": -cheap.score(rule.test),
            "cost of a mistake": mean_cost_of_mistakes(rule.test, truth, task.cost),
            "saved": cheap.gain(rule.test, over.test) if rule is not over else None,
        }
        for rule in rules
    ]
    return Table.of(task.title, rows, note=_NOTE), _claim(task, rules, cheap)


def _measures(task: CostTask) -> dict[tuple[str, str], Measure]:
    """What is tuned for, by the aim and the answer."""
    ways = answers(task.cost)
    return {
        ("accuracy", _LARGEST): share_right(ways[_LARGEST]),
        ("cost", _LARGEST): minus_cost(ways[_LARGEST], task.cost),
        ("cost", _LEAST): minus_cost(ways[_LEAST], task.cost),
    }


def _simple(task: CostTask) -> list[Rule]:
    """Each simple rule with both answers; one that two aims tune alike is listed once."""
    ways = answers(task.cost)
    rules = {}
    for (_, answer), measure in _measures(task).items():
        for name, scores in simple_rules(task.models, task.truth, task.is_test, measure).items():
            if (name, answer) not in rules:
                places = ways[answer](scores)
                called = _ONE_LABEL if (name, answer) == ("arithmetic mean", _LEAST) else name
                rules[name, answer] = Rule(
                    called, answer, places[~task.is_test], places[task.is_test]
                )
    return list(rules.values())


def _barycenters(task: CostTask, settings: Sequence[Setting], seed: int) -> list[Rule]:
    """The barycenter through each kernel, tuned for each aim; the control for cost alone."""
    measures, aim = _measures(task), ("cost", _LARGEST)
    rules = []
    for name, kernel in task.kernels.items():
        title, strange = f"barycenter, {name}", shuffle_labels(kernel, seed)
        rules += _tuned(task, kernel, settings, measures, title)
        rules += _tuned(task, strange, settings, {aim: measures[aim]}, f"{title}{_SHUFFLED}")
    return rules


def _tuned(
    task: CostTask,
    kernel: LabelledKernel,
    settings: Sequence[Setting],
    measures: Mapping[tuple[str, str], Measure],
    title: str,
) -> list[Rule]:
    """The barycenter at the setting that is best on validation images, for each aim."""
    ways, truth = answers(task.cost), task.truth[~task.is_test]
    seen, held_out = task.stack(False), task.stack(True)
    tried = {each: sharpened_barycenter(seen, kernel, *each) for each in settings}
    fused: dict[Setting, np.ndarray] = {}
    rules = []
    for (aim, answer), measure in measures.items():
        scores = [measure.score(tried[each], truth, None) for each in settings]
        best = settings[int(np.argmax(scores))]
        if best not in fused:
            fused[best] = sharpened_barycenter(held_out, kernel, *best)
        sides = ways[answer](tried[best]), ways[answer](fused[best])
        rules.append(Rule(f"{title}, for {aim} ({best})", answer, *sides))
    return rules


def _claim(task: CostTask, rules: Sequence[Rule], judge: Judge) -> Claim:
    """Whether the cheapest barycenter costs less than the means that the paper compares with.

    The cheapest are those of least cost on validation images, whatever their answer.
    """
    truth = task.truth[~task.is_test]

    def cheapest(kept: Callable[[Rule], bool]) -> Rule:
        return min(filter(kept, rules), key=lambda r: task.cost[truth, r.validation].mean())

    mine = cheapest(lambda rule: rule.transports and _SHUFFLED not in rule.name)
    plain = cheapest(lambda rule: not rule.transports)
    means = [rule for rule in rules if rule.answer == _LARGEST and rule.name in _MEANS]
    saved = judge.gain(mine.test, plain.test)
    return claim_gains(
        f"cost-sensitive classification can gain from the barycenter ({task.title})",
        "table 1, row 3",
        {f"the {rule.title}": judge.gain(mine.test, rule.test) for rule in means},
        beside=f"cost saved by the {mine.title}; {saved.words()} over the {plain.title}, the"
        f" cheapest plain rule on validation images, which is ours and {_BESIDE[held(saved)]}",
    )


Answer = Callable[[np.ndarray], np.ndarray]
"""From histograms to the places of the answers, ``(n_samples,)``."""


@dataclass(frozen=True, eq=False)
class CostTask:
    """Histograms of several models over one label set, and what mistakes cost."""

    title: str
    models: dict[str, np.ndarray]  # (n_samples, n_labels) each
    truth: np.ndarray
    is_test: np.ndarray
    cost: np.ndarray  # (n_labels, n_labels), of each answer (column) for each true label (row)
    kernels: dict[str, LabelledKernel]  # at the epsilon of 3 effective neighbours

    def stack(self, is_test: bool) -> np.ndarray:
        """Histograms of one side of the split, ``(n_models, n_samples, n_labels)``."""
        return np.stack([each[self.is_test == is_test] for each in self.models.values()])


def answers(cost: np.ndarray) -> dict[str, Answer]:
    """The two ways to an answer: the most likely label, or that of least expected cost."""
    return {_LARGEST: choose_best, _LEAST: lambda scores: choose_least_cost(scores, cost)}


def share_right(answer: Answer) -> Measure:
    """Accuracy of the answers."""
    return Measure("accuracy", lambda scores, truth: (answer(scores) == truth).astype(float))


def minus_cost(answer: Answer, cost: np.ndarray) -> Measure:
    """Mean cost of the answers, a loss: its score has the sign that makes higher better."""
    return Measure("cost", lambda scores, truth: cost[truth, answer(scores)], is_loss=True)


def tree_steps(labels: LabelSpace, edges: Edges) -> np.ndarray:
    """Steps from label to label, up and down a tree, ``(n_labels, n_labels)``."""
    near = from_tree(labels, edges=edges, epsilon=1.0).kernel
    return np.rint(-np.log(np.asarray(near.to_dense())))


def sharpened_barycenter(
    stack: np.ndarray, kernel: LabelledKernel, sharpness: float, sweeps: int
) -> np.ndarray:
    """Algorithm 1 in float32, through K to a power."""
    entries = np.asarray(kernel.to_dense()).astype(np.float32) ** np.float32(sharpness)
    rule = Barycenter(max_sweeps=sweeps, tolerance=None)
    return np.asarray(rule.fuse(stack, DenseKernel(entries)).scores)


# Scores kept as float16 cannot tell less than this from 0, and a 0 is a geometric mean's veto.
_FLOOR = 1e-6


def histograms_of(models: list[Predictions]) -> dict[str, np.ndarray]:
    """Whole histograms by model: mass that a list leaves out is spread over its other labels.

    No label is ruled out: each has at least 1e-6 before rows are divided by their sums.
    """
    histograms = {}
    for each in models:
        scores = complete_scores(each, "spread", hard_confidence=0.9).astype(np.float32)
        scores = np.maximum(scores, np.float32(_FLOOR))
        histograms[each.model] = scores / scores.sum(axis=1, keepdims=True)
    return histograms


def cifar100_by_tree() -> CostTask:
    """CIFAR-100 by three networks; a mistake costs its steps in the tree of classes."""
    task = TASKS["cifar100"]()
    cost = tree_steps(task.target, read_edges(find_data("cifar100/tree.txt")))
    return _from_task(task, "CIFAR-100, steps in the tree of classes", cost, task.kernels)


def cifar100_by_user() -> CostTask:
    """CIFAR-100 by three networks; a mistake costs what a user says."""
    task = TASKS["cifar100"]()
    cost = user_costs(task.target)
    kernels = {"user's costs": from_cost_table(cost, task.target)}
    return _from_task(task, "CIFAR-100, a user's costs", cost, kernels)


def _from_task(
    task: Task, title: str, cost: np.ndarray, kernels: dict[str, LabelledKernel]
) -> CostTask:
    truth = task.target.places(task.truth)
    return CostTask(title, histograms_of(task.models), truth, task.is_test, cost, kernels)


# Shares of the images by a hash of their numbers: to validate, to test, and the rest.
_VALIDATION, _TEST = 0.02, 0.06


def imagenet() -> CostTask:
    """ImageNet by the five best classes of eight networks; a mistake costs its WordNet steps.

    A network's score for a rank is how often the truth stood there on images of neither
    part; mass that the five do not reach is spread over the other classes.
    """
    classes, tree, networks, truth = load_imagenet()
    place = np.array([zlib.crc32(str(i).encode()) / 2**32 for i in range(len(truth))])
    is_kept = place < _VALIDATION + _TEST
    others, kept = np.flatnonzero(~is_kept), np.flatnonzero(is_kept)
    models = []
    for name, best in networks.items():
        scores = score_ranks(best, truth, others, kept, len(classes))
        models.append(Predictions(name, kept, classes, scores, kind="multiclass"))
    return CostTask(
        "ImageNet, steps in WordNet",
        histograms_of(models),
        truth[kept],
        place[kept] >= _VALIDATION,
        tree_steps(classes, tree),
        {"WordNet": from_tree(classes, edges=tree)},
    )


# What a user might ask of a camera on the road: a person who is overlooked costs most, a false
# alarm less, and among things, plants and places few mistakes matter.
# Krizhevsky 2009: the classes of each group, behind its kind.
_GROUPS = """
people    baby boy girl man woman
animals   beaver dolphin otter seal whale
animals   aquarium_fish flatfish ray shark trout
animals   bee beetle butterfly caterpillar cockroach
animals   bear leopard lion tiger wolf
animals   camel cattle chimpanzee elephant kangaroo
animals   fox porcupine possum raccoon skunk
animals   crab lobster snail spider worm
animals   crocodile dinosaur lizard snake turtle
animals   hamster mouse rabbit shrew squirrel
vehicles  bicycle bus motorcycle pickup_truck train
vehicles  lawn_mower rocket streetcar tank tractor
things    bottle bowl can cup plate
things    clock keyboard lamp telephone television
things    bed chair couch table wardrobe
plants    orchid poppy rose sunflower tulip
plants    apple mushroom orange pear sweet_pepper
plants    maple_tree oak_tree palm_tree pine_tree willow_tree
places    bridge castle house road skyscraper
places    cloud forest mountain plain sea
"""

# Rows are true kinds, columns answers. The diagonal is for another group of the same kind.
_COSTS = """
         people animals vehicles things plants places
people        2      10       10     12     12     12
animals       5       2        5      6      6      6
vehicles      5       5        2      6      6      6
things        4       4        4      2      2      2
plants        4       4        4      2      2      2
places        4       4        4      2      2      2
"""
_IN_GROUP = 1.0


def user_costs(classes: LabelSpace) -> np.ndarray:
    """Cost of each answer (column) for each true class (row), ``(n_labels, n_labels)``."""
    kinds, *rows = (line.split() for line in _COSTS.strip().splitlines())
    table = np.array([costs for _, *costs in rows], dtype=float)
    kind, group = np.empty((2, len(classes)), dtype=int)
    for number, line in enumerate(_GROUPS.strip().splitlines()):
        name, *members = line.split()
        places = classes.places(members)
        kind[places], group[places] = kinds.index(name), number
    cost = table[np.ix_(kind, kind)]
    cost[group[:, None] == group] = _IN_GROUP
    np.fill_diagonal(cost, 0)
    return cost


_TASKS = {"tree": cifar100_by_tree, "user": cifar100_by_user, "imagenet": imagenet}
