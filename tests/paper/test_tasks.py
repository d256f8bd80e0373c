"""The real tasks: every model speaks of the samples, and the split is fixed."""

import numpy as np
import pytest

from paper.evidence.tasks import TASKS
from wassemble.ensemble.learning import read_trial

SIZES = {  # models, target labels, samples to learn from, test samples
    "animals": (2, 36, 1146, 1204),
    "languages": (9, 306, 633, 844),
    "voc": (8, 20, 1469, 3483),
    "coco": (8, 80, 700, 1300),
    "cifar100": (3, 100, 1988, 3012),
}


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_task_is_whole(name):
    task = TASKS[name]()
    models, truth = task.part(False)
    trial = read_trial(models, truth, target=task.target, kind=task.kind)
    held_out = task.part(True)[0][0].n_samples
    assert (len(models), len(task.target), trial.n_samples, held_out) == SIZES[name]
    assert not set(models[0].samples) & set(task.part(True)[0][0].samples)
    for kernel in task.kernels.values():
        assert np.isfinite(kernel.to_dense()).all()
        for model in models:
            assert kernel.align(model.labels, task.target).shape[1] == len(task.target)
