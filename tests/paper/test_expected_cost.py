"""What answers cost is counted for each rule, beside the mean's answer of least cost."""

import json
from pathlib import Path

import numpy as np
import pytest

import wassemble as ws
from paper.expected_cost import CostCase, judge_costs, list_rows, load_cases

RECORD = Path(__file__).parents[2] / "docs" / "expected-cost.json"
GRADES = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))


def test_costs_are_those_of_the_answers():
    sure = np.array([[[1.0, 0, 0]], [[0, 0, 1.0]]]).repeat(4, axis=1)  # a 0 and a 2
    case = CostCase(
        "grades",
        lambda rule: rule.fuse(sure).scores,
        {"exact W2": ws.LineBarycenter(2)},
        GRADES,
        np.array([1, 1, 1, 0]),
        np.arange(4),
    )
    found = {(row["rule"], row["answer"]): row for row in judge_costs(case)["rows"]}
    assert found["mean", "largest"]["cost"] == pytest.approx(0.75)  # the first of equal ones, 0
    assert found["mean", "least cost"]["saved"] == 0
    assert found["exact W2", "largest"]["cost"] == pytest.approx(0.25)  # 1
    assert found["exact W2", "largest"]["saved"] == pytest.approx(0.5)


def test_the_page_has_what_the_command_finds_where_data_are_shipped():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    case = next(case for name, case in load_cases() if name == "adult_content2")
    found = judge_costs(case)
    assert list_rows({"": found}) == list_rows({"": record["adult_content2"]})
