"""Records of experiments: figures, and what made them, written whole or not at all."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from operator import methodcaller
from pathlib import Path
from typing import Any

from paper.record.catalogue import Experiment
from paper.record.findings import Progress, plot_file, to_markdown
from paper.record.fingerprint import fingerprint
from wassemble._files import write_whole
from wassemble.errors import fail
from wassemble.solvers.native_sweep import find_native

_PACKAGES = ("wassemble", "numpy", "scipy")
_WHERE_LOADED = ("torch", "pycocoevalcap")


def reproduce(
    experiment: Experiment,
    out: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    again: bool = False,
    progress: Progress = None,
) -> dict[str, Any]:
    """Run an experiment and write its record, page and plots into ``out``; the record.

    A record that the same code made with the same settings is not made again: `fingerprint`
    says which code that is.
    """
    module = experiment.load()
    config = configure(module.Config(), settings or {}, experiment.name)
    made_by = fingerprint(experiment, asdict(config))
    known = None if again else read_record(experiment.name, out)
    if known is not None and known["made_by"] == made_by:
        return known | {"is_new": False}
    flags = [f" --set {key}={json.dumps(value)}" for key, value in (settings or {}).items()]
    made_with = _tell_circumstances()  # now: files may change while it runs
    started = time.perf_counter()
    findings = module.run(config, progress)
    record: dict[str, Any] = {
        "name": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "command": f"python -m paper reproduce {experiment.name}{''.join(flags)}",
        "config": asdict(config),
        "made_by": made_by,
        "versions": {
            "python": platform.python_version(),
            "machine": platform.machine(),
            **{each: version(each) for each in (*_PACKAGES, *_WHERE_LOADED) if _is_used(each)},
        },
        "made_with": made_with,
        "seconds": round(time.perf_counter() - started, 1),
        "findings": findings.to_dict(),
    }
    # As it will be read; NumPy's own numbers and truths become plain ones.
    record = json.loads(json.dumps(record, allow_nan=False, default=methodcaller("item")))
    if findings.plots:
        from paper.record.drawing import draw

        for plot in findings.plots:
            draw(plot, out / plot_file(experiment.name, plot.name))
    write_whole(out / f"{experiment.name}.md", to_markdown(record))
    # Last: a record says that everything else is there.
    write_whole(out / f"{experiment.name}.json", json.dumps(record, indent=1) + "\n")
    return record | {"is_new": True}


def _is_used(package: str) -> bool:
    return package in _PACKAGES or package in sys.modules


def _tell_circumstances() -> dict[str, str | None]:
    """The commit, the day, and the level of native sweeps, or none of that.

    They tell records apart, and are no part of a fingerprint: the same code gives the same figures
    on another day.
    """
    native = find_native()
    return {
        "commit": find_commit(Path(__file__).parent),
        "date": datetime.now(UTC).date().isoformat(),
        "native": None if native is None else native.level(),
    }


def find_commit(folder: Path) -> str:
    """The commit that a folder is at, with "+" behind it where files differ from it."""
    words = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return told.stdout.strip()


def read_record(name: str, folder: Path) -> dict[str, Any] | None:
    """The record of an experiment, if there is one."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        found["made_by"], found["findings"]["tables"]
    except (ValueError, KeyError, TypeError):
        fail(f"{path} must be a record of an experiment; it is not.", hint="delete or move it")
    return found


def configure(config: Any, settings: Mapping[str, Any], name: str) -> Any:
    """The config with some fields changed; values have the type of what they replace."""
    known = {each.name: getattr(config, each.name) for each in fields(config)}
    changes = {}
    for key, value in settings.items():
        if key not in known:
            fail(f"a setting of {name!r} must be one of {', '.join(known) or 'none'}; got {key!r}.")
        changes[key] = _like(known[key], value, f"{name}: {key}")
    return replace(config, **changes)


def _like(default: Any, value: Any, where: str) -> Any:
    if isinstance(default, tuple):
        values = value if isinstance(value, list | tuple) else [value]
        return tuple(_like(default[0], each, where) for each in values)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        fail(f"{where} must be like {default!r}; got {value!r}.")
    return value
