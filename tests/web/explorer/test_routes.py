"""Pages, answers and files of the explorer, as a browser gets them."""

import csv
import html
import io
import re
from urllib.parse import parse_qs

import httpx
import pytest
from fastapi.testclient import TestClient
from patience import SECONDS
from web.explorer.small import LABELS, TAG, histograms

from wassemble import write_predictions
from wassemble.web.app import create_app
from wassemble.web.explorer.examples import SHIPPED
from wassemble.web.settings import Settings

FILES = {"file": ["a.npz", "b.npz", "c.npz"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("served")
    for name, model in zip("abc", histograms(), strict=True):
        write_predictions(found / f"{name}.npz", model)
    (found / "vectors.txt").write_text("cat 1 0\ndog 0.9 0.1\ncar 0 1\nbus 0.1 0.9\n")
    (found / "broken.csv").write_text("nothing here\n")
    return found


@pytest.fixture(scope="module")
def client(folder):
    settings = Settings(
        folder=folder, max_requests_per_second=10_000, max_upload_bytes=200_000, max_seconds=100
    )
    with TestClient(create_app(settings), base_url="http://localhost") as found:
        found.headers["accept"] = "text/html"
        yield found


def answer(client, **query):
    return client.get(
        "/explorer/api/answer", params=FILES | query, headers={"accept": "application/json"}
    )


def test_an_empty_folder_still_has_examples(tmp_path):
    with TestClient(create_app(Settings(folder=tmp_path)), base_url="http://localhost") as client:
        page = client.get("/explorer")
    assert page.status_code == 200
    assert "example=animals" in page.text
    assert "There are none yet" in page.text


def test_the_first_page_lists_files(client):
    text = client.get("/explorer").text
    for name in ("a.npz", "b.npz", "broken.csv", "vectors.txt"):
        assert name in text


def test_a_page_has_its_figures_in_tables_without_a_script(client):
    page = client.get("/explorer/view", params=FILES | {"sample": "s2"})
    assert page.status_code == 200
    body = answer(client, sample="s2").json()
    assert body["summary"] in html.unescape(page.text)
    for row in body["rules"]["rows"]:
        assert row[0]["text"] in page.text
    for row in body["flows"]["rows"]:
        assert f">{row[2]['text']}<" in page.text
    assert "style=" not in page.text
    assert not re.search(r"<script(?![^>]*(src=|application/json))", page.text)


def test_a_tag_is_shown_as_text(client):
    text = client.get("/explorer/view", params=FILES | {"label": TAG, "search": TAG}).text
    assert TAG not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    body = answer(client, label=TAG).json()
    assert body["heading"] == TAG


def test_an_answer_follows_the_sliders(client):
    kernel = {"kernel": "embeddings", "kernel_file": "vectors.txt", "sample": "s1"}
    near, far = (answer(client, epsilon=e, **kernel).json() for e in (0.05, 5))
    assert near["summary"] != far["summary"]
    assert near["controls"]["epsilon"]["value"] == 0.05
    weighted = answer(client, weight=[1, 0, 0], epsilon=0.05, **kernel).json()
    assert weighted["rules"] != near["rules"]
    assert parse_qs(weighted["query"])["weight"] == ["1.0", "0.0", "0.0"]


def test_a_link_reopens_the_exact_view(client):
    body = answer(client, sample="s3", epsilon=0.7, mass="unbalanced", label="dog", model="model 1")
    again = client.get(f"/explorer/api/answer?{body.json()['query']}")
    assert again.json() == body.json()
    page = client.get(f"/explorer/view?{body.json()['query']}").text
    assert 'value="0.7"' in page
    assert "dog (model 1)" in page


def test_the_most_disputed_sample_is_opened_first_and_all_are_listed(client):
    body = answer(client).json()
    page = client.get("/explorer/view", params=FILES).text
    order = re.findall(r'<span class="id">(s\d)</span>', page)
    assert order[0] == body["sample"]
    assert sorted(order) == ["s0", "s1", "s2", "s3"]
    some = client.get("/explorer/view", params=FILES | {"search": "S3"}).text
    assert re.findall(r'<span class="id">(s\d)</span>', some) == ["s3"]


@pytest.mark.parametrize("start", [{}, {"label": "dog", "model": "model 1"}])
def test_every_link_of_the_tables_leads_somewhere(client, start):
    body = answer(client, kernel="spelling", sample="s1", **start).json()
    links = [row[0]["href"] for name in ("flows", "neighbors") for row in body[name]["rows"]]
    assert links
    for link in filter(None, links):
        assert client.get(link).status_code == 200, link


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({"sample": "nobody"}, 404, "there is no sample 'nobody'; there are 's0'"),
        ({"label": "okapi"}, 422, "got 'okapi'"),
        ({"label": "cat", "model": "nobody"}, 422, "one of model 0, model 1, model 2"),
        ({"weight": [1, 2]}, 422, "one weight for each of 'model 0'"),
        ({"weight": [0, 0, 0]}, 422, "above 0"),
        ({"weight": [-1, 1, 1]}, 422, "`weight.0`"),
        ({"weight": ["inf", 1, 1]}, 422, "`weight.0`"),
        ({"epsilon": 0}, 422, "`epsilon`"),
        ({"epsilon": -1}, 422, "greater than or equal to 0.000001; got '-1'"),
        ({"epsilom": 1}, 422, "`epsilom`"),
        ({"epsilon": "nan"}, 422, "`epsilon`"),
        ({"mass_penalty": -1}, 422, "`mass_penalty`"),
        ({"page": 0}, 422, "`page`"),
        ({"mass": "some"}, 422, "`mass`"),
        ({"file": ["../x.csv"]}, 422, "inside the served folder"),
        ({"file": ["a.npz"] * 21}, 422, "`file`"),
        ({"file": ["broken.csv"]}, 422, "broken.csv"),
        ({"file": ["missing.csv"]}, 422, "missing.csv"),
        ({"example": "nothing"}, 422, "an example must be one of animals"),
        ({"kernel": "magic"}, 422, "got 'magic'"),
    ],
)
def test_wrong_input_is_named_on_every_way_in(client, query, status, words):
    found = answer(client, **query)
    assert found.status_code == status
    assert words in found.json()["detail"]
    # The table of every label looks into none.
    also = () if "label" in query else ("/explorer/data.csv",)
    for path in ("/explorer/view", "/explorer/data.json", *also):
        page = client.get(path, params=FILES | query)
        assert page.status_code == status
        assert words in html.unescape(page.text)


def test_a_wrong_file_loses_nothing_that_was_chosen(client):
    wrong = {"file": ["a.npz", "broken.csv"], "kernel": "tree", "kernel_file": "vectors.txt"}
    page = client.get("/explorer/view", params=wrong)
    assert page.status_code == 422
    assert 'value="a.npz" checked' in page.text
    assert 'value="broken.csv" checked' in page.text
    assert 'value="tree" selected' in page.text
    assert "<option selected>vectors.txt</option>" in page.text


def test_too_many_labels_are_422(folder):
    settings = Settings(folder=folder, max_labels=4)
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        found = answer(client)
    assert found.status_code == 422
    assert "at most 4 labels; got 5" in found.json()["detail"]


# -- files out -------------------------------------------------------------------------------


def test_names_like_formulas_are_no_formulas_in_the_csv(client, folder):
    (folder / "=f.csv").write_text("sample,=1+1,cat\nx,0.5,0.5\n")
    text = client.get("/explorer/data.csv", params={"file": ["=f.csv"]}).text
    assert "\n'=f,model,'=1+1,0.5\n" in text
    assert "\n'=f,model,cat,0.5\n" in text


def test_data_come_as_csv(client):
    found = client.get("/explorer/data.csv", params=FILES | {"sample": "s1"})
    assert found.headers["content-disposition"] == 'attachment; filename="wassemble-s1.csv"'
    assert found.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(found.text)))
    assert len(rows) == 6 * len(LABELS)
    assert {row["label"] for row in rows} == set(LABELS)
    total = sum(float(row["score"]) for row in rows if row["role"] == "consensus")
    assert total == pytest.approx(1)


def test_data_come_as_json(client):
    found = client.get("/explorer/data.json", params=FILES | {"sample": "s1", "label": "cat"})
    body = found.json()
    assert 'filename="wassemble-s1.json"' in found.headers["content-disposition"]
    consensus = body["histograms"][0]
    mass = dict(zip(consensus["labels"], consensus["scores"], strict=True))["cat"]
    assert body["flows"]["mass"] == pytest.approx(mass)
    assert parse_qs(body["view"])["sample"] == ["s1"]


# -- files in --------------------------------------------------------------------------------


def send(client, files, **data):
    page = client.get("/explorer").text
    token = re.search(r'name="csrf" value="([^"]+)"', page)[1]
    return client.post(
        "/explorer/upload", files=files, data=data | {"csrf": token}, follow_redirects=False
    )


def test_files_that_are_sent_can_be_opened(client):
    content = b"sample,cat,dog\nx,0.2,0.8\ny,0.5,0.5\n"
    sent = send(client, [("files", (name, content)) for name in ("one.csv", "../../two.csv")])
    assert sent.status_code == 303
    page = client.get(sent.headers["location"])
    assert page.status_code == 200
    assert "one.csv, ../../two.csv" in page.text
    body = client.get(sent.headers["location"].replace("/view?", "/api/answer?")).json()
    assert [row[0]["text"] for row in body["rules"]["rows"]][3:] == ["one", "two"]


def test_a_kernel_can_be_sent_too(client):
    content = b"sample,cat,dog\nx,0.2,0.8\n"
    vectors = b"cat 1 0\ndog 0.9 0.1\n"
    files = [("files", ("one.csv", content)), ("kernel_file", ("v.txt", vectors))]
    sent = send(client, files, kernel="embeddings")
    body = client.get(sent.headers["location"].replace("/view?", "/api/answer?")).json()
    assert body["neighbors"]["rows"][1][0]["text"] in ("cat", "dog")


def test_a_wrong_upload_is_one_clear_error_and_stays_chosen(client):
    sent = send(client, [("files", ("bad.csv", b"nothing\n"))])
    page = client.get(sent.headers["location"])
    assert page.status_code == 422
    assert "bad.csv" in page.text
    assert "bad.csv (sent)" in page.text
    refused = send(client, [("files", ("bad.exe", b"nothing"))])
    assert refused.status_code == 422
    assert "bad.exe: a file must end in" in refused.text


def test_an_upload_needs_the_forms_token(client):
    refused = client.post("/explorer/upload", files=[("files", ("a.csv", b"x"))])
    assert refused.status_code == 403


def test_a_large_upload_is_413(client):
    assert send(client, [("files", ("a.csv", b"x" * 300_000))]).status_code == 413


def test_an_upload_that_is_gone_says_so(client):
    gone = answer(client, file=["upload:nothing"])
    assert gone.status_code == 422
    assert "no longer kept" in gone.json()["detail"]


# -- shipped examples ------------------------------------------------------------------------


@pytest.mark.parametrize("example", SHIPPED, ids=lambda example: example.name)
def test_every_example_opens(client, example):
    for kernel in example.kernels:
        query = {"example": example.name, "kernel": kernel}
        found = client.get("/explorer/api/answer", params=query)
        assert found.status_code == 200, found.text
        body = found.json()
        assert body["summary"].startswith("Consensus: ")
        assert body["flows"]["rows"]
        followed = client.get(body["neighbors"]["rows"][-1][0]["href"])
        assert followed.status_code == 200


def test_uploads_go_with_the_server(serve, tmp_path, monkeypatch):
    (tmp_path / "served").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    with serve(tmp_path / "served") as server:
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            sent = send(client, [("files", ("one.csv", b"sample,cat,dog\nx,0.2,0.8\n"))])
        assert sent.status_code == 303
        assert len(list((tmp_path / "temporary").glob("wassemble-*/*/*.csv"))) == 1
    assert list((tmp_path / "temporary").glob("wassemble-*")) == []
