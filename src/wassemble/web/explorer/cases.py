"""What was opened: models on samples, a kernel between their labels, and where to begin.

A label set too large to be swept while a slider moves is cut, sample by sample, to the labels that
some model finds likely; what that leaves out is said.
"""

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble import Fusion, FusionPlan
from wassemble.ensemble.completion import complete_scores
from wassemble.inputs import Kind, Predictions
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace
from wassemble.solvers import Rule
from wassemble.web.explorer.similarity import NAMES, Similarity, kernel_at

# The paper's own.
MASS_PENALTY = 2.0
# Labels above which a label set is cut, and labels that are kept.
_N_WHOLE = 800
_N_CUT = 500
# What is kept for when a slider moves: cuts (a megabyte each), costs of one label, answers (whose
# kernels may be large: enough for who looks at one label after another), what is shown, verdicts.
_N_CUTS = 32
_CUT_BYTES = 100_000_000
_N_SINGLE = 256
_N_ANSWERS = 2
_N_SHOWN = 64
_N_JUDGEMENTS = 16


Thing = TypeVar("Thing")


class Kept(Generic[Thing]):
    """At most ``n_items`` things, of a total ``size`` of at most ``n_bytes``, by key.

    Examples
    --------
    >>> kept = Kept(2)
    >>> [kept.get(key, lambda: key.upper()) for key in "aba"]
    ['A', 'B', 'A']
    """

    def __init__(
        self,
        n_items: int,
        *,
        n_bytes: float = math.inf,
        size: Callable[[Thing], int] = lambda thing: getattr(thing, "n_bytes", 0),
    ) -> None:
        self._n_items, self._n_bytes, self._size = n_items, n_bytes, size
        self._things: OrderedDict[Hashable, Thing] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        """The thing of that key; made if it is not there."""
        if key in self._things:
            self._things.move_to_end(key)
        else:
            self._things[key] = make()
            self._let_go()
        return self._things[key]

    def _let_go(self) -> None:
        total = sum(map(self._size, self._things.values()))
        while len(self._things) > 1 and (
            len(self._things) > self._n_items or total > self._n_bytes
        ):
            _, old = self._things.popitem(last=False)
            total -= self._size(old)

    def __len__(self) -> int:
        return len(self._things)


@dataclass(frozen=True, eq=False)
class Table:
    """Models on the same samples, in the same order."""

    key: str  # different for different contents
    title: str
    models: list[Predictions]
    kind: Kind
    target: LabelSpace | None = None  # wanted labels; those of the kernel or of all models if None
    texts: dict[str, str] = field(default_factory=dict)  # what samples are, by id, where known
    truth: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # true labels, by sample id
    names: dict[str, str] = field(default_factory=dict)  # of labels, for people
    note: str = ""
    other: str = ""  # the label by which models say: none of those I have

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return sum(model.scores.nbytes for model in self.models)

    @cached_property
    def samples(self) -> list[str]:
        """Every id."""
        return [str(sample) for sample in self.models[0].samples.tolist()]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {sample: row for row, sample in enumerate(self.samples)}

    def name(self, label: str) -> str:
        """What people call a label."""
        return self.names.get(label, label)

    def row(self, sample: str) -> int | None:
        """Place of a sample; None if there is none of that id."""
        return self._rows.get(sample)


@dataclass(frozen=True, eq=False)
class Cut:
    """One sample over the labels that take part."""

    key: str | int  # the same for cuts of a case to the same labels
    members: list[Predictions]  # of this sample alone
    target: LabelSpace
    # (n_source, n_target), one per model; one object for models that share it. Empty: equal names.
    costs: list[np.ndarray]
    declared: list[np.ndarray | None]  # (n_target,), one per model; None: all that it reaches
    dropped: float  # share of its mass that the model hit hardest has on labels left out
    is_part: bool = False  # whether labels were left out

    @property
    def n_bytes(self) -> int:
        """Size of the costs in memory."""
        return sum({id(costs): costs.nbytes for costs in self.costs}.values())

    def kernels(self, epsilon: float) -> list[object] | None:
        """One kernel per model, shared where costs are; None for equal names."""
        if not self.costs:
            return None
        different = {id(costs): costs for costs in self.costs}
        made = {key: kernel_at(costs, epsilon) for key, costs in different.items()}
        return [
            LabelledKernel(made[id(costs)], member.labels, self.target, declared=declared)
            for member, costs, declared in zip(self.members, self.costs, self.declared, strict=True)
        ]


class Case:
    """A table and a kernel, ready for questions about any sample."""

    def __init__(self, table: Table, similarity: Similarity) -> None:
        self.table = table
        self.similarity = similarity
        spaces = [model.labels for model in table.models]
        if table.other and similarity is not NAMES:
            fail(
                "a label for none of the others must go with labels that equal names join; got"
                f" {similarity.origin}."
            )
        own = LabelSpace(name for name in LabelSpace.union(*spaces) if name != table.other)
        self.target = table.target or similarity.target or own
        widest = max(spaces, key=len)
        self.epsilon = similarity.suggest_epsilon(
            table.models[spaces.index(widest)].model, widest, self.target
        )
        # Equal names need no sweeps, however many there are.
        self.is_cut = similarity is not NAMES and max(len(self.target), len(widest)) > _N_WHOLE
        self._cuts: Kept[Cut] = Kept(_N_CUTS, n_bytes=_CUT_BYTES)
        self._plans: Kept[tuple[FusionPlan, int]] = Kept(
            _N_CUTS, n_bytes=_CUT_BYTES, size=lambda kept: kept[1]
        )
        self._single: Kept[np.ndarray] = Kept(_N_SINGLE)
        # What others make of a case goes when the case goes.
        self.answers: Kept[Any] = Kept(_N_ANSWERS)
        self.shown: Kept[Any] = Kept(_N_SHOWN)
        self.rankings: Kept[Any] = Kept(1)
        self.judgements: Kept[Any] = Kept(_N_JUDGEMENTS)

    @property
    def n_bytes(self) -> int:
        """Size of what was read for it, in memory."""
        return self.table.n_bytes + self.similarity.n_bytes

    @cached_property
    def means_by_name(self) -> bool:
        """Whether plain means can add up columns of the same name."""
        spaces = {model.labels for model in self.table.models}
        return all(any(name in self.target for name in space) for space in spaces)

    @property
    def may_be_balanced(self) -> bool:
        """Whether mass can be kept: histograms, not scores."""
        return self.table.kind == "multiclass"

    def plan(self, cut: Cut, rule: Rule, epsilon: float) -> FusionPlan:
        """How a rule fuses the labels of a cut, with equal weights; made once, and kept."""

        def make() -> tuple[FusionPlan, int]:
            fusion = Fusion(
                rule,
                cut.kernels(epsilon),
                kind=self.table.kind,
                target=cut.target,
                other=self.table.other or None,
            )
            return fusion.plan(cut.members), 2 * cut.n_bytes  # a kernel is float64

        return self._plans.get((cut.key, rule, epsilon if cut.costs else None), make)[0]

    def cut(self, row: int) -> Cut:
        """The sample at ``row``, over the labels that take part."""
        if self.is_cut:
            return self._cuts.get(row, lambda: self._cut_sample(row))
        return self.take(slice(row, row + 1))

    def take(self, rows: slice | np.ndarray, *, by_name: bool = False) -> Cut:
        """Samples over all labels, which are joined by the kernel or by name alone."""
        members = [model.take(rows) for model in self.table.models]
        if by_name:
            return Cut("by name", members, self.target, [], [], 0.0)
        return Cut("all labels", members, self.target, self.costs, self._declared(self.target), 0.0)

    @cached_property
    def costs(self) -> list[np.ndarray]:
        """Costs between all labels, of label sets that are not cut."""
        assert not self.is_cut
        return self._costs([model.labels for model in self.table.models], self.target)

    def costs_of(self, model: Predictions, label: str, *, is_target: bool) -> np.ndarray:
        """Costs between one label and all of the other side, of a kernel that is never cut."""
        one = LabelSpace([label])
        sides = (model.labels, one) if is_target else (one, self.target)
        key = (model.model, label, is_target)
        return self._single.get(key, lambda: self.similarity.costs(model.model, *sides).ravel())

    def _costs(self, spaces: Sequence[LabelSpace], target: LabelSpace) -> list[np.ndarray]:
        if self.similarity is NAMES:
            return []
        known: dict[tuple[str, LabelSpace], np.ndarray] = {}
        costs = []
        for model, space in zip(self.table.models, spaces, strict=True):
            key = ("" if self.similarity.is_shared else model.model, space)
            if key not in known:
                known[key] = self.similarity.costs(model.model, space, target)
            costs.append(known[key])
        return costs

    def _declared(self, target: LabelSpace) -> list[np.ndarray | None]:
        return [self.similarity.declared(model.model, target) for model in self.table.models]

    def _cut_sample(self, row: int) -> Cut:
        """Keep the labels of which some model has the largest shares, by name in every model."""
        whole = [self._complete(model, row) for model in self.table.models]
        shares: dict[str, float] = {}
        for model, scores in zip(self.table.models, whole, strict=True):
            best = np.argsort(-scores, kind="stable")[:_N_CUT]
            for i in best[scores[best] > 0].tolist():
                share = float(scores[i] / scores.sum())
                shares[model.labels[i]] = max(share, shares.get(model.labels[i], 0.0))
        if not shares:
            fail(f"some model must have answered; got none at {self.table.samples[row]!r}.")
        picked = set(heapq.nlargest(_N_CUT, shares, key=shares.__getitem__))
        members, dropped = [], 0.0
        for model, scores in zip(self.table.models, whole, strict=True):
            own = [model.labels.place(name) for name in picked if name in model.labels]
            kept = np.sort(own or [0])
            labels = LabelSpace(model.labels[i] for i in kept.tolist())
            part = scores[kept]
            dropped = max(dropped, 1 - float(part.sum()) / (float(scores.sum()) or 1.0))
            sample = model.samples[row : row + 1]
            kind = self.table.kind
            members.append(Predictions(model.model, sample, labels, part[None], kind=kind))
        target = self._cut_target(picked, members)
        costs = self._costs([member.labels for member in members], target)
        declared = self._declared(target)
        return Cut(row, members, target, costs, declared, max(dropped, 0.0), is_part=True)

    def _cut_target(self, picked: set[str], members: list[Predictions]) -> LabelSpace:
        if len(self.target) <= _N_WHOLE:
            return self.target
        if self.means_by_name:
            return LabelSpace(name for name in self.target if name in picked)
        # Labels of other names: those that most of the mass is similar to.
        costs = self._costs([member.labels for member in members], self.target)
        reached = sum(
            np.exp(cost / -self.epsilon).T @ member.scores[0]
            for cost, member in zip(costs, members, strict=True)
        )
        best = np.sort(np.argsort(-np.asarray(reached), kind="stable")[:_N_CUT])
        return LabelSpace(self.target[i] for i in best.tolist())

    def _complete(self, model: Predictions, row: int) -> np.ndarray:
        """A model's scores of one sample; what it did not report is filled in first."""
        one = model.take(slice(row, row + 1)).replace(kind=self.table.kind)
        scores = complete_scores(one, "spread", hard_confidence=0.9)[0]
        # Plain arithmetic holds far smaller similarities in float64.
        return scores.astype(np.float64)
