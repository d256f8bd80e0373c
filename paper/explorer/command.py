"""`python -m paper serve`: the web app with the examples of the repository's data sets."""

from __future__ import annotations

from typing import Any

import click

from wassemble.cli.places import Command
from wassemble.cli.serve import serve as library_serve, start


@click.command(
    cls=Command, params=library_serve.params, short_help="Explore more examples in the browser."
)
def serve(open_browser: bool, **options: Any) -> None:
    """Do what `wassemble serve` does, with more examples: words, CIFAR-100, COCO and VOC.

    \b
    python -m paper serve --open
    """
    from paper.explorer.examples import EXAMPLES
    from wassemble.web.explorer.examples import SHIPPED

    start(open_browser, examples=(*SHIPPED, *EXAMPLES), **options)
