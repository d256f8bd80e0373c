"""Animals from attributes: the demo's figures and its command."""

import json

import pytest

from wassemble._files import write_whole
from wassemble.experiments import attributes
from wassemble.experiments.records import table


@pytest.fixture(scope="module")
def record():
    return attributes.run(attributes.Config())


def test_transport_beats_every_average_by_a_wide_margin(record):
    test = {rule: figures["test"] for rule, figures in record["accuracy"].items()}
    assert test["resnet18 alone"] == pytest.approx(0.85, abs=0.01)
    assert test["resnet34 alone"] == pytest.approx(0.85, abs=0.01)
    assert test["arithmetic mean"] == pytest.approx(0.88, abs=0.01)
    assert test["geometric mean"] == pytest.approx(0.88, abs=0.01)
    assert test["Wasserstein"] == pytest.approx(0.935, abs=0.01)
    assert max(test, key=test.get) == "Wasserstein"


def test_every_row_converged(record):
    assert set(record["n_converged"].values()) == {record["n_samples"]}


def test_the_command_prints_a_table_and_writes_a_report(tmp_path, capsys):
    assert attributes.main(["--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "| Wasserstein " in printed.out
    assert (tmp_path / "attributes.md").read_text().strip() == printed.out.strip()
    saved = json.loads((tmp_path / "attributes.json").read_text())
    assert saved["config"]["epsilon"] == 0.3
    assert str(tmp_path / "attributes.md") in printed.err


def test_a_wrong_knob_is_one_line_and_exit_code_2(tmp_path, capsys):
    assert attributes.main(["--epsilon", "-1", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: `epsilon` must be finite and above 0; got -1.0.")
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_did_not_converge_says_so():
    record = attributes.run(attributes.Config(max_iterations=2))
    assert "Rows that did not converge" in attributes.write_report(record)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "report.md"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_tables_line_up():
    lines = table(["rule", "x"], [["a", "1.0"], ["long name", "10.0"]]).splitlines()
    assert len({len(line) for line in lines}) == 1


def test_an_interrupt_is_one_line_and_writes_nothing(tmp_path, capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(attributes, "run", interrupted)
    assert attributes.main(["--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "interrupted: nothing was written\n"
    assert list(tmp_path.iterdir()) == []
