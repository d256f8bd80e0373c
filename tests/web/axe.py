"""What a screen reader would stumble over, by axe-core, which comes with axe-core-python."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_PROBLEMS = """
axe.run().then((found) => found.violations.map(
  (each) => `${each.id}: ${each.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`
))
"""


def find_problems(driver: Any) -> list[str]:
    """Rules of axe that the page breaks, and where; skipped without axe, but fails under CI."""
    package = find_spec("axe_core_python")
    if package is None or package.origin is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up("needs axe: pip install axe-core-python")
    script = (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    # By the debugger: the page's own policy would not let the script in.
    call = {"expression": script + _PROBLEMS, "awaitPromise": True, "returnByValue": True}
    found: list[str] = driver.execute_cdp_cmd("Runtime.evaluate", call)["result"]["value"]
    return found
