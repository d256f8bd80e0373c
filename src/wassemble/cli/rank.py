"""`wassemble rank` and `wassemble jury`: who is right, where nobody knows the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.options import (
    PATH,
    ModelFiles,
    aliases_option,
    file_arguments,
    fold_option,
    gold_option,
    other_option,
    output_options,
    read_labels,
    read_meanings,
    shown_option,
    stack,
    target_option,
    truth_column_option,
)
from wassemble.cli.places import Command, Output
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.ensemble.without_truth import Ranking

_common = stack(
    shown_option(
        "--caution",
        type=float,
        default=0.5,
        help="Believe more of each model only if that foretells answers of left-out models better"
        " by more than this many standard errors.",
    ),
    click.option(
        "--out",
        type=Output(path_type=Path),
        help="File to write the consensus to; its ending says the format.",
    ),
    output_options,
)


@click.command(cls=Command, short_help="Rank models where nobody knows the truth.")
@file_arguments
@gold_option
@truth_column_option
@target_option
@click.option(
    "--ordered",
    is_flag=True,
    help="Labels lie on a line, as --target says, else where numbers do, if all labels are, or in"
    " the order of the first file: find out how near the truth errors lie.",
)
@aliases_option
@other_option
@fold_option
@_common
def rank(
    inputs: ModelFiles,
    gold: Path | None,
    truth_column: str | None,
    target: Path | None,
    ordered: bool,
    aliases: Path | None,
    others: tuple[str, ...],
    fold: bool,
    caution: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Rank the models in FILES by each other, without truth or with that of a few samples.

    The accuracy of a model is how often the consensus thinks it right: an estimate that stands and
    falls with the others. Models that repeat each other share their vote.

    \b
    wassemble rank a.csv b.csv c.npz
    wassemble rank a.csv b.csv c.npz --gold few.csv --out consensus.csv
    """
    from wassemble.ensemble import Fusion
    from wassemble.ensemble.without_truth import rank_models
    from wassemble.solvers import LineBarycenter

    models = inputs.read()
    labels = None if target is None else read_labels(target)
    meanings = read_meanings(aliases, others, models, fold=fold)
    if ordered:
        line = Fusion(LineBarycenter(1), target=labels, kind=inputs.kind, **meanings)
        labels = line.plan(models).target.on_line()
    ranking = rank_models(
        models,
        gold=None if gold is None else inputs.read_truth(gold, truth_column, models),
        target=labels,
        kind=inputs.kind,
        **meanings,
        caution=caution,
    )
    _show(ranking, ranking.to_dict(), out, "model", as_json=as_json, quiet=quiet)


@click.command(cls=Command, short_help="Find the consensus of judges, and how far to trust each.")
@click.argument("verdicts", type=PATH)
@click.option(
    "--scale",
    "scales",
    multiple=True,
    metavar="[JUDGE=]GRADE,...",
    help="Grades from the lowest to the highest, of the consensus or of one judge; may be"
    " repeated. Grades at the same place of two scales mean the same.  [default: the verdicts that"
    " occur, in no order]",
)
@gold_option
@_common
def jury(
    verdicts: Path,
    scales: tuple[str, ...],
    gold: Path | None,
    caution: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find what the judges in the file VERDICTS agree on, and how far each can be trusted.

    VERDICTS is a long table (.jsonl, .csv or .tsv) with the columns judge, item and verdict: a
    label, a grade, true or false, in JSON also a distribution, {"good": 0.7, "bad": 0.3}. An
    empty verdict is a judge who was asked and said nothing.

    \b
    wassemble jury verdicts.jsonl
    wassemble jury verdicts.csv --scale 0,1,2,3 --scale strict=fail,pass --out consensus.csv
    """
    from wassemble.ensemble.without_truth.jury import hear_jury, read_verdicts

    own, shared = _read_scales(scales)
    found = hear_jury(
        read_verdicts(verdicts),
        scale=shared,
        scales=own,
        gold=None if gold is None else _read_gold(gold),
        caution=caution,
    )
    _show(found.ranking, found.to_dict(), out, "judge", as_json=as_json, quiet=quiet)
    talk(f"Krippendorff's alpha: {found.alpha:.3f}", quiet=quiet)
    talk(f"most disputed: {', '.join(map(str, found.ranking.disputed(5)))}", quiet=quiet)


def _show(
    ranking: Ranking,
    entries: dict[str, Any],
    out: Path | None,
    word: str,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print a table of models or judges, and why it is as it is; write the consensus."""
    from wassemble.inputs import write_predictions

    if out is not None:
        write_predictions(out, ranking.consensus)
    if as_json:
        print_json(entries)
    else:
        header = [word, "accuracy", "from", "to", "answers", "silent", "contradicted", "vote"]
        print_table([*header, "repeats"], [_row(each) for each in ranking.models])
    for line in (f"believed of each {word}: {ranking.belief}", *ranking.reasons):
        talk(line, quiet=quiet)


def _row(each: Any) -> list[str]:
    interval = [f"{x:.3f}" for x in (each.accuracy, each.low, each.high)]
    shares = [f"{x:.1%}" for x in (each.coverage, each.silence, each.conflict)]
    return [each.model, *interval, *shares, f"{each.share:.2f}", each.relative or ""]


def _read_scales(values: tuple[str, ...]) -> tuple[dict[str, list[str]], list[str] | None]:
    """Scales of judges, and that of the consensus."""
    own: dict[str, list[str]] = {}
    shared: list[str] | None = None
    for value in values:
        judge, sign, grades = value.rpartition("=")
        listed = [grade.strip() for grade in grades.split(",")]
        if sign:
            own[judge] = listed
        elif shared is None:
            shared = listed
        else:
            fail(f"--scale of the consensus must be one; got {','.join(shared)} and {value}.")
    return own, shared


def _read_gold(path: Path) -> dict[str, str]:
    """The true label of each item."""
    from wassemble.inputs import read_truth

    truth = read_truth(path)
    return {str(top.sample): str(top.label) for top in truth.top() if top.label is not None}
