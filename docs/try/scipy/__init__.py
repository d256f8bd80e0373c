"""What stands in for SciPy on the page that fuses in the browser: NumPy alone, for small arrays.

SciPy cannot be had for the Python that runs there. Sparse arrays, connected components and
Cholesky's factors are here, as far as kernels and barycenters use them; every other name can be
imported, and refuses in one sentence when it is used. `tests/test_try.py` compares what is here
with SciPy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

__version__ = "1.15.0"  # of what it stands in for, at its oldest


def refuse(name: str) -> NoReturn:
    """Say that ``name`` is not here."""
    raise NotImplementedError(
        f"`{name}` needs SciPy, which cannot be had in the browser: what stands in for it on this"
        " page does kernels and barycenters alone."
    )


class Missing:
    """A function or class of SciPy that is not here: it may be imported, not used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        """Refuse."""
        refuse(self._name)

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"{self._name}.{name}")

    def __or__(self, other: Any) -> Any:
        return object  # in a type


class _Rest(MetaPathFinder, Loader):
    """Modules of SciPy that are not here, and have only what is missing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Every submodule that no file here is."""
        is_ours = fullname.startswith(f"{__name__}.")
        return ModuleSpec(fullname, self, is_package=True) if is_ours else None

    def exec_module(self, module: ModuleType) -> None:
        """Give it every name."""
        fill(module)


def fill(module: ModuleType) -> None:
    """Give a module the names of SciPy that it lacks."""

    def find(name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{module.__name__}.{name}")

    module.__getattr__ = find  # type: ignore[method-assign]


sys.meta_path.append(_Rest())
from . import linalg, sparse  # noqa: E402, F401 - as in SciPy, there without being asked for

fill(sys.modules[__name__])
