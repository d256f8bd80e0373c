"""What was reached at each recorded run: history.csv, and what has become worse since the last.

Only ratios within a run are kept, so that runs on different machines can be laid side by side.
"""

from __future__ import annotations

import csv
import math
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.targets import TARGETS, Target

FILE = Path(__file__).parent / "history.csv"
# What a run writes: the next one, at another size, finds it changed.
_WRITTEN = ("benchmarks/history.csv", "benchmarks/results/", "docs/benchmarks")
# A quick run is short, and its machine may be busy: less than this is not told.
_WORTH_TELLING = 1.5
_N_NAMED = 6


class Row(NamedTuple):
    """One target in one run; ``size`` is "full" or "quick"."""

    date: str
    commit: str
    size: str
    cpu: str
    case: str
    value: float


def list_rows(records: dict[str, Any], size: str) -> list[Row]:
    """A row for each target whose records are there."""
    day, commit = datetime.now(UTC).date().isoformat(), _commit()
    cpu = next(iter(records.values()))["machine"]["cpu"]
    found = ((name, target.reached(records)) for name, target in by_name().items())
    return [Row(day, commit, size, cpu, n, round(v, 4)) for n, v in found if v is not None]


def by_name() -> dict[str, Target]:
    """Targets by names that can be understood alone: "the same" is said in full."""
    found: dict[str, Target] = {}
    whole = last = ""
    for target in TARGETS:
        if target.name.startswith("the same"):
            name = f"{whole}; {target.name}"
            last = f"{last}; {target.name}" if name in found else name
        else:
            whole = last = target.name
        found[last] = target
    return found


def read() -> list[Row]:
    """Every row that was recorded, oldest first."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return [Row(*words, float(value)) for *words, value in rows]


def append(rows: list[Row]) -> None:
    """Record a run."""
    with FILE.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def compare(rows: list[Row]) -> list[str]:
    """Words about what is much worse than when it was last recorded at the same size."""
    last = {(row.size, row.case): row for row in read()}
    targets = by_name()
    found = [(row, last.get((row.size, row.case))) for row in rows]
    return [
        f"warning: {row.case}: {row.value:g}, and {before.value:g} at {before.commit}"
        for row, before in found
        if before is not None and _decline(targets[row.case], row, before) > _WORTH_TELLING
    ]


def draw(path: Path) -> None:
    """Plot how each target moved since it was first recorded; the largest moves have names."""
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(9, 5), layout="constrained")
    commits = list(dict.fromkeys(row.commit for row in read() if row.size == "full"))
    lines = sorted(_courses(), key=lambda each: -max(abs(math.log(gain)) for gain in each[2]))
    for nth, (name, places, gains) in enumerate(lines):
        style = {"label": name} if nth < _N_NAMED else {"color": "0.85", "zorder": 0}
        panel.plot([commits.index(each) for each in places], gains, "o-", markersize=3, **style)
    panel.set_xticks(range(len(commits)), commits, rotation=60)
    panel.set_yscale("log", base=2)
    panel.set(ylabel="times as good as when first recorded")
    figure.legend(fontsize="x-small", loc="outside lower left")
    with plt.rc_context({"svg.fonttype": "none"}):  # long names as text, not as outlines
        figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _courses() -> Iterator[tuple[str, list[str], list[float]]]:
    """Name, commits, and how many times as good as at first, of targets recorded twice or more."""
    targets = by_name()
    rows = sorted((row for row in read() if row.size == "full"), key=lambda row: row.case)
    for name, group in groupby(rows, key=lambda row: row.case):
        own = [row for row in group if row.value > 0]
        if name in targets and len(own) > 1:
            gains = [1 / _decline(targets[name], row, own[0]) for row in own]
            yield name, [row.commit for row in own], gains


def _decline(target: Target, now: Row, before: Row) -> float:
    """How many times worse; more is better where a bound is met by any large number."""
    if not now.value or not before.value:
        return 1.0
    ratio = now.value / before.value
    return 1 / ratio if target.met(float("inf")) else ratio


def list_changes() -> list[str]:
    """Files that are not as in the commit that is checked out, but for those that a run writes."""
    changed = _git("diff", "--name-only", "HEAD").splitlines()
    return [name for name in changed if not name.startswith(_WRITTEN)]


def _commit() -> str:
    """The commit that is checked out, with a plus if files have changed since; "none" elsewhere."""
    commit = _git("describe", "--always", "--exclude=*").strip()
    return (commit or "none") + ("+" if list_changes() else "")


def _git(*words: str) -> str:
    """What git says of this clone; nothing where there is none."""
    git = ["git", "-C", str(Path(__file__).parent), *words]
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout
