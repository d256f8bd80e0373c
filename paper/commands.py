"""The commands of `python -m paper`; those that need more than a screen are in their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from paper.captioners.command import score_captioners, train_captioners
from paper.captioning.command import generate, references
from paper.demo import demo
from paper.evidence.command import evidence, heads
from paper.flusight.command import flusight
from paper.record.command import out_option, reproduce
from paper.without_truth.command import without_truth
from wassemble.cli.command import run
from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command
from wassemble.cli.serve import serve as library_serve, start


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def paper() -> None:
    """Run the paper's experiments on the data sets of this repository.

    \b
    python -m paper reproduce list
    python -m paper reproduce attributes languages --out reports
    """


@click.group(short_help="List the data sets of the repository.")
def data() -> None:
    """List the data sets that experiments use.

    \b
    python -m paper data list
    """


@data.command("list", cls=Command, short_help="List the data files.")
@output_options
def list_files(as_json: bool, quiet: bool) -> None:
    """List every data file with its size and licence, and whether it is there and intact.

    \b
    python -m paper data list
    """
    from dataclasses import asdict

    from paper.data.files import check_data, data_folder, list_data

    found = [(each, check_data(each)) for each in list_data()]
    if as_json:
        print_json([asdict(each) | {"is_whole": whole} for each, whole in found])
        return
    rows = [
        [each.file, f"{each.bytes / 1000:,.0f}", "yes" if whole else "NO", each.licence, each.what]
        for each, whole in found
    ]
    print_table(["file", "kB", "there", "licence", "what"], rows)
    talk(f"folder: {data_folder()}", quiet=quiet)


@click.command(
    cls=Command, params=library_serve.params, short_help="Explore more examples in the browser."
)
def serve(**options: Any) -> None:
    """Do what `wassemble serve` does, with more examples: words, CIFAR-100, COCO and VOC.

    \b
    python -m paper serve --open
    """
    from paper.explorer import EXAMPLES
    from wassemble.web.explorer.examples import SHIPPED

    first, *others = SHIPPED
    start(examples=(first, *EXAMPLES, *others), **options)


@click.command("expected-cost", cls=Command, short_help="Count what answers cost, by distance.")
@out_option
@output_options
def expected_cost(out: Path, as_json: bool, quiet: bool) -> None:
    """Count what the answers of exact barycenters cost, beside those of the mean.

    Data that are not shipped are read from the folder that $WASSEMBLE_CHECKING_DATA names, and
    skipped without it.

    \b
    python -m paper expected-cost --out reports
    """
    import json

    from paper.expected_cost import HEADER, judge_costs, list_rows, load_cases
    from wassemble._files import write_whole

    found = {}
    for name, case in load_cases():
        if case is None:
            talk(f"{name}: skipped, for its data are not here", quiet=quiet)
        else:
            found[name] = judge_costs(case)
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "expected-cost.json", json.dumps(found, indent=1) + "\n")
    if as_json:
        print_json(found)
    else:
        print_table(HEADER, list_rows(found))
    talk(f"wrote {out / 'expected-cost.json'}", quiet=quiet)


_experiments = (reproduce, evidence, heads, without_truth, flusight, expected_cost)
_captions = (train_captioners, score_captioners, generate, references)
for _command in (demo, *_experiments, data, *_captions, serve):
    paper.add_command(_command)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; an exit code."""
    return run(arguments, paper, program="python -m paper")
