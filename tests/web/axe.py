"""What a screen reader would stumble over, by axe-core, which lies beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

AXE = (Path(__file__).parent / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
_PROBLEMS = """
axe.run().then((found) => found.violations.map(
  (each) => `${each.id}: ${each.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`
))
"""


def find_problems(driver: Any) -> list[str]:
    """Rules of axe that the page breaks, and where."""
    # By the debugger: the page's own policy would not let the script in.
    call = {"expression": AXE + _PROBLEMS, "awaitPromise": True, "returnByValue": True}
    found: list[str] = driver.execute_cdp_cmd("Runtime.evaluate", call)["result"]["value"]
    return found
