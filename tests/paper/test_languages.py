"""Nine language detectors: the figures, and that they come from the right ingredients."""

import pytest

from paper import languages


def test_transport_through_mistakes_beats_every_mean():
    quick = languages.Config(priors=(0.1, 0.2), exponents=(0.5, 0.7), sweeps=(3,), orders=(0.75,))
    findings = languages.run(quick)
    rows = findings.tables[0].rows
    test = {row[0]: row[1].value for row in rows}
    assert test["best single detector (heliport)"] == pytest.approx(0.767, abs=0.002)
    assert test["plain mean"] == pytest.approx(0.575, abs=0.005)
    assert test["plain barycenter"] < 0.6
    assert test["label-aware arithmetic mean"] == pytest.approx(0.886, abs=0.005)
    assert test["label-aware mean through kernels"] >= 0.905
    assert test["barycenter through kernels"] >= 0.92
    assert test["any detector right"] == pytest.approx(0.947, abs=0.002)
    gain = next(row[2] for row in rows if row[0] == "barycenter through kernels")
    assert gain.low > 0
    assert gain.words() in findings.verdict
