"""`wassemble fuse`: prediction files in, one consensus out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from wassemble.cli.console import csv_printer, print_json, progress_bar, talk
from wassemble.cli.kernels import choose_kernel
from wassemble.cli.options import (
    Reading,
    file_arguments,
    fusion_options,
    kernel_options,
    open_files,
    output_options,
)
from wassemble.cli.request import FusionRequest
from wassemble.errors import fail

__all__ = ["fuse"]


@click.command(short_help="Prediction files in, one consensus out.")
@file_arguments
@click.option(
    "--out", type=click.Path(path_type=Path), help="File for the consensus; else CSV here."
)
@kernel_options
@fusion_options
@output_options
def fuse(
    files: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    quiet: bool,
    reading: Reading,
    **values: Any,
) -> None:
    """Fuse prediction FILES by the names of their samples and labels.

    A file is .csv, .tsv, .parquet, .arrow, .feather, .jsonl, .npz or .npy: one row per
    sample with a column of ids and one per label, or long: sample, label, score. Files may
    have different labels and different samples.

    \b
    wassemble fuse a.parquet b.csv c.npz --out fused.parquet
    wassemble fuse a.csv b.csv --embeddings glove.txt --target wanted.txt --out fused.csv
    wassemble fuse a.csv b.csv --confusion truth.csv --weights accuracy --out fused.csv
    wassemble fuse seen18.csv seen34.csv --attributes table.csv --mass-penalty 2 --epsilon 0.3
    wassemble fuse --config fuse.toml
    """
    from wassemble.scale import fuse_files

    if as_json and out is None:
        fail("--json answers on standard output; got no --out for the consensus.")
    started = time.perf_counter()
    by_accuracy = values["weights"] == "accuracy"
    request = FusionRequest.of(values | ({"weights": None} if by_accuracy else {}))
    with open_files(files, reading) as opened:
        chosen = choose_kernel(values, opened, request.target, request.matching)
        with progress_bar("fusing", quiet=quiet) as progress:
            account = fuse_files(
                opened,
                out,
                kernel=chosen.kernel,
                target=chosen.target,
                weights=_by_accuracy(chosen.accuracy) if by_accuracy else request.weights,
                kind=reading.kind,
                **request.matching,
                samples=values["samples"],
                options=request.options,
                progress=progress,
                receive=None if out is not None else csv_printer(),
            )
    for line in account.lines():
        talk(line, quiet=quiet)
    seconds = time.perf_counter() - started
    where = "" if out is None else f"{out}: "
    talk(
        f"{where}{account.n_samples:,} samples x {len(account.plan.target):,} labels from"
        f" {len(account.models)} models in {seconds:.1f} s",
        quiet=quiet,
    )
    if as_json:
        print_json(account.to_dict() | {"out": str(out), "seconds": round(seconds, 3)})


def _by_accuracy(accuracy: dict[str, float] | None) -> dict[str, float]:
    """Weights in proportion to what each model got right."""
    if accuracy is None:
        fail("--weights accuracy must go with --confusion, which says what is right.")
    total = sum(accuracy.values())
    if total == 0:
        fail("--weights accuracy: some model must be right about some sample; got none.")
    return {model: right / total for model, right in accuracy.items()}
