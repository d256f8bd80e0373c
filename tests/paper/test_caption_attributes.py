"""Objects from words of captions: nothing that names an object helps, and rules do as they say."""

import numpy as np
import pytest

from paper import caption_attributes
from paper.caption_attributes import Config, bayes, invert, load_pictures, names, share_with_word

SMALL = Config(
    epsilons=(3.0,),
    mass_penalties=(0.5,),
    ridges=(1.0,),
    decays=(0.1,),
    n_steps=15,
    n_sweeps=5,
    least_images=150,
)


def test_no_attribute_names_an_object():
    data = load_pictures(SMALL)
    assert not any(names(word, data.objects) for word in data.words)
    assert {"grass", "riding"} <= set(data.words)
    n_seen = data.has_word[data.split == 0].sum(axis=0)
    assert (n_seen >= SMALL.least_images).all()


def test_rules_find_the_object_whose_words_were_said(rng):
    table = rng.uniform(0.05, 0.95, (40, 6))
    scores = table.T  # an image for each object, with just its words
    for found in (invert(scores, table, 1e-6), bayes(scores, table, table.mean(axis=1))):
        assert found.argmax(axis=1).tolist() == list(range(6))


def test_the_table_has_shares_of_the_objects_own_images():
    data = load_pictures(SMALL)
    train = data.split == 0
    person, sitting = data.objects.index("person"), data.words.index("sitting")
    with_person = train & (data.has_object[:, person] > 0)
    expected = data.has_word[with_person, sitting].mean()
    assert share_with_word(data, train)[sitting, person] == pytest.approx(expected)


def test_transport_beats_the_linear_map_where_nothing_is_circular():
    findings = caption_attributes.run(SMALL)
    test = {row[0]: row[2].value for row in findings.tables[0].rows}
    assert test["Wasserstein, tuned"] > test["arithmetic mean"] + 0.03
    assert test["trained on objects, arithmetic mean"] == max(test.values())
    assert np.isfinite(list(test.values())).all()
    assert findings.claims[0].held
