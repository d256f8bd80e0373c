"""The web app with the examples of the repository's data sets."""

import pickle

import pytest
from fastapi.testclient import TestClient
from patience import SECONDS

from paper.commands import serve
from paper.explorer import EXAMPLES
from wassemble.cli.serve import serve as library_serve
from wassemble.web.app import create_app
from wassemble.web.settings import Settings


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    settings = Settings(
        folder=tmp_path_factory.mktemp("served"),
        max_requests_per_second=10_000,
        max_seconds=SECONDS,
        examples=EXAMPLES,
    )
    sent = pickle.loads(pickle.dumps(settings))  # as each process of a server gets them
    with TestClient(create_app(sent), base_url="http://localhost") as found:
        yield found


def test_the_pages_offer_what_the_server_was_given(client):
    for page in ("/", "/explorer"):
        text = client.get(page).text
        assert all(f"example={each.name}" in text for each in EXAMPLES)
        assert "example=animals" not in text


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_every_example_opens(client, example):
    for kernel in example.kernels:
        query = {"example": example.name, "kernel": kernel}
        body = client.get("/explorer/data.json", params=query).json()
        assert body["flows"]["parts"]
        label = body["flows"]["label"]
        page = client.get("/explorer/view", params=query | {"label": label})
        assert page.status_code == 200, page.text
        assert "came from" in page.text
        for path in ("/explorer/all", "/explorer/map"):
            assert client.get(path, params=query).status_code == 200


def test_serve_takes_the_options_of_the_library_and_gives_it_more_examples(monkeypatch, tmp_path):
    given = {}
    monkeypatch.setattr(
        "paper.commands.start", lambda open_browser, **options: given.update(options)
    )
    assert {p.name for p in serve.params} == {p.name for p in library_serve.params}
    serve.main([str(tmp_path), "--port", "0"], standalone_mode=False)
    names = [each.name for each in given["examples"]]
    assert names == ["languages", "words", "cifar100", "coco", "voc", "animals"]
    assert given["port"] == 0
