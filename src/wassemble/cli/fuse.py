"""`wassemble fuse`: prediction files in, one consensus out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from wassemble.cli.console import csv_printer, print_json, progress_bar, talk
from wassemble.cli.fusion_options import fusion_options, read_fusion
from wassemble.cli.options import (
    ModelFiles,
    check_as_json,
    file_arguments,
    output_options,
    stack,
    top_option,
)
from wassemble.cli.places import Command, Output
from wassemble.errors import WassembleError, fail, tell_count

if TYPE_CHECKING:
    from wassemble.ensemble import Fusion, FusionAccount
    from wassemble.inputs import DataSet, PredictionFile


_START_WITH = ("out", "top", "target", "embeddings", "confusion")


@click.command(
    cls=Command, start_with=_START_WITH, short_help="Fuse prediction files into one consensus."
)
@file_arguments
@click.option(
    "--out",
    type=Output(is_folder=None),
    metavar="FILE|FOLDER",
    help="File to write the consensus to (its ending says the format), a folder if the inputs are"
    " folders, or a URL.  [default: CSV on standard output]",
)
@top_option
@fusion_options
@stack(
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Let the Dask cluster with this scheduler, such as tcp://HOST:8786, do the work; for"
        " folders.",
    ),
    group="Output",
)
@output_options
def fuse(
    inputs: ModelFiles,
    out: str | None,
    top: int | None,
    scheduler: str | None,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Fuse the predictions in FILES, one file per model, into one consensus.

    A file is .csv, .tsv, .parquet, .arrow, .feather, .jsonl, .npz or .npy. It has one row
    per sample, with an id and a score for each label, or one row per sample and label, with
    the columns sample, label and score. Samples are matched by id and labels by name; files
    need not have the same ones. A model is called after its file, or as MODEL= says.

    Labels with different names come together through a kernel, a table of how similar they
    are; one of the options under Kernel says what it is made from.

    A model may also be a folder of such files. Folders in give a folder out, and a run that
    was interrupted is taken up by the same command. Files and folders may be URLs (s3://,
    gs:// ...).

    \b
    wassemble fuse a.parquet b.csv c.npz --out fused.parquet
    wassemble fuse a.csv b.csv --top 1 --out answers.csv
    wassemble fuse a.csv b.csv --embeddings glove.txt --target wanted.txt --out fused.csv
    wassemble fuse a.csv b.csv --confusion truth.csv --weights accuracy --out fused.csv
    wassemble fuse seen18.csv seen34.csv --attributes table.csv --mass-penalty 2 --epsilon 0.3
    wassemble fuse a/ b/ --out fused/ --scheduler tcp://10.0.0.1:8786
    wassemble fuse --config fuse.toml
    """
    from wassemble.inputs import DataSet
    from wassemble.inputs.predictions.top_labels import check_top_file

    check_as_json(as_json, out)
    if top is not None and out is not None:
        check_top_file(out)
    started = time.perf_counter()
    extra: dict[str, int] = {}
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # what they say is part of the account
        models: Sequence[Any] = stack.enter_context(inputs.open_any())
        are_folders = any(isinstance(each, DataSet) for each in models)
        fusion, doubts = read_fusion(values, models, inputs)
        how: dict[str, Any] = {
            "n_threads": values["n_threads"],
            "progress": stack.enter_context(progress_bar("fusing", quiet=quiet)),
        }
        if are_folders and top is not None:
            fail("--top must go with files; got folders of part files.")
        if are_folders:
            account, extra = _fuse_folders(models, out, scheduler, fusion, how)
        else:
            account = _fuse_files(models, out, top, scheduler, fusion, how)
    account.warnings += doubts
    talk("\n".join(account.lines(judges="wassemble score, wassemble fit")), quiet=quiet)
    if extra:
        told = "{n_partitions:,} partitions, {n_kept:,} of an earlier run"
        if extra["n_changed"]:
            told += ", {n_changed:,} made again from files that have changed"
        talk(told.format(**extra), quiet=quiet)
    seconds = time.perf_counter() - started
    where = "" if out is None else f"{out}: "
    talk(
        f"{where}{tell_count(account.n_samples, 'sample')} x"
        f" {tell_count(len(account.plan.target), 'label')}"
        f" from {tell_count(len(account.models), 'model')} in {seconds:.1f} s",
        quiet=quiet,
    )
    if as_json:
        print_json(account.to_dict() | extra | {"out": str(out), "seconds": round(seconds, 3)})


def _fuse_files(
    files: Sequence[PredictionFile],
    out: str | None,
    top: int | None,
    scheduler: str | None,
    fusion: Fusion,
    how: dict[str, Any],
) -> FusionAccount:
    from wassemble.inputs.folders import store_file
    from wassemble.inputs.predictions.top_labels import print_top, write_top
    from wassemble.scale import fuse_files

    if scheduler is not None:
        fail("--scheduler must go with folders of part files; got files.")
    if out is None:
        show = csv_printer() if top is None else print_top(top)
        return fuse_files(files, None, fusion, **how, receive=show)
    with store_file(out) as path:
        if top is not None:
            with write_top(path, top) as write:
                return fuse_files(files, None, fusion, **how, receive=write)
        return fuse_files(files, path, fusion, **how)


def _fuse_folders(
    sets: Sequence[DataSet],
    out: str | None,
    scheduler: str | None,
    fusion: Fusion,
    how: dict[str, Any],
) -> tuple[FusionAccount, dict[str, int]]:
    """The account, and what there is to say of partitions."""
    from wassemble.scale import fuse_partitions

    if out is None:
        fail("--out must name a folder for folders of part files; got none.")
    try:
        done = fuse_partitions(sets, out, fusion, **how, scheduler=scheduler)
    except KeyboardInterrupt:
        raise WassembleError(
            "interrupted; what is finished is kept, and the same command goes on from there."
        ) from None
    names = ("n_partitions", "n_kept", "n_changed")
    return done.account, {name: getattr(done, name) for name in names}
