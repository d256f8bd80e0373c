"""Run the cases and write the page: `python -m benchmarks [--quick] [--case NAME]`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks import (
    case_before,
    case_captioning,
    case_cliffs,
    case_convergence,
    case_epsilons,
    case_generation,
    case_gradients,
    case_growth,
    case_heads,
    case_import,
    case_latency,
    case_learning,
    case_multilabel,
    case_ordered,
    case_web,
    history,
    page,
)
from benchmarks.measure import describe
from wassemble._files import write_whole

CASES = {
    "import": case_import,
    "latency": case_latency,
    "heads": case_heads,
    "multilabel": case_multilabel,
    "captioning": case_captioning,
    "generation": case_generation,
    "growth": case_growth,
    "convergence": case_convergence,
    "cliffs": case_cliffs,
    "before": case_before,
    "epsilons": case_epsilons,
    "gradients": case_gradients,
    "ordered": case_ordered,
    "learning": case_learning,
    "web": case_web,
}
FOLDER = Path(__file__).parent / "results"


def main() -> int:
    """Run what was asked for; a full run also writes docs/benchmarks.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, under two minutes")
    parser.add_argument("--case", choices=CASES, action="append", help="only this case")
    parser.add_argument("--page", action="store_true", help="only write the page from the records")
    parser.add_argument(
        "--record", action="store_true", help="append what is reached to history.csv"
    )
    options = parser.parse_args()
    if options.record and (changed := history.list_changes()):
        parser.error(
            "--record must be of a commit that one can check out; changed since it:"
            f" {', '.join(changed)}.\nhint: commit them, or leave --record out"
        )
    folder = FOLDER / "quick" if options.quick else FOLDER
    for name in [] if options.page else options.case or CASES:
        started = time.perf_counter()
        print(f"{name} ...", end=" ", flush=True, file=sys.stderr)
        record = {"case": name, "quick": options.quick} | CASES[name].run(quick=options.quick)
        record |= {"machine": describe(), "wall_seconds": round(time.perf_counter() - started, 1)}
        write_whole(folder / f"{name}.json", json.dumps(record, indent=2) + "\n")
        print(f"{record['wall_seconds']} s", file=sys.stderr)
    records = {
        name: json.loads((folder / f"{name}.json").read_text())
        for name in CASES
        if (folder / f"{name}.json").exists()
    }
    if not options.page:
        now = {name: records[name] for name in options.case or CASES}
        rows = history.list_rows(now, "quick" if options.quick else "full")
        for words in history.compare(rows):
            print(words, file=sys.stderr)
        if options.record:
            history.append(rows)
    if len(records) < len(CASES):
        print("the page needs a record of every case; run without --case", file=sys.stderr)
        return 0
    print(page.targets_table(records))
    if options.quick:
        print("quick sizes are too small to judge by: make bench", file=sys.stderr)
    if not options.quick:
        page.write(records)
        print("wrote docs/benchmarks.md", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
