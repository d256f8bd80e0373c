"""Cells of CSV files that people open in a spreadsheet."""

from __future__ import annotations

from typing import Any

__all__ = ["safe_cell"]

# A spreadsheet takes cells that begin so for formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(cell: Any) -> Any:
    """A cell that no spreadsheet runs: a text like a formula gets an apostrophe in front.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell("cat"), safe_cell(-1)
    ("'=1+1", 'cat', -1)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
