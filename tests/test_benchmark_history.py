"""What benchmarks reached at earlier commits, and how a decline is told."""

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import __main__ as command, history, targets

RECORDS = Path(history.__file__).parent / "results"

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


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with a commit, in which a run would be recorded."""
    monkeypatch.setattr(history, "__file__", str(tmp_path / "benchmarks" / "history.py"))
    for name in ("benchmarks/history.csv", "benchmarks/results/web.json", "docs/benchmarks.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("then\n")
    (tmp_path / "code.py").write_text("then\n")
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    for words in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "-m", "first"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    return tmp_path


def test_what_a_run_writes_itself_does_not_keep_the_next_from_being_recorded(clone):
    for name in ("benchmarks/history.csv", "benchmarks/results/web.json", "docs/benchmarks.md"):
        (clone / name).write_text("now\n")
    assert history.list_changes() == []


def test_a_run_of_changed_files_is_not_recorded(clone, monkeypatch, capsys):
    (clone / "code.py").write_text("now\n")
    monkeypatch.setattr("sys.argv", ["benchmarks", "--quick", "--record"])
    monkeypatch.setattr(command, "CASES", {"import": None})  # refused before any is run
    with pytest.raises(SystemExit):
        command.main()
    said = capsys.readouterr().err
    assert "--record must be of a commit that one can check out" in said
    assert "code.py" in said


def test_every_target_that_was_missed_has_a_reason():
    records = {path.stem: json.loads(path.read_text()) for path in RECORDS.glob("*.json")}
    reached = [(each, each.reached(records)) for each in targets.TARGETS]
    missed = [each for each, ratio in reached if ratio is not None and not each.met(ratio)]
    assert [each.name for each in missed if not each.limit(records)] == []
