"""Kernels learned through the solver, on three tasks.

A mixture of candidate kernels is learned on some of the samples that are not for test, and
measured on test samples against the mean, the best candidate alone, the same kernel with
its labels shuffled, a mixture learned from shuffled candidates, a low-rank kernel, and
stacking.
"""

from __future__ import annotations

from paper.learned_kernels.runs import Config, Runner
from paper.learned_kernels.tasks import KERNEL_TASKS
from paper.record.findings import Findings
from paper.record.records import Progress

__all__ = ["Config", "run"]

_TEXT = """\
Accuracy and log-loss on test samples that nothing here was fitted on, with bootstrap
intervals (over languages for the detectors, else over samples). The best candidate is that
of least loss on the samples to learn on. Log-loss is after a temperature that was fitted on
samples to learn on; stacking gives probabilities of its own. Kernels from mistakes are made
from samples of their own while a mixture is learned, and from all that are not for test in
the end. Means and barycenters have the same weights. Stacking is trained on all samples that
are not for test. Defaults of `learn_kernel` (steps, penalties) were settled while these test
figures could be seen, so take small gains with care."""


def run(config: Config, progress: Progress = None) -> Findings:
    """Test figures of each rule on each task."""
    tables = []
    for number, name in enumerate(config.tasks):
        if progress is not None:
            progress(number, len(config.tasks))
        tables.append(Runner(KERNEL_TASKS[name](), config).run())
    return Findings(text=_TEXT, tables=tables)
