"""`learn_kernel`: a kernel learned on samples whose truth is known, through the solver itself.

`LearnedKernel` is what it gives: the kernel, and whether learning it was worth it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from wassemble._checks import check_count, check_nonnegative_number, check_positive_number, fail
from wassemble._extras import load_extra
from wassemble.ensemble.completion import Unobserved
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.learning.choice import Control
from wassemble.ensemble.learning.kernels.candidates import Candidates, read_candidates
from wassemble.ensemble.learning.kernels.forms import (
    Form,
    KernelForm,
    LowRankForm,
    MixtureForm,
    mix_candidates,
    mixture_starts,
)
from wassemble.ensemble.learning.kernels.judging import Calibration, Judge, Judged
from wassemble.ensemble.learning.kernels.training import (
    Epoch,
    Schedule,
    TorchFusion,
    Training,
    one_thread,
    train,
)
from wassemble.ensemble.learning.matching import match_models
from wassemble.ensemble.learning.recipes import NAMES
from wassemble.ensemble.learning.trial import Trial, read_trial
from wassemble.ensemble.tables import read_models
from wassemble.inputs import Kind, Predictions
from wassemble.kernels import DenseKernel, LabelledKernel
from wassemble.labels import LabelSpace
from wassemble.metrics import Comparison
from wassemble.solvers import USUAL_RULE, Barycenter

# Candidates that a mixture may start from, and how much more than theirs the share of equal
# names may be where thin factors start.
_N_STARTS = 2
_OWN_FACTORS = (1.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """A kernel that was learned, from what, and whether that was worth it.

    Attributes
    ----------
    kernels : dict of model name to LabelledKernel
        Plain NumPy; models with the same labels and candidates share one object.
    parameters : dict of str to float
        A mixture's shares of the candidates, scales of blocks of entries (the first block
        has 1) and sharpness. Of a low-rank kernel its rank, the share of equal names, and
        how far it went from where it started.
    calibration : Calibration
        From the consensus to probabilities.
    history : tuple of Epoch
        Losses on the samples trained on and on those held out.
    judged : tuple of Judged
        On the held-out samples: the learned kernel, each candidate alone, equal names alone
        if there are any, and the learned kernel with its labels shuffled.
    comparison : Comparison
        Log-likelihood of the truth by the learned kernel, less that by the best candidate.
    control : Control
        The same against the learned kernel with its labels shuffled.
    fusion : Fusion
        Through the learned kernel.
    models : tuple of (str, LabelSpace)
        The models that were learned from.
    """

    kernels: dict[str, LabelledKernel]
    form: KernelForm
    parameters: dict[str, float]
    calibration: Calibration
    history: tuple[Epoch, ...]
    judged: tuple[Judged, ...]
    comparison: Comparison
    control: Control
    fusion: Fusion
    models: tuple[tuple[str, LabelSpace], ...]
    groups: dict[str, list[str]]
    n_train: int
    n_held_out: int
    seconds: float

    @property
    def kernel(self) -> LabelledKernel | dict[str, LabelledKernel]:
        """The kernel of all models, or one per model where they differ."""
        distinct = {id(kernel): kernel for kernel in self.kernels.values()}
        return next(iter(distinct.values())) if len(distinct) == 1 else dict(self.kernels)

    @property
    def best_epoch(self) -> Epoch:
        """The epoch that the kernel is from: the least loss on the held-out samples."""
        return min(self.history, key=lambda epoch: epoch.validation_loss)

    @property
    def best_candidate(self) -> Judged:
        """The candidate of least loss on the held-out samples."""
        return min((j for j in self.judged if j.is_candidate), key=lambda j: j.loss)

    @property
    def shuffled(self) -> tuple[Judged, ...]:
        """The learned kernel with its labels shuffled, by different seeds."""
        return tuple(j for j in self.judged[1:] if not j.is_candidate)

    @property
    def is_better(self) -> bool:
        """Whether it beats the best candidate in at least 95 % of the bootstrap samples.

        One standard error would not do: the held-out samples chose the epoch too.
        """
        return self.comparison.is_sure

    def predict(self, models: Sequence[Any] | Mapping[str, Any]) -> Predictions:
        """Consensus of the same models on other samples; see `match_models`. Not calibrated."""
        given, _ = read_models(models, self.fusion.kind)
        return self.fusion.run(match_models(self.models, given).models).consensus

    def remix(self, candidates: Mapping[str, Any]) -> dict[str, LabelledKernel]:
        """The same mixture of other kernels under the same names; one per model.

        So candidates that had to be made from some of the samples, to leave others for
        learning the mixture, can be made from all of them in the end.
        """
        if self.form != "mixture":
            fail(f'a learned kernel must have form="mixture" to be mixed anew; got {self.form!r}.')
        target = self.fusion.plan(dict(self.models)).target
        read = read_candidates(candidates, self.models, target, self.groups)
        return label_tables(mix_candidates(read, self.parameters), read, self.form)

    @property
    def report(self) -> str:
        """What was learned, and whether it was worth it, in words."""
        learned, best, comparison = self.judged[0], self.best_candidate, self.comparison
        loss = "log-loss" if self.calibration.task == "multiclass" else "binary cross-entropy"
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in self.parameters.items())
        last, kept = self.history[-1].number, self.best_epoch.number
        lines = [
            f"learned a {self.form} kernel on {self.n_train:,} samples, {self.n_held_out:,} held"
            " out",
            f"stopped after {last} epochs; the kernel is from epoch {kept}",
            numbers,
            f"{loss} on the held-out samples: learned {learned.loss:.4f}, best candidate"
            f" ({best.name}) {best.loss:.4f}",
        ]
        if self.is_better:
            lines.append(f"better than {best.name} by {comparison}")
        else:
            lines.append(
                f"not better than {best.name} by more than noise, {comparison}: use {best.name}"
            )
        helped = (
            "the meaning of the labels helped"
            if self.control.meaning_helped
            else "the meaning of the labels did not help: a shuffled kernel does as well"
        )
        lines.append(f"against its labels shuffled {self.control.comparison}: {helped}")
        lines.append("the held-out samples also chose the epoch: other samples judge better")
        return "\n".join(lines)


def learn_kernel(
    models: Sequence[Any] | Mapping[str, Any],
    truth: Any,
    *,
    candidates: Mapping[str, Any],
    target: LabelSpace | Sequence[str] | None = None,
    form: KernelForm = "mixture",
    rank: int = 8,
    groups: Mapping[str, Iterable[str]] | None = None,
    weights: Any = None,
    rule: Barycenter = Barycenter(USUAL_RULE.mass, max_sweeps=5, tolerance=None),
    leftover: float = 0.05,
    unobserved: Unobserved = "spread",
    kind: Kind | None = None,
    sample_weight: Any = None,
    validation_share: float = 0.3,
    max_epochs: int = 40,
    patience: int = 6,
    learning_rate: float = 0.05,
    batch_size: int = 64,
    decay: float = 0.1,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> LearnedKernel:
    """A kernel of least loss, found by gradients through the solver's sweeps.

    The loss is the log-loss of one true label, or the binary cross-entropy of several,
    after a calibration that is learned beside the kernel. Some samples are held out: they
    say when to stop, and whether the kernel beats the best candidate and its own shuffled
    self.

    Parameters
    ----------
    models, truth, target, kind, sample_weight
        As in `learn_ensemble`.
    candidates : dict of name to kernel
        Kernels to learn from, as in `learn_ensemble`. Those that come from the models'
        mistakes must come from other samples, or they look better than they are;
        `LearnedKernel.remix` puts in the final ones. Labels of equal names are always a
        candidate too. Tables are dense: for label sets of a few thousand at most.
    form : {"mixture", "low rank"}
        "mixture": at most ten numbers. Shares of the candidates, each divided by its
        largest entry, and of equal names; a scale of the entries between labels of
        different names (and one for each group); a power of the candidates' entries.
        Models share the numbers, whatever their labels.
        "low rank": thin factors of positive numbers plus a share of equal names. They start
        at the best candidate and are held near it. Needs one sample to train on for every
        two numbers.
    rank : int
        Columns of the factors.
    groups : dict of name to source labels, optional
        Labels whose entries get a scale of their own in a mixture.
    rule : Barycenter
        Of a fixed number of sweeps, through which gradients go.
    weights, leftover, unobserved
        As in `Fusion`.
    validation_share : float
        Share of the samples that is held out.
    max_epochs, patience, learning_rate, batch_size
        Passes over the samples at most; passes without progress on the held-out samples
        after which to stop; step of Adam (Kingma and Ba 2015); samples of one step.
    decay : float
        How strongly thin factors are held near where they start.
    seed : int
    progress : callable, optional
        Called as ``progress(n_epochs, max_epochs)``.

    Examples
    --------
    A model that says "wolf" for every husky; one candidate knows that, one does not.

    >>> from wassemble import LabelledKernel, Predictions
    >>> labels = ["wolf", "husky", "cat"]
    >>> said = np.tile([[0.7, 0.1, 0.2], [0.2, 0.1, 0.7]], (20, 1))
    >>> model = Predictions("tiny", range(40), labels, said)
    >>> near = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]]
    >>> far = [[1.0, 0.1, 0.9], [0.1, 1.0, 0.9], [0.9, 0.9, 1.0]]
    >>> learned = learn_kernel(
    ...     [model],
    ...     ["husky", "cat"] * 20,
    ...     candidates={
    ...         "near": LabelledKernel(near, labels),
    ...         "far": LabelledKernel(far, labels),
    ...     },
    ...     max_epochs=5,
    ... )
    >>> learned.best_candidate.name, learned.is_better
    ('near', True)
    """
    started = time.perf_counter()
    torch = load_extra("torch", "torch", purpose="learning a kernel")
    if form not in get_args(KernelForm):
        fail(f"`form` must be one of {', '.join(get_args(KernelForm))}; got {form!r}.")
    if not isinstance(rule, Barycenter) or rule.tolerance is not None:
        fail(
            f"`rule` must be a barycenter of a fixed number of sweeps; got {rule!r}.",
            hint="Barycenter(Unbalanced(2, epsilon=0.3), max_sweeps=5, tolerance=None)",
        )
    schedule = Schedule(
        check_count(max_epochs, "max_epochs"),
        check_count(patience, "patience"),
        check_positive_number(learning_rate, "learning_rate"),
        check_count(batch_size, "batch_size"),
        check_count(seed, "seed", at_least=0),
    )
    given, _ = read_models(models, kind)
    goal = target if target is None or isinstance(target, LabelSpace) else LabelSpace(target)
    trial = read_trial(given, truth, target=goal, kind=kind, sample_weight=sample_weight)
    fusion = Fusion(
        rule,
        kind=trial.kind,
        target=trial.target,
        weights=weights,
        leftover=leftover,
        unobserved=unobserved,
    )
    named = {name: list(labels) for name, labels in (groups or {}).items()}
    spaces = tuple((model.model, model.labels) for model in trial.models)
    read = read_candidates(candidates, spaces, trial.target, named)
    rows, held_out = _split(trial, validation_share, seed)
    judge = Judge(trial, fusion, rows, held_out, seed)
    rivals = [
        judge.judge(name, label_tables([s[i] for s in read.stacks], read, name), is_candidate=True)
        for i, name in enumerate(read.names)
    ]
    if read.has_names:
        rivals.append(judge.judge(NAMES, None, is_candidate=True))
    if form == "mixture":
        made: Form = _start_mixture(torch, read, judge, rivals)
    else:
        knobs = {
            "rank": check_count(rank, "rank"),
            "decay": check_nonnegative_number(decay, "decay"),
            "n_train": len(rows),
            "seed": seed,
        }
        made = _start_low_rank(torch, read, judge, rivals, knobs)
    start = label_tables(_arrays(made), read, form)
    plan = fusion.replace(kernel=start).plan(trial.models)
    in_torch = TorchFusion(torch, plan, trial, read.places)
    training = Training(torch, made, in_torch, trial, judge.calibrate(start)[0])
    with one_thread(torch):
        history = train(training, rows, held_out, schedule, progress)
    kernels = label_tables(_arrays(made), read, form)
    learned = judge.judge("learned kernel", kernels)
    shuffled = judge.control(learned, kernels)
    return LearnedKernel(
        kernels=kernels,
        form=form,
        parameters=made.described(),
        calibration=learned.calibration,
        history=history,
        judged=(learned, *rivals, *shuffled),
        comparison=learned.estimate.minus(max(rivals, key=lambda r: r.estimate.score).estimate),
        control=Control.of(learned.estimate, [each.estimate for each in shuffled]),
        fusion=fusion.replace(kernel=kernels),
        models=spaces,
        groups=named,
        n_train=len(rows),
        n_held_out=len(held_out),
        seconds=round(time.perf_counter() - started, 3),
    )


def label_tables(
    tables: Sequence[np.ndarray], candidates: Candidates, what: str
) -> dict[str, LabelledKernel]:
    """Tables as kernels with names, one per model.

    What was learned reaches everything, as mistakes do: labels are declared by name.
    """
    origin = f"{what} of {', '.join(candidates.names)}, learned"
    kernels = [
        LabelledKernel(
            DenseKernel(table),
            source,
            candidates.target,
            origin,
            declared=own.any(axis=0) if own.any() else None,
        )
        for table, source, own in zip(tables, candidates.sources, candidates.own, strict=True)
    ]
    return {model: kernels[place] for model, place in candidates.places.items()}


def _start_mixture(
    torch: Any, candidates: Candidates, judge: Judge, rivals: Sequence[Judged]
) -> MixtureForm:
    """The start of least loss on the samples to train on."""
    best = sorted(rivals, key=lambda rival: rival.train_loss)[:_N_STARTS]
    starts = mixture_starts(candidates, [rival.name for rival in best])

    def loss(start: Mapping[str, float]) -> float:
        kernels = label_tables(mix_candidates(candidates, start), candidates, "mixture")
        return judge.calibrate(kernels)[1]

    return MixtureForm(torch, candidates, min(starts, key=loss))


def _start_low_rank(
    torch: Any,
    candidates: Candidates,
    judge: Judge,
    rivals: Sequence[Judged],
    knobs: Mapping[str, Any],
) -> LowRankForm:
    """Factors of the best candidate, with the share of equal names of least loss."""
    best = int(np.argmin([rival.train_loss for rival in rivals[: len(candidates.names)]]))
    factors = _OWN_FACTORS if candidates.has_names else (1.0,)
    forms = [LowRankForm(torch, candidates, best, own_factor=f, **knobs) for f in factors]

    def loss(form: LowRankForm) -> float:
        return judge.calibrate(label_tables(_arrays(form), candidates, "low rank"))[1]

    return min(forms, key=loss) if len(forms) > 1 else forms[0]


def _split(trial: Trial, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples to train on and samples held out; true labels are spread evenly over both."""
    share = check_positive_number(share, "validation_share")
    if share >= 1:
        fail(f"`validation_share` must be below 1; got {share:g}.")
    usable = np.any([model.answered for model in trial.models], axis=0)
    if trial.sample_weight is not None:
        usable &= trial.sample_weight > 0
    if trial.task == "multilabel":
        usable &= ~np.isnan(trial.truth).all(axis=1)
    rows = np.flatnonzero(usable)
    if len(rows) < 2:
        fail(f"at least two samples must have an answer and a truth; got {len(rows)}.")
    # As many folds as samples give each its place in an order that keeps labels together.
    place = trial.take(rows).folds(len(rows), seed)
    is_held = np.floor((place + 1) * share) > np.floor(place * share)
    if not is_held.any() or is_held.all():
        fail(
            f"`validation_share` must leave samples on both sides; got {share:g} of"
            f" {len(rows):,} samples."
        )
    return rows[~is_held], rows[is_held]


def _arrays(form: Form) -> list[np.ndarray]:
    return [table.detach().numpy().copy() for table in form.tables()]
