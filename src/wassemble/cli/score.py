"""`wassemble score`: how right prediction files are."""

from __future__ import annotations

from collections.abc import Sequence
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
    output_options,
    read_labels,
    truth_column_option,
    truth_option,
)
from wassemble.cli.places import Command
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.inputs import Predictions
    from wassemble.labels import LabelSpace


@click.command(cls=Command, short_help="Compare prediction files with the truth.")
@file_arguments
@truth_option
@truth_column_option
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="accuracy, log_loss, brier_score, rps or quadratic_kappa (where labels have an order),"
    " mAP, or the name of a scikit-learn scorer; may be repeated."
    "  [default: the first three, or mAP where samples have several labels]",
)
@click.option(
    "--target",
    type=PATH,
    help="Text file with all labels, one per line, from the lowest to the highest if they have an"
    " order; or a table with the columns label and position, where each lies on a line.  [default:"
    " labels of the file and of the truth, where numbers lie or in the order of the file]",
)
@aliases_option
@fold_option
@output_options
def score(
    inputs: ModelFiles,
    truth: Path,
    truth_column: str | None,
    metrics: tuple[str, ...],
    target: Path | None,
    aliases: Path | None,
    fold: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say how right prediction FILES are, each on its own, of a model or a consensus.

    Samples are matched by id. Every score has a 95 % bootstrap interval. log_loss, brier_score
    and rps are losses, the lower the better; all other scores are the higher the better. A sample
    without an answer counts as wrong.

    \b
    wassemble score fused.csv --truth truth.csv
    wassemble score a.csv b.csv fused.csv --truth truth.csv --metric accuracy
    """
    from dataclasses import asdict

    from wassemble.ensemble.learning.evaluation import score_predictions
    from wassemble.inputs import Aliases, read_aliases

    scores = []
    goal = None if target is None else read_labels(target)
    with inputs.open() as opened:
        known = inputs.read_truth(truth, truth_column, opened)
        meanings = Aliases() if aliases is None else read_aliases(aliases)
        meanings.check_models({file.model: file.labels for file in opened})
        goal = _find_line(opened, known, metrics) if goal is None else goal
        for file in opened:
            scores += score_predictions(
                file.read(),
                known,
                metrics=metrics,
                target=goal,
                kind=inputs.kind,
                aliases=Aliases(row for row in meanings.rows if row[0] in (None, file.model)),
                fold=fold,
            )
    if as_json:
        print_json([asdict(each) for each in scores])
        return
    print_table(
        ["model", "metric", "score", "from", "to"],
        [
            [each.model, each.metric, f"{each.value:.4f}", f"{each.low:.4f}", f"{each.high:.4f}"]
            for each in scores
        ],
    )
    for each in {each.model: each for each in scores}.values():
        told = f"{each.model}: {each.n_scored:,} samples scored"
        if each.n_without_truth:
            told += f"; {each.n_without_truth:,} without a true label are left out"
        if each.n_missing:
            told += f"; {each.n_missing:,} of the truth are not in the file"
        if each.n_without_answer:
            told += f"; {each.n_without_answer:,} without an answer count as wrong"
        talk(told, quiet=quiet)


def _find_line(
    files: Sequence[Any], truth: Predictions, metrics: tuple[str, ...]
) -> LabelSpace | None:
    """One line for the labels of all files: scores on lines of their own cannot be compared."""
    from wassemble.labels import LabelSpace, are_numbers, enumerate_names, put_in_order
    from wassemble.metrics import measure

    spaces = {file.labels for file in files}
    if len(spaces) == 1 or not any(measure(name).is_ordered for name in metrics):
        return None
    whole = LabelSpace.union(*(file.labels for file in files), truth.labels)
    if not are_numbers(whole):
        told = " and of ".join(enumerate_names(space) for space in list(spaces)[:2])
        fail(
            f"files that are scored on a line must have the same labels in one order; got {told}.",
            hint="--target FILE names all labels, from the lowest to the highest, one a line",
        )
    return put_in_order(whole, None)
