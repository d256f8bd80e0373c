"""What benchmarks reached at earlier commits, and how a decline is told."""

import pytest

from benchmarks import history

FASTER = "dense, 5 sweeps, against a POT loop"  # more is better
SECONDS = "import wassemble (seconds)"  # less is better


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Rows of an earlier run, in a file of their own."""
    monkeypatch.setattr(history, "FILE", tmp_path / "history.csv")
    history.FILE.write_text(",".join(history.Row._fields) + "\n")
    history.append([row(FASTER, 20.0, "old"), row(SECONDS, 0.1, "old")])


def row(case, value, commit="new", size="quick"):
    return history.Row("2026-11-18", commit, size, "a processor", case, value)


def test_every_target_has_a_name_of_its_own():
    assert len(history.by_name()) == len(history.TARGETS)


def test_every_row_of_the_file_is_of_a_known_size():
    assert {each.size for each in history.read()} <= {"full", "quick"}


@pytest.mark.parametrize(("case", "worse", "better"), [(FASTER, 10, 40), (SECONDS, 0.2, 0.05)])
def test_what_is_much_worse_is_told_and_what_is_better_is_not(recorded, case, worse, better):
    [words] = history.compare([row(case, worse)])
    assert words.startswith(f"warning: {case}: {worse:g}, and ")
    assert words.endswith(" at old")
    assert history.compare([row(case, better)]) == []


def test_only_runs_of_the_same_size_are_compared(recorded):
    assert history.compare([row(FASTER, 1.0, size="full")]) == []


def test_cases_that_were_not_run_have_no_row(recorded):
    found = {
        "import": {"seconds": 0.2, "optional_modules": "[]", "machine": {"cpu": "a processor"}}
    }
    assert [(each.case, each.value) for each in history.list_rows(found, "quick")] == [
        (SECONDS, 0.2)
    ]
