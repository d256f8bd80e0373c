"""Optional dependencies: imported where they are needed, or one clear error."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from wassemble.errors import MissingExtraError

__all__ = ["load_extra"]


def load_extra(module: str, extra: str, *, purpose: str) -> Any:
    """The module, or `MissingExtraError` with the line that installs it.

    ``purpose`` goes before "needs": "reading Parquet files".
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".", maxsplit=1)[0]:
            raise  # the extra is there, and broken
        raise MissingExtraError(
            f"{purpose} needs {module.split('.', maxsplit=1)[0]}, which is not installed.\n"
            f"hint: pip install 'wassemble[{extra}]'"
        ) from None
