"""`wassemble describe`: what is in a file."""

from typing import Any

import click

from wassemble.cli.console import print_json, print_table
from wassemble.cli.options import ModelFiles, file_arguments, output_options
from wassemble.cli.places import Command


@click.command(cls=Command, short_help="Show what is in prediction files.")
@file_arguments
@output_options
def describe(inputs: ModelFiles, as_json: bool, quiet: bool) -> None:
    """Show what is in prediction FILES: samples, labels, kind of scores, and what is missing.

    \b
    wassemble describe a.csv b.parquet
    wassemble describe c.npz --json
    """
    from wassemble.inputs import describe_predictions

    with inputs.open(together=False) as opened:
        described = [describe_predictions(file) for file in opened]
    if as_json:
        print_json(described)
        return
    for position, each in enumerate(described):
        if position:
            click.echo()
        print_table([each["model"], ""], _rows(each))


def _rows(each: dict[str, Any]) -> list[list[str]]:
    how = "detected" if each["kind_is_detected"] else "declared"
    rows = [["looks odd", doubt] for doubt in each["doubts"]]
    return [
        ["read from", "; ".join(filter(None, [each["file"], each["ids"]]))],
        ["samples", _count(each["n_samples"], each["first_samples"])],
        ["labels", _count(each["n_labels"], each["first_labels"])],
        ["kind", f"{each['kind']}, {how}" + (", hard labels" if each["is_hard"] else "")],
        ["sums of rows", " to ".join(f"{s:.4g}" for s in each["row_sums"])],
        ["samples without an answer", f"{each['n_abstentions']:,}"],
        ["scores not reported", f"{each['unobserved_scores']:.1%}"],
        ["mass not reported", f"{each['unobserved_mass']:.1%}"],
        [
            "most often first",
            ", ".join(f"{name} {count:,}" for name, count in each["most_often_first"].items()),
        ],
        *rows,
    ]


def _count(number: int, first: list[str]) -> str:
    """How many there are and the first of them; dots for those left out."""
    more = " ..." if number > len(first) else ""
    return f"{number:,} ({', '.join(first)}{more})"
