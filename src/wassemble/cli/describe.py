"""`wassemble describe`: what is in a file."""

from __future__ import annotations

from typing import Any

import click

from wassemble.cli.console import print_json, print_table
from wassemble.cli.options import FileOptions, file_arguments, open_files, output_options
from wassemble.cli.places import Command

__all__ = ["describe"]


@click.command(cls=Command, short_help="Show what is in prediction files.")
@file_arguments
@output_options
def describe(files: tuple[str, ...], as_json: bool, quiet: bool, reading: FileOptions) -> None:
    """Show what is in prediction FILES: samples, labels, kind of scores, and what is missing.

    \b
    wassemble describe a.csv b.parquet
    wassemble describe c.npz --json
    """
    from wassemble.inputs import describe_predictions

    with open_files(files, reading, together=False) as opened:
        found = [describe_predictions(file) for file in opened]
    if as_json:
        print_json(found)
        return
    for position, each in enumerate(found):
        if position:
            click.echo()
        print_table([each["model"], ""], _rows(each))


def _rows(found: dict[str, Any]) -> list[list[str]]:
    how = "detected" if found["kind_is_detected"] else "declared"
    rows = [["looks odd", doubt] for doubt in found["doubts"]]
    return [
        ["read from", "; ".join(filter(None, [found["file"], found["ids"]]))],
        ["samples", _count(found["n_samples"], found["first_samples"])],
        ["labels", _count(found["n_labels"], found["first_labels"])],
        ["kind", f"{found['kind']}, {how}" + (", hard labels" if found["is_hard"] else "")],
        ["sums of rows", " to ".join(f"{s:.4g}" for s in found["row_sums"])],
        ["samples without an answer", f"{found['n_abstentions']:,}"],
        ["scores not reported", f"{found['unobserved_scores']:.1%}"],
        ["mass not reported", f"{found['unobserved_mass']:.1%}"],
        [
            "most often first",
            ", ".join(f"{name} {count:,}" for name, count in found["most_often_first"].items()),
        ],
        *rows,
    ]


def _count(number: int, first: list[str]) -> str:
    """How many there are and the first of them; dots for those left out."""
    more = " ..." if number > len(first) else ""
    return f"{number:,} ({', '.join(first)}{more})"
