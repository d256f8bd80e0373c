"""`wassemble study`: files for the human-evaluation study of `wassemble serve`."""

from pathlib import Path

import click

from wassemble.cli.console import talk
from wassemble.cli.options import shown_option
from wassemble.cli.places import Command, NamedFile, Output, Within
from wassemble.errors import fail


@click.group(short_help="Prepare a study in which people judge captions.")
def study() -> None:
    """Prepare a study in which people judge captions, for `wassemble serve`."""


@study.command(cls=Command, short_help="Join the captions of several systems into a study.")
@click.argument("captions", nargs=-1, required=True, type=NamedFile(), metavar="SYSTEM=FILE...")
@click.option(
    "--references",
    type=click.Path(path_type=Path),
    help="Show raters the reference captions of this file, as text: JSON lines with image_id and"
    " captions.",
)
@click.option(
    "--image",
    metavar="PATTERN",
    help="Show raters pictures instead: their path in the served folder, such as"
    " pictures/{image_id}.jpg.",
)
@shown_option(
    "--checks",
    type=Within(click.IntRange(min=0, max=20)),
    default=0,
    help="Number of attention checks to add, at most 20, made from the references.",
)
@click.option(
    "--out",
    type=Output(path_type=Path),
    help="File to write the study to, as JSON lines.  [default: standard output]",
)
@click.option("--quiet", is_flag=True, help="Print no messages, only errors.")
def items(
    captions: tuple[str, ...],
    references: Path | None,
    image: str | None,
    checks: int,
    out: Path | None,
    quiet: bool,
) -> None:
    """Join captions of the same pictures into a study.

    The captions of a SYSTEM are JSON lines with image_id and caption.

    SYSTEM is the name that results will show; raters never see it. Upload the study at
    /studies of `wassemble serve`.

    \b
    wassemble study items glove=glove.jsonl geometric=geometric.jsonl \\
        --references references.jsonl --checks 2 --out study.jsonl
    """
    import json

    from wassemble._files import write_whole
    from wassemble.web.study.items import read_items
    from wassemble.web.study.joining import (
        join_captions,
        make_checks,
        read_captions,
        read_references,
    )

    runs = {}
    for value in captions:
        system, sign, path = value.partition("=")
        if not sign or not system or not path:
            fail(f"captions must be given as SYSTEM=FILE; got {value!r}.")
        if system in runs:
            fail(f"systems must have different names; got {system!r} twice.")
        runs[system] = read_captions(Path(path))
    known = None if references is None else read_references(references)
    if checks and known is None:
        fail("--checks are made of references; got no --references.")
    joined = join_captions(runs, references=known if image is None else None, image=image)
    if checks and known is not None:
        rated = {item.id for item in joined}  # their texts would be seen twice
        joined += make_checks({n: c for n, c in known.items() if n not in rated}, checks)
    text = "".join(json.dumps(item.record(), ensure_ascii=False) + "\n" for item in joined)
    read_items(text, name="the joined file")  # what is wrong is said now, not by the server
    if out is None:
        click.echo(text, nl=False)
    else:
        write_whole(out, text)
    talk(f"{len(joined) - checks} items of {len(runs)} systems, {checks} checks", quiet=quiet)
