"""Compile the library before it is packed, a file for each level of processors.

`python hatch_build.py` does the same in place, for work in a clone; with `sanitized` it builds
files that stop at the first access outside of memory and at undefined behaviour. Needs a C++17
compiler, $CXX or c++, and nothing else.
"""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # in a clone whoever compiles need not pack
    BuildHookInterface = object

ROOT = Path(__file__).parent
PACKAGE = ROOT / "src" / "wassemble_native"
# Bytes of a vector and what the compiler may use; the first level serves every processor.
_BASELINE = {"baseline": (16, ())}
_X86 = {
    "avx2": (32, ("-march=x86-64-v3",)),
    "avx512": (64, ("-march=x86-64-v4", "-mprefer-vector-width=512")),
}
# Vectors wider than a level's registers never leave a function: -Wno-psabi.
_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=fast")
_WARNINGS = ("-Wall", "-Wextra", "-Wno-psabi")
_WITHOUT = "; wassemble runs without it, on NumPy."
_SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compile_library(folder: Path = PACKAGE, *, more: tuple[str, ...] = ()) -> list[Path]:
    """Compile every level into ``folder``; their files."""
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    levels = _BASELINE | (_X86 if is_x86 else {})
    compiler = _find_compiler()
    made = []
    for name, (n_bytes, flags) in levels.items():
        path = folder / f"sweeps_{name}.so"
        source = str(ROOT / "cpp" / "library.cpp")
        options = [*_FLAGS, *_WARNINGS, f"-DVECTOR_BYTES={n_bytes}", *flags, *more]
        if subprocess.run([*compiler, *options, source, "-o", str(path)], check=False).returncode:
            raise SystemExit(f"{compiler[0]} could not compile wassemble-native{_WITHOUT}")
        made.append(path)
    return made


def _find_compiler() -> list[str]:
    """The command of the compiler, with what $CXX adds to it."""
    compiler = os.environ.get("CXX", "c++").split()
    if not compiler or shutil.which(compiler[0]) is None:
        raise SystemExit(
            f"wassemble-native needs a C++17 compiler, and {' '.join(compiler) or '$CXX'} is not"
            f" there: install one (g++ or clang++) or set CXX{_WITHOUT}"
        )
    return compiler


class CompileHook(BuildHookInterface):  # type: ignore[misc]
    """What hatchling calls before it packs a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build_data["artifacts"] += [str(path.relative_to(ROOT)) for path in compile_library()]
        build_data["pure_python"] = False
        # Plain C, called through ctypes: one file for every version of Python.
        tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{tag}"


if __name__ == "__main__":
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else PACKAGE
    compile_library(target, more=_SANITIZERS if "sanitized" in sys.argv[1:2] else ())
