"""What `learn_kernel` gives: the kernel, what it was learned from, and whether it was worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble.learning.choice import Control
from wassemble.ensemble.learning.kernel_candidates import Candidates, read_candidates
from wassemble.ensemble.learning.kernel_forms import KernelForm, mix_candidates
from wassemble.ensemble.learning.kernel_judging import Judged
from wassemble.ensemble.learning.kernel_losses import Calibration
from wassemble.ensemble.learning.kernel_training import Epoch
from wassemble.ensemble.plan import FusionPlan
from wassemble.ensemble.tables import align_samples, read_models
from wassemble.inputs import Predictions
from wassemble.kernels import DenseKernel, LabelledKernel
from wassemble.metrics import Comparison

__all__ = ["LearnedKernel", "label_tables"]


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
    plan : FusionPlan
        The models through the learned kernel.
    """

    kernels: dict[str, LabelledKernel]
    form: KernelForm
    parameters: dict[str, float]
    calibration: Calibration
    history: tuple[Epoch, ...]
    judged: tuple[Judged, ...]
    comparison: Comparison
    control: Control
    plan: FusionPlan
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
        """Consensus of the same models on other samples; matched by name, not calibrated."""
        by_name = {model.model: model for model in read_models(models, self.plan.kind)[0]}
        missing = [member.model for member in self.plan.members if member.model not in by_name]
        if missing:
            fail(
                f"every model that was learned from must be there; {', '.join(missing)} is missing."
            )
        members = align_samples([by_name[member.model] for member in self.plan.members])
        return Predictions(
            "consensus",
            members[0].samples,
            self.plan.target,
            self.plan.fuse(members).scores,
            kind=self.plan.kind,
        )

    def remix(self, candidates: Mapping[str, Any]) -> dict[str, LabelledKernel]:
        """The same mixture of other kernels under the same names; one per model.

        So candidates that had to be made from some of the samples, to leave others for
        learning the mixture, can be made from all of them in the end.
        """
        if self.form != "mixture":
            fail(f'a learned kernel must have form="mixture" to be mixed anew; got {self.form!r}.')
        models = [(member.model, member.labels) for member in self.plan.members]
        read = read_candidates(candidates, models, self.plan.target, self.groups)
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
