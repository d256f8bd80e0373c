"""The real tasks: every model speaks of the samples, and the split is fixed."""

import numpy as np
import pytest

from paper.evidence.tasks import TASKS, every_language
from wassemble.ensemble import Fusion
from wassemble.ensemble.learning import read_trial
from wassemble.solvers import Single

SIZES = {  # models, target labels, samples to learn from, test samples
    "animals": (2, 36, 1146, 1204),
    "languages": (9, 211, 633, 844),
    "voc": (8, 20, 1469, 3483),
    "coco": (8, 80, 700, 1300),
    "cifar100": (3, 100, 1988, 3012),
    "encodings": (11, 46, 912, 1388),
    "encodings-without-best": (10, 46, 912, 1388),
    "part-of-speech": (7, 47, 1137, 1776),
    "digits": (5, 10, 610, 987),
    "strong-networks": (2, 100, 1988, 3012),
}


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_task_is_whole(name):
    task = TASKS[name]()
    models, truth = task.part(False)
    assert task.name == name
    trial = read_trial(models, truth, **task.meanings)
    held_out = task.part(True)[0][0].n_samples
    assert (len(models), len(task.target), trial.n_samples, held_out) == SIZES[name]
    assert not set(models[0].samples) & set(task.part(True)[0][0].samples)
    assert task.groups is None or len(task.groups) == task.n_samples
    for kernel in task.kernels.values():
        assert np.isfinite(kernel.to_dense()).all()
        for model in models:
            assert kernel.align(model.labels, task.target).shape[1] == len(task.target)


def test_every_language_that_a_detector_declares_is_a_target_of_the_papers_own_experiment():
    task = every_language()
    assert len(task.target) == 306
    assert set(task.truth) <= set(task.target)


def test_equal_names_of_taggers_mean_what_their_tag_sets_say():
    aliases = TASKS["part-of-speech"]().aliases
    assert aliases.of_model("hanta_c5")["PRP"] == {"IN": 1.0}
    assert "PRP" not in aliases.of_model("nltk_perceptron")
    assert len(aliases.of_model("wink_upos")["PUNCT"]) > 5


def test_two_names_of_one_encoding_count_by_the_larger_score():
    """Of sums, chardet_7 would have 0.86."""
    task = TASKS["encodings"]()
    models, truth = task.part(True)
    alone = Fusion(Single("chardet_7"), **task.meanings).plan(models).fuse(models).scores
    right = np.nan_to_num(alone).argmax(axis=1) == task.target.places(truth)
    assert right.mean() == pytest.approx(0.9633, abs=1e-4)


def test_strong_networks_are_equally_good():
    task = TASKS["strong-networks"]()
    answers = [np.nan_to_num(model.scores).argmax(axis=1) for model in task.models]
    accuracies = np.mean(np.array(answers) == task.target.places(task.truth), axis=1)
    assert accuracies.min() > 0.74
    assert np.ptp(accuracies) < 0.01
