"""`wassemble score`: how right prediction files are."""

from pathlib import Path

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
    """Say how right prediction FILES are, each on its own: a model's or a consensus of `fuse`.

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
