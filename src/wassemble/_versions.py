"""What runs here: versions, and whether sweeps are native. For reports of errors."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from wassemble import __version__
from wassemble.solvers.native_sweep import find_native

_PACKAGES = ("numpy", "scipy", "torch", "wassemble-native")


def show_versions() -> None:
    """Print the versions of what matters, and which sweeps run.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    wassemble         0.1.0
    python            3...
    """
    rows = {"wassemble": __version__, "python": f"{platform.python_version()}, {_machine()}"}
    rows |= {name: _version(name) for name in _PACKAGES}
    rows["sweeps"] = _sweeps()
    print("\n".join(f"{name:17} {text}" for name, text in rows.items()))


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _sweeps() -> str:
    native = find_native()
    if native is not None:
        return f"native, {native.level()} (of {', '.join(native.levels())})"
    if os.environ.get("WASSEMBLE_NATIVE") == "0":
        return "NumPy; WASSEMBLE_NATIVE=0 switches native ones off"
    return "NumPy; `pip install ./native` in a clone adds native ones"
