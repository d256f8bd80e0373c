"""Animals from attributes: the demo's first figures."""

import numpy as np
import pytest

from paper import attributes
from paper.record.findings import Figure
from wassemble.inputs import load_animals


@pytest.fixture(scope="module")
def findings():
    return attributes.run(attributes.Config(epsilons=(0.3,), mass_penalties=(2.0,)))


def test_transport_beats_every_average_and_not_what_undoes_the_circle(findings):
    rows = {row[0]: row for row in findings.tables[0].rows}
    test = {name: row[2].value for name, row in rows.items()}
    assert test["resnet18 alone"] == pytest.approx(0.85, abs=0.01)
    assert test["resnet34 alone"] == pytest.approx(0.85, abs=0.01)
    assert test["arithmetic mean"] == pytest.approx(0.88, abs=0.01)
    assert test["geometric mean"] == pytest.approx(0.88, abs=0.01)
    assert test["Wasserstein"] == pytest.approx(0.935, abs=0.01)
    assert rows["Wasserstein"][3].low > 0.03
    assert rows["Wasserstein"][4] == 0.8680  # the paper's
    assert test["Wasserstein, tuned"] == test["Wasserstein"]  # one setting to choose from
    assert findings.claims[0].held
    assert test["least-squares inverse of the table"] >= test["Wasserstein"]
    assert test["vote of the predicted classes"] >= test["Wasserstein"]
    assert "circular" in findings.verdict


def test_unseen_animals_are_reached_through_the_attribute_table(findings):
    rows = {row[0]: row for row in findings.tables[1].rows}
    assert rows["Wasserstein"][1].value > 2 / 6  # twice as good as chance
    assert isinstance(rows["Wasserstein"][2], Figure)
    # And are told from each other alone: among all animals its answers are known ones.
    among_unseen, among_all = findings.claims[1:]
    assert (among_unseen.held, among_all.held) == (True, False)
    assert "generalised" in among_all.statement
    assert rows["Wasserstein"][3].value < rows["arithmetic mean"][3].value


def test_a_run_that_did_not_converge_says_so():
    config = attributes.Config(epsilons=(0.3,), mass_penalties=(2.0,), max_sweeps=2)
    assert "Rows that did not converge" in attributes.run(config).text


def test_least_squares_undo_the_map_that_made_the_attributes():
    data = load_animals()
    made = data.named[0] @ data.has_attribute.T
    np.testing.assert_allclose(
        attributes.invert(made, data.has_attribute), data.named[0], atol=1e-9
    )


def test_unseen_animals_leave_no_trace_in_the_predictions():
    known, struck = load_animals(), load_animals(unseen=["zebra", "lion"])
    zebra = known.animals.index("zebra")
    images = known.truth == zebra
    # Stripes of zebras are seen through zebras alone.
    stripes = known.attributes.index("stripes")
    assert known.scores[0, images, stripes].mean() > 0.7
    assert struck.scores[0, images, stripes].mean() < 0.4
    assert (struck.truth == known.truth).all()
    others = load_animals(unseen=[])
    assert (others.scores == known.scores).all()
