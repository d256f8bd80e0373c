"""`wassemble back-off`: answers at the level of a tree where the evidence suffices."""

import csv
import sys
from pathlib import Path
from typing import Any

import click

from wassemble.cli.console import print_json, talk
from wassemble.cli.options import PATH, ModelFiles, file_arguments, output_options
from wassemble.cli.places import Command, Output, Within


@click.command("back-off", cls=Command, short_help="Answer at the level of a tree that is sure.")
@file_arguments
@click.option(
    "--tree",
    type=PATH,
    required=True,
    help="Text file with a parent and a child on each line; labels are nodes.",
)
@click.option(
    "--confidence",
    type=Within(click.FloatRange(0, 1, max_open=True)),
    default=0.5,
    show_default=True,
    help="Share of the score, below 1, that must lie at or below a node before it is the answer.",
)
@click.option(
    "--out",
    type=Output(path_type=Path),
    metavar="FILE",
    help="CSV file to write the answers to.  [default: standard output]",
)
@output_options
def back_off(
    inputs: ModelFiles,
    tree: Path,
    confidence: float,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Answer each sample of FILE with the lowest node of a tree that holds enough of its score.

    Where breeds tie, the answer is "dog". FILE has predictions of a model, or a consensus.

    \b
    wassemble back-off fused.csv --tree tree.csv --confidence 0.7 --out answers.csv
    """
    from wassemble._files import whole_file
    from wassemble.ensemble import back_off as find_answers
    from wassemble.errors import fail
    from wassemble.inputs import read_edges

    if len(inputs.files) != 1:
        fail(f"`back-off` takes one file; got {len(inputs.files)}.", hint="`fuse` joins several")
    [own] = inputs.read()
    found = find_answers(own.scores, own.labels, read_edges(tree), confidence=confidence)
    shares = [None if share != share else share for share in found.mass.tolist()]  # noqa: PLR0124
    rows = list(zip(own.samples.tolist(), found.names.tolist(), shares, strict=True))
    if as_json:
        print_json([dict(zip(_HEADER, row, strict=True)) for row in rows])
    elif out is None:
        _write(sys.stdout, rows)
    if out is not None:
        with whole_file(out) as path, path.open("w", encoding="utf-8", newline="") as file:
            _write(file, rows)
    n_inner = sum(name is not None and name not in own.labels for name in found.names.tolist())
    talk(f"{len(rows):,} samples, {n_inner:,} answered above the labels", quiet=quiet)


_HEADER = ("sample", "label", "share")


def _write(file: Any, rows: list[tuple[Any, ...]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows(rows)
