"""Learned kernels on three tasks: figures, words and the command; the run itself takes minutes."""

import numpy as np
import pytest

from wassemble.experiments import learned_kernels
from wassemble.experiments.kernel_figures import Row, average_rows, measure_rows, resample_units
from wassemble.experiments.kernel_runs import LEARNED
from wassemble.experiments.kernel_tasks import KERNEL_TASKS


def figure(accuracy, difference, error=0.001):
    return {
        "accuracy": accuracy,
        "accuracy_error": 0.01,
        "log_loss": 0.5,
        "log_loss_error": 0.02,
        "difference": difference,
        "difference_error": error,
        "loss_difference": -0.01,
        "loss_difference_error": 0.005,
    }


def record(difference, refused=None):
    found = {
        "title": "A task",
        "exponent": 0.5,
        "n_test": 10,
        "n_learning": 20,
        "n_candidates_from": 5,
        "parameters": {"share of a": 1.0},
        "best_epoch": 1,
        "epochs": [{}, {}, {}],
        "low_rank_refused": refused,
        "against_control": figure(0.8, 0.0),
        "figures": {
            "best candidate (a)": figure(0.8, 0.0, 0.0),
            "candidate (b)": figure(0.9, 0.1),
            LEARNED: figure(0.8 + difference, difference),
        },
    }
    return {"tasks": {"a": found}}


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (0.01, "Learning helped: accuracy +0.0100"),
        (-0.01, "Learning hurt: accuracy -0.0100"),
        (0.0015, "Learning made no difference to accuracy beyond noise: accuracy +0.0015"),
    ],
)
def test_a_report_says_whether_learning_helped(difference, words):
    page = learned_kernels.write_report(record(difference))
    assert words in page
    assert "The labels' meaning made no difference to accuracy beyond noise" in page
    assert "But the candidate (b) alone, which was not chosen, is as good: 0.9000." in page
    assert "epoch 1 of 2" in page
    assert "No low-rank kernel" not in page


def test_a_report_says_why_there_is_no_low_rank_kernel():
    assert "No low-rank kernel: too few" in learned_kernels.write_report(record(0.0, "too few"))


def test_differences_are_between_the_same_samples():
    truth = np.array([0, 1, 0, 1])
    good = Row(np.eye(2)[truth], np.full(4, 0.1))
    bad = Row(np.eye(2)[[0, 1, 1, 0]], np.full(4, 0.3))
    counts = resample_units(["a", "a", "b", "b"], seed=0)
    assert (counts[:, 0] == counts[:, 1]).all()  # drawn together
    found = measure_rows({"good": good, "bad": bad}, "bad", truth, counts)
    assert found["good"]["accuracy"] == 1
    assert found["good"]["accuracy_error"] == 0
    assert found["good"]["difference"] == 0.5
    assert found["good"]["difference_error"] > 0.1
    assert found["good"]["loss_difference"] == pytest.approx(-0.2)
    both = measure_rows({"both": average_rows([good, bad])}, "both", truth, counts)
    assert both["both"]["accuracy"] == 0.75


@pytest.mark.parametrize("name", sorted(KERNEL_TASKS))
def test_samples_to_learn_on_are_not_for_test(name):
    task = KERNEL_TASKS[name]()
    assert not (task.learns & task.is_test).any()
    assert task.weights.sum() == pytest.approx(1)
    models, truth = task.take(task.learns)
    assert len(models[0].samples) == len(truth) == task.learns.sum() > 200
    assert set(truth) <= set(task.task.target)


def test_an_unknown_task_is_refused(capsys):
    with pytest.raises(SystemExit):
        learned_kernels.main(["dragons"])
    assert "a task must be one of animals, languages, cifar100" in capsys.readouterr().err
