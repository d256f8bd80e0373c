"""Pages, parts of pages and files of the explorer, as a browser gets them."""

import csv
import html
import io
import re
import time
import zipfile
from urllib.parse import parse_qs, urlsplit

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from patience import SECONDS
from web.explorer.small import LABELS, TAG, histograms

from wassemble import Predictions, write_predictions
from wassemble.web.app import create_app
from wassemble.web.explorer.examples import SHIPPED
from wassemble.web.settings import Settings

FILES = {"file": ["a.npz", "b.npz", "c.npz"]}
PART = {"hx-request": "true"}
PAGES = ("/explorer/view", "/explorer/all", "/explorer/map", "/explorer/learn")
# The smallest picture there is.
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000a49444154789c6360000000020001e221bc330000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("served")
    for name, model in zip("abc", histograms(), strict=True):
        write_predictions(found / f"{name}.npz", model)
    (found / "vectors.txt").write_text("cat 1 0\ndog 0.9 0.1\ncar 0 1\nbus 0.1 0.9\n")
    (found / "broken.csv").write_text("nothing here\n")
    (found / "true.csv").write_text(
        "sample,label,text\ns0,cat,Purrs <b>.\ns1,dog,Barks.\ns2,bus,Honks.\n"
    )
    return found


@pytest.fixture(scope="module")
def client(folder):
    settings = Settings(
        folder=folder, max_requests_per_second=10_000, max_upload_bytes=200_000, max_seconds=100
    )
    with TestClient(create_app(settings), base_url="http://localhost") as found:
        found.headers["accept"] = "text/html"
        yield found


def part(client, path="/explorer/view", **query):
    """What sliders change on a page."""
    return client.get(path, params=FILES | query, headers=PART)


def data(client, **query):
    return client.get("/explorer/data.json", params=FILES | query, headers={"accept": "*/*"})


def test_an_empty_folder_still_has_examples(tmp_path):
    with TestClient(create_app(Settings(folder=tmp_path)), base_url="http://localhost") as client:
        page = client.get("/explorer")
    assert page.status_code == 200
    assert "example=animals" in page.text
    assert "There are no files of predictions" in page.text


def test_the_first_page_lists_files(client):
    text = client.get("/explorer").text
    for name in ("a.npz", "b.npz", "broken.csv", "vectors.txt"):
        assert name in text


@pytest.mark.parametrize("path", PAGES)
def test_pages_need_no_script_and_no_style_of_their_own(client, path):
    page = client.get(path, params=FILES | {"truth": "true.csv", "label": "cat"})
    assert page.status_code == 200
    assert "style=" not in page.text
    assert not re.search(r"<script(?![^>]*(src=|application/json))", page.text)


def test_a_page_has_its_part_inside(client):
    query = {"sample": "s2", "label": "cat", "truth": "true.csv"}
    page = client.get("/explorer/view", params=FILES | query).text
    own = part(client, **query)
    assert own.headers["hx-replace-url"].startswith("/explorer/view?")
    panels = own.text[
        own.text.index('<div class="panels"') : own.text.index('<details class="about"')
    ]
    assert panels in page
    assert "<html" not in own.text
    for path in ("/explorer/all", "/explorer/map"):
        assert "<html" not in part(client, path, kernel="spelling").text


def test_a_tag_is_shown_as_text(client):
    for path in PAGES[:3]:
        query = {"label": TAG, "search": TAG, "kernel": "spelling"}
        text = client.get(path, params=FILES | query).text
        assert TAG not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_an_answer_follows_the_sliders(client):
    kernel = {"kernel": "embeddings", "kernel_file": "vectors.txt", "sample": "s1"}
    near, far = (data(client, epsilon=e, **kernel).json() for e in (0.05, 5))
    assert near["histograms"][0]["scores"] != far["histograms"][0]["scores"]
    assert near["epsilon"] == 0.05
    weighted = data(client, weight=[1, 0, 0], epsilon=0.05, **kernel).json()
    assert list(weighted["weights"].values()) == [1, 0, 0]
    moved = part(client, weight=[1, 0, 0], epsilon=0.05, **kernel)
    said = parse_qs(urlsplit(moved.headers["hx-replace-url"]).query)
    assert said["weight"] == ["1.0", "0.0", "0.0"]
    assert "weight 1" in moved.text


def test_a_link_reopens_the_exact_view(client):
    query = {"sample": "s3", "epsilon": 0.7, "label": "dog", "model": "model 1"}
    moved = part(client, mass="balanced", **query)
    again = client.get(moved.headers["hx-replace-url"], headers=PART)
    assert again.text == moved.text
    page = client.get(moved.headers["hx-replace-url"]).text
    assert 'value="0.7"' in page
    assert "model 1&#39;s dog went" in page


def test_the_most_disputed_sample_is_opened_first_and_all_are_listed(client):
    text = client.get("/explorer/all", params=FILES).text
    order = re.findall(r'<th scope="row"><a data-keep href="[^"]*">(s\d)</a>', text)
    assert order[0] == data(client).json()["sample"]
    assert sorted(order) == ["s0", "s1", "s2", "s3"]
    some = client.get("/explorer/all", params=FILES | {"search": "S3"}).text
    assert re.findall(r'<th scope="row"><a data-keep href="[^"]*">(s\d)</a>', some) == ["s3"]


def test_truth_and_texts_come_from_a_file(client):
    page = client.get("/explorer/view", params=FILES | {"truth": "true.csv", "sample": "s0"}).text
    assert "Purrs &lt;b&gt;." in page
    assert "Truth: <strong>cat</strong>" in page
    assert re.search(r'aria-label="(right|wrong)"', page)
    board = client.get("/explorer/all", params=FILES | {"truth": "true.csv"}).text
    assert "log-loss" in board
    assert "3 samples of known truth" in board
    assert data(client, truth="true.csv", sample="s1").json()["truth"] == ["dog"]


def test_a_truth_of_other_samples_is_refused(client, folder):
    (folder / "other.csv").write_text("sample,label\nx,cat\n")
    found = data(client, truth="other.csv")
    assert found.status_code == 422
    assert "must be known for some sample of the models" in found.json()["detail"]


def test_a_sample_that_is_called_after_a_picture_shows_it(client, folder):
    (folder / "one.png").write_bytes(PICTURE)
    write_predictions(
        folder / "seen.csv", Predictions("m", ["one.png"], ["cat", "dog"], [[0.4, 0.6]])
    )
    page = client.get("/explorer/view", params={"file": "seen.csv"}).text
    assert 'src="/explorer/picture?name=one.png"' in page
    shown = client.get("/explorer/picture", params={"name": "one.png"})
    assert shown.headers["content-type"] == "image/png"
    assert shown.content == PICTURE
    for name in ("a.npz", "../one.png", "none.png", ""):
        assert client.get("/explorer/picture", params={"name": name}).status_code == 404


@pytest.mark.parametrize("start", [{}, {"label": "dog", "model": "model 1"}, {"label": "cat"}])
def test_every_link_of_a_part_leads_somewhere(client, start):
    text = part(client, kernel="spelling", sample="s1", **start).text
    links = {html.unescape(link) for link in re.findall(r'href="(/explorer/view[^"]*)"', text)}
    assert len(links) > 10
    for link in links:
        assert client.get(link, headers=PART).status_code == 200, link


def test_two_settings_stand_beside_each_other(client):
    first = client.get("/explorer/all", params=FILES | {"epsilon": 0.05}).text
    link = html.unescape(re.search(r'class="keep-settings" href="([^"]+)"', first)[1])
    assert parse_qs(urlsplit(link).query)["than"] == ["epsilon=0.05"]
    both = client.get(link).text
    assert "consensus as kept" in both


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
        ({"show": "some"}, 422, "`show`"),
        ({"truth": "broken.csv"}, 422, "broken.csv"),
        ({"file": ["../x.csv"]}, 422, "inside the served folder"),
        ({"file": ["a.npz"] * 21}, 422, "`file`"),
        ({"file": ["broken.csv"]}, 422, "broken.csv"),
        ({"file": ["missing.csv"]}, 422, "missing.csv"),
        ({"example": "nothing"}, 422, "an example must be one of languages"),
        ({"kernel": "magic"}, 422, "got 'magic'"),
    ],
)
def test_wrong_input_is_named_on_every_way_in(client, query, status, words):
    found = data(client, **query)
    assert found.status_code == status
    assert words in found.json()["detail"]
    # The table of every label looks into none.
    also = () if "label" in query else ("/explorer/data.csv",)
    for path in ("/explorer/view", *also):
        page = client.get(path, params=FILES | query)
        assert page.status_code == status
        assert words in html.unescape(page.text)
    assert part(client, **query).status_code == status


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"pair": ["consensus", "nobody"]}, "a rule must be one of 'consensus'"),
        ({"than": "epsilon=0"}, "a view must be the query of an address"),
        ({"about": "okapi"}, "got 'okapi'"),
        ({"weight": [0, 0, 0]}, "above 0"),
    ],
)
def test_wrong_lists_are_named(client, query, words):
    for headers in ({}, PART):
        found = client.get("/explorer/all", params=FILES | query, headers=headers)
        assert found.status_code == 422
        assert words in html.unescape(found.text)


def test_a_wrong_file_loses_nothing_that_was_chosen(client):
    wrong = {"file": ["a.npz", "broken.csv"], "kernel": "tree", "kernel_file": "vectors.txt"}
    page = client.get("/explorer/view", params=wrong)
    assert page.status_code == 422
    assert 'value="a.npz" checked' in page.text
    assert 'value="broken.csv" checked' in page.text
    assert re.search(r'value="tree"[^>]* selected', page.text)
    assert "<option selected>vectors.txt</option>" in page.text


def test_too_many_labels_are_422(folder):
    settings = Settings(folder=folder, max_labels=4)
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        found = data(client)
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


def test_the_list_comes_as_csv(client):
    query = FILES | {"truth": "true.csv", "show": "wrong"}
    found = client.get("/explorer/all.csv", params=query)
    assert found.headers["content-disposition"] == 'attachment; filename="wassemble-wrong.csv"'
    rows = list(csv.DictReader(io.StringIO(found.text)))
    assert rows
    assert {row["consensus verdict"] for row in rows} == {"wrong"}


# -- files in --------------------------------------------------------------------------------


def send(client, files, **fields):
    page = client.get("/explorer").text
    token = re.search(r'name="csrf" value="([^"]+)"', page)[1]
    return client.post(
        "/explorer/upload", files=files, data=fields | {"csrf": token}, follow_redirects=False
    )


def sent_view(sent):
    """What a view has open after files were sent."""
    assert sent.status_code == 303, sent.text
    return urlsplit(sent.headers["location"]).query


CONTENT = b"sample,cat,dog\nx,0.2,0.8\ny,0.5,0.5\n"


def test_files_that_are_sent_have_a_card_each(client):
    names = ("one.csv", "../../two.csv")
    query = sent_view(send(client, [("files", (name, CONTENT)) for name in names]))
    page = client.get(f"/explorer?{query}").text
    for name in names:
        assert f"<h3>{name}</h3>" in page
    assert "2, 2 in all files: cat, dog" in page
    assert "column sample: x, y" in page
    body = client.get(f"/explorer/data.json?{query}").json()
    assert list(body["weights"]) == ["one", "two"]


def test_files_are_added_one_after_the_other_and_stay_listed(client):
    first = sent_view(send(client, [("files", ("one.csv", CONTENT))]))
    second = sent_view(send(client, [("files", ("two.csv", CONTENT))], opened=first))
    assert len(parse_qs(second)["file"]) == 2
    with_truth = [("files", ("my_truth.csv", b"sample,label\nx,dog\ny,cat\n"))]
    third = sent_view(send(client, with_truth, opened=second))
    assert parse_qs(third)["truth"]
    assert len(parse_qs(third)["file"]) == 2
    assert "Truth: <strong>" in client.get(f"/explorer/view?{third}").text
    assert "my_truth.csv (sent)" in client.get("/explorer").text


def test_files_without_a_label_in_common_say_what_to_do(client):
    files = [("files", ("one.csv", CONTENT)), ("files", ("two.csv", b"sample,fox\nx,1\ny,1\n"))]
    query = sent_view(send(client, files))
    assert "No label is in all files." in client.get(f"/explorer?{query}").text
    assert "No label is in" not in client.get(f"/explorer?{query}&kernel=spelling").text


def test_names_that_are_sent_are_shown_with_the_label_beside_the_pointer(client):
    files = [
        ("files", ("one.csv", CONTENT)),
        ("files", ("two.csv", CONTENT)),
        ("files", ("label_names.csv", b"label,name\ncat,house <b>cat\ndog,hound\n")),
        ("files", ("truth.csv", b"sample,label\nx,dog\ny,cat\n")),
    ]
    query = sent_view(send(client, files))
    assert len(parse_qs(query)["file"]) == 2
    sample = client.get(f"/explorer/view?{query}&sample=x&label=cat").text
    board = client.get(f"/explorer/all?{query}").text
    for page in (sample, board):
        assert '<span title="dog">hound</span>' in page
        assert "house &lt;b&gt;cat" in page
    assert 'title="hound (dog)"' in sample
    listed = list(csv.DictReader(io.StringIO(client.get(f"/explorer/all.csv?{query}").text)))
    assert {(row["truth"], row["truth name"]) for row in listed} == {
        ("dog", "hound"),
        ("cat", "house <b>cat"),
    }


def test_word_vectors_that_are_sent_become_the_kernel(client):
    files = [("files", ("one.csv", CONTENT)), ("files", ("v.txt", b"cat 1 0\ndog 0.9 0.1\n"))]
    query = sent_view(send(client, files))
    assert parse_qs(query)["kernel"] == ["embeddings"]
    assert "embeddings in" in client.get(f"/explorer/data.json?{query}").json()["kernel"]


def test_a_wrong_upload_is_one_clear_error_and_stays_chosen(client):
    query = sent_view(send(client, [("files", ("bad.csv", b"nothing\n"))]))
    card = client.get(f"/explorer?{query}")
    assert card.status_code == 200
    assert re.search(
        r'file-card broken">\s*<h3>bad.csv</h3>\s*<p class="wrong">bad.csv: ', card.text
    )
    page = client.get(f"/explorer/view?{query}")
    assert page.status_code == 422
    assert re.search(r'value="upload:[\w-]+" checked> bad.csv', page.text)
    refused = send(client, [("files", ("bad.exe", b"nothing"))])
    assert refused.status_code == 422
    assert "bad.exe: a file must end in" in refused.text


def test_an_upload_needs_the_forms_token(client):
    refused = client.post("/explorer/upload", files=[("files", ("a.csv", b"x"))])
    assert refused.status_code == 403


def test_a_large_upload_is_413(client):
    assert send(client, [("files", ("a.csv", b"x" * 300_000))]).status_code == 413


def test_an_upload_that_is_gone_says_so(client):
    gone = data(client, file=["upload:nothing"])
    assert gone.status_code == 422
    assert "no longer kept" in gone.json()["detail"]


def test_uploads_go_with_the_server(serve, tmp_path, monkeypatch):
    (tmp_path / "served").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    with serve(tmp_path / "served") as server:
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            sent_view(send(client, [("files", ("one.csv", CONTENT))]))
        assert len(list((tmp_path / "temporary").glob("wassemble-*/*/*.csv"))) == 1
    assert list((tmp_path / "temporary").glob("wassemble-*")) == []


# -- learning --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learnable(folder):
    """Three models, one of which is right."""
    rng = np.random.default_rng(0)
    true = rng.integers(2, size=60)
    good = np.where(true[:, None] == [0, 1], 0.8, 0.2)
    poor = {name: rng.dirichlet([1, 1], size=60) for name in ("poor", "poorer")}
    for name, scores in {"good": good, **poor}.items():
        write_predictions(
            folder / f"{name}.csv", Predictions(name, range(60), ["cat", "dog"], scores)
        )
    rows = "".join(f"{i},{['cat', 'dog'][t]}\n" for i, t in enumerate(true))
    (folder / "known.csv").write_text(f"sample,label\n{rows}")
    return "file=good.csv&file=poor.csv&file=poorer.csv"


def begin(client, opened, seconds=10):
    page = client.get("/explorer").text
    token = re.search(r'name="csrf" value="([^"]+)"', page)[1]
    form = {"csrf": token, "opened": opened, "seconds": seconds}
    return token, client.post("/explorer/learn", data=form, follow_redirects=False)


def wait_for(client, place):
    end = time.monotonic() + SECONDS
    while "Cancel" in (text := client.get(place, headers=PART).text):
        assert time.monotonic() < end
        time.sleep(0.1)
    return text


@pytest.mark.parametrize("truth", ["&truth=known.csv", ""])
def test_an_ensemble_is_learned_and_taken_away(client, learnable, truth):
    _, begun = begin(client, learnable + truth)
    assert begun.status_code == 303, begun.text
    place = begun.headers["location"]
    text = wait_for(client, place)
    assert "Chosen" in text
    assert "(chosen)" in text
    if truth:
        assert "by nested choice" in text
        assert re.search(r"good.*</th><td class=\"number\">1.0000", text)
    taken = client.get(f"{place}/ensemble.zip")
    with zipfile.ZipFile(io.BytesIO(taken.content)) as archive:
        assert "ensemble.json" in archive.namelist()
    assert "<html" in client.get(place).text


def test_learning_can_be_cancelled_and_one_learns_at_a_time(client, learnable):
    token, begun = begin(client, "example=languages", seconds=120)
    place = begun.headers["location"]
    assert "Cancel" in client.get(place).text
    assert client.get(f"{place}/ensemble.zip").status_code == 404
    _, second = begin(client, learnable)
    assert second.status_code == 422
    assert "one ensemble is learned at a time" in second.text
    ended = client.post(f"{place}/cancel", data={"csrf": token}, follow_redirects=False)
    assert ended.headers["location"] == "/explorer/learn?example=languages"
    assert client.get(place).status_code == 404
    _, third = begin(client, learnable + "&truth=known.csv")
    assert "Chosen" in wait_for(client, third.headers["location"])


def test_what_cannot_be_learned_from_says_why(client):
    _, begun = begin(client, "file=a.npz&truth=broken.csv")
    assert "broken.csv" in wait_for(client, begun.headers["location"])
    _, wrong = begin(client, "colour=red")
    assert wrong.status_code == 422


# -- shipped examples ------------------------------------------------------------------------


@pytest.mark.parametrize("example", SHIPPED, ids=lambda example: example.name)
def test_every_example_opens_where_the_consensus_gains(client, example):
    for kernel in example.kernels:
        found = client.get("/explorer/all", params={"example": example.name, "kernel": kernel})
        assert found.status_code == 200, found.text
    page = client.get(f"/explorer/view?example={example.name}&{example.start}")
    assert re.search(r"chip right consensus(.|\n)*chip wrong arithmetic-mean", page.text)


def test_the_first_example_is_better_fused_than_averaged(client):
    """As it opens, over all samples, and not by a circle: kernels are from other texts."""
    page = client.get("/explorer/all", params={"example": SHIPPED[0].name}).text
    rows = re.findall(
        r'<tr class="([\w-]+)"><th scope="row">.*?<td class="number[^"]*">([\d.]+)', page, re.S
    )
    accuracy = {name: float(value) for name, value in rows if name != "model"}
    assert accuracy["consensus"] > accuracy["arithmetic-mean"] + 0.02
