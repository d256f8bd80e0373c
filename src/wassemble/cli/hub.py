"""`wassemble hub`: the forecasts of a hub in, its consensus and scores out."""

from __future__ import annotations

from pathlib import Path

import click

from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.fusion_options import read_weights
from wassemble.cli.options import PATH, output_options, read_labels
from wassemble.cli.places import Command, Output


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
    type=click.IntRange(1, 2),
    default=2,
    show_default=True,
    help="2: mean of quantiles, the exact W2 barycenter. 1: median, the exact W1 barycenter.",
)
@click.option(
    "--order",
    type=PATH,
    help="Categories from the lowest to the highest, one a line.  [default: as they first appear]",
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
@output_options
def hub(
    folder: Path,
    out: Path | None,
    power: int,
    order: Path | None,
    weights: str | None,
    oracle: Path | None,
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
    """
    from dataclasses import asdict

    from wassemble.ensemble.hub import fuse_hub, score_hub
    from wassemble.inputs.hub import read_hub, read_oracle, write_hub

    names = None if order is None else read_labels(order)
    tables = [
        table.in_order(names) if names is not None and table.sort == "pmf" else table
        for table in read_hub(folder)
    ]
    given = read_weights(weights)
    fused = [fuse_hub(table, power=power, weights=given) for table in tables]
    if out is not None:
        write_hub(out, fused)
    scores = []
    if oracle is not None:
        pairs = zip(tables, fused, strict=True)
        scores = [s for t, c in pairs for s in score_hub(t, c, read_oracle(oracle, t))]
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
