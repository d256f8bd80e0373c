"""Joining a study by one link: places are handed out, kept, and given back."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from web.study.people import Operator, Page, Person as Rater, make_items

from wassemble.web.study import store as stores
from wassemble.web.study.answers import Answer, Person, read_answer
from wassemble.web.study.design import Design
from wassemble.web.study.questions import PAPER

DESIGN = Design("A study", hold_minutes=30)


@pytest.fixture
def study(store):
    return store.get_study(store.create_study(DESIGN, make_items(3), 2, is_joinable=True))


@pytest.fixture
def clock(monkeypatch):
    """`clock(minutes)`: so much later."""

    def later(minutes):
        moment = datetime.now(UTC) + timedelta(minutes=minutes)

        class Later(datetime):
            @classmethod
            def now(cls, tz=None):
                return moment

        monkeypatch.setattr(stores, "datetime", Later)

    return later


def named(name):
    return Person(name, "task", f"session of {name}")


def answer_all(store, secret):
    rater = store.find_rater(secret)
    for shown in rater.shown:
        item = store.get_item(rater.study, shown.item)
        form = {f"q{n}-{each}": "3" for n in (1, 2) for each in "ABC"} | {"q3": "A", "q4": "A"}
        store.save_answer(rater.id, shown.item, read_answer(form, item, shown, PAPER))


def test_places_are_handed_out_until_none_is_left(store, study):
    first, second = (store.join(study, named(name)) for name in ("p1", "p2"))
    assert first != second
    assert store.count_free(study) == 0
    assert store.join(study, named("p3")) is None
    assert [store.find_rater(secret).has_consented for secret in (first, second)] == [True, True]
    people = [link.person for link in store.list_links(study.id)]
    assert people == [named("p1"), named("p2")]


def test_who_comes_again_comes_to_the_same_place(store, study):
    first = store.join(study, named("p1"))
    assert store.join(study, named("p1")) == first == store.find_secret(study.id, "p1")
    assert store.count_free(study) == 1
    assert store.join(study, Person()) not in (first, None)
    assert store.find_secret(study.id, "") is None


def test_a_place_that_is_not_finished_in_time_is_offered_again(store, study, clock):
    late, done = (store.join(study, named(name)) for name in ("late", "done"))
    answer_all(store, done)
    rater = store.find_rater(late)
    store.save_answer(rater.id, rater.shown[0].item, complete(store, rater, rater.shown[0]))
    clock(29)
    assert store.join(study, named("new")) is None
    clock(31)
    assert not store.find_rater(late).is_closed  # nobody has asked for it yet
    assert store.count_free(study) == 1
    new = store.join(study, named("new"))
    assert new not in (late, done, None)
    assert store.find_rater(new).shown == rater.shown
    assert store.find_rater(late).left == "late"
    assert store.find_secret(study.id, "late") == late  # they are told that it is over
    assert store.join(study, named("newer")) is None
    assert [link.state for link in store.list_links(study.id)] == ["late", "finished", "begun"]
    assert [len(each.complete) for each in store.take_snapshot(study.id).raters] == [1, 4, 0]


def complete(store, rater, shown):
    form = {f"q{n}-{each}": "3" for n in (1, 2) for each in "ABC"} | {"q3": "A", "q4": "A"}
    return read_answer(form, store.get_item(rater.study, shown.item), shown, PAPER)


def test_who_withdraws_takes_their_answers_along_and_leaves_the_place(store, study):
    secret = store.join(study, named("p1"))
    answer_all(store, secret)
    store.withdraw(store.find_rater(secret).id)
    assert store.find_rater(secret).left == "withdrawn"
    assert [each.answers for each in store.take_snapshot(study.id).raters] == [()] * 3
    assert store.count_free(study) == 2
    assert store.join(study, named("p1")) not in (secret, None)  # they may think again


def test_more_places_show_what_no_place_shows_yet(store):
    """Places that were given back, and offered again, do not count twice."""
    design = Design("A study", items_per_rater=2, is_repeated=False)
    number = store.create_study(design, make_items(4, n_checks=0), 1, is_joinable=True)
    study = store.get_study(number)
    for name in ("p1", "p2"):
        store.withdraw(store.find_rater(store.join(study, named(name))).id)
    store.add_raters(number, 1)
    links = store.list_links(number)
    assert [link.number for link in links] == [1, 2, 3, 4]
    *again, last = [{s.item for s in store.find_rater(link.secret).shown} for link in links]
    assert again == [again[0]] * 3
    assert not again[0] & last


def test_leaving_twice_frees_one_place(store, study):
    rater = store.find_rater(store.join(study, named("p1")))
    for _ in range(2):
        store.withdraw(rater.id)
    assert store.count_free(study) == 2


def test_a_personal_link_that_is_left_makes_no_new_place(store):
    study = store.create_study(DESIGN, make_items(3), 2)
    link = store.list_links(study)[0]
    store.withdraw(link.id)
    assert [each.state for each in store.list_links(study)] == ["withdrawn", "not begun"]


def test_many_at_once_get_a_place_each(open_store):
    both = [open_store(), open_store()]
    number = both[0].create_study(DESIGN, make_items(3), 12, is_joinable=True)
    study = both[0].get_study(number)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda n: both[n % 2].join(study, named(f"p{n % 20}")), range(40)))
    taken = {n % 20: secret for n, secret in enumerate(found) if secret}
    assert len(set(taken.values())) == len(taken) == 12
    assert all(secret in (None, taken.get(n % 20)) for n, secret in enumerate(found))


def test_time_of_visits_adds_up_and_one_sent_twice_counts_once(store, study):
    rater = store.find_rater(store.join(study, named("p1")))
    shown = rater.shown[0]
    answer = complete(store, rater, shown)
    part = Answer.empty(store.get_item(study.id, shown.item), shown, PAPER)
    for said, seconds, visit in (
        *((part, 4.0, "1"), (answer, 5.5, "2"), (answer, 5.5, "2")),
        *((answer, None, ""), (answer, 10.0, "3")),
    ):
        store.save_answer(rater.id, shown.item, said, seconds=seconds, visit=visit)
    [given] = store.take_snapshot(study.id).raters[0].answers
    assert given.seconds == pytest.approx(19.5)
    assert store.list_links(study.id)[0].seconds == pytest.approx(19.5)


# Through the pages.


@pytest.fixture
def operator(client):
    client.headers["Accept"] = "text/html"
    return Operator(client)


@pytest.fixture
def joinable(operator):
    """The address of a study, and its link for all."""
    path, _ = operator.create(
        access="join",
        n_raters="2",
        code="C0DE",
        thanks="Well done.",
        return_url="https://platform.example/done?cc={code}&who={participant}",
    )
    return path, re.search(r"/join/[\w-]{12}", operator.client.get(path).text)[0]


def agree(client, link, *, agrees="true"):
    page = client.get(link)
    sent = Page(page.text).hidden | {"agrees": agrees}
    return client.post(link.partition("?")[0], data=sent)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("?pid=p1", ["p1", "", ""]),
        ("?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1", ["p1", "s1", "x1"]),
        ("?workerId=w1&hitId=h1&assignmentId=a1", ["w1", "h1", "a1"]),
        ("", ["", "", ""]),
    ],
)
def test_who_joins_is_kept_and_exported_and_finishes_with_a_code(client, joinable, query, wanted):
    path, link = joinable
    begun = agree(client, link + query)
    assert begun.url.path.startswith("/rate/")
    thanks = Rater(client, begun.url.path.partition("/items")[0]).finish()
    assert "Well done." in thanks.text
    assert 'value="C0DE"' in thanks.text
    address = f"https://platform.example/done?cc=C0DE&amp;who={wanted[0]}"
    assert f'href="{address}"' in thanks.text
    head, *rows = client.get(f"{path}/answers.csv").text.splitlines()
    assert head.startswith("rater,participant,task,session,item,system,")
    assert {row.split(",")[1:4] == wanted for row in rows} == {True}
    raters = json.loads(client.get(f"{path}/study.json").text)["raters"]
    [person] = [each["person"] for each in raters if each["answers"]]
    assert list(person.values()) == wanted
    [_, line] = client.get(f"{path}/links.csv").text.splitlines()
    assert line.split(",")[1:4] == wanted
    assert client.get(link + query).url.path.startswith("/rate/")  # the same place again


def test_looking_takes_no_place_and_declining_none_either(client, operator, joinable):
    path, link = joinable
    for _ in range(3):
        assert "I agree, begin" in client.get(f"{link}?pid=p1").text
    declined = agree(client, f"{link}?pid=p1", agrees="false")
    assert "You are not taking part" in declined.text
    page = client.get(path).text
    assert "2 of 2 places are free; 1 declined" in page
    assert "Nobody yet" in page
    looking = client.get(f"{link}?workerId=w&assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE").text
    assert "Accept the task first" in looking
    assert "I agree" not in looking


def test_a_full_study_says_so(client, joinable):
    for name in ("p1", "p2"):
        agree(client, f"{joinable[1]}?pid={name}")
    full = client.get(f"{joinable[1]}?pid=p3")
    assert full.status_code == 409
    assert "All places of this study are taken" in full.text
    csrf = Page(client.get(client.get(f"{joinable[1]}?pid=p1").url.path).text).hidden["csrf"]
    data = {"csrf": csrf, "agrees": "true", "participant": "p3"}
    assert client.post(joinable[1], data=data).status_code == 409


def test_a_link_for_all_that_is_closed_or_wrong(client, operator, joinable):
    path, link = joinable
    assert client.get("/join/nothing").status_code == 404
    assert client.get("/join/%00").status_code == 404
    operator.post(f"{path}/closed", {"is_closed": "true"})
    assert client.get(link).status_code == 410
    assert client.post(link, data={"agrees": "true"}).status_code == 403  # no proof of our page
    personal, _ = operator.create(n_raters="1")
    assert "/join/" not in client.get(personal).text


def test_leaving_is_asked_twice_and_deletes_answers(client, joinable):
    path, link = joinable
    begun = agree(client, f"{link}?pid=p1")
    own = begun.url.path.partition("/items")[0]
    rater = Rater(client, own)
    rater.send(begun, rater.fill(begun))
    asked = client.get(f"{own}/leave")
    assert "Your 1 answer will be deleted" in asked.text
    left = client.post(f"{own}/leave", data={"csrf": Page(asked.text).hidden["csrf"]})
    assert "You have left the study" in left.text
    gone = client.get(own)
    assert (gone.status_code, "answers were deleted" in gone.text) == (410, True)
    assert "2 of 2 places are free" in client.get(path).text


def test_a_name_that_is_no_text_does_no_harm(client, joinable):
    bad = "<script>alert(1)</script>"
    agree(client, f"{joinable[1]}?pid={bad}%00%0A")
    page = client.get(joinable[0]).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page
    assert client.get(f"{joinable[1]}?pid={'x' * 201}").status_code == 422


def test_time_is_that_of_the_page_without_what_was_out_of_sight(client, joinable):
    begun = agree(client, f"{joinable[1]}?pid=p1")
    own = begun.url.path.partition("/items")[0]
    rater = Rater(client, own)
    visit = float(Page(begun.text).hidden["visit"])
    rater.send(begun, rater.fill(begun) | {"visit": f"{visit - 100:.3f}", "away": "40"})
    for number, wrong in enumerate(("nan", "soon", "1e400", str(visit + 10_000)), start=2):
        page = client.get(f"{own}/items/{number}")
        rater.send(page, rater.fill(page) | {"visit": wrong})
    record = json.loads(client.get(f"{joinable[0]}/study.json").text)
    times = sorted((each["seconds"] or 0) for each in record["raters"][0]["answers"])
    assert times[:4] == [0] * 4
    assert 60 <= times[4] < 160
