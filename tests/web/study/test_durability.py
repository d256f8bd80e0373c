"""A real server with many raters at once, and one that is killed while they answer."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import httpx
import pytest
from patience import SECONDS
from web.study.people import Operator, Page, Person, make_lines

from wassemble.web.study.answers import read_answer
from wassemble.web.study.questions import PAPER
from wassemble.web.study.store import Store


@contextmanager
def browse(url):
    with httpx.Client(
        base_url=url, follow_redirects=True, timeout=SECONDS, headers={"Accept": "text/html"}
    ) as client:
        yield client


def create(url, n_raters, n_items):
    """Links of a study with so many items and an attention check."""
    with browse(url) as client:
        return Operator(client).create(make_lines(n_items), n_raters=str(n_raters))[1]


def stored(database, links):
    """Answers as the database has them, by link and number."""
    store = Store(database)
    found = {}
    for link in links:
        rater = store.find_rater(link.removeprefix("/rate/"))
        for number, shown in enumerate(rater.shown, start=1):
            item = store.get_item(rater.study, shown.item)
            found[link, number] = (item, shown, store.get_answer(rater.id, shown.item))
    store.close()
    return found


def check_kept(database, links, acknowledged):
    """Every acknowledged form is what is stored for its link and number."""
    found = stored(database, links)
    for key, form in acknowledged.items():
        item, shown, answer = found[key]
        assert answer == read_answer(form, item, shown, PAPER), key
    return found


def test_fifty_raters_at_once_lose_nothing(serve, database, tmp_path):
    with serve(tmp_path, "--database", database) as server:
        links = create(server.url, 50, 3)
        start = threading.Barrier(50)

        def take_part(number):
            with browse(server.url) as client:
                person = Person(client, links[number], seed=number)
                start.wait(timeout=SECONDS)
                assert "Thank you" in person.finish().text
                return {
                    (links[number], int(path.rpartition("/")[2])): form
                    for path, form in person.acknowledged.items()
                }

        with ThreadPoolExecutor(50) as pool:
            acknowledged = {}
            for own in pool.map(take_part, range(50)):
                acknowledged |= own
    assert len(acknowledged) == 50 * 4
    found = check_kept(database, links, acknowledged)
    assert all(answer.is_complete for *_, answer in found.values())


class _Busy(threading.Thread):
    """A rater who answers until the server is gone, and tells of each answer acknowledged."""

    def __init__(self, url, link, seed, tell):
        super().__init__(daemon=True)
        self.url, self.link, self.seed, self.tell = url, link, seed, tell

    def run(self):
        with browse(self.url) as client, suppress(httpx.TransportError):
            person = Person(client, self.link, self.seed)
            page = person.begin()
            while "/items/" in page.url.path:
                form, number = person.fill(page), int(page.url.path.rpartition("/")[2])
                data = {**form, "csrf": Page(page.text).hidden["csrf"], "go": "next"}
                # The answer to the form itself, not to the page after it, is what counts.
                done = client.post(page.url.path, data=data, follow_redirects=False)
                if done.status_code == 303:
                    self.tell((self.link, number), form)
                page = client.get(done.headers["location"])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_killed_server_loses_no_acknowledged_answer(serve, tmp_path, seed):
    database = f"sqlite:///{tmp_path / 'wassemble.db'}"
    rng = random.Random(seed)
    with serve(tmp_path) as server:
        links = create(server.url, 12, 6)
        wanted, acknowledged = rng.randint(5, 60), {}  # of 84 answers

        def tell(key, form):
            acknowledged[key] = form
            if len(acknowledged) >= wanted:
                server.process.kill()  # the other raters are in the middle of something

        raters = [_Busy(server.url, link, number, tell) for number, link in enumerate(links)]
        for rater in raters:
            rater.start()
        for rater in raters:
            rater.join(timeout=SECONDS)
            assert not rater.is_alive()
    assert wanted <= len(acknowledged) < 84, "killed in the middle"
    with serve(tmp_path) as server:
        check_kept(database, links, acknowledged)
        for number, link in enumerate(links):
            with browse(server.url) as client:
                person = Person(client, link, seed=number)
                page = person.begin()
                first = int(page.url.path.rpartition("/")[2]) if "/items/" in page.url.path else 8
                done = [n for key, n in acknowledged if key == link]
                assert first > max(done, default=0)  # nobody is asked again
                assert "Thank you" in person.finish().text
    found = check_kept(database, links, acknowledged)
    assert all(answer.is_complete for *_, answer in found.values())
