"""What a head computes: from the scores of each model to the consensus and its decision.

The whole of it is written down once, for arrays of NumPy and nodes of a graph: scores are
completed, models weighed, the rule unrolled and labels decided as `FusionPlan` does it. Files,
numbers to test it with and how it is run are left to others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wassemble._arrays import Array, namespace
from wassemble._checks import fail
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.learning import LearnedEnsemble
from wassemble.ensemble.learning.temperature import temper
from wassemble.ensemble.members import Member
from wassemble.ensemble.plan import FusionPlan
from wassemble.export.graph import Node
from wassemble.inputs import Kind, Predictions
from wassemble.inputs.predictions.value import SUM_SLACK
from wassemble.kernels import Kernel
from wassemble.labels import enumerate_names
from wassemble.solvers import Barycenter, Rule

ANSWERED = "answered"
"""Name of the input that says which models answered which sample."""
OUTPUTS = ("scores", "label")
"""Names of what comes out."""
# Below any sum of weights, and within the range of float32.
_TINY = 1e-30


@dataclass(frozen=True, eq=False)
class Design:
    """A fusion for certain models, and what is decided from it.

    Attributes
    ----------
    plan : FusionPlan
    task : {"multiclass", "multilabel"}
        Whether one label is decided for each sample, or each label by itself.
    normalize : bool
        Whether rows are divided by their sums first.
    temperature : float
    thresholds : array of shape (n_target,), or None
        Multi-label: without them nothing is decided.
    gaps : bool
        Whether nan in scores means that a label was not reported; else nan is no score.
    abstentions : bool
        Whether an input says which models answered which sample.
    rule : Rule
        That of the plan; with a fixed number of sweeps.
    """

    plan: FusionPlan
    task: Kind
    normalize: bool
    temperature: float
    thresholds: np.ndarray | None
    gaps: bool
    abstentions: bool
    rule: Rule

    @staticmethod
    def of(what: Any, models: Any = None, *, gaps: bool, abstentions: bool) -> Design:
        """The design of a learned ensemble, a fitted estimator, or a fusion for ``models``."""
        temperature, thresholds, task = 1.0, None, None
        what = getattr(what, "learned_", what)  # of a fitted estimator
        if isinstance(what, LearnedEnsemble):
            fusion, models, task = what.fusion, dict(what.models), what.task
            temperature, thresholds = what.temperature, what.thresholds
        elif isinstance(what, Fusion) and models is not None:
            fusion = what
        else:
            fail(
                "a head is made of a learned ensemble, a fitted estimator, or a fusion and its"
                f" models; got {type(what).__name__}{'' if models is None else ' and models'}."
            )
        plan = fusion.plan(models)
        return Design(
            plan, task or plan.kind, fusion.normalize, temperature, thresholds, gaps, abstentions,
            plan.rule,
        )  # fmt: skip

    def __post_init__(self) -> None:
        for member in self.members:
            if member.kernel.n_samples is not None or member.kernel.tensor is not None:
                fail(f"a head has kernels that are the same for all samples; got {member.kernel}.")
            if member.model in (ANSWERED, *OUTPUTS):
                fail(
                    f"a model of a head must not be called {member.model!r}, as"
                    f" {'the mask' if member.model == ANSWERED else 'an output'} is.",
                    hint="rename the model",
                )

    @property
    def places(self) -> np.ndarray:
        """Places in the plan of the models that count."""
        weights = self.plan.weights.reshape(len(self.plan.members), -1)
        return np.flatnonzero(weights.sum(axis=1) > 0)

    @property
    def members(self) -> list[Member]:
        """The models that count, in their order."""
        return [self.plan.members[place] for place in self.places]

    @property
    def unused(self) -> list[str]:
        """Models of weight 0, which no head asks for."""
        used = {member.model for member in self.members}
        return [member.model for member in self.plan.members if member.model not in used]

    @property
    def decides(self) -> bool:
        """Whether labels follow from the scores."""
        return self.task == "multiclass" or self.thresholds is not None

    @property
    def kernels(self) -> list[Kernel]:
        """Of the models that count."""
        return [member.kernel for member in self.members]

    def with_sweeps(self, n_sweeps: int) -> Design:
        """The same with so many sweeps, whatever the residual."""
        return replace(self, rule=replace(self.rule, max_sweeps=n_sweeps, tolerance=None))  # type: ignore[type-var]

    @property
    def sweeps_are_open(self) -> bool:
        """Whether there are sweeps whose number depends on the samples."""
        moves = not all(kernel.is_one_to_one for kernel in self.kernels)
        return isinstance(self.rule, Barycenter) and self.rule.stops_at_tolerance and moves

    @property
    def has_zeros(self) -> bool:
        """Whether some similarity is 0, so that labels may be out of reach."""
        return any(kernel.entries.has_zeros or kernel.keeps_logs for kernel in self.kernels)

    def digest(self) -> str:
        """SHA-256 of everything that the answers depend on."""
        found = hashlib.sha256()
        said = self.rule.to_dict(), self.task, self.normalize, self.temperature, self.plan.kind
        found.update(json.dumps([*said, self.plan.unobserved, list(self.plan.target)]).encode())
        arrays = [self.plan.label_weights, *self.rule.arrays.values()]
        arrays += [] if self.thresholds is None else [self.thresholds]
        for member in self.members:
            found.update(json.dumps([member.model, list(member.labels)]).encode())
            arrays += [member.lost, np.array([]) if member.groups is None else member.groups]
            arrays += member.kernel.to_arrays().values()
        for array in arrays:
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    # -- by the library ----------------------------------------------------------------

    def expect(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What the library itself answers, in float64."""
        plan = self.plan
        if self.rule != plan.rule:  # other sweeps
            plan = plan.with_rule(self.rule)
        chunk = plan.fuse([self._say_again(inputs, member) for member in plan.members])
        scores = np.nan_to_num(chunk.scores)
        scores = scores if self.temperature == 1 else temper(scores, self.temperature)
        return {"scores": scores} | self._decide(scores)

    def _say_again(self, inputs: Mapping[str, np.ndarray], member: Member) -> Predictions:
        """What a model said, from the inputs of a head; a model that has none keeps silent."""
        n_samples = len(next(iter(inputs.values())))
        scores = np.full((n_samples, len(member.labels)), np.nan)
        if member.model in inputs:
            scores = np.asarray(inputs[member.model], dtype=np.float64)
        if member.model in inputs and ANSWERED in inputs:
            place = [each.model for each in self.members].index(member.model)
            scores = np.where(inputs[ANSWERED][:, place, None] > 0, scores, np.nan)
        told = Predictions(member.model, range(n_samples), member.labels, scores, kind="multilabel")
        told = told.normalized() if self.normalize else told
        return told.replace(kind=self.plan.kind)

    # -- as a graph --------------------------------------------------------------------

    def draw(self, *, exact: bool) -> tuple[list[Node], dict[str, Node]]:
        """The inputs and outputs of the graph."""
        inputs = [Node.take_in(m.model, len(m.labels)) for m in self.members]
        answered = Node.take_in(ANSWERED, len(inputs)) if self.abstentions else None
        outputs = self.compute(inputs, answered, exact=exact)
        return inputs if answered is None else [*inputs, answered], outputs

    def compute(self, inputs: list[Any], answered: Any, *, exact: bool) -> dict[str, Any]:
        """Scores and decisions, from the scores of each model and who answered."""
        xp = namespace(inputs[0])
        told: dict[int, _Own] = {}
        for places in self._alike():
            said = None if answered is None else xp.take(answered, places, axis=1) > 0
            together = _Told(self, self.members[places[0]], [inputs[p] for p in places], said)
            told |= zip(places, together.split(), strict=True)
        own = [told[place] for place in range(len(inputs))]
        votes = self._votes(own)
        fused = self.rule.unroll(
            [each.rows for each in own],
            self.kernels,
            self._weights(xp, votes, [each.say for each in own]),
            keeps_mass=self.plan.kind == "multiclass",
            exact=exact,
        )
        return self._finish(xp, fused, votes)

    def _alike(self) -> list[list[int]]:
        """Places of models whose scores go the same way, and so all at once."""
        alike: dict[int, list[int]] = {}
        for place, member in enumerate(self.members):
            is_plain = member.groups is None and not member.lost.any()
            alike.setdefault(len(member.labels) if is_plain else -1 - place, []).append(place)
        return list(alike.values())

    def _votes(self, told: list[_Own]) -> Any:
        """Who has a say on which sample, ``(n_models, n_samples)``; None: all, on all."""
        if all(each.votes is None for each in told):
            return None
        xp = namespace(told[0].rows)
        always = xp.sum(told[0].rows * 0.0, axis=1) > -1
        return xp.stack([always if each.votes is None else each.votes for each in told])

    def _weights(self, xp: Any, votes: Any, says: list[Any]) -> Any:
        """Weights of the models that have a say, as `FusionPlan.weights_of` has them."""
        plan, places = self.plan, self.places
        if votes is None:
            return plan.weights_of(places).reshape(len(places), 1, -1)
        heard = say = _as_float(votes)
        if any(each is not None for each in says):
            say = xp.stack([h if s is None else h * s for h, s in zip(heard, says, strict=True)])
        weights = say[:, :, None] * plan.label_weights[places].reshape(len(places), 1, -1)
        total = xp.sum(weights, axis=0)
        shares = weights / xp.where(total > 0, total, 1.0)
        return xp.where(total > 0, shares, self._weights_otherwise(xp, heard))

    def _weights_otherwise(self, xp: Any, heard: Any) -> Any:
        """Those of labels on which nobody who is heard has a say."""
        own = self.plan.weights[self.places]
        base = own if own.ndim == 1 else np.ones(len(own))
        counted = heard[:, :, None] * (base / base.sum())[:, None, None]
        if self.rule.keeps_absent:  # it knows by itself who is absent
            return heard[:, :, None] * 0.0 + (base / base.sum())[:, None, None]
        return counted / xp.maximum(xp.sum(counted, axis=0), _TINY)

    def _finish(self, xp: Any, fused: Any, votes: Any) -> dict[str, Any]:
        """The consensus of whatever there is something to say about, and what is decided."""
        plan = self.plan
        if plan.weights.ndim == 2 and votes is not None:  # labels on which nobody has a say
            own = (plan.weights[self.places] > 0).astype(np.float64)[:, None, :]
            fused = xp.where(xp.any(_as_float(votes)[:, :, None] * own, axis=0), fused, 0.0)
        if votes is not None:
            fused = xp.where(xp.any(votes, axis=0)[:, None], fused, 0.0)
        if plan.kind == "multiclass":
            fused = self.rule.to_histograms(fused)
        if self.temperature != 1:
            fused = temper(fused, self.temperature)
        return {"scores": fused} | self._decide(fused)

    def _decide(self, scores: Any) -> dict[str, Any]:
        """The best label, -1 for none; or which labels reach their thresholds."""
        xp = namespace(scores)
        some = xp.max(scores, axis=1) > 0
        if self.task == "multiclass":
            return {"label": xp.where(some, xp.argmax(scores, axis=1), -1)}
        if not self.decides:
            return {}
        return {"label": (scores >= self.thresholds) & some[:, None]}


class _Own(NamedTuple):
    """What one model said, as the rule takes it.

    Attributes
    ----------
    rows : array of shape (n_samples, n_labels as they are fused)
        Without gaps; 0 where the model did not answer.
    votes : array of shape (n_samples,), or None
        Whether it has a say; None: always.
    say : array of shape (n_samples,), or None
        Share of its mass on labels that lead somewhere; None: all of it.
    """

    rows: Any
    votes: Any
    say: Any


class _Told:
    """What models of one kind said; `FusionPlan.complete` on any arrays.

    Scores have shape (n_samples, n_models, n_labels): whatever is done is done for all of them at
    once, as each step of a head takes time, however little there is to do.
    """

    def __init__(self, design: Design, member: Member, tables: Sequence[Any], said: Any) -> None:
        self._design, self._member, self._tables = design, member, tables
        self._xp = namespace(tables[0])
        self._is_multiclass = design.plan.kind == "multiclass"
        self._say: Any = None
        self._given = self._xp.stack(tables, axis=1)
        scores, missing = self._without_nan(self._given)
        self._votes = self._answers(scores, missing, said)
        if self._votes is not None:
            scores = self._xp.where(self._votes[..., None], scores, 0.0)
        self._scores = self._leave_lost(self._merge(self._complete(scores, missing)))

    def split(self) -> list[_Own]:
        """Model by model."""
        rows = self._rows()

        def cut(values: Any, nth: int) -> Any:
            return None if values is None else values[:, nth]

        return [
            _Own(
                table if rows is self._given else cut(rows, nth),
                cut(self._votes, nth),
                cut(self._say, nth),
            )
            for nth, table in enumerate(self._tables)
        ]

    def _rows(self) -> Any:
        """The scores as the rule takes them."""
        if not self._design.rule.is_balanced:
            return self._scores
        scores = _divide(self._xp, self._scores)
        if self._votes is None:
            return scores
        # Any histogram will do for a model of weight 0; one without mass would not.
        return self._xp.where(self._votes[..., None], scores, 1 / scores.shape[-1])

    def _without_nan(self, given: Any) -> tuple[Any, Any]:
        xp, missing = self._xp, None
        if self._design.gaps:
            missing = xp.isnan(given)
            given = xp.where(missing, 0.0, given)
        if self._design.normalize:
            given = _divide(xp, given)
        return given, missing

    def _answers(self, scores: Any, missing: Any, said: Any) -> Any:
        """A histogram without any mass is an abstention; scores of 0 say "none of these"."""
        xp = self._xp
        if self._is_multiclass:
            has_mass = xp.max(scores, axis=-1) > 0
            return has_mass if said is None else said & has_mass
        if missing is not None:
            reported = xp.any(~missing, axis=-1)
            return reported if said is None else said & reported
        return said

    def _complete(self, scores: Any, missing: Any) -> Any:
        """See `completion.complete_scores`."""
        unobserved = self._design.plan.unobserved
        if not self._is_multiclass:
            if missing is None or unobserved == "drop":
                return scores
            return self._fill(scores, missing, self._smallest(scores, missing) / 2)
        sums = self._xp.sum(scores, axis=-1)
        # Of rows that were normalised nothing is left but their rounding.
        if missing is not None and unobserved == "spread" and not self._design.normalize:
            left = self._xp.maximum(1.0 - sums, 0.0)
            n_missing = self._xp.sum(_as_float(missing), axis=-1)
            left = left / self._xp.maximum(n_missing, 1.0)
            smallest = self._smallest(scores, missing | (scores <= 0))
            scores = self._fill(scores, missing, self._xp.minimum(left, smallest))
        if unobserved == "drop":
            return self._round(scores, missing, sums)
        return _divide(self._xp, scores)

    def _smallest(self, scores: Any, out: Any) -> Any:
        return self._xp.min(self._xp.where(out, self._xp.inf, scores), axis=-1)

    def _fill(self, scores: Any, missing: Any, value: Any) -> Any:
        gaps = missing if self._votes is None else missing & self._votes[..., None]
        return self._xp.where(gaps, value[..., None], scores)

    def _round(self, scores: Any, missing: Any, sums: Any) -> Any:
        """Whole rows with mass 1; the others as they are."""
        whole = abs(sums - 1.0) <= SUM_SLACK
        if missing is not None:
            whole = whole & ~self._xp.any(missing, axis=-1)
        return scores / self._xp.where(whole, sums, 1.0)[..., None]

    def _merge(self, scores: Any) -> Any:
        """Labels that are one: sums of histograms, maxima of multi-label scores."""
        groups = self._member.groups
        if groups is None:
            return scores
        order = np.argsort(groups, kind="stable")
        counts = np.bincount(groups)
        starts = np.cumsum(counts) - counts
        merged = self._xp.take(scores, order[starts], axis=-1)
        for nth in range(1, counts.max()):
            place = order[starts + np.minimum(nth, counts - 1)]
            more = self._xp.take(scores, place, axis=-1) * (counts > nth).astype(np.float64)
            merged = merged + more if self._is_multiclass else self._xp.maximum(merged, more)
        return merged

    def _leave_lost(self, scores: Any) -> Any:
        """The scores without mass that leads nowhere, which is as much less of a say."""
        lost = self._member.lost
        if not lost.any():
            return scores
        xp = self._xp
        kept = scores * (~lost).astype(np.float64)
        if self._is_multiclass:
            total, rest = xp.sum(scores, axis=-1), xp.sum(kept, axis=-1)
            self._say = rest / xp.where(total > 0, total, 1.0)
            has_rest = rest > 0
            self._votes = has_rest if self._votes is None else self._votes & has_rest
        return kept


def to_inputs(
    models: Sequence[Predictions], names: Sequence[str], *, hard_confidence: float
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Predictions on the same samples as inputs of a head: scores by model, and who answered."""
    by_name = {given.model: given for given in models}
    inputs, answered = {}, []
    for name in names:
        if name not in by_name:
            fail(
                f"there must be predictions of each of {enumerate_names(names)}; got those of"
                f" {enumerate_names(by_name)}.",
                hint="a model that did not answer has rows of nan",
            )
        given = by_name[name]
        scores = given.scores.astype(np.float64)
        if given.is_hard:  # named without a score
            sums = np.nansum(scores, axis=1, keepdims=True)
            scores = scores * hard_confidence / np.where(sums > 0, sums, 1)
        answered.append(given.answered)
        inputs[name] = np.where(given.answered[:, None], scores, 0)
    return inputs, np.array(answered).T


def _divide(xp: Any, scores: Any) -> Any:
    """Each row divided by its sum; rows without mass as they are."""
    sums = xp.sum(scores, axis=-1)
    return scores / xp.where(sums > 0, sums, 1.0)[..., None]


def _as_float(flags: Array) -> Array:
    xp = namespace(flags)
    return xp.astype(flags, xp.float64)
