"""The commands of `python -m paper`."""

from __future__ import annotations

import click

from paper.captioners.command import train_captioners
from paper.captioning.command import generate, references
from paper.data.command import data
from paper.evidence.command import evidence
from paper.explorer.command import serve
from paper.record.command import reproduce
from wassemble.cli.command import run


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def paper() -> None:
    """Run the paper's experiments on the data sets of this repository.

    \b
    python -m paper reproduce list
    python -m paper reproduce attributes languages --out reports
    """


for _command in (reproduce, data, evidence, train_captioners, generate, references, serve):
    paper.add_command(_command)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; an exit code."""
    return run(arguments, paper, program="python -m paper")
