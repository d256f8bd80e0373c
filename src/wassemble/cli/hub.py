"""`wassemble hub`: the forecasts of a hub in, its consensus and scores out."""

from __future__ import annotations

from pathlib import Path

import click

from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.fusion_options import read_weights
from wassemble.cli.options import PATH, output_options, read_labels
from wassemble.cli.places import Command, Output, Within
from wassemble.errors import fail


@click.command(cls=Command, short_help="Fuse the forecasts of a hub, and score them.")
@click.argument("folder", type=PATH)
@click.option(
    "--out",
    type=Output(),
    metavar="FILE",
    help="File to write the consensus to, in the layout of the hub (CSV).",
)
@click.option(
    "--power",
    type=Within(click.IntRange(1, 2), "1|2"),
    default=2,
    show_default=True,
    help="2: mean of quantiles, the exact W2 barycenter. 1: median, the exact W1 barycenter.",
)
@click.option(
    "--order",
    type=PATH,
    help="Categories from the lowest to the highest, one a line; or a table with the columns label"
    " and position, where each lies on a line.  [default: as they first appear]",
)
@click.option(
    "--weights",
    metavar="MODEL=W,...",
    help="How much each model counts; weights must sum to 1.  [default: equal]",
)
@click.option(
    "--oracle",
    type=PATH,
    help="What happened: a table with the column oracle_value and columns of what was asked. Every"
    " model and the consensus are scored: rps of categories and distribution functions, wis and"
    " coverage of quantiles.",
)
@click.option(
    "--learn",
    is_flag=True,
    help="With --oracle: weigh models, at every date, by forecasts whose outcome was known before"
    " that date. What is asked must have the columns reference_date (or origin_date, forecast_date)"
    " and target_end_date (or target_date).",
)
@output_options
def hub(
    folder: Path,
    out: Path | None,
    power: int,
    order: Path | None,
    weights: str | None,
    oracle: Path | None,
    learn: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fuse the forecasts in FOLDER, a hub in the layout of the hubverse, into one.

    FOLDER has a folder for each model with CSV or Parquet files, whose columns output_type,
    output_type_id and value hold probabilities of categories (pmf), quantiles, distribution
    functions (cdf) or samples. Forecasts that are missing leave their weight to the others.

    \b
    wassemble hub model-output --order order.txt --out consensus.csv
    wassemble hub model-output --order order.txt --oracle oracle.csv
    wassemble hub model-output --oracle oracle.csv --learn --out consensus.csv
    """
    from dataclasses import asdict

    from wassemble.ensemble.hub import fuse_hub, learn_hub, score_hub
    from wassemble.inputs.hub import read_hub, read_oracle, write_hub

    names = None if order is None else read_labels(order)
    tables = [
        table.in_order(names) if names is not None and table.sort == "pmf" else table
        for table in read_hub(folder)
    ]
    if learn and (oracle is None or weights is not None):
        fail("--learn must go with --oracle, what happened, and without --weights.")
    given = read_weights(weights)
    truth = [] if oracle is None else [read_oracle(oracle, table) for table in tables]
    learned = []
    if learn:
        learned = [learn_hub(t, y, power=power) for t, y in zip(tables, truth, strict=True)]
    fused = [each.consensus for each in learned] or [
        fuse_hub(table, power=power, weights=given) for table in tables
    ]
    if out is not None:
        write_hub(out, fused)
    scores = [s for t, c, y in zip(tables, fused, truth, strict=False) for s in score_hub(t, c, y)]
    if as_json:
        print_json([asdict(each) for each in scores])
    elif scores:
        print_table(
            ["model", "metric", "loss", "consensus on the same", "95 % covers", "tasks"],
            [
                [
                    each.model,
                    each.metric,
                    f"{each.loss:.4f}",
                    f"{each.reference:.4f}",
                    "" if each.coverage is None else f"{each.coverage:.3f}",
                    f"{each.n_tasks:,}",
                ]
                for each in scores
            ],
        )
    for table in tables:
        told = f"{table.sort}: {len(table.tasks):,} tasks, {len(table.models)} models,"
        talk(f"{told} {len(table.ids)} values each", quiet=quiet)
    for each in learned:
        told = ",".join(f"{model}={weight:.8g}" for model, weight in each.weights.items())
        talk(f"weights on {each.date}, from {each.n_known:,} tasks: {told}", quiet=quiet)
