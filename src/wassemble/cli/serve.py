"""`wassemble serve`: the web app."""

from pathlib import Path
from typing import Any

import click

from wassemble.cli.console import talk
from wassemble.cli.options import shown_option
from wassemble.cli.places import Command


@click.command(cls=Command, short_help="Explore a consensus, or run a study, in the browser.")
@click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@shown_option("--host", default="127.0.0.1", help="Address to listen on.")
@shown_option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--token",
    envvar="WASSEMBLE_TOKEN",
    show_envvar=True,
    help="Secret of at least 16 characters that operators log in with; needed if other machines"
    " can reach the server.",
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
    "--processes",
    "n_processes",
    type=click.IntRange(min=1),
    default=1,
    help="Number of processes that answer requests; for a busy server, the number of cores.",
)
@click.option(
    "--open/--no-open", "open_browser", default=False, help="Open the pages in a browser."
)
def serve(open_browser: bool, **options: Any) -> None:
    """Explore the predictions in FOLDER and run studies with people, in the browser.

    By default the server can be reached from this machine only. With another --host it asks
    for a token.

    \b
    wassemble serve --open
    wassemble serve demo --port 8080
    WASSEMBLE_TOKEN=... wassemble serve studies --host 0.0.0.0
    wassemble serve studies --database postgresql+psycopg://user:secret@host/name
    """
    start(open_browser, **options)


def start(open_browser: bool, **options: Any) -> None:
    """Serve until interrupted; options are those of `Settings`."""
    from wassemble._extras import load_extra

    for module in ("fastapi", "uvicorn", "sqlalchemy", "multipart", "jinja2"):
        load_extra(module, "web", purpose="the web app")
    from wassemble.web.run import run
    from wassemble.web.settings import Settings
    from wassemble.web.study.tables import open_engine

    settings = Settings(**options)
    # A wrong one is told now, not to the first rater; one that is not there yet may never be.
    if options["database"] or (settings.folder / "wassemble.db").exists():
        open_engine(settings.database).dispose()
    run(settings, talk, open_browser=open_browser)
