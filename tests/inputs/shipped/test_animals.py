"""The shipped example data."""

import numpy as np

from wassemble.inputs import load_animals


def test_names_and_arrays_belong_together():
    data = load_animals()
    assert data.models == ("resnet18", "resnet34")
    assert data.scores.shape == (2, 2350, len(data.attributes))
    assert data.has_attribute.shape == (len(data.attributes), len(data.animals))
    assert len(data.animals) == 36
    zebra = data.has_attribute[:, data.animals.index("zebra")]
    assert zebra[data.attributes.index("stripes")] == 1
    assert zebra[data.attributes.index("water")] == 0


def test_every_attribute_belongs_to_some_animal_and_scores_are_clipped():
    data = load_animals()
    assert data.has_attribute.any(axis=1).all()
    assert data.scores.min() >= 1e-6
    assert data.scores.max() <= 1


def test_a_sure_prediction_scores_the_attributes_of_its_animal():
    data = load_animals()
    own = data.has_attribute.T[data.truth]
    right = (data.scores * own[None]).sum(axis=2).mean()
    wrong = (data.scores * (1 - own[None])).sum(axis=2).mean()
    assert right > 2 * wrong


def test_the_split_is_fixed_and_about_half():
    first, second = load_animals(), load_animals()
    np.testing.assert_array_equal(first.is_test, second.is_test)
    assert 0.45 < first.is_test.mean() < 0.55
    assert set(first.truth) == set(range(36))
