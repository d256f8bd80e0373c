"""`Fusion`: how to fuse, as one value: a rule, a kernel, and how names are matched."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from os import PathLike
from typing import Any, ClassVar, Literal, cast

import numpy as np

from wassemble._arrays import Array, detached, is_frame, is_series
from wassemble._checks import (
    Constraints,
    Number,
    OneOf,
    check_fields,
    check_nonnegative_number,
    fail,
    refuse_names,
)
from wassemble._pictures import N_MODELS, Bars, draw_beside, show
from wassemble.ensemble.account import FusionAccount, count_ends
from wassemble.ensemble.completion import RULES, Unobserved
from wassemble.ensemble.fusion_files import (
    load_folder,
    load_rule,
    same_kernels,
    save_folder,
)
from wassemble.ensemble.plan import FusionPlan, TableFuser
from wassemble.ensemble.tables import (
    align_samples,
    are_named,
    check_inputs,
    name_models,
    read_id_columns,
    read_models,
    read_spaces,
    refuse_larger,
    warn_of_ends,
    warn_of_inputs,
)
from wassemble.errors import ConvergenceWarning, tell_count
from wassemble.inputs import Aliases, Kind, Predictions, frame_from_predictions
from wassemble.inputs.formats.named_tables import NamedTable, read_named_table
from wassemble.inputs.predictions.overlap import common_row_ids
from wassemble.inputs.predictions.value import Origin, check_kind
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace, enumerate_names, put_in_order
from wassemble.solvers import USUAL_RULE, Balanced, Rule, Unbalanced

# Plans that a fusion keeps: one for each set of models that it has met.
_N_PLANS = 8
# What may change without matching labels again.
_AFTER_MATCHING = {"rule", "weights", "leftover", "unobserved", "hard_confidence"}
# Share of a row's mass that `n_top` may drop without a word.
_MUCH_DROPPED = 0.05
# What arrays have too; the rest says how samples and labels are matched by name.
_OF_ARRAYS = ("rule", "kernel", "weights", "kind", "normalize")


@dataclass(frozen=True, eq=False, repr=False)
class Fusion:
    """How to fuse, as one value: everything but the models.

    It is a value: it compares, hashes, and goes to and from a folder. Plans for the models
    that it meets are made once and kept.

    Parameters
    ----------
    rule : Rule
        How models are combined: `Barycenter`, `PowerMean`, `GatedMean`, `GatedBarycenter` or
        `Single`. The default is the paper's ``Barycenter(Unbalanced(2, epsilon=0.3))``, in which
        no model can rule a label out by itself. Rules that transport nothing, such as means,
        carry each model to the target labels by its kernel alone.
    kernel : optional
        From each model's labels to the target labels: one `LabelledKernel` for all, a dict
        or list with one per model, an array, or a function of ``(source, target)`` label
        spaces. A data frame is read by name, as `LabelledKernel` does. Without a kernel,
        labels go where their names go.
    target : list of str, or LabelSpace, optional
        The labels of the consensus; the union of the models' labels if not given. A `LabelSpace`
        may tell where they lie on a line.
    weights : dict of model name to weight, array, or pandas.Series by model name, optional
        On the simplex; uniform if not given. A data frame has weights per model (row) and
        target label (column), by name.
    kind : {"multiclass", "multilabel"}, optional
        "multiclass": rows are histograms, and so is the consensus: it is raised to the inverse
        of the exponent by which Algorithm 2 flattens it, and divided by its mass
        (`solve_barycenter` keeps the raw numbers). "multilabel": scores of any mass, left as
        they are. If not given, arrays must be histograms, and tables are if every row sums to 1.
    aliases : dict of str to str, data frame or Aliases, optional
        Target labels that names stand for, whatever their spelling; a list or a dict of
        weights where a name stands for several. `Aliases`, or a data frame with the columns
        model, source and target, says it for each model; `read_aliases` reads a file. Several
        labels of a model that stand for one are summed (histograms), or the largest is taken
        (multi-label scores).
    fold : bool
        Match names without regard to case, underscores, hyphens and repeated spaces, and
        numbers by their value: 2, 2.0 and 02.
    other : str, or dict of model name to str, optional
        The label by which models say "none of the labels I declare": its mass may go to every
        target label that the model does not declare. Mass on any other label that leads to no
        target label weakens the model's say on that sample by as much.
    samples : {"all", "common"}
        Samples that any model has, or those that all have. A model that did not answer a
        sample has no vote on it.
    allow_disjoint : bool
        Models may have no sample, or few, in common; an error and a warning otherwise.
    by_row : bool
        Rows are matched by their order, for tables without sample ids. Models must have the
        same number of rows, and the same ids in the same order if they have any.
    id_column : str, or dict of model name to str, optional
        Column of data frames that holds the sample ids; found as `predictions_from_frame` says
        if not given.
    normalize : bool
        Divide each row by its sum, which makes histograms of counts, of percentages and of
        probabilities that were rounded or cut off.
    leftover : float
        Share of its weight that a model keeps on target labels that it cannot speak of. It can
        speak of those that it has by name or by alias, and of those that an explicit kernel
        reaches; a kernel from mistakes reaches more, and there the leftover counts. Where
        nothing of a model can arrive, it has no say at all. 1 turns label-aware weights off.
    unobserved : {"spread", "renormalize", "drop"}
        What is made of the mass that a histogram does not report: spread over the labels
        not reported, reported scores divided by their sum, or left out.
    hard_confidence : float
        Score of a label that was named without one, in histograms; "renormalize" makes it 1, which
        it is in multi-label scores.

    Examples
    --------
    >>> cars = Predictions("cars", ["x"], ["sedan", "bicycle"], [[0.7, 0.3]])
    >>> bikes = Predictions("bikes", ["x"], ["car", "bicycle", "tandem"], [[0.4, 0.5, 0.1]])
    >>> fusion = Fusion(aliases={"sedan": "car"})
    >>> fusion.fuse([cars, bikes]).labels.names
    ('car', 'bicycle', 'tandem')
    >>> fusion.fuse([cars, bikes]).scores.round(2)
    array([[0.52, 0.38, 0.1 ]])
    """

    constraints: ClassVar[Constraints] = {
        "samples": OneOf(("all", "common")),
        "leftover": Number(at_least=0, at_most=1),
        "unobserved": OneOf(RULES),
        "hard_confidence": Number(above=0, at_most=1),
    }

    rule: Rule = USUAL_RULE
    kernel: Any = None
    _: KW_ONLY
    target: LabelSpace | Iterable[str] | None = None
    weights: Any = None
    kind: Kind | None = None
    aliases: Any = None
    fold: bool = False
    other: str | Mapping[str, str] | None = None
    samples: Literal["all", "common"] = "all"
    allow_disjoint: bool = False
    by_row: bool = False
    id_column: str | Mapping[str, str] | None = None
    normalize: bool = False
    leftover: float = 0.05
    unobserved: Unobserved = "spread"
    hard_confidence: float = 0.9

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            fail(f"`rule` must be a rule; got {self.rule!r}.", hint=_hint_rule(self.rule))
        check_kind(self.kind, normalize=self.normalize)
        check_fields(self)
        if self.target is not None and not isinstance(self.target, LabelSpace):
            self._set("target", LabelSpace(self.target))
        self._set("aliases", Aliases.of(self.aliases))
        self._set("weights", _read_weights(self.weights))
        if not self.rule.takes_weights and self.weights is not None:
            fail("`weights` must be left out for a single model; got some.")
        if isinstance(self.other, Mapping):
            self._set("other", {str(model): str(name) for model, name in self.other.items()})
        self._set("_plans", {})
        self._set("_kin", {})

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    # -- fusing ----------------------------------------------------------------------

    def fuse(
        self,
        models: Any,
        *,
        n_threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        out: np.ndarray | None = None,
    ) -> Any:
        """The consensus, of the kind that came in.

        Parameters
        ----------
        models : dict of name to data frame or Predictions, list of either, or arrays
            Data frames (pandas, polars, pyarrow ...) have a column of sample ids and one
            column per label, or are long: ``sample``, ``label``, ``score``. An empty score was
            not reported; it is not 0. Data frames of a list are called "model 1", "model 2" ...
            Arrays are as in `fuse`.
        n_threads : int, optional
            Threads for large batches; $WASSEMBLE_NUM_THREADS or all cores if not given.
        progress, out
            For arrays, as in `fuse`.
        """
        models = refuse_larger(models)
        if not are_named(models):
            return self._fuse_arrays(models, n_threads=n_threads, progress=progress, out=out)
        for name, given in (("progress", progress), ("out", out)):
            if given is not None:
                fail(f"`{name}` must go with arrays; got predictions with names.")
        result = self.run(models, n_threads=n_threads)
        return result.consensus if result.frame is None else result.to_frame()

    def run(self, models: Any, *, n_threads: int | None = None) -> FusionResult:
        """Fuse models by the names of their samples and labels, with all that led to it.

        Examples
        --------
        >>> a = Predictions("a", ["x"], ["cat", "dog"], [[0.9, 0.1]])
        >>> b = Predictions("b", ["x"], ["cat", "dog"], [[0.6, 0.4]])
        >>> Fusion().run([a, b])
        FusionResult(2 models, 1 sample, 2 target labels)
        """
        given = refuse_larger(models)
        predictions, frame = read_models(
            given, self.kind, by_row=self.by_row, normalize=self.normalize, id_column=self.id_column
        )
        named = name_models(given)
        columns = read_id_columns(self.id_column, [name for name, _ in named])
        frame_ids = next((columns.get(name) for name, each in named if each is frame), None)
        if self.by_row:
            ids = common_row_ids(predictions)
            predictions = [given.replace(samples=ids) for given in predictions]
        plan = self.plan(predictions)
        account = self.open_account(predictions)
        how_matched: Any = {"samples": self.samples, "allow_disjoint": self.allow_disjoint}
        check_inputs(account, predictions, self.kernel, **how_matched)
        members = align_samples(predictions, self.samples)
        chunk = plan.fuse(members, n_threads=n_threads)
        account.add(members, chunk)
        account.note_counted()
        consensus = Predictions(
            "consensus", members[0].samples, plan.target, chunk.scores, kind=plan.kind
        )
        consensus.origin = Origin(id_column=account.id_column)
        warn_of_inputs(account.warnings)
        warn_of_ends(account.ends, self.rule.fine_ends)
        return FusionResult(consensus, chunk.statuses, account, plan, members, frame, frame_ids)

    def plan(self, models: Any) -> FusionPlan:
        """How these models come together: labels matched, kernels in place, weights.

        Made once for the same names, labels and kind.

        Parameters
        ----------
        models : as in `fuse`, open files, or a dict of name to LabelSpace
        """
        spaces, kind = read_spaces(models, self.kind, by_row=self.by_row, normalize=self.normalize)
        plans = self._kept_plans
        # Spaces of the same names are equal.
        key = (spaces, tuple(labels.positions for _, labels in spaces), kind)
        if key not in plans:
            self._check_order(models)
            while len(plans) >= _N_PLANS:
                del plans[next(iter(plans))]
            kin = self.__dict__["_kin"].get(key)
            plans[key] = FusionPlan(self, spaces, kind) if kin is None else kin.adapt(self)
        return plans[key]

    def _check_order(self, models: Any) -> None:
        """Refuse the order in which a list of answers happens to name labels."""
        if self.target is not None or self.rule.label_order != "line":
            return
        each: Iterable[Any] = models.values() if isinstance(models, Mapping) else models
        first = next(iter(each), None)
        if first is not None and getattr(first, "is_hard", False):
            put_in_order(first.labels, None)

    def open_account(self, models: Sequence[Any]) -> FusionAccount:
        """An account of these models, predictions or open files, with nothing counted yet."""
        is_detected = self.kind is None and all(model.kind_is_detected for model in models)
        return FusionAccount.of(self.plan(models), kind_is_detected=is_detected)

    def prepare(self, models: Any) -> TableFuser:
        """A call that fuses new rows of these models, with labels matched and checks made.

        Parameters
        ----------
        models : as in `plan`

        Returns
        -------
        fuser : TableFuser
            ``fuser(scores)`` takes one array of shape (n_samples, n_labels), or (n_labels,) for
            one sample, per model: a dict by name, or a list in the order of the models.

        Examples
        --------
        >>> spaces = {"a": LabelSpace(["cat", "dog"]), "b": LabelSpace(["dog", "cat"])}
        >>> fuser = Fusion(kind="multiclass").prepare(spaces)
        >>> fuser({"a": [0.9, 0.1], "b": [0.4, 0.6]}).round(2)
        array([0.77, 0.23])
        """
        return TableFuser(self.plan(models))

    def _fuse_arrays(self, models: Any, **how: Any) -> Array:
        """Arrays in, an array out: only rule, kernel, weights, kind and normalize speak of them."""
        for field in fields(self):
            if field.name not in _OF_ARRAYS:
                given = getattr(self, field.name)
                if given != (Aliases() if field.name == "aliases" else field.default):
                    fail(
                        f"`{field.name}` must go with predictions that have names; got arrays.",
                        hint="data frames have names, and so has Predictions(model, samples,"
                        " labels, scores)",
                    )
        if isinstance(self.weights, Mapping | NamedTable):
            fail(
                "`weights` must be an array here, for there are no names to match its own with;"
                " got names.",
                hint="a list of them, if it is known to be in the right order",
            )
        refuse_names(models, "predictions")
        fused = self.rule.fuse(
            models,
            self.kernel,
            weights=self.weights,
            holds="scores" if self.kind == "multilabel" else "histograms",
            normalize=self.normalize,
            **how,
        )
        dropped = None if fused.result is None else fused.result.dropped
        if dropped is not None and (worst := dropped.max(initial=0)) > _MUCH_DROPPED:
            told = f"`n_top` dropped up to {worst:.0%} of a model's mass in a row."
            warnings.warn(told, ConvergenceWarning, stacklevel=3)
        warn_of_ends(count_ends(np.asarray(fused.statuses)), self.rule.fine_ends, "rows")
        scores = fused.consensus
        return self.rule.to_histograms(scores, how["out"]) if fused.are_histograms else scores

    @property
    def _kept_plans(self) -> dict[Any, FusionPlan]:
        return cast("dict[Any, FusionPlan]", self.__dict__["_plans"])

    # -- as a value ------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All but the kernel, ready for JSON.

        Examples
        --------
        >>> Fusion(target=["cat", "dog"]).to_dict()["target"]
        ['cat', 'dog']
        """
        entries = {field.name: getattr(self, field.name) for field in fields(self)}
        del entries["kernel"]
        return entries | {
            "rule": self.rule.to_dict(),
            "target": None if self.target is None else LabelSpace(self.target).to_json(),
            "weights": _weights_to_json(self.weights),
            "aliases": [list(row) for row in self.aliases.rows],
        }

    @staticmethod
    def from_dict(entries: Mapping[str, Any], kernel: Any = None) -> Fusion:
        """The fusion that `to_dict` wrote down, with its kernel."""
        known = {field.name for field in fields(Fusion)} - {"kernel"}
        if not isinstance(entries, Mapping) or not set(entries) <= known:
            strange = set(entries) - known if isinstance(entries, Mapping) else [repr(entries)]
            fail(f"a fusion must have {enumerate_names(known)}; got {enumerate_names(strange)}.")
        given = dict(entries)
        if "rule" in given and not isinstance(given["rule"], Rule):
            given["rule"] = Rule.from_dict(given["rule"])
        if given.get("target") is not None:
            given["target"] = LabelSpace.from_json(given["target"])
        if "weights" in given:
            given["weights"] = _weights_from_json(given["weights"])
        return Fusion(kernel=kernel, **given)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the fusion into ``folder``: ``fusion.json``, and its kernels as ``.npz``.

        Kernels must have names, as `LabelledKernel` has.

        Examples
        --------
        >>> from tempfile import mkdtemp
        >>> folder = mkdtemp()
        >>> Fusion(weights={"a": 0.7, "b": 0.3}).save(folder)
        >>> Fusion.load(folder).weights
        {'a': 0.7, 'b': 0.3}
        """
        save_folder(self.to_dict(), self.kernel, [self.rule], folder)

    @staticmethod
    def load(folder: str | PathLike[str]) -> Fusion:
        """The fusion that `save` wrote."""

        def make(entries: dict[str, Any], kernel: Any) -> Fusion:
            return Fusion.from_dict({**entries, "rule": load_rule(entries["rule"], folder)}, kernel)

        return load_folder(folder, make)

    def replace(self, **changes: Any) -> Fusion:
        """The same with some things changed; labels that were matched are not matched again."""
        changed = replace(self, **changes)
        keeps_order = self.target is not None or changed.rule.label_order == self.rule.label_order
        if set(changes) <= _AFTER_MATCHING and keeps_order:
            changed._set("_kin", self._kept_plans)
        return changed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fusion):
            return NotImplemented
        return self._said() == other._said() and same_kernels(self.kernel, other.kernel)

    def __hash__(self) -> int:
        return hash(self._said())

    def _said(self) -> str:
        return json.dumps(self.to_dict(), sort_keys=True)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_plans": {}, "_kin": {}}  # whoever gets it makes its own

    def _repr_html_(self) -> str:
        given = list(self.kernel.values()) if isinstance(self.kernel, Mapping) else self.kernel
        kernels = given if isinstance(given, list | tuple) else [given]
        named = [each for each in kernels if isinstance(each, LabelledKernel)]
        pictures = [each.picture() for each in named[:N_MODELS] if each.kernel.can_be_seen]
        return show(pictures, f"{self!r}: {self.rule}")

    def __repr__(self) -> str:
        usual = {field.name: field.default for field in fields(self)} | {"aliases": Aliases()}
        given = []
        for name, default in usual.items():
            value = getattr(self, name)
            if value is not default and not (type(value) is type(default) and value == default):
                told = value.to_json() if isinstance(value, LabelSpace) else value
                given.append(f"{name}={told!r}")
        return f"Fusion({', '.join(given)})"


@dataclass(frozen=True, eq=False)
class FusionResult:
    """A consensus with names, and all that led to it."""

    consensus: Predictions  # over the target labels; a row of nan where no model answered
    statuses: np.ndarray  # (n_samples,): codes of `Status`; -1 where no model answered
    account: FusionAccount  # what was matched, what was missing, which rules filled in
    plan: FusionPlan  # how the models came together
    members: list[Predictions]  # the models on the samples of the consensus, in its order
    frame: Any = None  # the first data frame that was given
    frame_ids: str | None = None  # its column of ids, if that was named

    @property
    def report(self) -> str:
        """The account in words."""
        return "\n".join(self.account.lines())

    def to_frame(self, like: Any = None) -> Any:
        """The consensus as a data frame of the library of ``like``, or of the first one given."""
        if like is not None:
            return frame_from_predictions(self.consensus, like)
        if self.frame is None:
            fail("there must be a data frame to be like; the models were none.")
        return frame_from_predictions(self.consensus, self.frame, id_column=self.frame_ids)

    def row(self, sample: Any) -> int:
        """Place of a sample, by its id."""
        samples = [str(found) for found in self.consensus.samples.tolist()]
        if str(sample) not in samples:
            shown = enumerate_names(samples[:4])
            fail(f"the sample must be one of those fused, such as {shown}; got {sample!r}.")
        return samples.index(str(sample))

    def plot(self, sample: Any = None) -> Any:
        """Draw what models, at most eight, say of a sample beside the consensus; the figure.

        Parameters
        ----------
        sample : str, optional
            Its id; the first sample if not given. `find_disagreement` lists the most disputed.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> a = Predictions("a", ["x"], ["cat", "dog"], [[0.9, 0.1]])
        >>> b = Predictions("b", ["x"], ["cat", "lynx"], [[0.2, 0.8]])
        >>> figure = Fusion().run([a, b]).plot("x")
        >>> [axes.get_title() for axes in figure.axes]
        ['a', 'b', 'consensus']
        """
        return draw_beside(self._pictures(0 if sample is None else self.row(sample)))

    def _pictures(self, row: int) -> list[Bars]:
        models = (*self.members[:N_MODELS], self.consensus)
        return [Bars.largest(each.model, each.labels, each.scores[row]) for each in models]

    def _repr_html_(self) -> str | None:
        if not self.consensus.n_samples:
            return None  # its words are shown in place of it
        first = self.consensus.samples.tolist()[0]
        return show(self._pictures(0), f"{self!r}, of which sample {first}:")

    def __repr__(self) -> str:
        return (
            f"FusionResult({tell_count(len(self.members), 'model')},"
            f" {tell_count(self.consensus.n_samples, 'sample')},"
            f" {tell_count(len(self.plan.target), 'target label')})"
        )


def _hint_rule(given: Any) -> str:
    """The rule that was probably meant."""
    if isinstance(given, Balanced | Unbalanced):
        return f"Barycenter({given!r})"
    means = {"arithmetic": "ARITHMETIC", "geometric": "GEOMETRIC", "hellinger": "HELLINGER"}
    if isinstance(given, str) and given.lower() in means:
        return f"ws.{means[given.lower()]}"
    return "ws.Barycenter(...), ws.ARITHMETIC, ws.GEOMETRIC and ws.HELLINGER are such"


def _read_weights(weights: Any) -> Any:
    """Weights as a fusion keeps them: by name in a dict or table, else as they are."""
    if weights is None:
        return None
    if is_frame(weights):
        return read_named_table(weights, "weights")
    if isinstance(weights, Mapping):
        return {str(name): weight for name, weight in weights.items()}
    return weights


def _weights_to_json(weights: Any) -> Any:
    if weights is None:
        return None
    if isinstance(weights, NamedTable):
        both = {"models": list(weights.rows), "labels": list(weights.columns)}
        return both | {"weights": weights.values.tolist()}
    if is_series(weights) or isinstance(weights, Mapping):
        return {str(name): float(weight) for name, weight in weights.items()}
    return np.asarray(detached(weights), dtype=np.float64).tolist()


def _weights_from_json(weights: Any) -> Any:
    """What `_weights_to_json` wrote down; anything else is refused."""
    if weights is None:
        return None
    try:
        if isinstance(weights, Mapping) and isinstance(weights.get("models"), list):
            rows, columns = LabelSpace(weights["models"]), LabelSpace(weights["labels"])
            values = np.array(weights["weights"], dtype=np.float64)
            return NamedTable("weights", rows, columns, values.reshape(len(rows), len(columns)))
        if isinstance(weights, Mapping):
            return {str(name): check_nonnegative_number(w, name) for name, w in weights.items()}
        if not isinstance(weights, list):
            raise TypeError(f"{weights!r:.80}")
        return np.array(weights, dtype=np.float64).tolist()
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        fail(f"the weights of a fusion must be numbers, one per model; got {error}.")
