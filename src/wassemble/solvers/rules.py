"""Rules: how predictions become a consensus, as values that know their own knobs.

A rule is frozen, compares, hashes, prints itself in words and goes to and from JSON. What is
fused, through which kernels and with which weights is told when it fuses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, final

import numpy as np

from wassemble._arrays import Array, is_array, namespace, without_gradient
from wassemble._checks import (
    Constraints,
    Count,
    Number,
    Optional,
    check_fields,
    check_flag,
    check_index,
    fail,
)
from wassemble.solvers.loop import Status
from wassemble.solvers.mass import Balanced, MassRule, Unbalanced, check_mass, mass_from_dict
from wassemble.solvers.power_means import power_mean_of

if TYPE_CHECKING:
    from wassemble.kernels import Kernel
    from wassemble.solvers.fuser import Fuser
    from wassemble.solvers.problem import BarycenterProblem, FusionProblem
    from wassemble.solvers.result import BarycenterResult


Holds: TypeAlias = Literal["histograms", "partial", "scores", "either"]
"""What rows are: histograms, which must sum to 1, or some of whose mass may be missing; scores of
any mass; or whichever they prove."""


@dataclass(frozen=True, eq=False)
class Fused:
    """What a rule found."""

    # (n_samples, n_target), as the rule gives it; `Rule.to_histograms` makes histograms of it.
    scores: Array
    statuses: np.ndarray  # (n_samples,): codes to compare with `Status`
    are_histograms: bool  # whether every row that was fused is one
    result: BarycenterResult | None = None  # the evidence, of a barycenter; without couplings
    drops_sample_axis: bool = False  # the predictions were one sample without a sample axis

    @property
    def consensus(self) -> Array:
        """The scores, without the sample axis if the predictions had none."""
        return self.scores[0] if self.drops_sample_axis else self.scores


class Rule(ABC):
    """How predictions become a consensus; its subclasses are all the rules there are."""

    #: Name of the rule in JSON.
    key: ClassVar[str]
    #: What the knobs must be.
    constraints: ClassVar[Constraints] = {}
    #: Whether it is told of models that did not answer, by weight 0, in place of being asked to
    #: fuse the others.
    keeps_absent: ClassVar[bool] = False
    #: Whether mass moves between labels, so that couplings say where it came from.
    transports: ClassVar[bool] = False
    #: Whether some of the labels can be fused apart from the others, and some of the models.
    fuses_parts: ClassVar[bool] = True
    #: Whether labels are in the order of a line, at the places that the rule was made for, or
    #: neither.
    label_order: ClassVar[Literal["line", "given", "any"]] = "any"
    #: Whether models have weights.
    takes_weights: ClassVar[bool] = True
    #: Whether a model may have another weight on some labels than on others.
    weighs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def fuse(
        self,
        histograms: Sequence[Any] | Array,
        kernels: Any = None,
        *,
        weights: Any = None,
        holds: Holds = "either",
        normalize: bool = False,
        n_threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        out: np.ndarray | None = None,
    ) -> Fused:
        """Fuse arrays.

        Parameters
        ----------
        histograms : array of shape (n_models, n_samples, n_labels), or one array per model
            Non-negative. A single sample may drop the sample axis.
        kernels : Kernel, array or sparse matrix of shape (n_source, n_target), or one per model
            How similar each source label is to each target label. Without one, the models
            must have one label set, and labels are similar to themselves alone. Rules that
            transport nothing carry each model through its kernel first: ``K^T (mu / K 1)``
            for histograms, which keeps their mass, ``K^T mu`` for scores.
        weights : array, optional
            On the simplex over models; uniform if not given. Of shape (n_models,), or
            (n_models, n_target): one weight per model and target label lets a model keep silent
            about labels that it does not know. With a sample axis in between,
            (n_models, n_samples, 1) or (n_models, n_samples, n_target), they differ per sample;
            a model of weight 0 takes no part in the sample.
        holds : {"either", "histograms", "partial", "scores"}
            What rows are. "histograms" must sum to 1, as those of a balanced barycenter always
            must; "partial" ones may lack some of their mass; "scores" have any mass; of
            "either", `Fused.are_histograms` tells.
        normalize : bool
            Divide each row of each model by its sum first.
        n_threads : int, optional
            Threads for large batches; $WASSEMBLE_NUM_THREADS or all cores if not given.
        progress : callable, optional
            Called as ``progress(n_done, n_samples)`` while a large batch is under way.
        out : array of shape (n_samples, n_target), optional
            Where to write the consensus, such as a memory-mapped file.

        Examples
        --------
        >>> ARITHMETIC.fuse([[0.9, 0.1], [0.5, 0.5]]).scores
        array([[0.7, 0.3]])
        """
        problem = self.pose(histograms, kernels, weights=weights, normalize=normalize, holds=holds)
        if out is not None:
            problem.check_out(out)
        return self._solve(problem, n_threads=n_threads, progress=progress, out=out)

    def prepare(
        self,
        kernels: Any,
        weights: Any = None,
        *,
        n_models: int | None = None,
        dtype: Any = np.float64,
        holds: Holds = "scores",
        normalize: bool = False,
    ) -> Fuser:
        """A call that fuses as this rule does, with every check and choice made once.

        Parameters
        ----------
        kernels, weights, holds, normalize
            As in `fuse`; the same for all samples.
        n_models : int, optional
            Needed where neither ``kernels`` nor ``weights`` tell: one kernel for all models.
        dtype : float32 or float64
            Type in which predictions are fused.

        Returns
        -------
        fuser : Fuser
            ``fuser(scores)`` is the consensus of one sample or of many.

        Examples
        --------
        >>> fuser = USUAL_RULE.prepare([[1.0, 0.5], [0.5, 1.0]], [0.5, 0.5])
        >>> fuser([[0.9, 0.1], [0.5, 0.5]]).round(3)
        array([0.632, 0.496])
        """
        from wassemble.solvers.fuser import Fuser, draft_histograms

        draft, each = draft_histograms(kernels, weights, n_models=n_models, dtype=dtype)
        problem = self.pose(draft, each, weights=weights, normalize=normalize, holds=holds)
        return Fuser(self, problem)

    @abstractmethod
    def pose(self, histograms: Any, kernels: Any, **options: Any) -> Any:
        """The problem that is solved, its shapes checked."""

    @abstractmethod
    def _solve(self, problem: Any, **options: Any) -> Fused:
        """Solve what `pose` posed."""

    @abstractmethod
    def unroll(
        self,
        histograms: Sequence[Array],
        kernels: Sequence[Kernel],
        weights: Array,
        *,
        keeps_mass: bool,
        exact: bool = True,
    ) -> Array:
        """The consensus as one straight computation, which checks and chooses nothing.

        Every sweep of a barycenter is made, ``max_sweeps`` of them, whatever its tolerance.

        Parameters
        ----------
        histograms : list of arrays of shape (n_samples, n_source)
            Arrays of NumPy, or nodes of a graph.
        kernels : list of Kernel
            One per model, the same for all samples.
        weights : array of shape (n_models, 1 or n_samples, 1 or n_target)
        keeps_mass : bool
            Whether rows are histograms, which are carried as `fuse` says.
        exact : bool
            Be right for any numbers; without it, faster where no similarity is 0 and numbers stay
            within the range of their type.

        Returns
        -------
        scores : array of shape (n_samples, n_target)
        """

    @property
    def is_balanced(self) -> bool:
        """Whether mass is kept, so that only histograms can be fused."""
        return False

    @property
    def is_debiased(self) -> bool:
        """Whether the kernel's blur is taken out, which needs a symmetric kernel."""
        return False

    @property
    def stops_at_tolerance(self) -> bool:
        """Whether there are sweeps, which go on until a residual is small enough."""
        return False

    @property
    def flattening(self) -> float:
        """The power to which the rule raises what all models agree on; 1 leaves it as it is."""
        return 1.0

    @property
    def fine_ends(self) -> set[Status]:
        """Statuses of rows that ended as they were meant to."""
        return {Status.CONVERGED}

    def find_model(self, names: Sequence[str]) -> int | None:
        """Place of the only model that counts, among those of these names; None: all do."""
        return None

    def named(self, names: Sequence[str]) -> Rule:
        """The rule, with the name of a model where its place may have been given."""
        return self

    def among_voters(self) -> Rule:
        """The rule of the models that vote, by their places among them."""
        return self

    def on_line(self, positions: Sequence[float] | None) -> Rule:
        """The rule of labels at these positions, if it looks at them; None: it is not known."""
        return self

    def to_histograms(self, scores: Array, out: np.ndarray | None = None) -> Array:
        """The consensus of histograms, each row with mass 1; rows without mass stay without.

        Algorithm 2 raises what all models agree on to its exponent, f = mass_penalty /
        (mass_penalty + epsilon), which flattens it: rows are raised to 1 / f, so that models
        that agree are left as they are, and divided by their sums.

        Examples
        --------
        >>> rule = Barycenter(Unbalanced(0.8, epsilon=0.2))
        >>> rule.to_histograms(np.array([0.9, 0.1]) ** 0.8)
        array([0.9, 0.1])
        """
        xp = namespace(scores)
        largest = without_gradient(xp.max(scores, axis=-1))  # changes nothing but the range
        largest = xp.where(largest > 0, largest, 1.0)[..., None]
        shares: Any = scores / largest if out is None else np.divide(scores, largest, out=out)
        if self.flattening < 1:
            power = 1 / self.flattening
            shares = shares**power if out is None else np.power(out, power, out=out)
        sums = xp.sum(shares, axis=-1)
        sums = xp.where(sums > 0, sums, 1.0)[..., None]
        return shares / sums if out is None else np.divide(out, sums, out=out)

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """What the rule was fitted to; JSON does not hold it."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """The name of the rule and every knob, ready for JSON; without its arrays.

        Examples
        --------
        >>> PowerMean(0.5).to_dict()
        {'rule': 'power mean', 'order': 0.5}
        """
        return {"rule": self.key, **{f.name: getattr(self, f.name) for f in _knobs(type(self))}}

    @staticmethod
    def from_dict(
        entries: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None
    ) -> Rule:
        """The rule that `to_dict` wrote down, with its arrays if it has any.

        Examples
        --------
        >>> Rule.from_dict({"rule": "power mean", "order": 0.5})
        PowerMean(order=0.5)
        """
        if not isinstance(entries, Mapping) or "rule" not in entries:
            fail(f'a rule must be written as {{"rule": name, ...}}; got {entries!r}.')
        knobs = dict(entries)
        name = knobs.pop("rule")
        rules = {rule.key: rule for rule in _list_rules()}
        if not isinstance(name, str) or name not in rules:
            fail(f"a rule must be one of {', '.join(rules)}; got {name!r}.")
        rule = rules[name]
        strange = sorted(set(knobs) - {knob.name for knob in _knobs(rule)})
        if strange:
            fail(f"the rule {name!r} has no {strange[0]!r}; got {knobs[strange[0]]!r}.")
        try:
            return rule._from_knobs(knobs, arrays or {})
        except TypeError as error:  # a knob without a default is missing
            fail(f"the rule {name!r} must come with all of its knobs: {error}.")

    @classmethod
    def _from_knobs(cls, knobs: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Rule:
        return cls(**knobs)

    @abstractmethod
    def __str__(self) -> str: ...


_GATE: Constraints = {"n_top": Count(), "floor": Number(at_least=0, at_most=1)}


class CarriedRule(Rule):
    """A rule without sweeps: models are carried through their kernels, then combined."""

    @abstractmethod
    def _combine(self, images: Array, weights: Array) -> Array:
        """Combine the models, (n_models, n_rows, n_target) to (n_rows, n_target)."""

    def pose(self, histograms: Any, kernels: Any, **options: Any) -> FusionProblem:
        from wassemble.solvers.problem import FusionProblem

        return FusionProblem(histograms, kernels, **options)

    def _solve(self, problem: FusionProblem, **options: Any) -> Fused:
        from wassemble.solvers.carried_means import fuse_carried

        return fuse_carried(problem, self._combine, **options)

    def unroll(
        self,
        histograms: Sequence[Array],
        kernels: Sequence[Kernel],
        weights: Array,
        *,
        keeps_mass: bool,
        exact: bool = True,
    ) -> Array:
        from wassemble.solvers.unrolled import carry

        pairs = zip(kernels, histograms, strict=True)
        images = [carry(kernel, own, keeps_mass=keeps_mass) for kernel, own in pairs]
        return self._combine(namespace(images[0]).stack(images), weights)


class MeanRule(CarriedRule):
    """A rule that mixes the models label by label: no mass moves from one to another."""

    @property
    @abstractmethod
    def mean_order(self) -> float:
        """Order of the power mean by which models are mixed; what follows treats them alike."""


@final
@dataclass(frozen=True)
class Barycenter(Rule):
    """Entropic Wasserstein barycenter: mass moves between labels as the kernels allow.

    Parameters
    ----------
    mass : Balanced or Unbalanced
        `Balanced` (Algorithm 1) takes histograms; `Unbalanced` (Algorithm 2) takes scores.
    max_sweeps : int
        Sweeps at most.
    tolerance : float or None
        Stop a row when its residual is at most this. None runs exactly ``max_sweeps``
        sweeps, the paper's own way (5).
    debias : bool
        Take out the blur of the entropic regularisation (Janati et al. 2020). Needs one
        symmetric kernel and balanced mass. The larger epsilon, the flatter the problem: where it
        is as large as the costs, thousands of sweeps do not suffice, and rows say so.
    n_top : int, optional
        For large label sets: use only this many largest entries of each row of each model, and
        those that equal the last of them; balanced rows are brought back to mass 1.
    mixed_precision : bool
        For GPUs: products in bfloat16 as long as they bring rows nearer, then in the full
        precision until the residual, measured there, is at most the tolerance. Needs torch
        tensors, a tolerance and a dense or low-rank kernel.

    Examples
    --------
    >>> print(Barycenter(Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None))
    barycenter, exponent 0.87, 5 sweeps
    """

    key: ClassVar[str] = "barycenter"
    transports: ClassVar[bool] = True
    constraints: ClassVar[Constraints] = {
        "mass": check_mass,
        "max_sweeps": Count(),
        "tolerance": Optional(Number(above=0)),
        "debias": check_flag,
        "n_top": Optional(Count()),
        "mixed_precision": check_flag,
    }

    mass: MassRule = Balanced()
    max_sweeps: int = 1000
    tolerance: float | None = 1e-6
    debias: bool = False
    n_top: int | None = None
    mixed_precision: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.debias and not self.is_balanced:
            fail(
                f"`debias=True` must go with mass=Balanced(); got {self.mass}.",
                hint="the debiased barycenter is defined for histograms",
            )
        if self.mixed_precision and (self.tolerance is None or self.debias):
            got = "debias=True" if self.debias else "tolerance=None"
            fail(
                "`mixed_precision=True` must go with a tolerance, which tells when half precision"
                f" no longer serves, and without debias; got {got}."
            )

    @cached_property
    def is_balanced(self) -> bool:
        return isinstance(self.mass, Balanced)

    @property
    def is_debiased(self) -> bool:
        return self.debias

    @property
    def stops_at_tolerance(self) -> bool:
        return self.tolerance is not None

    @cached_property
    def flattening(self) -> float:
        """The exponent of Algorithm 2; 1 for Algorithm 1."""
        return self.mass.exponent

    @property
    def fine_ends(self) -> set[Status]:
        # A fixed number of sweeps is meant to be used up.
        return {Status.CONVERGED, *([] if self.stops_at_tolerance else [Status.MAX_SWEEPS])}

    def pose(self, histograms: Any, kernels: Any, **options: Any) -> BarycenterProblem:
        from wassemble.solvers.problem import BarycenterProblem

        return BarycenterProblem(histograms, kernels, self, **options)

    def _solve(self, problem: BarycenterProblem, **options: Any) -> Fused:
        from wassemble.solvers.barycenter import solve

        result = solve(problem, keep_scalings=False, **options)
        return Fused(
            result.barycenters,
            result.statuses,
            problem.are_histograms,
            result,
            problem.drops_sample_axis,
        )

    def unroll(
        self,
        histograms: Sequence[Array],
        kernels: Sequence[Kernel],
        weights: Array,
        *,
        keeps_mass: bool,
        exact: bool = True,
    ) -> Array:
        from wassemble.solvers.unrolled import sweep

        return sweep(self, histograms, kernels, weights, exact=exact)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"mass": self.mass.to_dict()}

    @classmethod
    def _from_knobs(cls, knobs: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Barycenter:
        if "mass" in knobs:
            knobs["mass"] = mass_from_dict(knobs["mass"])
        return cls(**knobs)

    def __str__(self) -> str:
        if self.debias:
            return "debiased barycenter"
        words = "balanced barycenter"
        if not self.is_balanced:
            words = f"barycenter, exponent {self.mass.exponent:.3g}"
        if self.n_top is not None:
            words += f", top {self.n_top}"
        return words if self.tolerance is not None else f"{words}, {self.max_sweeps} sweeps"


@final
@dataclass(frozen=True)
class PowerMean(MeanRule):
    """Weighted power mean: order 1 is arithmetic, 1/2 Hellinger, 0 geometric.

    The simple rules that every barycenter is measured against. The arithmetic mean rewards a
    model's confidence; the geometric mean seeks what all models agree on, and a zero is a
    veto; the Hellinger mean is what Algorithm 2 with K = I tends to.

    Parameters
    ----------
    order : float
        At least 0.

    Examples
    --------
    >>> PowerMean(0.5).fuse([[1.0, 0.0], [4.0, 4.0]]).scores
    array([[2.25, 1.  ]])
    >>> print(GEOMETRIC)
    geometric mean
    """

    key: ClassVar[str] = "power mean"
    constraints: ClassVar[Constraints] = {"order": Number(at_least=0)}

    order: float

    @property
    def mean_order(self) -> float:
        return self.order

    def _combine(self, images: Array, weights: Array) -> Array:
        return power_mean_of(images, weights, order=self.order)

    def __str__(self) -> str:
        names = {1.0: "arithmetic mean", 0.5: "Hellinger mean", 0.0: "geometric mean"}
        return names.get(self.order, f"power mean {self.order:g}")


@final
@dataclass(frozen=True)
class GatedMean(MeanRule):
    """Power mean, multiplied by ``floor`` where a label is in no model's ``n_top`` best.

    Parameters
    ----------
    order : float
        Of the mean, at least 0.
    n_top : int
    floor : float
        From 0 to 1.

    Examples
    --------
    >>> GatedMean(1.0, n_top=1, floor=0.5).fuse([[0.8, 0.2, 0.0], [0.4, 0.2, 0.4]]).scores
    array([[0.6, 0.1, 0.2]])
    """

    key: ClassVar[str] = "gated mean"
    fuses_parts: ClassVar[bool] = False
    constraints: ClassVar[Constraints] = {"order": Number(at_least=0), **_GATE}

    order: float
    n_top: int
    floor: float

    @property
    def mean_order(self) -> float:
        return self.order

    def _combine(self, images: Array, weights: Array) -> Array:
        return power_mean_of(images, weights, order=self.order) * _open_gate(self, images, weights)

    def __str__(self) -> str:
        return f"{PowerMean(self.order)} gated ({_gate(self)})"


@final
@dataclass(frozen=True)
class GatedBarycenter(MeanRule):
    """Barycenter with the gate of `GatedMean` as a diagonal kernel (the paper's 6.2).

    It moves no mass, and the fixed point of Algorithm 2 has a formula: no sweeps.

    Parameters
    ----------
    exponent : float
        mass_penalty / (mass_penalty + epsilon), above 0 and at most 1.
    n_top : int
        Labels among so many best of some model are left as they are.
    floor : float
        Kernel entry of the others, from 0 to 1.

    Examples
    --------
    >>> print(GatedBarycenter(0.75, n_top=2, floor=0.7))
    diagonal kernel (top 2, floor 0.7), exponent 0.75
    """

    key: ClassVar[str] = "gated barycenter"
    fuses_parts: ClassVar[bool] = False
    constraints: ClassVar[Constraints] = {"exponent": Number(above=0, at_most=1), **_GATE}

    exponent: float
    n_top: int
    floor: float

    @property
    def mean_order(self) -> float:
        return self.exponent / (1 + self.exponent)

    def _combine(self, images: Array, weights: Array) -> Array:
        mean = power_mean_of(images, weights, order=self.mean_order)
        gate = _open_gate(self, images, weights)
        return gate ** (1 - self.exponent) * mean**self.exponent

    def __str__(self) -> str:
        return f"diagonal kernel ({_gate(self)}), exponent {self.exponent:g}"


@final
@dataclass(frozen=True)
class Single(MeanRule):
    """One model alone, carried to the target labels by its kernel; whatever weights say.

    Parameters
    ----------
    model : str or int
        Its name; its place among arrays, which have no names.

    Examples
    --------
    >>> Single(1).fuse([[0.9, 0.1], [0.5, 0.5]]).scores
    array([[0.5, 0.5]])
    """

    key: ClassVar[str] = "single"
    fuses_parts: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False

    model: str | int

    def __post_init__(self) -> None:
        if not isinstance(self.model, str):
            object.__setattr__(self, "model", Count(at_least=0)(self.model, "model"))

    def find_model(self, names: Sequence[str]) -> int:
        place = names.index(self.model) if self.model in names else self.model
        if not isinstance(place, int) or place >= len(names):
            known = ", ".join(map(repr, names))
            fail(f"a single model must be one of {known}; got {self.model!r}.")
        return place

    def named(self, names: Sequence[str]) -> Single:
        return Single(names[self.find_model(names)])

    def among_voters(self) -> Single:
        return Single(0)

    def pose(self, histograms: Any, kernels: Any, **options: Any) -> FusionProblem:
        if isinstance(self.model, str):
            fail(
                f"a model among arrays must be told by its place; got {self!r}.",
                hint="Single(0) is the first",
            )
        n_models = histograms.shape[0] if is_array(histograms) else len(histograms)
        alone = np.zeros(n_models)
        alone[check_index(self.model, "model", n_models)] = 1
        return super().pose(histograms, kernels, **options | {"weights": alone})

    @property
    def mean_order(self) -> float:
        return 1.0

    def _combine(self, images: Array, weights: Array) -> Array:
        return images[0]

    def __str__(self) -> str:
        return f"{self.model} alone" if isinstance(self.model, str) else f"model {self.model} alone"


def _knobs(rule: type[Rule]) -> Sequence[Any]:
    return fields(rule)  # type: ignore[arg-type]  # every rule is a dataclass


def _gate(rule: GatedMean | GatedBarycenter) -> str:
    return f"top {rule.n_top}, floor {rule.floor:g}"


def _open_gate(rule: GatedMean | GatedBarycenter, images: Array, weights: Array) -> Array:
    """1 where a label is among the best of a model that votes, the floor elsewhere."""
    xp = namespace(images)
    best = xp.zeros_like(images[0], dtype=bool)
    n_top = min(rule.n_top, images.shape[-1])
    votes = xp.any(weights > 0, axis=-1)[..., None]  # (n_models, 1 or n_rows, 1)
    for image, vote in zip(images, votes, strict=True):
        bound = xp.sort(image, axis=-1)[:, -n_top][:, None]
        best |= (image >= bound) & (image > 0) & vote
    return xp.where(best, 1.0, rule.floor)


_RULES: tuple[type[Rule], ...] = (Barycenter, PowerMean, GatedMean, GatedBarycenter, Single)


def _list_rules() -> tuple[type[Rule], ...]:
    """Every rule there is; those in files of their own import this one."""
    from wassemble.solvers.line import LineBarycenter
    from wassemble.solvers.stacked import LogisticStacking, StackedConsensus
    from wassemble.solvers.tree import TreeBarycenter
    from wassemble.solvers.voting import VoteProduct

    exact: tuple[type[Rule], ...] = (LineBarycenter, TreeBarycenter)
    fitted: tuple[type[Rule], ...] = (LogisticStacking, StackedConsensus, VoteProduct)
    return (*_RULES, *exact, *fitted)


ARITHMETIC = PowerMean(1.0)
GEOMETRIC = PowerMean(0.0)
HELLINGER = PowerMean(0.5)

# The paper's own setting (6.1). Algorithm 1 takes a geometric mean wherever labels do not mix: a
# single 0 of one model rules a label out, and models that are sure of different labels leave
# nothing. Algorithm 2 never does.
USUAL_RULE = Barycenter(Unbalanced(2.0, epsilon=0.3))
