"""`torchrun ... -m wassemble.scale`: models that are on several machines, fused."""

import sys

from wassemble.scale.command import main

if __name__ == "__main__":
    sys.exit(main())
