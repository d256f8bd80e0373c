"""Findings beside those of a committed record."""

from collections.abc import Mapping
from typing import Any


def differences(found: Any, pinned: Any, *, tolerance: float = 1e-6, where: str = "") -> list[str]:
    """Where two records' findings are not the same, in words; numbers within ``tolerance``."""
    if isinstance(pinned, Mapping) and isinstance(found, Mapping):
        keys = [*pinned, *(key for key in found if key not in pinned)]
        return [
            line
            for key in keys
            for line in differences(
                found.get(key), pinned.get(key), tolerance=tolerance, where=f"{where}/{key}"
            )
        ]
    if isinstance(pinned, list) and isinstance(found, list) and len(pinned) == len(found):
        pairs = enumerate(zip(found, pinned, strict=True))
        return [
            line
            for i, (a, b) in pairs
            for line in differences(a, b, tolerance=tolerance, where=f"{where}[{i}]")
        ]
    is_number = isinstance(found, int | float) and isinstance(pinned, int | float)
    if is_number and abs(found - pinned) <= tolerance * max(1, abs(pinned)):
        return []
    return [] if found == pinned else [f"{where}: {found!r}, pinned {pinned!r}"]
