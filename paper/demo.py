"""`python -m paper demo`: one real case on one screen, with a page of evidence behind it.

Nine language detectors, each trained by other people on other texts, are asked about texts whose
language is known from elsewhere: no table that made their answers is used to fuse them.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from paper.record.command import out_option
from wassemble.cli.console import progress_bar
from wassemble.cli.places import Command

if TYPE_CHECKING:
    from paper.evidence.cases import Case
    from wassemble.ensemble.learning import LearnedEnsemble

_WIDTH = 47
_SHORT = 60  # characters of a text that is shown


@click.command(cls=Command, short_help="Fuse nine language detectors, on one screen.")
@out_option
def demo(out: Path) -> None:
    """Fuse nine language detectors and print how right the consensus is, and why, on one screen.

    \b
    python -m paper demo --out reports
    """
    from paper.evidence.cases import Case, Draw
    from paper.evidence.tasks import TASKS
    from wassemble.report import write_report

    case = Case(TASKS["languages"](), Draw())
    learned = _learn(case)
    shown = _Shown(case, learned)
    page = out / "demo.html"
    models, truth = case.models(case.test), case.names(case.test)
    out.mkdir(parents=True, exist_ok=True)
    write_report(learned, models, truth, page, title=case.task.title, texts=case.task.texts)
    click.echo("\n".join([*shown.title(), *shown.figures(), "", *shown.reason(), "", *_next(page)]))


def _learn(case: Case) -> LearnedEnsemble:
    """What is chosen on the samples to learn from; no clock, so that it is the same anywhere."""
    from wassemble.ensemble.learning import learn_ensemble

    groups = [case.task.groups[i] for i in case.known] if case.task.groups else None
    with progress_bar("learning how to fuse them", quiet=False) as progress:
        return learn_ensemble(
            case.models(case.known), case.names(case.known), groups=groups, progress=progress,
            **case.task.meanings,
        )  # fmt: skip


class _Shown:
    """What is told of a case, in lines."""

    def __init__(self, case: Case, learned: LearnedEnsemble) -> None:
        self.case, self.learned = case, learned

    def title(self) -> list[str]:
        models, target = self.case.task.models, self.case.task.target
        known = sorted(len(set(model.labels) & set(target)) for model in models)
        return [
            f"{len(models)} language detectors know {known[0]} to {known[-1]} each of the"
            f" {len(target)} languages of {len(self.case.test):,} texts",
            "",
            f"{'':{_WIDTH}}right    95 % interval",
        ]

    def figures(self) -> list[str]:
        from paper.evidence.rivals import best_single, logistic, oracle

        single = best_single(self.case)
        rows = {
            f"best single detector, {single.picked}": single.scores,
            'mean, silence counted as "no"': self._plain_mean,
            "mean over those that know the language": self._mean(),
            "logistic regression on all scores": logistic(self.case).scores,
            "consensus": self._consensus,
            "some detector is right (no rule)": oracle(self.case).scores,
        }
        return [self._line(name, scores) for name, scores in rows.items()]

    def reason(self) -> list[str]:
        """One text that a mean gets wrong, and why."""
        task, one = self.case.task, self._find_text()
        truth = task.truth[self.case.test[one]]
        wrong = task.target[int(self._plain_mean[one].argmax())]
        n_known = sum(truth in model.labels for model in task.models)
        return [
            f'Why: "{self._text(one)}" is {truth}; the mean says {wrong}.',
            f"{truth} is known to {n_known} of the {len(task.models)} detectors, and the mean takes"
            " the silence of the others for a no.",
            f"The consensus does not, and it has learned from {len(self.case.known):,} other texts",
            f"what each detector says when it is wrong. It is a {self.learned.fitted.recipe.name}.",
        ]

    def _find_text(self) -> int:
        """The first short text that the consensus gets right and a mean does not."""
        truth = self.case.places[self.case.test]
        is_helped = self._plain_mean.argmax(axis=1) != truth
        is_helped &= self._consensus.argmax(axis=1) == truth
        helped: list[int] = np.flatnonzero(is_helped).tolist()
        return next(nth for nth in helped if len(self._text(nth)) <= _SHORT)

    def _text(self, nth: int) -> str:
        sample = self.case.task.models[0].samples[self.case.test[nth]]
        return (self.case.task.texts or {})[str(sample)]

    @cached_property
    def _plain_mean(self) -> np.ndarray:
        return self._mean(leftover=1.0)

    @cached_property
    def _consensus(self) -> np.ndarray:
        return np.nan_to_num(self.learned.predict(self.case.models(self.case.test)).scores)

    def _mean(self, **options: Any) -> np.ndarray:
        from wassemble.ensemble import Fusion
        from wassemble.solvers import ARITHMETIC

        fusion = Fusion(ARITHMETIC, **self.case.task.meanings, **options)
        return np.nan_to_num(fusion.fuse(self.case.models(self.case.test)).scores)

    def _line(self, name: str, scores: np.ndarray) -> str:
        found = self.case.bootstrap.estimate(scores)
        low, high = (f"{100 * each:.1f}" for each in found.interval)
        return f"{name:{_WIDTH}}{100 * found.score:.1f} %   {low} to {high}"


def _next(page: Path) -> list[str]:
    return [
        f"Open {page}: every rule beside the others, each label, each disputed text.",
        "Then fuse files of your own: `.venv/bin/pip install -e '.[cli]'`, and"
        " docs/guides/fuse-files.md.",
    ]
