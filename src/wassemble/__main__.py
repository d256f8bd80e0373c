"""`python -m wassemble`: the command."""

import sys

from wassemble.cli import main

if __name__ == "__main__":
    sys.exit(main())
