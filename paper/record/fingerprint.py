"""What made a record: the settings, and every file that the experiment uses.

An experiment uses what it imports, and what that imports, inside this package and the library.
Imports are read from the source, those inside functions included, so that nothing has to be
run and a change elsewhere, in the web app say, leaves records as they are.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from paper.record.catalogue import Experiment

_PACKAGES = ("paper", "wassemble")
_ALSO = "paper.record.drawing"  # draws what an experiment found


def fingerprint(experiment: Experiment, config: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that change when the settings or a file in use do."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=list).encode())
    files = used_files(f"paper.{experiment.module}") | used_files(_ALSO)
    expected = Path(__file__).parent / "expected" / f"{experiment.name}.json"
    for path in sorted(files | ({expected} if expected.is_file() else set())):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def used_files(module: str) -> set[Path]:
    """Files of this package and of the library that importing and running a module may load.

    Examples
    --------
    >>> packages = {path.parent.name for path in used_files("paper.attributes")}
    >>> "solvers" in packages, "web" in packages
    (True, False)
    """
    files: set[Path] = set()
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            for package, path in _loaded(name):
                files.add(path)
                todo += _imports(path, package)
    return files


def _loaded(module: str) -> Iterator[tuple[str, Path]]:
    """A module and the packages it is in, with their files."""
    parts = module.split(".")
    for n_parts in range(1, len(parts) + 1):
        name = ".".join(parts[:n_parts])
        yield name, _source(name)
    # The names that a lazy package loads when it is asked for them.
    stub = _source(module).with_suffix(".pyi")
    if stub.is_file():
        yield module, stub


@cache
def _source(module: str) -> Path:
    root, _, rest = module.partition(".")
    package = find_spec(root)
    assert package is not None
    assert package.origin is not None
    if not rest:
        return Path(package.origin)
    path = Path(package.origin).parent.joinpath(*rest.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imports(path: Path, module: str) -> Iterator[str]:
    """Modules of ours that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if _is_ours(each.name))
        elif isinstance(node, ast.ImportFrom):
            package = module if path.stem == "__init__" else module.rpartition(".")[0]
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = ".".join(above) if node.level else ""
            name = ".".join(filter(None, (start, node.module)))
            if _is_ours(name):
                yield name
                inside = (f"{name}.{each.name}" for each in node.names)
                yield from (each for each in inside if _source(each).is_file())


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in _PACKAGES
