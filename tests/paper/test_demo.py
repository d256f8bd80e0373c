"""The demo: one screen, whose figures are those of the report and of the README."""

import re

from paper.commands import main


def test_the_demo_is_one_screen_on_which_the_consensus_is_best(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100 + len(str(tmp_path))
    right = {line[:47].strip(): float(line[47:51]) for line in lines if re.search(r"\d %  ", line)}
    assert len(right) == 6
    *rivals, consensus, ceiling = right.values()
    assert max(rivals) < consensus < ceiling
    assert "the silence of the others" in "\n".join(lines)
    assert (tmp_path / "demo.html").stat().st_size > 100_000
