"""What `import wassemble` costs in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time

_OPTIONAL = ("torch", "jax", "ot", "sklearn", "pandas", "pyarrow", "matplotlib", "dask")
_CODE = f"import sys, wassemble; print([m for m in {_OPTIONAL!r} if m in sys.modules])"


def run(*, quick: bool) -> dict:
    """Seconds more than an interpreter that imports nothing, and what came along."""
    rounds = 3 if quick else 7
    bare = min(_lasts("pass")[0] for _ in range(rounds))
    full, brought = min(_lasts(_CODE) for _ in range(rounds))
    return {"seconds": full - bare, "optional_modules": brought.strip()}


def _lasts(code: str) -> tuple[float, str]:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return time.perf_counter() - started, done.stdout
