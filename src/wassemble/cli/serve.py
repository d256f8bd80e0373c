"""`wassemble serve`: the web app."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wassemble.cli.console import talk
from wassemble.cli.places import Command

__all__ = ["serve"]


@click.command(cls=Command, short_help="Explore a consensus and run studies in the browser.")
@click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--token",
    envvar="WASSEMBLE_TOKEN",
    show_envvar=True,
    help="What an operator must know; needed unless only this machine is served.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Another name of this server, as behind a reverse proxy; may be repeated.",
)
@click.option(
    "--database",
    default="",
    metavar="URL",
    help="Where studies are kept  [default: wassemble.db in FOLDER]",
)
@click.option("--max-upload-bytes", type=int, default=50_000_000, show_default=True)
@click.option("--max-labels", type=int, default=20_000, show_default=True)
@click.option("--max-requests-per-second", type=float, default=50, show_default=True)
@click.option("--max-seconds", type=float, default=10, show_default=True, help="Of one answer.")
@click.option(
    "--processes",
    "n_processes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many answer; as many as cores for a busy server.",
)
@click.option("--open/--no-open", "open_browser", default=False, help="Open the browser.")
def serve(open_browser: bool, **options: Any) -> None:
    """Explore the predictions in FOLDER and run studies with people, in the browser.

    Only this machine is served unless --host says otherwise; others need the token.

    \b
    wassemble serve --open
    wassemble serve demo --port 8080
    WASSEMBLE_TOKEN=... wassemble serve studies --host 0.0.0.0
    wassemble serve studies --database postgresql+psycopg://user:secret@host/name
    """
    from wassemble._extras import load_extra

    for module in ("fastapi", "uvicorn", "sqlalchemy", "multipart", "krippendorff", "jinja2"):
        load_extra(module, "web", purpose="the web app")
    from wassemble.web.run import run
    from wassemble.web.settings import Settings
    from wassemble.web.study.tables import open_engine

    settings = Settings(**options)
    # A wrong one is told now, not to the first rater; one that is not there yet may never be.
    if options["database"] or (settings.folder / "wassemble.db").exists():
        open_engine(settings.database).dispose()
    run(settings, talk, open_browser=open_browser)
