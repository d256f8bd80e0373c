"""What votes mean: the rule of ensembles that were learned without truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from wassemble._arrays import Array
from wassemble._checks import Constraints, OneOf, fail
from wassemble.solvers.stacked import Feature, Parameters, Sight, StackedRule, Task

if TYPE_CHECKING:
    from wassemble.solvers.problem import FusionProblem

_BELIEFS = (
    "reliability per model",
    "reliability per model and label",
    "reliability per model and label, errors near",
    "confusions",
)


@final
@dataclass(frozen=True)
class VoteProduct(StackedRule):
    """How likely each label is, given what each model says where that label is true.

    Bayes' rule, with the likelihoods of all models multiplied (Dawid and Skene 1979); those of
    models that repeat each other are raised to their shares of a vote. A model that did not
    answer counts only if it was learned what its silence means.

    Parameters
    ----------
    belief : str
        What was learned of each model: "reliability per model", "reliability per model and
        label", "reliability per model and label, errors near" or "confusions".
    task : {"multiclass"}
    parameters : Parameters, optional
        What it was fitted to: ``balance``, ``silence`` and ``meaning 0``, ``meaning 1`` ..., all
        logs, for each target label.
    """

    key: ClassVar[str] = "vote product"
    constraints: ClassVar[Constraints] = {
        "belief": OneOf(_BELIEFS),
        "task": OneOf(("multiclass",)),
    }

    belief: str = _BELIEFS[0]
    task: Task = "multiclass"
    parameters: Parameters | None = None

    def margins(self, sight: Sight) -> Array:
        return sum(part for _, part in self.contributions(sight))

    def contributions(self, sight: Sight) -> list[tuple[Feature, Array]]:
        balance = sight.repeat(self.arrays["balance"])
        parts = [(Feature("frequencies", "how often the label is true"), balance)]
        for model, best in enumerate(sight.answers):
            silence = (~sight.answered[model])[:, None] * self.arrays["silence"][model]
            said = best @ self.arrays[f"meaning {model}"] + silence
            parts.append((Feature("votes", "what its answer means", model), said))
        return parts

    def _check_problem(self, problem: FusionProblem) -> None:
        n_models = len(self.arrays["silence"])
        learned = [self.arrays[f"meaning {model}"].shape for model in range(n_models)]
        given = [kernel.shape for kernel in problem.kernels]
        if learned != given:
            fail(
                "votes must be of the models that were learned from, with kernels of shapes"
                f" {', '.join(map(str, learned))}; got {', '.join(map(str, given))}."
            )

    def __str__(self) -> str:
        return f"votes by {self.belief}"
