"""Steps between names in WordNet."""

import numpy as np

from paper.data.wordnet import wordnet_steps


def test_what_is_more_alike_is_fewer_steps_away():
    steps = wordnet_steps(["dog", "wolf", "teapot", "tvmonitor"])
    np.testing.assert_array_equal(steps, steps.T)
    assert (np.diag(steps) == 0).all()
    assert 0 < steps[0, 1] < steps[0, 2] < np.inf
    assert np.isinf(steps[3, :3]).all()


def test_a_name_that_is_not_there_is_looked_up_in_other_forms_and_never_the_same():
    steps = wordnet_steps(["glass", "wine glass", "ski", "skis", "frisbee"])
    assert steps[0, 1] == steps[2, 3] == 1
    assert np.isfinite(steps[4]).all()
