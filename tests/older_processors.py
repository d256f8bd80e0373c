"""This machine as an older one: what its processor has learned lately is switched off.

NumPy, OpenBLAS, torch, oneDNN, MKL and the C library each choose their code by the processor,
and so each processor rounds sums in its own way. `python tests/older_processors.py` (`make
test-portable`) runs the tests without AVX-512, on one thread, beside a busy loop for each core;
its arguments are those of pytest.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from contextlib import ExitStack

# What each library is told.
OLDER = {
    "AVX2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD",
    },
    "SSE4": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD"
        ",-AVX2,-AVX,-FMA",
    },
}
# NumPy's names, of which each version knows some.
_NEWER = {"AVX2": ("AVX512", "X86_V4"), "SSE4": ("AVX", "F16C", "FMA", "X86_V")}
_ONE_THREAD = ("OMP", "OPENBLAS", "MKL", "WASSEMBLE")


def can_be(older: str) -> bool:
    """Whether NumPy finds something on this processor that an older one has not."""
    from numpy._core._multiarray_umath import __cpu_features__ as features

    return any(features.get(name) for name in _dispatched(older))


def environment(older: str) -> dict[str, str]:
    """Variables for a process that takes this processor for an older one."""
    return {**OLDER[older], "NPY_DISABLE_CPU_FEATURES": " ".join(_dispatched(older))}


def _dispatched(older: str) -> list[str]:
    """Names of what NumPy has code for, and an older processor has not."""
    from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched

    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return [name for name in dispatched if is_x86 and name.startswith(_NEWER[older])]


def main(arguments: list[str]) -> int:
    """Run pytest as on an older, smaller, busy machine; its exit code."""
    switches = {f"{library}_NUM_THREADS": "1" for library in _ONE_THREAD}
    if can_be("AVX2"):
        switches |= environment("AVX2")
    else:
        print("no AVX-512 to switch off: tests run on one thread beside a busy loop")
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(busy.kill)
        return subprocess.call(
            [sys.executable, "-m", "pytest", *arguments], env=os.environ | switches
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
