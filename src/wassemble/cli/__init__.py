"""The command `wassemble`: thin, quick to start, stdout for data and stderr for talk."""

import sys

from wassemble._extras import load_extra
from wassemble.errors import MissingExtraError

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; an exit code."""
    try:
        load_extra("click", "cli", purpose="the command")
    except MissingExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    from wassemble.cli.command import run

    return run(arguments)
