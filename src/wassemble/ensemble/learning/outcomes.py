"""What came out on held-out samples: a line for each rule, and what follows from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from wassemble.ensemble.learning.recipes import Recipe
from wassemble.inputs import Kind
from wassemble.metrics import Comparison

__all__ = ["Evaluation", "Outcome"]

# A rule minus itself.
_NONE = Comparison(0.0, 0.0, 0.0, 0.0, 0.5)


@dataclass(frozen=True)
class Outcome:
    """One rule on held-out samples.

    Attributes
    ----------
    recipe : Recipe or None
        None for stacking, which is a rival only.
    score, standard_error, low, high : float
        The user's metric, and its bootstrap standard error and 95 % interval.
    against_chosen : Comparison or None
        This rule minus the chosen one on the same samples; None for the chosen one.
    microseconds : float
        Per sample, fused in one call on this machine.
    figures : dict of str to float
        Other metrics. Multi-class: accuracy, top_5_accuracy, log_loss, brier_score,
        calibration_error. Multi-label: mAP, and precision, recall and F1 where the three
        best labels of each sample are decided, which needs no thresholds.
    """

    name: str
    recipe: Recipe | None
    score: float
    standard_error: float
    low: float
    high: float
    against_chosen: Comparison | None
    microseconds: float
    figures: dict[str, float]
    is_chosen: bool = False

    @property
    def is_simple(self) -> bool:
        """Whether it is a single model or a mean; its weights may be learned."""
        return self.recipe is not None and self.recipe.is_simple

    @property
    def is_plain(self) -> bool:
        """Whether it is what one has without learning: a single model, or an even mean."""
        return self.recipe is not None and self.recipe.is_plain

    @property
    def model(self) -> str | None:
        """The name of a model alone; None for any other rule."""
        return None if self.recipe is None else self.recipe.model

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        recipe = None if self.recipe is None else self.recipe.to_dict()
        sort = {"is_simple": self.is_simple, "is_plain": self.is_plain}
        return asdict(self) | {"recipe": recipe} | sort


@dataclass(frozen=True)
class Evaluation:
    """What was chosen on validation data, and whether it holds elsewhere.

    Attributes
    ----------
    outcomes : tuple of Outcome
        The chosen rule and its rivals, best first.
    sharpened : dict of str to float, or None
        Multi-class: other metrics of the chosen rule after its learned temperature. Rivals
        have none, so that ``outcomes`` are all without.
    decided : dict of str to float, or None
        Multi-label: precision, recall and F1 of the chosen rule with its learned thresholds,
        which belong to no other rule.
    """

    task: Kind
    metric: str
    n_samples: int
    outcomes: tuple[Outcome, ...]
    sharpened: dict[str, float] | None
    decided: dict[str, float] | None
    seed: int

    @property
    def chosen(self) -> Outcome:
        """The rule that was learned."""
        return next(each for each in self.outcomes if each.is_chosen)

    @property
    def best_simple(self) -> Outcome | None:
        """The best single model or mean on these samples beside the chosen rule.

        Its weights may be learned. None if there is no other.
        """
        return next((e for e in self.outcomes if e.is_simple and not e.is_chosen), None)

    @property
    def best_plain(self) -> Outcome:
        """The best rule without anything learned on these samples; may be the chosen one."""
        return next(each for each in self.outcomes if each.is_plain)

    @property
    def best_single(self) -> Outcome:
        """The best single model on these samples."""
        return next(each for each in self.outcomes if each.model is not None)

    @property
    def gain(self) -> Comparison:
        """The chosen rule minus the best simple one beside it.

        That one is picked on these very samples, which favours it.
        """
        return _NONE if self.best_simple is None else self.gain_over(self.best_simple)

    def gain_over(self, other: Outcome) -> Comparison:
        """The chosen rule minus another."""
        return _NONE if other.against_chosen is None else other.against_chosen.reverse()

    @property
    def is_worse_than_simple(self) -> bool:
        """Whether the chosen rule loses to the best simple one by more than a standard error."""
        return self.gain.is_worse

    @property
    def verdict(self) -> str:
        """The chosen rule against the best simple one beside it, in a few words."""
        return "there is no other simple rule" if self.best_simple is None else self.gain.verdict

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row of a table for each rule, best first."""
        return [
            {
                "rule": each.name,
                "chosen": each.is_chosen,
                self.metric: each.score,
                "standard_error": each.standard_error,
                "against_chosen": "" if each.against_chosen is None else str(each.against_chosen),
                "microseconds": each.microseconds,
                **{name: value for name, value in each.figures.items() if name != self.metric},
            }
            for each in self.outcomes
        ]

    def lines(self) -> list[str]:
        """The table and what follows from it, for a terminal."""
        width = max(len(each.name) for each in self.outcomes)
        said = [f"{self.metric} on {self.n_samples:,} samples that nothing was learned from:"]
        for each in self.outcomes:
            mark = "*" if each.is_chosen else " "
            against = "chosen" if each.against_chosen is None else str(each.against_chosen)
            said.append(
                f"{mark} {each.score:.4f} +- {each.standard_error:.4f}  {each.name:<{width}}"
                f"  {each.microseconds:8.1f} us per sample  {against}"
            )
        return [*said, *self.conclusion()]

    def conclusion(self) -> list[str]:
        """The best simple rule beside the chosen one, and by how much they differ."""
        if self.best_simple is None:
            return []
        return [
            f"best simple rule beside the chosen one: {self.best_simple.name}",
            f"the chosen rule differs from it by {self.gain}: {self.verdict}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "task": self.task,
            "metric": self.metric,
            "n_samples": self.n_samples,
            "outcomes": [each.to_dict() for each in self.outcomes],
            "chosen": self.chosen.name,
            "best_simple": None if self.best_simple is None else self.best_simple.name,
            "best_plain": self.best_plain.name,
            "best_single": self.best_single.name,
            "gain": asdict(self.gain),
            "is_worse_than_simple": self.is_worse_than_simple,
            "verdict": self.verdict,
            "sharpened": self.sharpened,
            "decided": self.decided,
            "seed": self.seed,
        }
