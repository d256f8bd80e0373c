"""`python -m paper evidence`: learn and judge an ensemble on real tasks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from paper.record.command import out_option
from wassemble.cli.console import print_json, print_table, progress_bar, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command

_NAMES = ("animals", "languages", "voc", "coco", "cifar100")


@click.command(cls=Command, short_help="Learn and test ensembles on real tasks.")
@click.argument("names", nargs=-1, type=click.Choice(_NAMES), metavar="[TASK]...")
@out_option
@click.option(
    "--time-budget",
    type=float,
    help="Try no more rules on a task after so many seconds.  [default: try all]",
)
@click.option("--no-pages", is_flag=True, help="Write no pages, only the figures in evidence.json.")
@output_options
def evidence(
    names: tuple[str, ...],
    out: Path,
    time_budget: float | None,
    no_pages: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Learn an ensemble on each TASK and test it on held-out samples; on all if none is given.

    Writes evidence.json and a page for each task into --out. Tasks: animals, languages (in the
    package); voc, coco, cifar100 (in the repository's datasets).

    \b
    python -m paper evidence animals languages
    python -m paper evidence --no-pages --json
    """
    import json

    from wassemble._files import write_whole

    records = {}
    for name in names or _NAMES:
        records[name] = _judge(name, out, time_budget, no_pages=no_pages, quiet=quiet)
    write_whole(out / "evidence.json", json.dumps(records, indent=1) + "\n")
    if as_json:
        print_json(records)
        return
    print_table(
        ["task", "metric", "chosen rule", "test", "best plain rule", "test", "gain", "verdict"],
        [
            [
                name,
                r["metric"],
                r["chosen"],
                f"{r['chosen_score']:.4f}",
                r["best_plain"],
                f"{r['best_plain_score']:.4f}",
                f"{r['over_best_plain']:+.4f} +- {r['over_best_plain_error']:.4f}",
                r["verdict"],
            ]
            for name, r in records.items()
        ],
    )
    talk(
        f"wrote {out / 'evidence.json'}" + ("" if no_pages else " and a page for each"), quiet=quiet
    )


def _judge(
    name: str, out: Path, time_budget: float | None, *, no_pages: bool, quiet: bool
) -> dict[str, Any]:
    from paper.evidence.tasks import TASKS
    from wassemble.ensemble.learning import learn_ensemble
    from wassemble.ensemble.learning.evaluation import evaluate_ensemble
    from wassemble.report import write_report

    started = time.perf_counter()
    task = TASKS[name]()
    models, truth = task.part(False)
    with progress_bar(name, quiet=quiet) as progress:
        learned = learn_ensemble(
            models,
            truth,
            kernels=task.kernels,
            target=task.target,
            kind=task.kind,
            time_budget=time_budget,
            progress=progress,
        )
    talk(f"{name}: {learned.report}", quiet=quiet)
    models, truth = task.part(True)
    evaluation = evaluate_ensemble(learned, models, truth)
    if not no_pages:
        page = out / f"evidence-{name}.html"
        write_report(learned, models, truth, page, title=task.title, texts=task.texts)
        talk(f"page: {page}", quiet=quiet)
    control = learned.choice.control
    plain = evaluation.best_plain
    over_plain = evaluation.gain_over(plain)
    # The best of all simple rules, which may be the chosen one.
    simple = next(each for each in evaluation.outcomes if each.is_simple)
    over_simple = None if simple.is_chosen else evaluation.gain_over(simple)
    return {
        "title": task.title,
        "metric": evaluation.metric,
        "n_learned_from": learned.n_samples,
        "n_test": evaluation.n_samples,
        "n_models": len(task.models),
        "n_target": len(task.target),
        "n_tried": learned.n_tried,
        "chosen": evaluation.chosen.name,
        "chosen_score": evaluation.chosen.score,
        "best_plain": plain.name,
        "best_plain_score": plain.score,
        "best_simple": simple.name,
        "best_simple_score": simple.score,
        "over_best_simple": None if over_simple is None else over_simple.difference,
        "over_best_simple_error": None if over_simple is None else over_simple.standard_error,
        "best_single": evaluation.best_single.name,
        "best_single_score": evaluation.best_single.score,
        "over_best_plain": over_plain.difference,
        "over_best_plain_error": over_plain.standard_error,
        "verdict": "it is the best plain rule" if plain.is_chosen else over_plain.verdict,
        "is_worse_than_plain": over_plain.is_worse,
        "control": None if control is None else str(control.comparison),
        "meaning_helped": None if control is None else control.meaning_helped,
        "reasons": list(learned.choice.reasons),
        "seconds": round(time.perf_counter() - started, 1),
    }
