"""Write generated figures between their markers: `make docs`.

A block between ``<!-- NAME: ... -->`` and ``<!-- /NAME -->`` belongs to the function of
that name below; everything else on a page is written by hand. ``results.md`` is written
whole, from the records in ``results/``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # paper/ is beside this folder, and not installed

from paper.attributes import INVERSE, VOTE  # noqa: E402
from paper.captioners.scoring import list_rows  # noqa: E402
from paper.evidence.summary import in_order, tell_circular, to_markdown  # noqa: E402
from paper.expected_cost import to_markdown as tell_costs  # noqa: E402
from paper.flusight.page import to_markdown as tell_flusight  # noqa: E402
from paper.record.findings import markdown_table, table_of  # noqa: E402
from paper.record.page import read_records, to_page  # noqa: E402
from paper.without_truth.page import list_speed, tell_gold, tell_sets  # noqa: E402
from wassemble._files import write_whole  # noqa: E402

RECORDS = ROOT / "docs" / "results"
PAGES = (
    "README.md",
    "docs/evidence.md",
    "docs/evidence-without-truth.md",
    "docs/evidence-ordered.md",
    "docs/which-rule.md",
    "docs/guides/captioners.md",
    "docs/guides/deploy.md",
    "docs/guides/generate.md",
    "docs/guides/kernels.md",
    "docs/guides/scale.md",
)


def objects() -> str:
    """Labels that nobody predicts: objects, from what captions say."""
    return _first_table("caption-attributes")


def detectors() -> str:
    """Label sets that differ: nine language detectors."""
    return _first_table("languages")


def evidence() -> str:
    """Tables and words of `make evidence`, from what it sums up."""
    path = ROOT / "docs" / "evidence.json"
    return to_markdown(json.loads(path.read_text(encoding="utf-8")), _undone())


def _undone() -> dict[str, float]:
    """Test accuracy of what undoes the circle of the animals' attributes."""
    rows = _record("attributes")["findings"]["tables"][0]["rows"]
    return {row[0]: row[2]["value"] for row in rows if row[0] in (INVERSE, VOTE)}


def local_kernels() -> str:
    """Where costs that are measured by neighbours helped, on labels that models lack."""
    claims = _record("expansion")["findings"]["claims"]
    told = {True: "better", False: "worse", None: "left open"}
    lines = [
        f"- {re.findall(r'[(](.*)[)]', each['statement'])[-1]}: {told[each['held']]}"
        f" ({each['found']})."
        for each in claims
        if each["source"] == "ours"
    ]
    return "\n".join(lines)


def chosen() -> str:
    """What `make evidence` chose on each task, from all samples to learn from."""
    found = json.loads((ROOT / "docs" / "evidence.json").read_text(encoding="utf-8"))
    tasks, rows = in_order(found), []
    for task in tasks.values():
        row = task["rows"][0]
        rule = row["words"][0].removeprefix("chosen: ")
        simple = row["rivals"]["best simple rule"]["score"]
        sizes = [f"{task['n_models']}", f"{task['n_target']}", f"{row['n_known']:,}"]
        figures = [task["metric"], f"{simple:.3f}", f"{row['ours']['score']:.3f}"]
        rows.append([task["title"], *sizes, rule, *figures])
    header = ["task", "models", "labels", "learned from", "chosen", "metric", "best simple rule"]
    table = markdown_table([*header, "chosen rule"], rows)
    return f"{table}\n\n{tell_circular(tasks, _undone())}"


def without_truth() -> str:
    """Tables and words of `python -m paper without-truth`."""
    path = ROOT / "docs" / "without-truth.json"
    return tell_sets(json.loads(path.read_text(encoding="utf-8")))


def gold() -> str:
    """Tables and words of `python -m paper without-truth --gold`."""
    path = ROOT / "docs" / "without-truth-gold.json"
    return tell_gold(json.loads(path.read_text(encoding="utf-8")))


def votes() -> str:
    """The table of `python -m paper without-truth --speed`."""
    path = ROOT / "docs" / "without-truth-speed.json"
    return markdown_table(*list_speed(json.loads(path.read_text(encoding="utf-8"))))


def flusight() -> str:
    """Tables and words of `python -m paper flusight`."""
    path = ROOT / "docs" / "flusight.json"
    return tell_flusight(json.loads(path.read_text(encoding="utf-8")))


def expected_cost() -> str:
    """The table of `python -m paper expected-cost`."""
    path = ROOT / "docs" / "expected-cost.json"
    return tell_costs(json.loads(path.read_text(encoding="utf-8")))


def cluster() -> str:
    """What `make bench-cluster` measured, and the plan that it worked out."""
    path = ROOT / "benchmarks" / "results" / "cluster.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    measured = [
        [
            f"{row['n_workers']}",
            f"{row['samples_per_second']:,.0f}",
            f"{row['megabytes_after_few']:,.0f}",
            f"{row['megabytes_after_all']:,.0f}",
            f"{row['start_up_seconds']:.1f}",
            f"{row['first_use_seconds']:.1f}",
        ]
        for row in record["workers"]
    ]
    header = ["workers", "samples a second", "MB a worker, after 3 partitions", "after all"]
    header += ["seconds to start", "seconds of first use"]
    machine = record["machine"]
    return "\n\n".join(
        [
            f"Measured on one machine of {machine['n_cores']} cores ({machine['cpu']}), whose load"
            f" was {record['load']:.1f} as it began: {record['n_partitions']} partitions of"
            f" {record['n_samples']:,} samples, {record['n_models']} models,"
            f" {record['n_labels']} labels, dense kernel, 5 sweeps of Algorithm 2, float32 Parquet"
            " that the system has in memory. More workers than cores gain nothing.",
            markdown_table(header, measured),
            "What follows from the rates of one worker for 1,000,000,000 samples on 100 workers;"
            " this is arithmetic, and nobody has run it:",
            markdown_table(["", "", "from"], record["sheet"]),
        ]
    )


def heads() -> str:
    """What `python -m paper heads` found: the largest gap of each task."""
    found = json.loads((ROOT / "docs" / "heads.json").read_text(encoding="utf-8"))
    rows = []
    for task in dict.fromkeys(each["task"] for each in found):
        own = [each for each in found if each["task"] == task]
        chosen = own[0]
        rows.append(
            [
                task,
                chosen["rule"].removeprefix("chosen: "),
                f"{chosen['bytes'] / 1000:,.0f}",
                f"{chosen['n_samples']:,}",
                f"{chosen['gap']:.0e}",
                f"{len(own)}",
                f"{max(each['gap'] for each in own):.0e}",
            ]
        )
    header = ["task", "chosen rule", "kB", "test samples", "its gap", "rules", "largest gap"]
    return markdown_table(header, rows)


def captioners() -> str:
    """The table of `python -m paper score-captioners`."""
    path = ROOT / "docs" / "captioners.json"
    return markdown_table(*list_rows(json.loads(path.read_text(encoding="utf-8"))))


def two_language_models() -> str:
    """What examples/two_language_models.py found, from its record."""
    path = ROOT / "docs" / "two_language_models.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    return f"{markdown_table(record['header'], record['rows'])}\n\n{record['told']}."


def split_kernel() -> str:
    """What `make bench-cluster` measured of kernels that are split over ranks."""
    path = ROOT / "benchmarks" / "results" / "split_kernel.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    machine, ranks = record["machine"], record["ranks"]
    seconds = max(rank["seconds_per_sweep"] for rank in ranks)
    memory = max(rank["gibibytes"] for rank in ranks)
    return (
        f"Measured on one machine of {machine['n_cores']} cores ({machine['cpu']}), whose load was"
        f" {record['load']:.1f} as it began: {record['n_models']} models with sparse kernels of"
        f" {record['n_labels']:,} x {record['n_labels']:,} labels and"
        f" {record['n_neighbors']} entries per row, {record['n_samples']} samples,"
        f" {record['n_sweeps']} sweeps of Algorithm 2 on {len(ranks)} ranks of one thread:"
        f" {seconds:.2f} s per sweep, with all that comes before the first, and at most"
        f" {memory:.2f} GiB in a rank. One process that holds everything takes"
        f" {record['alone']['seconds_per_sweep']:.2f} s per sweep on one thread; the answers differ"
        f" by at most {record['gap']:.0e} of the largest entry."
    )


def _first_table(name: str) -> str:
    first = _record(name)["findings"]["tables"][0]
    return f"{table_of(first)}\n\n{first['note']}"


def _record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    return found


BLOCKS: dict[str, Callable[[], str]] = {
    "local_kernels": local_kernels,
    "objects": objects,
    "languages": detectors,
    "evidence": evidence,
    "chosen": chosen,
    "without_truth": without_truth,
    "gold": gold,
    "votes": votes,
    "flusight": flusight,
    "expected_cost": expected_cost,
    "cluster": cluster,
    "split_kernel": split_kernel,
    "heads": heads,
    "captioners": captioners,
    "two_language_models": two_language_models,
}


def fill(page: str) -> str:
    """The text of a page with its generated blocks written anew."""
    for name, write in BLOCKS.items():
        pattern = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if pattern.search(page):
            text = write()
            page = pattern.sub(lambda match, text=text: f"{match[1]}\n{text}\n\n{match[2]}", page)
    return page


def results() -> str:
    """The page of all experiments."""
    return to_page(read_records(RECORDS), folder="results/")


def main() -> int:
    """Write every page anew."""
    write_whole(ROOT / "docs" / "results.md", results())
    for name in PAGES:
        path = ROOT / name
        write_whole(path, fill(path.read_text(encoding="utf-8")))
        print(f"wrote {name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
