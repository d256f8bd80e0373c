"""Every experiment by name, in the paper's order; modules are loaded when one is run."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from wassemble.errors import fail

__all__ = ["EXPERIMENTS", "Experiment", "find_experiment"]


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Attributes
    ----------
    module : str
        Its module inside this package: a frozen dataclass ``Config``, and
        ``run(config, progress)``.
    paper : str
        The table, figure or statement of the paper that it is about.
    is_captioning : bool
        Whether it needs trained captioners, and torch; ``all`` leaves it out.
    """

    name: str
    module: str
    title: str
    paper: str
    is_captioning: bool = False

    def load(self) -> ModuleType:
        """Its module."""
        return import_module(f"paper.{self.module}")


_ALL = (
    Experiment(
        "attributes",
        "attributes",
        "Animals from attributes",
        "Section 6.1, table 4; table 12, row 1",
    ),
    Experiment(
        "multilabel",
        "multilabel.experiment",
        "Objects in images",
        "Section 6.2, tables 5, 6 and 10",
    ),
    Experiment(
        "weighted", "multilabel.weighted", "Weights by performance", "Appendix B.2, table 11"
    ),
    Experiment(
        "cost-sensitive",
        "cost_sensitive.experiment",
        "When mistakes cost differently",
        "Table 1, row 3",
    ),
    Experiment("expansion", "expansion.experiment", "Larger vocabularies", "Table 12, row 2"),
    Experiment("multilingual", "multilingual.experiment", "Several languages", "Table 12, row 3"),
    Experiment(
        "entropy",
        "words.entropy",
        "Controllable entropy",
        "Section 4, tables 2, 3 and 8, figures 4 and 5",
    ),
    Experiment("mapping", "words.mapping", "Where consensus words come from", "Table 9"),
    Experiment(
        "shuffle",
        "shuffle.experiment",
        "Robustness to semantic shuffling",
        "Section 6.3, figure 2, right panel",
    ),
    Experiment(
        "properties",
        "theory.properties",
        "Bounds on real predictions",
        "Proposition 1, lemma 2, remarks",
    ),
    Experiment("timing", "timing", "Time", "Appendix E, table 13"),
    Experiment(
        "languages",
        "languages",
        "Nine language detectors",
        "Beyond the paper: different label sets",
    ),
    Experiment(
        "learned-kernels",
        "learned_kernels.experiment",
        "Learned kernels",
        "Beyond the paper: K from validation data",
    ),
    Experiment(
        "captioning-glove",
        "captioning.glove",
        "Captions through GloVe",
        "Section 6.3, figure 1 and table 7",
        is_captioning=True,
    ),
    Experiment(
        "captioning-synonyms",
        "captioning.synonyms",
        "Captions through synonyms",
        "Section 6.3, figure 2, left and centre",
        is_captioning=True,
    ),
    Experiment(
        "captioning-shuffle",
        "captioning.shuffle",
        "Captions from shuffled predictions",
        "Section 6.3, figure 2, right panel",
        is_captioning=True,
    ),
    Experiment(
        "captioning-examples",
        "captioning.examples",
        "Captions side by side",
        "Appendix A, figure 6",
        is_captioning=True,
    ),
    Experiment(
        "captioning-vocabulary",
        "captioning.vocabulary",
        "Captioners with different words",
        "Beyond the paper: a vocabulary per model",
        is_captioning=True,
    ),
)

EXPERIMENTS = {each.name: each for each in _ALL}


def find_experiment(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        fail(
            f"an experiment must be one of {', '.join(EXPERIMENTS)}; got {name!r}.",
            hint="`python -m paper reproduce list` says what each is about",
        )
    return EXPERIMENTS[name]
