"""Only files inside the served folder are opened."""

import os

import pytest
from hypothesis import given, strategies as st

from wassemble.errors import InvalidInputError
from wassemble.web.paths import inside, list_files

PIECES = st.sampled_from(["..", ".", "/", "\\", "a", "out", "in", "~", "\0", "%2e%2e", "C:", ""])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.csv").write_text("x")
    served = outside / "served"
    (served / "in").mkdir(parents=True)
    (served / "in" / "a.csv").write_text("x")
    (served / ".hidden.csv").write_text("x")
    (served / "out").symlink_to(outside)
    (served / "secret.csv").symlink_to(outside / "secret.csv")
    (served / "alias.csv").symlink_to("in/a.csv")
    (served / "circle.csv").symlink_to("circle.csv")
    (served / "shown.csv").symlink_to(".hidden.csv")
    (served / ".git").mkdir()
    (served / ".git" / "config.csv").write_text("x")
    (served / "config.csv").symlink_to(".git/config.csv")
    return served


@given(name=st.one_of(st.text(), st.lists(PIECES).map("".join), st.lists(PIECES).map("/".join)))
def test_no_name_leads_out_of_the_folder(folder, name):
    try:
        found = inside(folder, name)
    except InvalidInputError:
        return
    assert os.path.realpath(found).startswith(str(folder.resolve()) + os.sep)


@pytest.mark.parametrize("name", ["in/a.csv", "in//a.csv", "alias.csv", "new.csv", "ä b.csv"])
def test_names_inside_are_found(folder, name):
    assert inside(folder, name).is_relative_to(folder.resolve())


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../secret.csv", "in/../../secret.csv", "/etc/passwd", ".hidden.csv"),
        *(
            "secret.csv",
            "shown.csv",
            "config.csv",
            "out/secret.csv",
            "out",
            "a\0b",
            "x" * 5000,
            "in/..",
            "circle.csv",
            "in/a.csv/b",
        ),
    ],
)
def test_names_that_lead_out_or_nowhere_are_refused(folder, name):
    with pytest.raises(InvalidInputError, match="a file must"):
        inside(folder, name)


def test_only_what_may_be_opened_is_listed(folder):
    assert list_files(folder, (".csv",)) == ["alias.csv", "in/a.csv"]
    assert list_files(folder, (".csv",), at_most=1) == ["alias.csv"]
    assert list_files(folder, (".npz",)) == []


def test_a_large_folder_is_not_searched_to_its_end(tmp_path, monkeypatch):
    for i in range(20):
        (tmp_path / f"{i:02}.txt").touch()
    (tmp_path / "last.csv").touch()
    assert list_files(tmp_path, (".csv",)) == ["last.csv"]
    monkeypatch.setattr("wassemble.web.paths._MAX_LOOKED_AT", 20)
    assert list_files(tmp_path, (".csv",)) == []
