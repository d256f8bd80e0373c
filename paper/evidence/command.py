"""`python -m paper evidence`: learn and judge an ensemble on real tasks, beside its rivals.

`python -m paper heads` freezes what is learned there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paper.record.command import out_option
from wassemble.cli.console import print_json, print_table, progress_bar, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command
from wassemble.errors import WassembleError

if TYPE_CHECKING:
    from paper.evidence.cases import Case
    from paper.evidence.records import Record
    from wassemble.ensemble.learning import LearnedEnsemble

NAMES = (
    "animals",
    "languages",
    "voc",
    "coco",
    "cifar100",
    "encodings",
    "encodings-without-best",
    "part-of-speech",
    "digits",
    "strong-networks",
)
"""The tasks, by name."""
_SIDES = ("rivals", "ours")


@click.command(cls=Command, short_help="Learn and test ensembles on real tasks.")
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[TASK]...")
@out_option
@click.option(
    "--time-budget",
    type=float,
    help="Seconds that learning may take on a task.  [default: as long as it needs]",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Learn from all samples of each task's own split: no smaller shares, no new splits.",
)
@click.option("--only", type=click.Choice(_SIDES), help="Judge rivals alone, or ours alone.")
@click.option("--no-pages", is_flag=True, help="Write no page about what was learned on a task.")
@output_options
def evidence(
    names: tuple[str, ...],
    out: Path,
    time_budget: float | None,
    quick: bool,
    only: str | None,
    no_pages: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Learn an ensemble on each TASK and test it beside its rivals; on all if none is given.

    Rivals are what one would try instead: the best single model, the best simple rule, greedy
    weights, and scikit-learn's logistic regression and gradient boosting on all scores. All learn
    from the same samples: all of them, a quarter, a twentieth. What is recorded in --out is not
    made again, so that the same command resumes a run that was interrupted; evidence.json sums up
    all records that are there.

    \b
    python -m paper evidence languages --quick
    python -m paper evidence encodings part-of-speech --only rivals
    """
    import json

    from paper.evidence.records import find_records
    from paper.evidence.summary import list_figures, list_verdicts, summarise
    from wassemble._files import write_whole

    chosen = list(dict.fromkeys(names)) or list(NAMES)
    sides = _SIDES if only is None else (only,)
    run = _Run(out, sides, time_budget, quick=quick, has_pages=not no_pages, quiet=quiet)
    for number, name in enumerate(chosen, start=1):
        run.judge(name, f"{number}/{len(chosen)}")
    found = summarise(find_records(out, list(NAMES)))
    write_whole(out / "evidence.json", json.dumps(found, indent=1) + "\n")
    shown = {name: found[name] for name in chosen if name in found}
    if as_json:
        print_json(shown)
        return
    for name, task in shown.items():
        for line in task["rows"][0]["words"]:
            talk(f"{name}: {line}", quiet=quiet)
    figures = list_figures(shown)
    if figures:  # there are none before both sides are judged
        print_table(["task and rule", "score", "ours minus it, 95 % interval", "picked"], figures)
    for verdict in list_verdicts(shown):
        talk(verdict, quiet=quiet)
    talk(f"wrote {out / 'evidence.json'}", quiet=quiet)


@click.command(cls=Command, short_help="Freeze the ensembles of real tasks, and compare.")
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[TASK]...")
@out_option
@click.option(
    "--time-budget",
    type=float,
    default=100.0,
    show_default=True,
    help="Seconds that learning may take on a task.",
)
@output_options
def heads(
    names: tuple[str, ...], out: Path, time_budget: float, as_json: bool, quiet: bool
) -> None:
    """Learn an ensemble on each TASK, on all if none is given, and freeze it into an ONNX file.

    So is every other rule of its leaderboard. Sweeps and arithmetic are chosen on the samples that
    were learned from; the heads then answer all test samples, and their scores are compared with
    those of the library. heads.json has what was found.

    \b
    python -m paper heads digits
    """
    import json

    from paper.evidence.heads import compare_task
    from wassemble._files import write_whole

    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(names) or NAMES:
        found += compare_task(name, out, time_budget)
        talk(f"{name}: {len(found)} heads so far", quiet=quiet)
    write_whole(out / "heads.json", json.dumps(found, indent=1) + "\n")
    if as_json:
        print_json(found)
        return
    titles = ["task", "rule", "test samples", "gap", "arithmetic", "sweeps", "kB"]
    rows = [
        [f["task"], f["rule"], f"{f['n_samples']:,}", f"{f['gap']:.1e}", f["arithmetic"],
         f["sweeps"] or "", f"{f['bytes'] / 1000:,.0f}"]
        for f in found
    ]  # fmt: skip
    print_table(titles, rows)


@dataclass(frozen=True)
class _Run:
    """What to judge, and where records go."""

    out: Path
    sides: tuple[str, ...]
    time_budget: float | None
    quick: bool
    has_pages: bool
    quiet: bool

    def judge(self, name: str, number: str) -> None:
        """Make the records of a task that are not there."""
        from paper.evidence.cases import Case, list_draws
        from paper.evidence.tasks import TASKS

        task = TASKS[name]()
        draws = list_draws(has_been_seen=task.has_been_seen)
        for draw in draws[:1] if self.quick else draws:
            for side in self.sides:
                self._judge(Case(task, draw), side, f"{number} {name}, {draw}, {side}")

    def _judge(self, case: Case, side: str, title: str) -> None:
        from paper.evidence.records import keep, ours_made_by, record_path, rivals_made_by

        path = record_path(self.out, case.task.name, case.draw, side)
        is_ours = side == "ours"
        made_by = ours_made_by(case, self.time_budget) if is_ours else rivals_made_by(case)
        try:
            is_new = keep(path, made_by, lambda: self._make(case, side, title))[1]
        except KeyboardInterrupt:
            raise WassembleError(
                f"interrupted at {title}; the same command goes on from there."
            ) from None
        talk(f"{title}: {'done' if is_new else 'made before'}", quiet=self.quiet)

    def _make(self, case: Case, side: str, title: str) -> Record:
        from paper.evidence.records import judge_ours, judge_rivals

        with progress_bar(title, quiet=self.quiet) as progress:
            if side == "rivals":
                return judge_rivals(case, progress)
            record, learned = judge_ours(case, time_budget=self.time_budget, progress=progress)
        if learned is not None and case.draw.is_whole and self.has_pages:
            self._write_page(case, learned)
        return record

    def _write_page(self, case: Case, learned: LearnedEnsemble) -> None:
        from wassemble.report import write_report

        task, page = case.task, self.out / f"evidence-{case.task.name}.html"
        models, truth = case.models(case.test), case.names(case.test)
        write_report(learned, models, truth, page, title=task.title, texts=task.texts)
        talk(f"page: {page}", quiet=self.quiet)
