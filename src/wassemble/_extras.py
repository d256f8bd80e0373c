"""Optional dependencies: imported where they are needed, or one clear error."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from wassemble.errors import MissingExtraError


def load_extra(module: str, extra: str, *, purpose: str) -> Any:
    """The module, or `MissingExtraError` with the line that installs it.

    ``purpose`` goes before "needs": "reading Parquet files".
    """
    try:
        return _import(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".", maxsplit=1)[0]:
            raise  # the extra is there, and broken
        raise MissingExtraError(
            f"{purpose} needs {module.split('.', maxsplit=1)[0]}, which is not installed.\n"
            f"hint: pip install 'wassemble[{extra}]'"
        ) from None


def _import(module: str) -> Any:
    if module in sys.modules:
        return import_module(module)
    with _interrupts_wait():
        imported = import_module(module)
        if module.startswith("pyarrow"):
            # It imports pandas soon, and would drop an interrupt that comes meanwhile. Whether
            # pandas is there and sound is for pyarrow to judge.
            with suppress(Exception):
                import_module("pandas")
    return imported


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Let an interrupt wait for the end: one amid an import may be lost, or break the module."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled in the main thread alone
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in ours:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
