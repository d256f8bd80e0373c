"""Records of experiments: figures, and what made them, written whole or not at all."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from wassemble._files import write_whole

__all__ = ["describe_machine", "table", "write_record"]


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


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write ``record`` as JSON."""
    write_whole(path, json.dumps(record, indent=2) + "\n")
