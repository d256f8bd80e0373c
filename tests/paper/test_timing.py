"""The timing table."""

import numpy as np

from paper import timing


def test_rows_repeat_in_their_order():
    scores = np.arange(12.0).reshape(2, 3, 2)
    found = timing.repeat_rows(scores, 7)
    assert found.shape == (2, 7, 2)
    np.testing.assert_array_equal(found[:, 3:6], scores)
    np.testing.assert_array_equal(found[:, 6], scores[:, 0])


def test_the_papers_seconds_stand_beside_ours():
    found = timing.run(timing.Config(n_samples=200, n_rounds=3, n_beams=1))
    assert found.extra["varies"]
    rows = {row[0]: row for row in found.tables[0].rows}
    five = rows["Wasserstein, dense kernel, sweeps: 5"]
    assert five[3:5] == [135.950, 152.987]
    assert five[1] > 0
    assert rows["geometric mean"][3] == 0.289
    assert rows["Wasserstein, diagonal kernel, closed form"][3] is None


def test_a_claim_on_time_holds_in_every_run_or_not_at_all():
    fast, slow = timing._claims({1: [0.1, 0.11], 10: [0.5, 0.6]}, 1000)
    assert (fast.held, slow.held) == (True, True)
    assert fast.power == "0.1000 ms"
    fast, slow = timing._claims({1: [0.1, 0.7], 10: [0.5, 4.1]}, 1000)
    assert (fast.held, slow.held) == (False, False)
