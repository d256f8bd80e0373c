"""Why the consensus says what it says: where mass came from, and who disagrees."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wassemble._arrays import log_quotient
from wassemble._checks import check_count, fail
from wassemble.ensemble.account import no_mass_remedy
from wassemble.ensemble.fusion import FusionResult
from wassemble.ensemble.plan import Carried, FusionPlan, Solved
from wassemble.inputs import Predictions
from wassemble.kernels import DenseKernel, Kernel, SparseKernel
from wassemble.metrics.arguments import divide_rows
from wassemble.solvers import Status
from wassemble.solvers.exact import ExactBarycenter
from wassemble.solvers.rules import MeanRule
from wassemble.solvers.stacked import StackedRule

# What the logits of a stacked rule are relative to.
_REFERENCES = {
    "multiclass": "logits are relative to the mean over all labels, each counted as much as it is"
    " likely by the consensus",
    "multilabel": "logits are relative to even odds, a score of 0.5",
}


@dataclass(frozen=True)
class Contribution:
    """What one label of one model sent to a consensus label.

    Of stacking and a stacked consensus: what one way to look at one model, or at all of them,
    speaks for the label, in ``label``. ``score`` is then how much, in logits relative to what
    `Explanation.reference` says, and what speaks against it has a negative share; shares are of
    all that speaks for it.
    """

    model: str
    label: str
    score: float  # that the model gave it, as it was fused
    percent: float  # of the consensus label's mass, over all models
    percent_of_model: float  # of what this model sent
    unit: str = "scored"


@dataclass(frozen=True)
class Explanation:
    """Where the mass of one consensus label of one sample came from, largest share first.

    Without convergence the shares are those of the last sweep: ``converged`` says so.
    ``reference`` says what logits are relative to, where scores are such.
    """

    sample: str
    label: str
    score: float
    converged: bool
    contributions: tuple[Contribution, ...]
    reference: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return vars(self) | {"contributions": [vars(c) for c in self.contributions]}

    def __str__(self) -> str:
        rows = [
            f"  {c.percent:5.1f} %  {c.model}: {c.label} ({c.unit} {c.score:.3g})"
            for c in self.contributions
        ]
        doubt = "" if self.converged else ", not converged: shares of the last sweep"
        rows += [] if self.reference is None else [f"  {self.reference}"]
        return "\n".join([f"{self.sample}: {self.label} {self.score:.3g}{doubt}", *rows])


def explain(
    result: FusionResult, sample: Any, label: str | None = None, *, n_largest: int = 10
) -> Explanation:
    """Which labels of which models made a consensus label, in percent.

    Of a barycenter: shares of the mass that they sent. Of a mean of order r, through kernels or
    not: shares of ``sum_l w_l x_l^r``, where x_l is what arrives of model l at the label and w_l
    its weight. Of an arithmetic mean these are the parts that it is the sum of; of a geometric
    mean (r = 0) they are the weights of the models. For every order they are the percents by
    which the label changes if a model's score changes by one percent, which sum to 1 (Euler's
    theorem, for a mean grows in proportion to the scores). A gate changes no share. Of a
    barycenter on a line or a tree: shares of the mass that an optimal coupling moves there.

    Parameters
    ----------
    result : FusionResult
        What `Fusion.run` returned.
    sample : str or int
        Its id.
    label : str, optional
        A target label; the consensus' first if not given.
    n_largest : int
        Contributions to keep.

    Examples
    --------
    >>> from wassemble import Fusion, Predictions
    >>> from wassemble.kernels import from_ratings
    >>> model = Predictions("cars", ["x"], ["sedan", "coupe", "bicycle"], [[0.3, 0.4, 0.3]])
    >>> kernel = from_ratings(
    ...     [[1, 0], [1, 0], [0, 1]], ["sedan", "coupe", "bicycle"], ["car", "bicycle"]
    ... )
    >>> result = Fusion(kernel=kernel, target=["car", "bicycle"]).run([model])
    >>> print(explain(result, "x", "car"))
    x: car 0.721
       56.2 %  cars: coupe (scored 0.4)
       43.8 %  cars: sedan (scored 0.3)
    """
    _check_result(result)
    n_largest = check_count(n_largest, "n_largest")
    row = result.row(sample)
    scores = result.consensus.scores[row]
    if result.statuses[row] == Status.NO_MASS:
        fail(
            f"there must be a consensus to explain; that on {str(sample)!r} is empty, because the"
            " models' mass meets at no target label.",
            hint=no_mass_remedy(),
        )
    place = int(np.nanargmax(scores)) if label is None else result.plan.target.place(label)
    rule, converged, reference = result.plan.rule, True, None
    if isinstance(rule, StackedRule):
        contributions = _stacked_contributions(result, row, place)[:n_largest]
        reference = _REFERENCES[rule.task]
    elif isinstance(rule, MeanRule):
        contributions = _mean_contributions(result, row, place)[:n_largest]
    elif isinstance(rule, ExactBarycenter):
        contributions = _exact_contributions(result, row, place)[:n_largest]
    else:
        solved = result.plan.solve_sample(result.members, row)
        converged = bool(np.all(solved.result.converged))
        contributions = find_contributions(result.plan, solved, place, n_largest=n_largest)
    return Explanation(
        str(result.consensus.samples[row]),
        result.plan.target[place],
        float(scores[place]),
        converged,
        contributions,
        reference,
    )


def _mean_contributions(result: FusionResult, row: int, place: int) -> tuple[Contribution, ...]:
    """What each label of each model is worth in a mean, largest share first."""
    plan = result.plan
    assert isinstance(plan.rule, MeanRule), "only it mixes models label by label"
    carried = plan.carry_sample(result.members, row, place)
    arrived = [float(each.parts.sum()) for each in carried]
    worth = [
        each.weight * (total / max(arrived)) ** plan.rule.mean_order if total > 0 else 0.0
        for each, total in zip(carried, arrived, strict=True)
    ]
    return _list_contributions(plan, carried, worth)


def _exact_contributions(result: FusionResult, row: int, place: int) -> tuple[Contribution, ...]:
    """What each label of each model sent along an optimal coupling, largest share first.

    Every model's mass is moved onto the consensus: its part of a label is its weight.
    """
    plan, consensus = result.plan, result.consensus.scores[row].astype(np.float64)
    assert isinstance(plan.rule, ExactBarycenter), "only it couples without a kernel"
    by_label = [plan.carry_sample(result.members, row, at) for at in range(len(plan.target))]
    sent = []
    for parts in zip(*by_label, strict=True):  # of one model, (n_target,)
        arrived = np.array([each.parts for each in parts])  # (n_target, n_source)
        model = arrived.sum(axis=1)
        if not model.any():  # it says nothing
            continue
        moved = plan.rule.couple(model / model.sum(), consensus / consensus.sum())[:, place]
        share = np.divide(moved, model, out=np.zeros_like(model), where=model > 0)
        sent.append(replace(parts[0], parts=share @ arrived))
    return _list_contributions(plan, sent, [each.weight for each in sent])


def _list_contributions(
    plan: FusionPlan, carried: Sequence[Carried], worth: Sequence[float]
) -> tuple[Contribution, ...]:
    """Labels that brought something, largest share first; ``worth`` is that of each model."""
    totals = [float(each.parts.sum()) for each in carried]
    contributions = [
        Contribution(
            plan.members[each.model].model,
            plan.members[each.model].describe(i),
            float(each.scores[i]),
            100 * own / sum(worth) * float(each.parts[i]) / total,
            100 * float(each.parts[i]) / total,
        )
        for each, total, own in zip(carried, totals, worth, strict=True)
        if own > 0 and total > 0
        for i in np.flatnonzero(each.parts > 0).tolist()
    ]
    return tuple(sorted(contributions, key=lambda each: -each.percent))


def _stacked_contributions(result: FusionResult, row: int, place: int) -> tuple[Contribution, ...]:
    """What each feature speaks for the label at ``place`` beside the others, most telling first."""
    rule, plan = result.plan.rule, result.plan
    assert isinstance(rule, StackedRule), "only it has features"
    parts = rule.contributions(plan.look_at(result.members, row))
    beside = np.zeros(len(plan.target))
    if rule.task == "multiclass":  # labels as likely as they are
        beside = rule.to_scores(np.sum([values for _, values in parts], axis=0))[0]
    told = [(feature, float(values[0, place] - values[0] @ beside)) for feature, values in parts]
    total = sum(max(worth, 0.0) for _, worth in told) or 1.0
    by_model: dict[int | None, float] = {}
    for feature, worth in told:
        by_model[feature.model] = by_model.get(feature.model, 0.0) + max(worth, 0.0)
    contributions = [
        Contribution(
            "all models" if feature.model is None else plan.members[feature.model].model,
            feature.name,
            worth,
            100 * worth / total,
            100 * worth / (by_model[feature.model] or 1.0),
            "logit",
        )
        for feature, worth in told
        if worth
    ]
    return tuple(sorted(contributions, key=lambda each: -abs(each.percent)))


def _check_result(result: Any) -> None:
    if not isinstance(result, FusionResult):
        fail(
            "`result` must be a FusionResult, what `Fusion(...).run(models)` returns; got a"
            f" {type(result).__name__}."
        )


def find_contributions(
    plan: FusionPlan, solved: Solved, place: int, *, n_largest: int
) -> tuple[Contribution, ...]:
    """What made the target label at ``place`` of one sample that is solved, largest first."""
    result = solved.result
    weights = np.asarray(result.problem.weights_of(0))
    own = weights if weights.ndim == 1 else weights[:, place]
    sent = [np.asarray(mass) for mass in result.mass_sent(place)]
    within = [np.asarray(share) for share in result.contributions(place)]
    total = sum(float(w * s.sum()) for w, s in zip(own, sent, strict=True)) or 1.0
    contributions = []
    for index, model in enumerate(solved.voting):
        member = plan.members[model]
        given = np.exp(result.problem.log_histogram(index, 0))
        contributions += [
            Contribution(
                member.model,
                member.describe(i),
                float(given[i]),
                float(100 * own[index] * sent[index][i] / total),
                float(within[index][i]),
            )
            for i in np.argsort(-sent[index], kind="stable")[:n_largest]
            if sent[index][i] > 0
        ]
    contributions.sort(key=lambda c: -c.percent)
    return tuple(contributions[:n_largest])


@dataclass(frozen=True, eq=False)
class Disagreement:
    """How far each model is from the consensus, sample by sample; nan where it gave no answer.

    ``transport`` is the mean cost of moving a unit of the model's mass onto the consensus. The
    cost of a pair of labels is minus the log of its similarity, relative to the most similar
    target label: in units of epsilon, and 0 for staying; by a rule that knows distances of labels,
    it is their distance. ``apart`` is the share of mass that
    could not be brought there, because the kernel joins too few labels (total variation).
    """

    samples: np.ndarray
    models: tuple[str, ...]
    transport: np.ndarray  # (n_models, n_samples)
    apart: np.ndarray  # (n_models, n_samples)

    @property
    def score(self) -> np.ndarray:
        """Disagreement of each sample: transport plus what stayed apart, mean over models."""
        total = self.transport + self.apart
        seen = ~np.isnan(total)
        count = np.maximum(seen.sum(axis=0), 1)
        return np.where(seen, total, 0).sum(axis=0) / count

    def most(self, n_samples: int = 10) -> list[dict[str, Any]]:
        """The samples that models disagree about most, as rows of a table."""
        score = self.score
        order = np.argsort(-score, kind="stable")[: check_count(n_samples, "n_samples")]
        total = self.transport + self.apart
        return [
            {
                "sample": str(self.samples[i]),
                "disagreement": float(score[i]),
                **{
                    model: None if np.isnan(total[m, i]) else float(total[m, i])
                    for m, model in enumerate(self.models)
                },
            }
            for i in order
        ]


def find_disagreement(result: FusionResult) -> Disagreement:
    """How far each model is from the consensus on each sample, in transport cost.

    Examples
    --------
    >>> from wassemble import Fusion, Predictions
    >>> a = Predictions("a", ["x", "y"], ["cat", "dog"], [[0.9, 0.1], [0.9, 0.1]])
    >>> b = Predictions("b", ["x", "y"], ["cat", "dog"], [[0.8, 0.2], [0.1, 0.9]])
    >>> find_disagreement(Fusion().run([a, b])).most(1)[0]["sample"]
    'y'
    """
    _check_result(result)
    return measure_disagreement(result.plan, result.members)


def measure_disagreement(plan: FusionPlan, members: list[Predictions]) -> Disagreement:
    """The same, of a plan and the models on the same samples in the same order."""
    if isinstance(plan.rule, ExactBarycenter):
        return _measure_exact(plan, plan.rule, members)
    samples = members[0].samples
    size = (len(plan.members), len(samples))
    transport, apart = np.full(size, np.nan), np.full(size, np.nan)
    costed: dict[int, Kernel] = {}
    for rows, solved in plan.solve_all(members):
        for index, model in enumerate(solved.voting):
            kernel = plan.members[model].kernel
            if id(kernel) not in costed:
                costed[id(kernel)] = _times_cost(kernel)
            distances = _distances(solved, index, costed[id(kernel)])
            transport[model, rows], apart[model, rows] = distances
    names = tuple(member.model for member in plan.members)
    return Disagreement(samples, names, transport, apart)


def _measure_exact(
    plan: FusionPlan, rule: ExactBarycenter, members: list[Predictions]
) -> Disagreement:
    """The same by a rule that needs no kernel to know what is near: nothing stays apart."""
    ready = plan.prepare(members)
    consensus = divide_rows(np.nan_to_num(plan.fuse_ready(ready).scores))
    transport = np.full(ready.answered.shape, np.nan)
    for place, member in enumerate(plan.members):
        model = divide_rows(plan.carry(member, ready.scores[place]))
        rows = ready.votes[place] & model.any(axis=1) & consensus.any(axis=1)
        transport[place, rows] = rule.distances(model[rows], consensus[rows])
    names = tuple(member.model for member in plan.members)
    return Disagreement(members[0].samples, names, transport, 0 * transport)


def _distances(solved: Solved, index: int, costed: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """Transport cost of a model to the consensus and what stayed apart, per sample."""
    result, problem = solved.result, solved.result.problem
    kernel = problem.kernels[index]
    log_v = np.asarray(result.log_scalings())[index]
    log_histograms = np.stack(
        [problem.log_histogram(index, sample) for sample in range(problem.n_samples)]
    )
    log_u = problem.mass.exponent * log_quotient(log_histograms, kernel.log_apply(log_v))
    cost = np.exp(log_u + costed.log_apply(log_v)).sum(axis=1)
    arrived = np.exp(kernel.log_apply_transpose(log_u) + log_v)
    mass = arrived.sum(axis=1)
    consensus = np.asarray(result.barycenters, dtype=np.float64)
    shares = consensus / np.where(consensus.sum(axis=1) > 0, consensus.sum(axis=1), 1)[:, None]
    moved = arrived / np.where(mass > 0, mass, 1)[:, None]
    return cost / np.where(mass > 0, mass, 1), np.abs(moved - shares).sum(axis=1) / 2


def _times_cost(kernel: Kernel) -> Kernel:
    """K_ij times its own cost, -log(K_ij / largest of row i)."""
    if kernel.is_diagonal:
        return DenseKernel(np.zeros(kernel.shape))
    if kernel.is_sparse:
        matrix = kernel.to_sparse().tocsr(copy=True)
        largest = matrix.max(axis=1).toarray().ravel()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        matrix.data = matrix.data * -np.log(matrix.data / largest[rows])
        return SparseKernel(matrix)
    dense = np.asarray(kernel.to_dense(), dtype=np.float64)
    largest = dense.max(axis=1, keepdims=True)
    relative = np.divide(dense, largest, out=np.ones_like(dense), where=dense > 0)
    return DenseKernel(dense * -np.log(relative))
