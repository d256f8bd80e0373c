"""Records of experiments: figures, and what made them, written whole or not at all."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from wassemble._files import write_whole

__all__ = ["describe_machine", "publish", "table"]


def table(header: list[str], rows: list[list[str]]) -> str:
    """Markdown table with aligned columns, first column to the left and the rest to the right."""
    cells = [header, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row: list[str]) -> str:
        first, *rest = row
        padded = [
            first.ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(rest, widths[1:], strict=True)),
        ]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (w + 1) + ":" for w in widths[1:])]) + "|"
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def describe_machine() -> dict[str, str]:
    """Versions that a figure may depend on."""
    packages = {name: version(name) for name in ("wassemble", "numpy", "scipy")}
    return {"python": platform.python_version(), "machine": platform.machine(), **packages}


def publish(
    run: Callable[[], dict[str, Any]], write_report: Callable[[dict[str, Any]], str], out: Path
) -> int:
    """Run an experiment, write its record and report into ``out`` and print it; an exit code."""
    try:
        record = run()
        report = write_report(record)
        name = record["name"]
        write_whole(out / f"{name}.json", json.dumps(record, indent=2) + "\n")
        write_whole(out / f"{name}.md", report)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return 130
    print(report)
    print(f"report: {out / f'{name}.md'}", file=sys.stderr)
    return 0
