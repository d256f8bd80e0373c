"""Weights by performance: what the weights are, and figures known beforehand."""

import numpy as np
import pytest

from paper.multilabel import weighted
from paper.multilabel.study import load_task
from paper.record import judging


@pytest.fixture(scope="module")
def findings():
    small = weighted.Config(
        n_tops=(2,), zetas=(0.05,), floors=(0.7,), mass_penalties=(3.0,), orders=(0.5,)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "_N_RESAMPLES", 3)
        return weighted.run(small)


def test_weights_are_in_proportion_to_validation_map(findings):
    for table in findings.tables[2:]:
        scores, weights, greedy = (np.array([row[i] for row in table.rows]) for i in (1, 2, 3))
        np.testing.assert_allclose(weights, scores / scores.sum(), rtol=1e-6)
        assert greedy.sum() == pytest.approx(1)
        assert greedy.max() > weights.max()


def test_figures_that_were_known_beforehand(findings):
    rows = {row[0]: row for row in findings.tables[0].rows}
    assert rows["arithmetic mean"][3] == pytest.approx(0.630, abs=0.0006)
    assert rows["gated arithmetic mean"][3] == pytest.approx(0.633, abs=0.0006)
    gain = rows["arithmetic mean"][4]
    assert gain.value == pytest.approx(rows["arithmetic mean"][3] - rows["arithmetic mean"][2])


def test_greedy_weights_are_best_on_the_images_that_they_were_learned_on(findings):
    task = load_task("coco", least_score=0.0)
    seen = task.part(False)
    by_map, greedy = (
        task.validation.score(np.tensordot([row[i] for row in findings.tables[2].rows], seen, 1))
        for i in (2, 3)
    )
    assert greedy > by_map > task.validation.score(seen.mean(axis=0))
