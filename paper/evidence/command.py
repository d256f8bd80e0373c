"""`python -m paper evidence`: learn and judge an ensemble on real tasks, beside its rivals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paper.record.command import out_option
from wassemble.cli.console import print_json, print_table, progress_bar, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command
from wassemble.errors import WassembleError

if TYPE_CHECKING:
    from paper.evidence.cases import Case, Draw

_NAMES = (
    "animals",
    "languages",
    "voc",
    "coco",
    "cifar100",
    "encodings",
    "encodings-without-best",
    "part-of-speech",
    "digits",
    "equal-networks",
)
_SIDES = ("rivals", "ours")


@click.command(cls=Command, short_help="Learn and test ensembles on real tasks.")
@click.argument("names", nargs=-1, type=click.Choice(_NAMES), metavar="[TASK]...")
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

    from paper.evidence.cases import list_draws
    from paper.evidence.records import find_records
    from paper.evidence.summary import summarise
    from paper.evidence.tasks import TASKS
    from wassemble._files import write_whole

    chosen = list(dict.fromkeys(names)) or list(_NAMES)
    sides = _SIDES if only is None else (only,)
    for number, name in enumerate(chosen, start=1):
        task = TASKS[name]()
        draws = list_draws(has_been_seen=task.has_been_seen)[: 1 if quick else None]
        for draw in draws:
            title = f"{number}/{len(chosen)} {name}, {draw}"
            _judge(task, draw, out, title, sides, time_budget, no_pages=no_pages, quiet=quiet)
    found = summarise(find_records(out, list(_NAMES)))
    write_whole(out / "evidence.json", json.dumps(found, indent=1) + "\n")
    shown = {name: found[name] for name in chosen if name in found}
    if as_json:
        print_json(shown)
        return
    _show(shown)
    talk(f"wrote {out / 'evidence.json'}", quiet=quiet)


def _judge(
    task: Any,
    draw: Draw,
    out: Path,
    title: str,
    sides: tuple[str, ...],
    time_budget: float | None,
    *,
    no_pages: bool,
    quiet: bool,
) -> None:
    """Make the records of a task and a draw that are not there."""
    from paper.evidence.cases import Case

    case = Case(task, draw)
    for side in sides:
        try:
            with progress_bar(f"{title}, {side}", quiet=quiet) as progress:
                is_new = _record(case, out, side, time_budget, progress, no_pages=no_pages)
        except KeyboardInterrupt:
            raise WassembleError(
                f"interrupted at {title}; the same command goes on from there."
            ) from None
        talk(f"{title}, {side}: {'done' if is_new else 'made before'}", quiet=quiet)


def _record(
    case: Case, out: Path, side: str, time_budget: float | None, progress: Any, *, no_pages: bool
) -> bool:
    """Whether a record was made."""
    from paper.evidence import records

    path = records.record_path(out, case.task.name, case.draw, side)
    if side == "rivals":
        made_by = records.rivals_made_by(case)
        return records.keep(path, made_by, lambda: records.judge_rivals(case, progress))[1]

    def learn() -> dict[str, Any]:
        record, learned = records.judge_ours(case, time_budget=time_budget, progress=progress)
        if learned is not None and case.draw == type(case.draw)() and not no_pages:
            _write_page(case, learned, out)
        return record

    return records.keep(path, records.ours_made_by(case, time_budget), learn)[1]


def _write_page(case: Case, learned: Any, out: Path) -> None:
    from wassemble.report import write_report

    task = case.task
    page = out / f"evidence-{task.name}.html"
    models, truth = case.models(case.test), case.names(case.test)
    write_report(learned, models, truth, page, title=task.title, texts=task.texts)


def _show(evidence: dict[str, Any]) -> None:
    """A table of all samples of each task's own split, a line for each rule."""
    from paper.evidence.rivals import ORACLE
    from paper.evidence.summary import interval_of, tell_verdict

    rows, verdicts = [], []
    for name, task in evidence.items():
        for row in task["rows"]:
            if row["share"] < 1 or row["split"]:
                continue
            verdicts.append(f"{name}: {tell_verdict(row)}".replace("**", ""))
            rules = row["rivals"] | {"ours": row["ours"], ORACLE: row["oracle"]}
            for rule, each in rules.items():
                gain = each.get("gain_of_ours")
                picked = "" if "failed" in each else each["picked"][0]
                score = "failed" if "failed" in each else f"{each['score']:.4f}"
                apart = "" if gain is None else f"{gain['difference']:+.4f} {interval_of(gain)}"
                rows.append([f"{name}: {rule}", score, apart, picked])
    print_table(["task and rule", "test samples", "ours minus it, 95 % interval", "picked"], rows)
    for verdict in verdicts:
        talk(verdict)
