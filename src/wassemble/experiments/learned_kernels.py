"""Kernels learned through the solver: `python -m wassemble.experiments.learned_kernels`.

On three tasks a mixture of candidate kernels is learned on some of the samples that are not
for test, and measured on test samples against the mean, the best candidate alone, the same
kernel with its labels shuffled, a mixture learned from shuffled candidates, a low-rank
kernel, and stacking.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wassemble.experiments.kernel_runs import LEARNED, Config, Runner
from wassemble.experiments.kernel_tasks import KERNEL_TASKS
from wassemble.experiments.records import describe_machine, publish, table

__all__ = ["Config", "main", "run"]

_NOTE = """\
Accuracy and log-loss on test samples that nothing here was fitted on, with standard
errors by bootstrap (over languages for the detectors, else over samples). The best candidate
is that of least loss on the samples to learn on; "difference" is the accuracy less its
accuracy on the same test samples, and counts from two standard errors on. Log-loss is after
a temperature that was fitted on samples to learn on; stacking gives probabilities of its
own. Kernels from mistakes are made from samples of their own while a mixture is learned, and
from all that are not for test in the end. Means and barycenters have the same weights.
Stacking is trained on all samples that are not for test."""


def run(config: Config) -> dict[str, Any]:
    """Test figures of each rule on each task, with everything that made them."""
    started = time.perf_counter()
    return {
        "name": "learned_kernels",
        "config": asdict(config),
        "tasks": {name: Runner(KERNEL_TASKS[name](), config).run() for name in config.tasks},
        "seconds": round(time.perf_counter() - started, 3),
        "versions": describe_machine(),
    }


def write_report(record: dict[str, Any]) -> str:
    """The record as a page of Markdown."""
    parts = ["# Kernels learned through the solver\n"]
    for found in record["tasks"].values():
        rows = [
            [
                rule,
                f"{each['accuracy']:.4f} ± {each['accuracy_error']:.4f}",
                f"{each['difference']:+.4f} ± {each['difference_error']:.4f}",
                f"{each['log_loss']:.3f} ± {each['log_loss_error']:.3f}",
            ]
            for rule, each in found["figures"].items()
        ]
        parts.append(f"## {found['title']}\n")
        parts.append(_setting(found) + "\n")
        parts.append(table(["rule", "accuracy", "difference", "log-loss"], rows) + "\n")
        parts.append(_verdict(found) + "\n")
    return "\n".join([*parts, _NOTE, ""])


def _setting(found: dict[str, Any]) -> str:
    apart = found["n_candidates_from"]
    numbers = ", ".join(f"{name} {value:.2g}" for name, value in found["parameters"].items())
    return (
        f"Learned on {found['n_learning']:,} samples"
        + (f", candidates made from {apart:,} others" if apart else "")
        + f"; tested on {found['n_test']:,}. Exponent {found['exponent']:g}, the best of those"
        f" tried. The mixture is from epoch {found['best_epoch']} of {len(found['epochs']) - 1}"
        f" (0 is the start): {numbers}."
    )


def _verdict(found: dict[str, Any]) -> str:
    """What helped and what did not, from the figures alone."""
    figures = found["figures"]
    best = next(rule for rule in figures if rule.startswith("best candidate"))
    own = figures[LEARNED]
    lines = [
        f"Learning {_effect(own)}: {_figures(own)} against the {best}.",
        f"The labels' meaning {_effect(found['against_control'])}:"
        f" {_figures(found['against_control'])} against a mixture learned from shuffled"
        " candidates.",
    ]
    lines += [
        f"But the {rule} alone, which was not chosen, is as good: {each['accuracy']:.4f}."
        for rule, each in figures.items()
        if rule.startswith("candidate") and each["accuracy"] >= own["accuracy"]
    ]
    if found["low_rank_refused"]:
        lines.append(f"No low-rank kernel: {found['low_rank_refused']}")
    return "\n".join(f"- {line}" for line in lines)


def _effect(figure: dict[str, float]) -> str:
    gain, error = figure["difference"], figure["difference_error"]
    if gain == 0 or abs(gain) < 2 * error:
        return "made no difference to accuracy beyond noise"
    return "helped" if gain > 0 else "hurt"


def _figures(figure: dict[str, float]) -> str:
    return (
        f"accuracy {figure['difference']:+.4f} ± {figure['difference_error']:.4f}, log-loss"
        f" {figure['loss_difference']:+.3f} ± {figure['loss_difference_error']:.3f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the tables and write ``learned_kernels.json`` and ``learned_kernels.md``."""
    parser = argparse.ArgumentParser(
        prog="python -m wassemble.experiments.learned_kernels",
        description="Kernels learned by gradients through the solver, on three tasks.",
    )
    parser.add_argument("tasks", nargs="*", metavar="task", help=", ".join(KERNEL_TASKS))
    parser.add_argument("--out", type=Path, default=Path("reports"), help="folder for the report")
    options = parser.parse_args(arguments)
    for name in options.tasks:
        if name not in KERNEL_TASKS:
            parser.error(f"a task must be one of {', '.join(KERNEL_TASKS)}; got {name!r}")
    config = Config(tasks=tuple(options.tasks) or Config.tasks)
    return publish(lambda: run(config), write_report, options.out)


if __name__ == "__main__":
    sys.exit(main())
