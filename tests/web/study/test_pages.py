"""Pages of operators and raters, through the app in this process."""

import csv
import io
import json
import re
import zipfile

import pytest
from web.study.people import SYSTEMS, Operator, Page, Person, make_lines

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360"
    "f8cf50000003c001014b0d6d0d0000000049454e44ae426082"
)


def ask(name, kind, *, text="What is it?", options=""):
    """The fields of a form that asks one question."""
    asked = {"name": name, "kind": kind, "text": text, "options": options}
    return {f"question_{key}": value for key, value in asked.items()}


HIDDEN = (*SYSTEMS, "Walrus-right", "Vole-wrong", "item-", "check-0")


@pytest.fixture(autouse=True)
def as_a_browser(client):
    client.headers["Accept"] = "text/html"


@pytest.fixture
def operator(client):
    return Operator(client)


@pytest.fixture
def study(operator):
    return operator.create(n_raters="3")


def test_a_study_goes_from_the_form_to_the_results(client, operator, study):
    path, links = study
    assert len(links) == 3
    for seed, link in enumerate(links):
        thanks = Person(client, link, seed).finish()
        assert "Thank you" in thanks.text
    assert client.get(path).text.count("<td>finished</td>") == 3
    results = client.get(f"{path}/results").text
    assert "18 answers of 3 raters to 6 items" in results
    assert "With 3 raters only" in results
    assert all(system in results for system in SYSTEMS)
    assert "37" in results  # the paper's figures beside ours
    figures = client.get(f"{path}/results.json").json()
    assert set(figures["charts"]) == {"Mean grades, 1 to 5", "Chosen as best"}
    assert figures["results"]["n_answers"] == 18
    assert "attachment" in client.get(f"{path}/answers.csv").headers["content-disposition"]
    assert len(client.get(f"{path}/answers.csv").text.splitlines()) == 1 + 3 * (6 * 3 + 2)
    exported = client.get(f"{path}/study.json").text
    assert len(json.loads(exported)["raters"]) == 3
    for link in links:
        assert link.removeprefix("/rate/") not in exported + client.get(f"{path}/answers.csv").text


def test_raters_never_see_which_system_or_item_it_is(client, study):
    orders = set()
    for seed, link in enumerate(study[1]):
        person = Person(client, link, seed)
        person.finish()
        person.pages.append(client.get(f"{link}/items/1").text)
        assert len(person.pages) > 8
        for page in person.pages:
            for name in HIDDEN:
                assert name.lower() not in page.lower()
        orders.add(tuple(re.findall(r"caption-text\">([^<]+)<", "".join(person.pages))))
    assert len(orders) == 3  # each in an own order


def test_progress_is_shown_and_a_link_resumes_where_it_was_left(client, study):
    person = Person(client, study[1][0])
    page = person.begin()
    assert "1 of 7" in page.text
    for _ in range(3):
        page = person.send(page, person.fill(page))
    assert "4 of 7" in page.text
    client.cookies.clear()  # another browser, another day
    assert client.get(study[1][0]).url.path.endswith("/items/4")
    assert "3 of 7" in client.get(study[0]).text


def test_missing_choices_are_pointed_out_and_nothing_is_lost(client, study):
    person = Person(client, study[1][0])
    page = person.begin()
    fields = person.fill(page)
    name, value = next(iter(fields.items()))
    refused = person.send(page, {name: value})
    assert refused.status_code == 422
    assert "Something is still missing" in refused.text
    for other in fields:
        assert (f'href="#{other}"' in refused.text) == (other != name)
    assert Page(refused.text).checked == {name: value}
    assert Page(client.get(page.url.path).text).checked == {name: value}  # kept on the server too
    done = person.send(refused, fields)
    assert done.url.path.endswith("/items/2")


def test_back_keeps_what_was_entered_and_shows_the_earlier_answer(client, study):
    person = Person(client, study[1][0])
    first = person.begin()
    entered = person.fill(first)
    second = person.send(first, entered)
    part = dict(list(person.fill(second).items())[:2])
    back = person.send(second, part, go="back")
    assert back.url.path == first.url.path
    assert Page(back.text).checked == entered
    again = person.send(back, entered)
    assert Page(again.text).checked == part


def test_a_second_tab_and_a_second_click_do_no_harm(client, study):
    person = Person(client, study[1][0])
    page = person.begin()
    fields = person.fill(page)
    for _ in range(2):
        assert person.send(page, fields).url.path.endswith("/items/2")
    person.send(page, {}, go="back")  # an older tab, where nothing was entered
    assert Page(client.get(page.url.path).text).checked == fields
    refused = person.send(page, {})
    assert "earlier answer here was complete, and is kept" in refused.text
    assert "What you have entered" not in refused.text


def test_an_item_needs_consent_first(client, study):
    link = study[1][0]
    assert client.get(f"{link}/items/1").url.path == link
    csrf = Page(client.get(link).text).hidden["csrf"]
    done = client.post(f"{link}/items/1", data={"csrf": csrf, "q1-A": "1"})
    assert done.url.path == link
    assert "0 of 7" in client.get(study[0]).text
    refused = client.post(f"{link}/consent", data={"csrf": csrf, "agrees": "false"})
    assert "You are not taking part" in refused.text


def test_a_link_sees_only_its_own_items(client, operator):
    _, links = operator.create(make_lines(6, n_checks=0), n_raters="2", items_per_rater="3")
    seen = []
    for link in links:
        person = Person(client, link)
        person.finish()
        seen.append(set(re.findall(r"text (\d)<", "".join(person.pages))))
        for path in ("items/4", "items/4/image", "items/999"):
            assert client.get(f"{link}/{path}").status_code == 404
        csrf = person.begin() and Page(client.get(f"{link}/items/1").text).hidden["csrf"]
        assert client.post(f"{link}/items/4", data={"csrf": csrf}).status_code == 404
    assert len(seen[0]) == len(seen[1]) == 3
    assert not seen[0] & seen[1]


@pytest.mark.parametrize("secret", ["x" * 32, "short", "x" * 33, "%00" * 32, "a" * 99])
def test_an_unknown_link_is_not_found(client, secret):
    for path in (f"/rate/{secret}", f"/rate/{secret}/items/1", f"/rate/{secret}/items/1/image"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("number", ["0", "-1", "x", "99999999999"])
def test_a_number_that_cannot_be_is_refused(client, study, number):
    assert client.get(f"{study[1][0]}/items/{number}").status_code == 422


def test_forms_without_the_secret_value_are_refused_and_change_nothing(client, operator, study):
    path, [link, *_] = study
    client.get(link)
    paths = [f"{link}/consent", f"{link}/items/1", "/studies", f"{path}/raters", f"{path}/closed"]
    paths += [f"{path}/delete", f"{path}/raters/1/closed"]
    data = {"agrees": "true", "is_closed": "true", "is_sure": "true", "n_raters": "2"}
    for csrf in ({}, {"csrf": "wrong"}):
        for each in paths:
            assert client.post(each, data={**data, **csrf}).status_code == 403, each
    assert operator.links(path) == study[1]
    assert client.get(link).url.path == link


def test_closed_links_are_gone_and_open_again(client, operator, study):
    path, [link, other, _] = study
    page = client.get(path).text
    rater = re.search(rf"{path}/raters/(\d+)/closed", page)[1]
    operator.post(f"{path}/raters/{rater}/closed", {"is_closed": "true"})
    assert client.get(link).status_code == 410
    assert "This link is closed" in client.get(link).text
    assert client.get(other).status_code == 200
    operator.post(f"{path}/closed", {"is_closed": "true"})
    assert client.get(other).status_code == 410
    operator.post(f"{path}/closed", {"is_closed": "false"})
    assert [client.get(each).status_code for each in (link, other)] == [410, 200]
    operator.post(f"{path}/raters/{rater}/closed", {"is_closed": "false"})
    assert client.get(link).status_code == 200
    assert operator.post(f"{path}/raters/999/closed", {"is_closed": "true"}).status_code == 404


def test_more_links_are_made_on_the_studys_page(operator, study):
    assert operator.post(f"{study[0]}/raters", {"n_raters": "4"}).status_code == 200
    links = operator.links(study[0])
    assert links[:3] == study[1]
    assert len(set(links)) == 7
    assert operator.post(f"{study[0]}/raters", {"n_raters": "0"}).status_code == 422
    assert operator.post(f"{study[0]}/raters", {"n_raters": "501"}).status_code == 422


def test_a_study_is_deleted_only_by_who_is_sure(client, operator, study):
    path, [link, *_] = study
    refused = operator.post(f"{path}/delete")
    assert refused.status_code == 422
    assert "only when the box" in refused.text
    assert client.get(link).status_code == 200
    assert operator.post(f"{path}/delete", {"is_sure": "true"}).status_code == 200
    for gone in (path, f"{path}/results", f"{path}/answers.csv", f"{path}/study.json", link):
        assert client.get(gone).status_code == 404


def test_a_file_with_a_mistake_brings_the_form_back_with_what_was_entered(client, operator):
    file = {"file": ("mine.jsonl", make_lines() + "{}")}
    entered = {"title": "My <title>", "consent": "I agree.", "n_raters": "17", "seed": "5"}
    refused = operator.post("/studies", {**entered, "is_once": "true"}, files=file)
    assert refused.status_code == 422
    assert "mine.jsonl, line 8: must have either" in refused.text
    assert 'value="My &lt;title&gt;"' in refused.text
    assert "I agree.</textarea>" in refused.text
    assert 'value="17"' in refused.text
    assert "There are no studies yet" in client.get("/studies").text
    client.headers["Accept"] = "application/json"
    refused = operator.client.post(
        "/studies", data={"csrf": Page(client.get("/studies").text).hidden["csrf"]}, files=file
    )
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("mine.jsonl, line 8: must have either")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"seed": "-1"}, "greater than or equal to 0"),
        ({"n_raters": "1000"}, "less than or equal to 500"),
        ({"access": "door"}, "'links' or 'join'"),
        (ask("taste", "essay"), "'grade', 'best', 'label' or 'words'"),
        (ask("taste", "grade", options="good"), "must have 2 to 20 options; got 1"),
        ({"question_name": "taste"}, "each question must have a name, a kind, a text and options"),
        ({"items_per_rater": "7"}, "`items_per_rater` must be at most 6"),
        ({"is_once": "true", "n_raters": "2"}, "`n_raters` must be at most 1"),
        (ask("taste", "best"), "`check` must be on a question that is asked"),
    ],
)
def test_options_that_cannot_be_are_refused_in_words(operator, data, words):
    file = {"file": ("mine.jsonl", make_lines())}
    refused = operator.post("/studies", {"title": "A study", **data}, files=file)
    assert refused.status_code == 422
    assert words in refused.text.replace("&#39;", "'")


def test_a_study_needs_a_file_of_text(operator):
    assert (
        "a study needs a file of items, or pictures"
        in operator.post("/studies", {"title": "x"}).text
    )
    file = {"file": ("mine.jsonl", b"\xff\xfe")}
    assert "mine.jsonl: must be UTF-8 text" in operator.post("/studies", {}, files=file).text


def test_half_characters_in_a_files_name_do_no_harm(client):
    """A form may be in an encoding that has them, and the file's name becomes the title."""
    csrf = Page(client.get("/studies").text).hidden["csrf"]
    begin = '--x\r\nContent-Disposition: form-data; name="'
    done = client.post(
        "/studies",
        content=f'{begin}csrf"\r\n\r\n{csrf}\r\n'
        f'{begin}file"; filename="\\ud800.jsonl"\r\n\r\n{make_lines()}\r\n--x--\r\n',
        headers={"Content-Type": "multipart/form-data; boundary=x; charset=unicode_escape"},
    )
    assert done.status_code == 422
    assert "`title` must be readable text" in done.text
    assert client.get("/studies").status_code == 200


def test_the_example_study_can_be_made_and_rated(client, operator):
    done = operator.post("/studies", {"is_example": "true", "n_raters": "1"})
    [link] = operator.links(done.url.path)
    person = Person(client, link)
    assert "Thank you" in person.finish().text
    assert len(person.acknowledged) == 14
    shown = "".join(person.pages)
    picture = client.get(f"{link}/items/1/image")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.text.startswith("<svg ")
    for name in ("arithmetic", "geometric", "barycenter", "GloVe", "synonyms"):
        assert name.lower() not in shown.lower()
    assert "Too few answers" in client.get(f"{done.url.path}/results").text


def test_one_question_alone_may_be_asked(client, operator):
    lines, asked = make_lines(5, n_checks=0), ask("detail", "grade", options="none, some, all")
    path, [link] = operator.create(lines, n_raters="1", **asked)
    person = Person(client, link)
    person.finish()
    assert "orrectness" not in "".join(person.pages)
    results = client.get(f"{path}/results.json").json()["results"]
    assert list(results["figures"]) == ["detail"]
    assert "In the paper" not in client.get(f"{path}/results").text


def test_results_can_leave_out_who_failed_a_check(client, operator):
    path, links = operator.create(n_raters="4")
    for seed, link in enumerate(links):
        person = Person(client, link, seed)
        page = person.begin()
        while "/items/" in page.url.path:
            fields = person.fill(page)
            is_check = "right 0" in page.text
            if is_check and seed:  # the first fails, the others see what is right
                letters = re.findall(r"Caption (\w)</span></legend>\s*<p[^>]*>right", page.text)
                fields |= {name: "1" for name in fields if name.startswith("q1")}
                fields |= {"q3": letters[0], "q4": letters[0]}
            elif is_check:
                fields |= {name: "5" for name in fields if name.startswith("q1")}
            page = person.send(page, fields)
    everyone = client.get(f"{path}/results").text
    assert "24 answers of 4 raters" in everyone
    assert "3 raters failed none of 1" in everyone
    assert "1 rater failed 1 of 1" in everyone
    assert "18 answers of 3 raters" in client.get(f"{path}/results?raters=attentive").text
    assert client.get(f"{path}/results?raters=some").status_code == 422


@pytest.fixture
def make_picture_study(operator, settings):
    folder = settings.folder / "pictures"
    folder.mkdir()

    def make(name, content=PNG):
        (folder / name).write_bytes(content)
        line = {"id": "1", "image": f"pictures/{name}", "captions": {"a": "one", "b": "two"}}
        return operator.post(
            "/studies",
            {"title": "A study", "n_raters": "1"},
            files={"file": ("x", json.dumps(line))},
        )

    return make


def test_a_picture_is_served_by_item_with_its_true_type(client, operator, make_picture_study):
    made = make_picture_study("name.jpg")  # a PNG, whatever it is called
    [link] = operator.links(made.url.path)
    assert client.get(f"{link}/items/1/image").status_code == 403  # nobody has agreed yet
    page = Person(client, link).begin()
    [address] = re.findall(r'src="([^"]+/image)"', page.text)
    assert "pictures" not in page.text
    found = client.get(address)
    assert found.content == PNG
    assert found.headers["content-type"] == "image/png"
    assert found.headers["x-content-type-options"] == "nosniff"


def test_a_picture_that_was_replaced_by_something_else_is_not_served(
    client, operator, settings, make_picture_study
):
    made = make_picture_study("name.png")
    [link] = operator.links(made.url.path)
    Person(client, link).begin()
    path = settings.folder / "pictures" / "name.png"
    path.write_text("<script>alert(1)</script>")
    assert client.get(f"{link}/items/1/image").status_code == 404
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert client.get(f"{link}/items/1/image").status_code == 404


def test_only_pictures_of_the_served_folder_make_a_study(operator, settings, make_picture_study):
    assert "PNG, JPEG or WebP by its content" in make_picture_study("a.png", b"<svg/>").text
    (settings.folder / "pictures" / "out.png").symlink_to("/etc/hostname")
    for name in ("../../etc/passwd", "/etc/passwd", "pictures/out.png", "pictures/none.png"):
        line = {"id": "1", "image": name, "captions": {"a": "one", "b": "two"}}
        refused = operator.post("/studies", {}, files={"file": ("x", json.dumps(line))})
        assert refused.status_code == 422, name


def test_names_are_shown_as_text(client, operator):
    bad = "<script>alert(1)</script>"
    lines = [
        {"id": f"{bad}{n}", "text": bad, "captions": {bad: f"{bad} {n}", "b": "two"}}
        for n in range(5)
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    path, links = operator.create(text, title=bad, consent=bad, n_raters="3")
    pages = []
    for seed, link in enumerate(links):
        person = Person(client, link, seed)
        person.finish()
        pages += person.pages
    pages += [client.get(each).text for each in ("/studies", path, f"{path}/results")]
    assert all("&lt;script&gt;alert" in page for page in pages)
    assert not any("<script>" in page for page in pages)
    assert "u003cscript" not in pages[-1]  # Plotly reads tags: names are escaped before


def test_no_page_has_a_script_or_a_style_of_its_own(client, study):
    person = Person(client, study[1][0])
    person.finish()
    for page in (
        *person.pages,
        *(client.get(path).text for path in ("/studies", "/studies/new", study[0])),
    ):
        assert not re.search(r"<script(?![^>]*(src=|/json))|\son\w+=|\sstyle=", page)


def test_pictures_alone_are_labelled_and_described_in_words(client, operator):
    """A zip file and a picture; a label and words for each; a jury may hear the labels."""
    sent = io.BytesIO()
    with zipfile.ZipFile(sent, "w") as archive:
        for name in ("in/1.png", "in/2.png"):
            archive.writestr(name, PNG)
    asked = {key: [value] for key, value in ask("animal", "label", options="cat, dog").items()}
    for key, value in ask("why", "words", text="Why?").items():
        asked[key].append(value)
    made = operator.post(
        "/studies",
        {"n_raters": "3", "title": "Animals", **asked},
        files=[("pictures", ("all.zip", sent.getvalue())), ("pictures", ("0.png", PNG))],
    )
    path = made.url.path
    assert "3 items" in made.text
    for link in dict.fromkeys(operator.links(path)):
        person = Person(client, link)
        page = person.begin()
        while "/items/" in page.url.path:
            assert client.get(f"{page.url.path}/image").content == PNG
            page = person.send(page, {"q1": "1", "q2": "=It looks so."})
    results = client.get(f"{path}/results").text
    assert "9 answers of 3 raters to 3 items" in results
    assert "By label" in results
    rows = list(csv.DictReader(io.StringIO(client.get(f"{path}/answers.csv").text)))
    assert {row["item"] for row in rows} == {"0.png", "in/1.png", "in/2.png"}
    assert {(row["animal"], row["why"]) for row in rows} == {("cat", "'=It looks so.")}
    verdicts = client.get(f"{path}/verdicts.jsonl?question=animal").text.splitlines()
    wanted = {"judge": "rater 1", "item": "0.png", "verdict": "cat"}
    assert wanted in map(json.loads, verdicts)
    assert client.get(f"{path}/verdicts.jsonl?question=why").status_code == 422
    operator.post(f"{path}/delete", {"is_sure": "true"})
    assert client.get(f"{path}/pictures/0").status_code == 404


def test_words_that_are_missing_are_asked_for(client, operator):
    asked = ask("why", "words", text="Why?")
    _, [link] = operator.create('{"id": "1", "text": "Miau."}', n_raters="1", **asked)
    person = Person(client, link)
    page = person.begin()
    refused = person.send(page, {"q1": "  "})
    assert refused.status_code == 422
    assert "Please write something." in refused.text
    assert "Thank you" in person.send(refused, {"q1": "Because."}).text


def test_a_file_that_unpacks_to_too_much_is_refused(operator):
    sent = io.BytesIO()
    with zipfile.ZipFile(sent, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(8):
            archive.writestr(f"{number}.png", PNG + bytes(9_000_000))
    assert len(sent.getvalue()) < 100_000
    refused = operator.post("/studies", {}, files=[("pictures", ("x.zip", sent.getvalue()))])
    assert refused.status_code == 422
    assert "too many or too large for this server" in refused.text


def test_all_links_are_a_table(client, study):
    rows = list(csv.DictReader(io.StringIO(client.get(f"{study[0]}/links.csv").text)))
    assert [row["link"].removeprefix("http://localhost") for row in rows] == study[1]
    assert {row["state"] for row in rows} == {"not begun"}
    assert {(row["answered"], row["of"]) for row in rows} == {("0", "7")}


def test_a_preview_shows_every_page_and_keeps_nothing(client, study):
    pages = [client.get(f"{study[0]}/preview").text]
    pages += [client.get(f"{study[0]}/preview/{number}").text for number in range(1, 8)]
    assert all("Nothing is kept" in page for page in pages)
    assert not any(name in page for page in pages for name in HIDDEN)
    assert client.get(f"{study[0]}/preview/8").url.path == study[0]
    assert client.get(study[0]).text.count("<td>not begun</td>") == 3
