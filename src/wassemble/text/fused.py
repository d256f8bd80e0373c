"""Several next-word models that look like one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wassemble._checks import check_count, fail
from wassemble.labels import LabelSpace
from wassemble.solvers import Barycenter, Rule
from wassemble.text.kernels import words_to_read
from wassemble.text.models import NextWordModel
from wassemble.text.selection import Selector
from wassemble.text.steps import FusedStep, StepFusion
from wassemble.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class FusedState:
    """States of the models, and what the fusion carries from step to step."""

    states: list[Any]
    items: np.ndarray  # (n_rows,): the item of the context that each row belongs to
    log_v: np.ndarray | None  # (n_models, n_rows, n_words): scalings of the last step


@dataclass
class StepAccount:
    """What fusing cost and left out, over all rows of all steps so far."""

    n_rows: int = 0
    n_converged: int = 0  # rows
    n_sweeps: int = 0  # of all rows
    most_dropped: float = 0.0  # largest share of a model's mass on words left out of a row
    _dropped: float = field(default=0.0, repr=False)

    @property
    def mean_dropped(self) -> float:
        """Mean over rows of the share that the model hit hardest lost."""
        return self._dropped / max(self.n_rows, 1)

    def add(self, step: FusedStep) -> None:
        """Count a step."""
        self.n_rows += len(step.converged)
        self.n_converged += int(step.converged.sum())
        self.n_sweeps += int(step.n_sweeps.sum())
        self.most_dropped = max(self.most_dropped, float(step.dropped_mass.max(initial=0)))
        self._dropped += float(step.dropped_mass.sum())


class FusedNextWord:
    """Several next-word models as one `NextWordModel`: at each step their histograms are fused.

    A search does not know that there are several.

    Parameters
    ----------
    models : sequence of NextWordModel
    kernel : LabelledKernel, Kernel, array or sparse matrix, or one per model; optional
        How similar each word of a model is to each word of the consensus. With names, it
        is matched by them. Special words, digits and punctuation always keep to
        themselves. Without a kernel, words are similar to themselves alone.
    rule : Barycenter or PowerMean
        With a kernel, a mean is taken of what each model alone sends through it. A word is
        chosen by its rank: the default stops sooner than `Barycenter()` does.
    weights : array of shape (n_models,) or (n_models, n_words), optional
        On the simplex over models; uniform if not given. On words that a model's kernel
        cannot reach the other models decide.
    n_top : int, optional
        Only this many words take part in a step: those that some model finds most likely
        for some unfinished sentence of an item, and the end; all others count as one.
        Best with a dense kernel. `account` says how much mass the others had.
    warm_start : bool
        Start each step from the scalings of the last. It changes no converged answer and
        needs a tolerance. The next word has little in common with the last: measure whether
        it saves sweeps.
    target : Vocabulary, optional
        Words of the consensus; all words of all models if not given.

    Attributes
    ----------
    vocabulary : Vocabulary
    kernels : list of Kernel
        One per model, from its words to those of the consensus.
    account : StepAccount

    Examples
    --------
    >>> from wassemble.text import NGramModel, beam_search
    >>> models = [
    ...     NGramModel.fit([["a", "cat", "sleeps"]], order=2),
    ...     NGramModel.fit([["a", "cat", "purrs"], ["a", "dog", "sleeps"]], order=2),
    ... ]
    >>> fused = FusedNextWord(models)
    >>> beam_search(fused, [None], length_power=1)[0][0].text
    'a cat sleeps'
    """

    def __init__(
        self,
        models: Sequence[NextWordModel],
        *,
        kernel: Any = None,
        rule: Rule = Barycenter(max_sweeps=200, tolerance=1e-4),
        weights: Any = None,
        n_top: int | None = None,
        warm_start: bool = False,
        target: Vocabulary | None = None,
    ) -> None:
        self.models = list(models)
        if not self.models:
            fail("`models` must hold at least one model; got none.")
        vocabularies = [model.vocabulary for model in self.models]
        self.vocabulary = _union(vocabularies) if target is None else target
        _check_rule(rule)
        if warm_start and not rule.stops_at_tolerance:
            fail(
                "`warm_start` must go with a barycenter and a tolerance: after a fixed number of"
                " sweeps it would change the answer."
            )
        self._warm_start = warm_start
        selector = Selector(vocabularies, self.vocabulary, kernel, weights)
        n_top = None if n_top is None else check_count(n_top, "n_top")
        self.kernels = selector.kernels
        self.fusion = StepFusion(selector, rule, n_top)
        self._reads = [
            words_to_read(own, vocabulary, self.vocabulary)
            for own, vocabulary in zip(self.kernels, vocabularies, strict=True)
        ]
        self.account = StepAccount()

    def start(self, context: Any) -> FusedState:
        """States of all models for the same context, one row for each of its items."""
        states = [model.start(context) for model in self.models]
        return FusedState(states, np.arange(len(context)), None)

    def step(self, state: FusedState, words: np.ndarray) -> tuple[np.ndarray, FusedState]:
        """Fused log probabilities of the next word, and the state after ``words``."""
        logs, states = self.step_models(state.states, words)
        step = self.fusion.fuse(logs, state.items, state.log_v, keep_scalings=self._warm_start)
        self.account.add(step)
        return step.log_probabilities, FusedState(states, state.items, step.log_v)

    def step_models(
        self, states: Sequence[Any], words: np.ndarray
    ) -> tuple[list[np.ndarray], list[Any]]:
        """What each model says after ``words`` of the consensus, and the models' states."""
        steps = [
            model.step(state, reads[words])
            for model, state, reads in zip(self.models, states, self._reads, strict=True)
        ]
        return [logs for logs, _ in steps], [state for _, state in steps]

    def reorder(self, state: FusedState, rows: np.ndarray) -> FusedState:
        states = [m.reorder(s, rows) for m, s in zip(self.models, state.states, strict=True)]
        log_v = None if state.log_v is None else state.log_v[:, rows]
        return FusedState(states, state.items[rows], log_v)


def _check_rule(rule: Rule) -> None:
    """Refuse rules that look at all words at once, of which a step takes some at a time."""
    if not isinstance(rule, Rule) or not rule.fuses_parts:
        fail(f"`rule` must be a Barycenter or a PowerMean; got {rule!r}.")
    if getattr(rule, "n_top", None) is not None:
        fail(
            "`n_top` must be said beside the rule: it chooses words for all models; got it in the"
            " rule.",
            hint="FusedNextWord(models, n_top=...)",
        )


def _union(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    """All words of all models, with the first model's special words for those of every model."""
    first = vocabularies[0]
    if all(vocabulary == first for vocabulary in vocabularies):
        return first
    others = (
        [word for word in vocabulary.words if word not in vocabulary.special]
        for vocabulary in vocabularies[1:]
    )
    words = LabelSpace.union(first.words, *others)
    return Vocabulary(words, first.start, first.end, first.unknown)
