"""`python -m paper`: the commands that need a clone of the repository."""

from __future__ import annotations

import sys

from paper.commands import main

if __name__ == "__main__":
    sys.exit(main())
