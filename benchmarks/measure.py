"""Timing side by side: turns taken in rounds, the best of each, and how much they spread."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from wassemble.solvers.native_sweep import find_native

__all__ = ["Timing", "agree", "describe", "on_numpy", "once", "race"]


@dataclass(frozen=True)
class Timing:
    """Best time of a contender and by how much the others were longer (median over best)."""

    seconds: float
    spread: float
    n_rounds: int


def race(
    contenders: dict[str, Callable[[], Any]],
    *,
    n_rounds: int = 5,
    at_least: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, dict[str, Any]]:
    """Time each contender in turn, round by round, so that a busy moment hits all alike.

    A contender is called as often within a turn as it takes to last ``at_least`` seconds.
    The first call of each warms up and is not timed. ``clock`` may be `time.process_time`
    where one thread does all the work: other work on the machine is not counted then.
    """
    calls = {}
    for name, call in contenders.items():
        call()
        started = clock()
        call()
        lasted = clock() - started
        calls[name] = max(1, int(at_least / max(lasted, 1e-9)))
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(n_rounds):
        for name, call in contenders.items():
            gc.collect()
            started = clock()
            for _ in range(calls[name]):
                call()
            times[name].append((clock() - started) / calls[name])
    return {
        name: asdict(Timing(min(each), float(np.median(each)) / min(each) - 1, n_rounds))
        for name, each in times.items()
    }


def once(call: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """Answer and time of a contender too slow to be called twice."""
    started = time.perf_counter()
    answer = call()
    return answer, asdict(Timing(time.perf_counter() - started, 0.0, 1))


def on_numpy(call: Callable[[], Any]) -> Any:
    """The answer of ``call`` without native sweeps."""
    before = os.environ.get("WASSEMBLE_NATIVE")
    os.environ["WASSEMBLE_NATIVE"] = "0"
    try:
        return call()
    finally:
        del os.environ["WASSEMBLE_NATIVE"]
        if before is not None:
            os.environ["WASSEMBLE_NATIVE"] = before


def agree(answers: dict[str, np.ndarray], *, rtol: float, atol: float = 0.0) -> float:
    """Largest relative gap between the answers; refuses to go on if it is too large."""
    (reference_name, reference), *others = answers.items()
    worst = 0.0
    for name, answer in others:
        np.testing.assert_allclose(
            answer,
            reference,
            rtol=rtol,
            atol=atol,
            err_msg=f"{name} and {reference_name} do not agree: timing them would compare nothing",
        )
        scale = np.abs(reference).max()
        worst = max(worst, float(np.abs(np.asarray(answer) - reference).max() / scale))
    return worst


def describe() -> dict[str, Any]:
    """Machine and versions that the figures depend on."""
    found = {}
    for name in ("wassemble", "numpy", "scipy", "POT", "torch", "jax", "ott-jax"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    cpu = next((line.split(":")[1].strip() for line in lines if "model name" in line), "unknown")
    avx512 = any("avx512f" in line for line in lines)
    n_cores = sum(line.startswith("processor") for line in lines)
    native = find_native()
    return {
        "sweeps": "NumPy" if native is None else f"native, {native.level()}",
        "cpu": cpu + (" (AVX-512)" if avx512 else ""),
        "n_cores": n_cores,
        "python": platform.python_version(),
        "versions": found,
    }
