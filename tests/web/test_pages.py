"""Pages: what the front page offers, and how data get into a page."""

import json

from fastapi.testclient import TestClient
from hypothesis import given, strategies as st

from wassemble.web.app import create_app
from wassemble.web.pages import _environment
from wassemble.web.settings import Settings

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_the_front_page_says_what_can_be_opened(tmp_path):
    folder = tmp_path / "<script>alert(1)<"
    folder.mkdir()
    with TestClient(create_app(Settings(folder=folder)), base_url="http://localhost") as client:
        page = client.get("/").text
        assert "No files of predictions in &lt;script&gt;alert(1)&lt;/" in page
        assert "/explorer/view?example=languages" in page
        for name in ("a.csv", "b.npz", ".hidden.csv", "notes.md"):
            (folder / name).touch()
        assert "2 files of predictions" in client.get("/").text
        assert client.get("/explorer").status_code == client.get("/studies").status_code == 200


def test_addresses_of_scripts_change_with_what_is_in_them(client):
    page = client.get("/").text
    address = page.split('rel="stylesheet" href="')[1].split('"')[0]
    answer = client.get(address)
    assert answer.text.startswith("/*")
    assert "immutable" in answer.headers["cache-control"]
    assert client.get("/static/style.css").headers["cache-control"] == "no-cache"


@given(value=st.lists(st.sampled_from("<>&\"'/!-\u2028s"), max_size=30).map("".join) | VALUES)
def test_data_in_a_script_element_cannot_end_it(value):
    template = "<script>{{ value|json_script }}</script>"
    page = _environment().from_string(template).render(value=value)
    text = page.removeprefix("<script>").removesuffix("</script>")
    assert not set(text) & set("<>&")
    assert json.loads(text) == value
