"""Small experiments give the figures of their committed records."""

import json
from pathlib import Path

import pytest
from pinned_findings import differences

from paper.record.catalogue import EXPERIMENTS

RECORDS = Path(__file__).parents[2] / "docs" / "results"
# What runs within a minute; `make results` runs all.
SMALL = ("attributes", "mapping", "languages")


@pytest.mark.parametrize("name", SMALL)
def test_a_record_comes_out_again(name):
    pinned = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    module = EXPERIMENTS[name].load()
    found = json.loads(json.dumps(module.run(module.Config(), None).to_dict()))
    assert differences(found, pinned["findings"], tolerance=2e-3) == []


def test_every_experiment_has_a_record():
    assert [name for name in EXPERIMENTS if not (RECORDS / f"{name}.json").is_file()] == []
