"""Every experiment by name, in the paper's order; modules are loaded when one is run."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from wassemble.errors import fail


@dataclass(frozen=True)
class Experiment:
    """One experiment."""

    name: str
    module: str  # inside this package, with a frozen dataclass `Config` and `run(config, progress)`
    title: str
    paper: str  # the table, figure or statement of the paper that it is about

    @property
    def is_captioning(self) -> bool:
        """Whether it needs trained captioners, and torch; ``all`` leaves it out."""
        return self.module.startswith("captioning.")

    def load(self) -> ModuleType:
        """Its module."""
        return import_module(f"paper.{self.module}")


# Name, title and place in the paper; behind the name its module, where that has another.
_ALL = """\
caption-attributes | Objects from what captions say | Section 6.1, without a circle
attributes | Animals from attributes | Section 6.1, table 4; table 12, row 1 (circular)
multilabel=multilabel.experiment | Objects in images | Section 6.2, tables 5, 6 and 10
weighted=multilabel.weighted | Weights by performance | Appendix B.2, table 11
cost-sensitive | When mistakes cost differently | Table 1, row 3
expansion | Larger vocabularies | Table 12, row 2
multilingual | Several languages | Table 12, row 3
entropy=captioning.entropy | Controllable entropy | Section 4, tables 2, 3 and 8, figures 4 and 5
mapping=words.mapping | Where consensus words come from | Table 9
shuffle | Robustness to semantic shuffling | Section 6.3, figure 2, right panel
properties=theory | Bounds on real predictions | Proposition 1, lemma 2, remarks
timing | Time | Appendix E, table 13
languages | Nine language detectors | Beyond the paper: different label sets
learned-kernels | Learned kernels | Beyond the paper: K from validation data
captioning-glove | Captions through GloVe | Section 6.3, figure 1 and table 7
captioning-synonyms | Captions through synonyms | Section 6.3, figure 2, left and centre
captioning-shuffle | Captions from shuffled predictions | Section 6.3, figure 2, right panel
captioning-examples | Captions side by side | Appendix A, figure 6
captioning-beyond | Three ideas on captions | Beyond the paper: kernels and rules of our own
captioning-vocabulary | Captioners with different words | Beyond the paper: a vocabulary per model
"""


def _read(line: str) -> Experiment:
    named, title, place = line.split(" | ")
    name, _, module = named.partition("=")
    usual = name.replace("captioning-", "captioning.").replace("-", "_")
    return Experiment(name, module or usual, title, place)


EXPERIMENTS = {each.name: each for each in map(_read, _ALL.splitlines())}


def find_experiment(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        fail(
            f"an experiment must be one of {', '.join(EXPERIMENTS)}; got {name!r}.",
            hint="`python -m paper reproduce list` says what each is about",
        )
    return EXPERIMENTS[name]
