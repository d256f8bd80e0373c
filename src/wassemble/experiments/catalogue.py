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
    paper : str
        The table, figure or statement of the paper that it is about.
    is_captioning : bool
        Whether it needs trained captioners, and torch; ``all`` leaves it out.
    """

    name: str
    title: str
    paper: str
    is_captioning: bool = False

    def load(self) -> ModuleType:
        """Its module: a frozen dataclass ``Config``, and ``run(config, progress)``."""
        return import_module(f"wassemble.experiments.{self.name.replace('-', '_')}")


_ALL = (
    Experiment("attributes", "Animals from attributes", "Section 6.1, table 4; table 12, row 1"),
    Experiment("multilabel", "Objects in images", "Section 6.2, tables 5, 6 and 10"),
    Experiment("weighted", "Weights by performance", "Appendix B.2, table 11"),
    Experiment("cost-sensitive", "When mistakes cost differently", "Table 1, row 3"),
    Experiment("expansion", "Larger vocabularies", "Table 12, row 2"),
    Experiment("multilingual", "Several languages", "Table 12, row 3"),
    Experiment("entropy", "Controllable entropy", "Section 4, tables 2, 3 and 8, figures 4 and 5"),
    Experiment("mapping", "Where consensus words come from", "Table 9"),
    Experiment("shuffle", "Robustness to semantic shuffling", "Section 6.3, figure 2, right panel"),
    Experiment("properties", "Bounds on real predictions", "Proposition 1, lemma 2, remarks"),
    Experiment("timing", "Time", "Appendix E, table 13"),
    Experiment("languages", "Nine language detectors", "Beyond the paper: different label sets"),
    Experiment("learned-kernels", "Learned kernels", "Beyond the paper: K from validation data"),
    Experiment(
        "captioning-glove",
        "Captions through GloVe",
        "Section 6.3, figure 1 and table 7",
        is_captioning=True,
    ),
    Experiment(
        "captioning-synonyms",
        "Captions through synonyms",
        "Section 6.3, figure 2, left and centre",
        is_captioning=True,
    ),
    Experiment(
        "captioning-shuffle",
        "Captions from shuffled predictions",
        "Section 6.3, figure 2, right panel",
        is_captioning=True,
    ),
    Experiment(
        "captioning-examples",
        "Captions side by side",
        "Appendix A, figure 6",
        is_captioning=True,
    ),
    Experiment(
        "captioning-vocabulary",
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
            hint="`wassemble reproduce list` says what each is about",
        )
    return EXPERIMENTS[name]
