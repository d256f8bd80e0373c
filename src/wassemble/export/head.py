"""Heads: a fusion frozen into one ONNX file, and how it is run.

`export_onnx` writes one, `load_head` runs it. What goes in is checked here, in words that the file
itself carries, so that other languages say the same.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from wassemble._checks import Count, Number, OneOf, fail, option
from wassemble._extras import load_extra
from wassemble._files import whole_file
from wassemble.ensemble.learning import LearnedEnsemble
from wassemble.ensemble.tables import align_samples, read_models
from wassemble.export.design import ANSWERED, OUTPUTS, Design, to_inputs
from wassemble.export.golden import (
    N_GOLDEN,
    draw_samples,
    find_gap,
    load_golden,
    save_golden,
    save_request,
)
from wassemble.export.onnx_file import OPSET, OutOfRange, check_parts, read_model, to_onnx
from wassemble.inputs import Predictions
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.solvers import Rule

FORMAT = "wassemble head 1"
_KEY = "wassemble"
# Rows of histograms that were rounded may sum to this much.
_MOST_MASS = 1.05
# What is read from a file besides.
_SAID = {"arithmetic", "decides", "ensemble", "gap", "gaps", "hard_confidence", "kind", "most_mass"}
_SAID |= {"normalize", "rule", "sweeps", "task", "tolerance", "unused"}
# Samples by which sweeps and arithmetic are chosen where none are given.
_N_DRAWN = 64

ERRORS = {
    "missing": "there must be scores of each of {models}; got none of {model}.\n"
    "hint: a model that did not answer has 0 in `answered`",
    "strange": "there must be scores of the models {models}; got those of {model} too.",
    "shape": "the scores of {model} must have shape (n_samples, {n_labels}); got {shape}.",
    "samples": "all models must have the same number of samples; got {n_first} of {first} and"
    " {n_samples} of {model}.",
    "type": "the scores of {model} must be numbers; got something else.",
    "nan": "the scores of {model} must be numbers; got nan at sample {sample}, label {label}.\n"
    "hint: export with gaps, and nan is a label that was not reported",
    "infinite": "the scores of {model} must be finite; got an infinite one at sample {sample},"
    " label {label}.",
    "negative": "the scores of {model} must not be negative; got one at sample {sample}, label"
    " {label}.\nhint: logits become histograms by a softmax",
    "mass": "histograms must sum to 1 at most; got {sum} at sample {sample} of {model}.\n"
    "hint: divide each row by its sum",
    "answered": "`answered` must have shape (n_samples, {n_models}), 1 where a model answered and 0"
    " where it did not.",
}
"""What is wrong with inputs, in words; every file carries them."""


@dataclass(frozen=True)
class Arithmetic:
    """How a head computes inside."""

    inner: Any
    exact: bool

    def describe(self, rule: Rule) -> str:
        """In words; rules without sweeps know no difference."""
        within = ", in logarithms of any range" if self.exact and rule.transports else ""
        return f"{np.dtype(self.inner)}{within}"


def export_onnx(
    what: Any,
    path: str | PathLike[str],
    *,
    models: Any = None,
    samples: Sequence[Any] | Mapping[str, Any] | None = None,
    dtype: Literal["float32", "float64"] = "float32",
    gaps: bool | None = None,
    abstentions: bool = True,
    tolerance: float = 1e-5,
    max_sweeps: int = 300,
) -> dict[str, Any]:
    """Write a fusion as an ONNX file, with its golden vectors beside it; what the file says.

    Parameters
    ----------
    what : LearnedEnsemble, fitted estimator or Fusion
    path : path
        Of the file, which ends in ``.onnx``; golden vectors end in ``.golden.json``, and an example
        of a request over HTTP in ``.request.json``.
    models : as in `Fusion.plan`, optional
        Of a `Fusion`, the models and their labels; the others know theirs.
    samples : as in `Fusion.fuse`, optional
        Predictions by which the number of sweeps and the arithmetic are chosen, and the first of
        which become golden vectors; drawn at random if not given. The arithmetic must serve hard
        samples too, which are drawn in any case.
    dtype : {"float32", "float64"}
        Of inputs and outputs.
    gaps : bool, optional
        Whether nan in scores means that a label was not reported; else nan is refused. If not
        given, as in ``samples``.
    abstentions : bool
        Whether the head has the input ``answered``, by which models may keep silent.
    tolerance : float
        How far scores of the head may be from those of the library.
    max_sweeps : int
        Of a barycenter that stops at its tolerance: it is unrolled to as many sweeps as samples
        need, and refused if these are more.

    Returns
    -------
    about : dict
        What the file says of itself: ``sweeps`` and ``gap`` among it.
    """
    path = _check_path(path)
    OneOf(("float32", "float64"))(dtype, "dtype")
    Number(above=0)(tolerance, "tolerance")
    Count()(max_sweeps, "max_sweeps")
    design, inputs = prepare(what, models, samples, gaps=gaps, abstentions=abstentions)
    design = settle_sweeps(design, inputs, tolerance / 2, max_sweeps)

    def write(how: Arithmetic, about: Mapping[str, Any]) -> bytes:
        ends, outputs = design.draw(exact=how.exact)
        metadata = {_KEY: json.dumps(about)}
        return to_onnx(outputs, inputs=ends, dtype=dtype, inner=how.inner, metadata=metadata)

    def run(how: Arithmetic) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
        session = read_model(write(how, {}))
        names = [output.name for output in session.get_outputs()]
        return lambda given: dict(zip(names, session.run(names, dict(given)), strict=True))

    how, gap = choose_arithmetic(design, inputs, dtype, tolerance, run)
    said = {"arithmetic": how.describe(design.rule), "gap": gap}
    about = describe(design, dtype, tolerance) | said
    with whole_file(path) as temporary:
        temporary.write_bytes(write(how, about))
    golden = {name: array[:N_GOLDEN].astype(dtype) for name, array in inputs.items()}
    save_golden(path, golden, design.expect(golden), about)
    save_request(path, golden)
    return about


def prepare(
    what: Any, models: Any, samples: Any, *, gaps: bool | None, abstentions: bool
) -> tuple[Design, dict[str, np.ndarray]]:
    """What is exported, and samples to try it on."""
    design = Design.of(what, models, gaps=bool(gaps), abstentions=abstentions)
    if samples is None:
        return design, draw_samples(design, _N_DRAWN)
    names = [member.model for member in design.members]
    given = [each for each in _read_samples(what, samples) if each.model in names]
    if gaps is None:
        has_gaps = any(np.isnan(each.scores[each.answered]).any() for each in given)
        design = replace(design, gaps=bool(has_gaps))
    scores, answered = to_inputs(given, names, hard_confidence=design.plan.hard_confidence)
    if not design.gaps and any(np.isnan(each).any() for each in scores.values()):
        fail(
            "a head without gaps takes every score; models left some out.",
            hint=option("gaps", True),
        )
    if not abstentions and not answered.all():
        fail(
            "a head without abstentions takes an answer of every model to every sample; some did"
            " not answer.",
            hint=option("abstentions", True),
        )
    return design, scores | ({ANSWERED: answered.astype(np.float64)} if abstentions else {})


def _read_samples(what: Any, samples: Any) -> list[Predictions]:
    what = getattr(what, "learned_", what)
    if isinstance(what, LearnedEnsemble):
        return align_samples(what.matched_models(samples))
    return align_samples(read_models(samples, what.kind, normalize=what.normalize)[0])


def settle_sweeps(
    design: Design, inputs: Mapping[str, np.ndarray], tolerance: float, most: int
) -> Design:
    """The design with as many sweeps as ``inputs`` need, if it was to find out by itself."""
    if not design.sweeps_are_open:
        return design
    expected = design.expect(inputs)

    def gap_after(n_sweeps: int) -> float:
        return find_gap(design.with_sweeps(n_sweeps).expect(inputs), expected)

    enough = 1
    while gap_after(enough) > tolerance:
        if enough >= most:
            fail(
                f"a head must come within {tolerance:g} of the fixed point in {most:,} sweeps; it"
                f" is {gap_after(most):.2g} away.",
                hint=f"{option('max_sweeps')} allows more; a larger epsilon needs fewer",
            )
        enough = min(2 * enough, most)
    few = enough // 2
    while enough - few > 1:  # by halves: gaps shrink with every sweep
        middle = (few + enough) // 2
        few, enough = (middle, enough) if gap_after(middle) > tolerance else (few, middle)
    return design.with_sweeps(enough)


def choose_arithmetic(
    design: Design,
    inputs: Mapping[str, np.ndarray],
    dtype: str,
    tolerance: float,
    run: Callable[[Arithmetic], Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]],
) -> tuple[Arithmetic, float]:
    """The fastest arithmetic that comes near the library on ``inputs``, and how near."""
    # The hard ones too, which samples need not have: models may be sure, or say "none of these".
    tried = (inputs, draw_samples(design, _N_DRAWN, seed=1))
    trials = [(given, design.expect(given)) for given in tried]

    def find_largest_gap(how: Arithmetic) -> float:
        call = run(how)
        return max(
            find_gap(call({name: array.astype(dtype) for name, array in given.items()}), expected)
            for given, expected in (trials[:1] if how.exact else trials)
        )

    choices = _list_arithmetics(design, dtype)
    gap = math.inf
    for how in choices:
        try:
            gap = find_largest_gap(how)
        except OutOfRange:
            continue
        if gap <= tolerance / 2:
            return how, gap
    if gap > tolerance:
        fail(
            f"a head must agree with the library to {tolerance:g}; it is {gap:.2g} away.",
            hint=None if dtype == "float64" else option("dtype", "float64"),
        )
    return choices[-1], gap


def _list_arithmetics(design: Design, dtype: str) -> list[Arithmetic]:
    """The fastest first. A balanced label that nobody reaches is 0, of which logarithms know."""
    may_be_quick = not (design.has_zeros and design.rule.is_balanced)
    widths = [np.float32, np.float64] if dtype == "float32" else [np.float64]
    return [
        Arithmetic(inner, exact)
        for inner in widths
        for exact in ([False, True] if may_be_quick else [True])
    ]


def describe(design: Design, dtype: str, tolerance: float) -> dict[str, Any]:
    """What a file says of itself, but for how it computes."""
    from wassemble import __version__

    rule = design.rule
    return {
        "format": FORMAT,
        "rule": str(rule),
        "task": design.task,
        "kind": design.plan.kind,
        "models": {member.model: list(member.labels) for member in design.members},
        "unused": design.unused,
        "target": list(design.plan.target),
        "decides": design.decides,
        "dtype": dtype,
        "gaps": design.gaps,
        "normalize": design.normalize,
        "hard_confidence": design.plan.hard_confidence,
        "abstentions": design.abstentions,
        "most_mass": None if design.normalize or design.plan.kind == "multilabel" else _MOST_MASS,
        "sweeps": getattr(rule, "max_sweeps", None) if rule.transports else None,
        "tolerance": tolerance,
        "opset": OPSET,
        "ensemble": design.digest(),
        "versions": {"wassemble": __version__, "numpy": np.__version__},
        "errors": ERRORS,
    }


class Head:
    """A fusion that was frozen into an ONNX file; `load_head` makes it.

    Attributes
    ----------
    about : dict
        What the file says of itself.
    """

    def __init__(self, session: Any, about: dict[str, Any]) -> None:
        self._session, self.about = session, about
        self._outputs = [output.name for output in session.get_outputs()]

    def __call__(self, scores: Mapping[str, Any], answered: Any = None) -> dict[str, np.ndarray]:
        """The consensus and what is decided from it.

        Parameters
        ----------
        scores : dict of model name to array of shape (n_samples, n_labels)
        answered : array of shape (n_samples, n_models), optional
            1 where a model answered and 0 where not; all did if not given.

        Returns
        -------
        found : dict
            ``scores`` of shape (n_samples, n_target), 0 for samples that no model answered;
            ``label``: the place of the best target label, -1 for none, or 1 for each label that is
            decided to be there.
        """
        return self.run(self.read(scores, answered))

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What comes of inputs that `read` made."""
        found = self._session.run(self._outputs, inputs)
        return dict(zip(self._outputs, found, strict=True))

    def fuse(self, models: Sequence[Any] | Mapping[str, Any]) -> Predictions:
        """The consensus of models with names, as `Fusion.fuse` takes them.

        A sample that no model answered has a row of nan.
        """
        about = self.about
        given = align_samples(read_models(models, about["kind"], normalize=about["normalize"])[0])
        how = about["hard_confidence"]
        inputs = to_inputs(given, list(about["models"]), hard_confidence=how)
        scores = self(*inputs)["scores"]
        scores[~np.any(inputs[1], axis=1)] = np.nan
        target = LabelSpace(about["target"])
        return Predictions("consensus", given[0].samples, target, scores, kind=about["task"])

    def read(self, scores: Mapping[str, Any], answered: Any = None) -> dict[str, np.ndarray]:
        """The inputs as the file takes them, checked."""
        about = self.about
        names = list(about["models"])
        scores = scores if isinstance(scores, Mapping) else {}
        for name in scores:
            if name not in names and name not in about["unused"]:
                self._refuse("strange", models=enumerate_names(names), model=repr(name))
        tables = {name: self._read_table(name, scores) for name in names}
        first = names[0]
        for name, table in tables.items():
            if len(table) != len(tables[first]):
                self._refuse(
                    "samples", first=repr(first), n_first=len(tables[first]),
                    n_samples=len(table), model=repr(name),
                )  # fmt: skip
        mask = self._read_answered(answered, len(tables[first]))
        for place, (name, table) in enumerate(tables.items()):
            self._check_scores(name, table, mask[:, place])
        if not about["abstentions"]:
            return tables
        return {**tables, ANSWERED: mask.astype(about["dtype"])}

    def _read_table(self, name: str, scores: Mapping[str, Any]) -> np.ndarray:
        if name not in scores:
            listed = enumerate_names(list(self.about["models"]))
            self._refuse("missing", models=listed, model=repr(name))
        try:
            table = _to_numbers(scores[name], self.about["dtype"])
        except (TypeError, ValueError, OverflowError):
            self._refuse("type", model=repr(name))
        n_labels = len(self.about["models"][name])
        if table.ndim != 2 or table.shape[1] != n_labels:
            shape = f"({', '.join(map(str, table.shape))})"
            self._refuse("shape", model=repr(name), n_labels=n_labels, shape=shape)
        return np.ascontiguousarray(table)

    def _read_answered(self, answered: Any, n_samples: int) -> np.ndarray:
        shape = (n_samples, len(self.about["models"]))
        if answered is None:
            return np.ones(shape, dtype=bool)
        try:
            mask = _to_numbers(answered, "float64")
        except (TypeError, ValueError, OverflowError):
            self._refuse("answered", n_models=shape[1])
        is_mask = mask.shape == shape and bool(np.isin(mask, (0, 1)).all())
        if not is_mask or (not self.about["abstentions"] and not mask.all()):
            self._refuse("answered", n_models=shape[1])
        return mask.astype(bool)

    def _check_scores(self, name: str, table: np.ndarray, answered: np.ndarray) -> None:
        sums, most = table.sum(axis=1, dtype=np.float64), self.about["most_mass"] or math.inf
        # nan and infinity show in sums: one look tells of most tables that they are fine.
        if (sums <= most).all() and (sums < math.inf).all() and (table >= 0).all():
            return
        self._find_wrong(name, table, answered)
        sums = np.asarray(np.nansum(table, axis=1, dtype=np.float64))
        heavy = np.flatnonzero((sums > most) & answered)
        if len(heavy):
            said = f"{sums[heavy[0]]:.4f}"
            self._refuse("mass", sum=said, sample=heavy[0], model=repr(name))

    def _find_wrong(self, name: str, table: np.ndarray, answered: np.ndarray) -> None:
        """Refuse scores that are none; where, too."""
        wrong = {"infinite": np.isinf(table), "negative": table < 0}
        if not self.about["gaps"]:
            wrong = {"nan": np.isnan(table), **wrong}
        for what, where in wrong.items():
            if (where := where & answered[:, None]).any():
                sample, place = np.argwhere(where)[0]
                label = self.about["models"][name][place]
                self._refuse(what, model=repr(name), sample=sample, label=repr(label))

    def _refuse(self, what: str, **values: Any) -> Any:
        # Not `format`: the words come with the file, and could ask for anything.
        words = self.about["errors"][what]
        words = re.sub(r"\{(\w+)\}", lambda found: str(values.get(found[1], found[0])), words)
        message, _, hint = words.partition("\nhint: ")
        fail(message, hint=hint or None)

    def __repr__(self) -> str:
        return f"<head of {len(self.about['models'])} models: {self.about['rule']}>"


def load_head(path: str | PathLike[str]) -> Head:
    """The head that `export_onnx` wrote, run by onnxruntime."""
    path = _check_path(path)
    if not path.is_file():
        fail(f"{path}: must be a file; there is none.")
    content = path.read_bytes()
    check_parts(content, str(path))
    session = read_model(content)
    try:
        about = json.loads(session.get_modelmeta().custom_metadata_map[_KEY])
        is_head = about["format"] == FORMAT and _tells_truth(about, session)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        is_head = False
    if not is_head:
        fail(f"{path}: must be a head that `wassemble export` wrote, format {FORMAT!r}.")
    return Head(session, about)


def _tells_truth(about: Mapping[str, Any], session: Any) -> bool:
    """Whether a file has the inputs and outputs of which it tells, and all else that is read."""
    kind = {"float32": "tensor(float)", "float64": "tensor(double)"}[about["dtype"]]
    widths = {name: len(labels) for name, labels in about["models"].items()}
    widths |= {ANSWERED: len(widths)} if about["abstentions"] else {}
    told = [(name, kind, width) for name, width in widths.items()]
    found = [(each.name, each.type, each.shape[1]) for each in session.get_inputs()]
    scores = session.get_outputs()[0]
    ends = scores.name == OUTPUTS[0] and scores.shape[1] == len(about["target"])
    return told == found and ends and set(ERRORS) <= set(about["errors"]) and set(about) >= _SAID


@dataclass(frozen=True)
class Verdict:
    """How a head did on its golden vectors."""

    n_samples: int
    gap: float  # the largest difference between scores
    tolerance: float
    n_labels_off: int  # samples of which it decides otherwise, where nothing is close

    @property
    def holds(self) -> bool:
        """Whether it answers as the library did."""
        return self.gap <= self.tolerance and not self.n_labels_off


def verify_head(path: str | PathLike[str]) -> Verdict:
    """Replay the golden vectors of a head in onnxruntime."""
    head, golden = load_head(path), load_golden(Path(path))
    if golden["ensemble"] != head.about["ensemble"]:
        fail(f"{path}: its golden vectors are of another ensemble.")
    inputs = golden["inputs"]
    found = head(
        {name: scores for name, scores in inputs.items() if name != ANSWERED},
        inputs.get(ANSWERED),
    )
    expected, tolerance = golden["outputs"], head.about["tolerance"]
    shapes = [{name: array.shape for name, array in each.items()} for each in (found, expected)]
    if shapes[0] != shapes[1] or not len(found["scores"]):
        fail(f"{path}: its golden vectors must be answers to some samples, as many as inputs.")
    off = count_decided_otherwise(found, expected, tolerance)
    return Verdict(len(found["scores"]), find_gap(found, expected), tolerance, off)


def count_decided_otherwise(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], tolerance: float
) -> int:
    """Samples with another label; one that is as good but for the tolerance counts as the same."""
    if "label" not in expected or expected["label"].ndim != 1:
        return 0  # thresholds are compared with scores, whose gap tells
    scores, own = expected["scores"], found["label"].astype(int)
    given_up = (own < 0) != (expected["label"] < 0)
    chosen = np.take_along_axis(scores, np.maximum(own, 0)[:, None], axis=1)[:, 0]
    return int((given_up | (chosen < scores.max(axis=1) - 2 * tolerance)).sum())


def _to_numbers(given: Any, dtype: str) -> np.ndarray:
    """An array of numbers; None is nan. Texts are refused, even of digits, and so are dates."""
    array = np.asarray(given)
    if array.dtype.kind == "O" and not any(isinstance(each, str | bytes) for each in array.flat):
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise TypeError
    with np.errstate(over="ignore"):  # what is too large is infinite, which is told
        return array.astype(dtype, copy=False)


def _check_path(path: str | PathLike[str]) -> Path:
    path = Path(path)
    if path.suffix != ".onnx":
        fail(f"the file of a head must end in .onnx; got {path.name}.")
    load_extra("onnxruntime", "onnx", purpose="a head")
    return path
