"""`python -m paper reproduce`: the paper's experiments on real data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from wassemble.cli.console import print_json, print_table, progress_bar, talk
from wassemble.cli.options import output_options, shown_option
from wassemble.cli.places import Command, Output
from wassemble.errors import WassembleError

out_folder = partial(
    shown_option, "--out", type=Output(is_folder=True, path_type=Path), help="Folder to write to."
)
out_option = out_folder(default="reports")


@click.command(cls=Command, short_help="Run the paper's experiments on real data.")
@click.argument("names", nargs=-1, required=True, metavar="list|all|captioning|NAME...")
@out_option
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the experiment; may be repeated.",
)
@click.option("--again", is_flag=True, help="Run experiments again that have a record already.")
@output_options
def reproduce(
    names: tuple[str, ...],
    out: Path,
    settings: tuple[str, ...],
    again: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run experiments of the paper, by NAME or all of them, and write the results into --out.

    Each experiment writes a record (NAME.json), a page (NAME.md) and plots; results.html
    shows all of them. What was made with the same code and settings is not made again, so
    the same command resumes a run that was interrupted. `all` leaves out the experiments that
    generate captions, which need torch and take longer; `captioning` runs those.

    \b
    python -m paper reproduce list
    python -m paper reproduce attributes --set epsilon=0.5
    python -m paper reproduce all --out reports
    python -m paper reproduce captioning --out reports
    """
    from paper.record.catalogue import EXPERIMENTS, find_experiment
    from paper.record.findings import to_markdown
    from paper.record.page import read_records, write_html
    from paper.record.records import reproduce as run

    if names == ("list",):
        _show_list(out, as_json=as_json)
        return
    if names in (("all",), ("captioning",)):
        wanted = names == ("captioning",)
        chosen = [each for each in EXPERIMENTS.values() if each.is_captioning == wanted]
    else:
        chosen = [find_experiment(name) for name in names]
    changes = _read_settings(settings)
    if changes and len(chosen) > 1:
        raise click.UsageError("--set goes with one experiment.")
    records = []
    for number, experiment in enumerate(chosen, start=1):
        title = f"{number}/{len(chosen)} {experiment.name}"
        try:
            with progress_bar(title, quiet=quiet) as progress:
                record = run(experiment, out, settings=changes, again=again, progress=progress)
        except KeyboardInterrupt:
            raise WassembleError(
                f"interrupted; {number - 1} of {len(chosen)} records are there, and the same"
                " command goes on from there."
            ) from None
        note = f"{record['seconds']:.1f} s" if record.pop("is_new") else "made before"
        talk(f"{title}: {note}", quiet=quiet)
        records.append(record)
        if not as_json:
            click.echo(to_markdown(record))
    if as_json:
        print_json(records if len(records) > 1 else records[0])
    page = write_html(read_records(out), out)
    talk(f"wrote a record and a page of each, and all that is there to {page}", quiet=quiet)


def _show_list(out: Path, *, as_json: bool) -> None:
    from paper.record.catalogue import EXPERIMENTS

    rows = [
        [each.name, each.title, each.paper, (out / f"{each.name}.json").is_file()]
        for each in EXPERIMENTS.values()
    ]
    if as_json:
        keys = ("name", "title", "paper", "record")
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    header = ["name", "title", "in the paper", f"record in {out}"]
    print_table(header, [[*words, "yes" if is_there else ""] for *words, is_there in rows])


def _read_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    import json

    changes: dict[str, Any] = {}
    for each in settings:
        key, is_there, value = each.partition("=")
        if not is_there:
            raise click.UsageError(f"--set must be KEY=VALUE; got {each!r}.")
        try:
            given = json.loads(value)
        except ValueError:
            given = value
        changes[key.strip().replace("-", "_")] = given
    return changes
