"""Learned kernels: figures and words, and a run of one task that learns little."""

import pytest

from paper import learned_kernels
from paper.learned_kernels import KERNEL_TASKS, Config, say_effect
from paper.record.findings import Figure


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (Figure(0.01, 0.002, 0.02, is_gain=True), "Learning helped: accuracy +0.0100"),
        (Figure(-0.01, -0.02, -0.001, is_gain=True), "Learning hurt: accuracy -0.0100"),
        (
            Figure(0.01, -0.002, 0.02, is_gain=True),
            "Learning made no difference to accuracy beyond noise",
        ),
    ],
)
def test_words_say_whether_learning_helped(gain, words):
    assert say_effect("Learning", gain, Figure(0, 0, 0), "x").startswith(words)


@pytest.mark.parametrize("name", sorted(KERNEL_TASKS))
def test_samples_to_learn_on_are_not_for_test(name):
    task = KERNEL_TASKS[name]()
    assert not (task.learns & task.task.is_test).any()
    assert task.weights.sum() == pytest.approx(1)
    models, truth = task.task.take(task.learns)
    assert len(models[0].samples) == len(truth) == task.learns.sum() > 200
    assert set(truth) <= set(task.task.target)


def test_every_rule_has_a_row():
    config = Config(tasks=("animals",), exponents=(0.5,), max_epochs=1)
    findings = learned_kernels.run(config)
    table = findings.tables[0]
    rules = [row[0] for row in table.rows]
    assert rules[0] == "arithmetic mean"
    assert {"learned kernel", "learned kernel, labels shuffled"} <= set(rules)
    assert table.title == "Animals from attributes (circular)"
    assert "the vote of the predicted classes has 0.9419" in table.note
    # What is circular counts for nothing.
    assert "on 0 of 0 tasks" in findings.verdict
    assert "where it is circular, " in findings.verdict
