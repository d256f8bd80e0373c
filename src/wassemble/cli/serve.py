"""`wassemble serve`: the web app."""

import os
import secrets
from pathlib import Path
from typing import Any

import click

from wassemble.cli.console import talk
from wassemble.cli.options import PATH, shown_option
from wassemble.cli.places import Command, Within

_MODULES = ("fastapi", "h11", "itsdangerous", "jinja2", "multipart", "sqlalchemy", "uvicorn")


@click.command(cls=Command, short_help="Explore a consensus, or run a study, in the browser.")
@click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@shown_option("--host", default="127.0.0.1", help="Address to listen on.")
@shown_option(
    "--port",
    type=Within(click.IntRange(0, 65535)),
    default=8000,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--token",
    envvar="WASSEMBLE_TOKEN",
    show_envvar=True,
    help="Secret of at least 16 characters that operators log in with.  [default: a fresh one, in"
    " the link that is printed]",
)
@click.option(
    "--no-token",
    is_flag=True,
    help="Let every user and program of this machine in without a token, for scripts.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Another name under which the server is reached, such as that of a reverse proxy; may be"
    " repeated.",
)
@click.option(
    "--database",
    default="",
    metavar="URL",
    help="Database that keeps the studies.  [default: wassemble.db in FOLDER]",
)
@click.option(
    "--names",
    type=PATH,
    help="CSV or TSV file with the columns label and name: what people call the labels, shown in"
    " place of them.",
)
@shown_option("--max-upload-bytes", type=int, default=50_000_000, help="Refuse larger requests.")
@shown_option(
    "--max-labels", type=int, default=20_000, help="Refuse models and consensuses with more labels."
)
@shown_option(
    "--max-requests-per-second",
    type=float,
    default=50,
    help="Refuse more requests than this from one address.",
)
@shown_option(
    "--max-seconds",
    type=float,
    default=10,
    help="Give up a request that takes longer than this to answer.",
)
@shown_option(
    "--max-memory",
    type=int,
    default=2000,
    help="Give up a request that takes more than this many megabytes of memory (on Linux).",
)
@shown_option(
    "--processes",
    "n_processes",
    type=Within(click.IntRange(min=1)),
    default=2,
    help="Number of requests that are computed at once, each in a process of its own.",
)
@click.option(
    "--open/--no-open", "open_browser", default=False, help="Open the pages in a browser."
)
def serve(**options: Any) -> None:
    """Explore the predictions in FOLDER and run studies with people, in the browser.

    By default the server can be reached from this machine only. Either way it asks for a token:
    the link that it prints has it, and --open opens that link.

    \b
    wassemble serve --open
    wassemble serve demo --port 8080
    WASSEMBLE_TOKEN=... wassemble serve studies --host 0.0.0.0
    wassemble serve studies --database postgresql+psycopg://user:secret@host/name
    """
    start(**options)


def start(open_browser: bool, no_token: bool, **options: Any) -> None:
    """Serve until interrupted; options are those of `Settings`."""
    from wassemble._checks import fail
    from wassemble._extras import load_extra

    for module in _MODULES:
        load_extra(module, "web", purpose="the web app")
    if not hasattr(os, "fork"):
        fail("the web app needs a system with forks, such as Linux or macOS.")
    if no_token and options["token"] is not None:
        fail("--no-token must stand alone; got --token, too.")
    is_fresh = options["token"] is None and not no_token
    if is_fresh:
        options["token"] = secrets.token_urlsafe(24)
    from wassemble.web.run import run
    from wassemble.web.settings import Settings
    from wassemble.web.study.tables import open_engine

    settings = Settings(**options)
    # A wrong one is told now, not to the first rater; one that is not there yet may never be.
    if options["database"] or (settings.folder / "wassemble.db").exists():
        open_engine(settings.database).dispose()
    run(settings, talk, open_browser=open_browser, tells_token=is_fresh)
