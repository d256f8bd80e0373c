"""Limits hold for every input: bytes, requests, seconds, labels."""

import asyncio
import time
from dataclasses import replace

import pytest
from fastapi import Depends, Request
from hypothesis import (
    HealthCheck,
    example,
    given,
    settings as hypothesis_settings,
    strategies as st,
)
from web.asgi import call, call_async

from wassemble.errors import InvalidInputError
from wassemble.web.app import create_app
from wassemble.web.limits import Buckets, RateLimit, check_label_count, compute_slot
from wassemble.web.settings import Settings

LIMIT = 1000
BEARER = {"authorization": "Bearer any"}  # no cookie of a browser is at stake
anything = hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    made = create_app(
        Settings(folder=folder, max_upload_bytes=LIMIT, max_requests_per_second=1e9, max_seconds=1)
    )

    @made.post("/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

    @made.get("/sleep/{seconds}")
    def sleep(seconds: float) -> str:
        time.sleep(seconds)
        return "done"

    @made.get("/fault")
    def fault() -> str:
        raise RuntimeError("no")

    return made


# Bytes


@given(sizes=st.lists(st.integers(0, 700), max_size=12), is_announced=st.booleans())
def test_a_body_is_refused_exactly_when_it_is_above_the_limit(app, sizes, is_announced):
    chunks, total = [b"x" * size for size in sizes], sum(sizes)
    headers = BEARER | ({"content-length": str(total)} if is_announced else {})
    answer = call(app, "POST", "/echo", headers=headers, chunks=chunks)
    if total > LIMIT:
        assert answer.status == 413
        assert b"at most 1,000 bytes" in answer.body
        # The rest is left unread: at most the piece that went over the limit was taken.
        assert answer.n_read <= (0 if is_announced else LIMIT + 700)
    else:
        assert (answer.status, answer.body) == (200, str(total).encode())


@given(length=st.text(st.characters(codec="ascii"), max_size=30))
@example(length="9" * 5000)
def test_an_announced_length_is_not_trusted(app, length):
    answer = call(
        app,
        "POST",
        "/echo",
        headers=BEARER | {"content-length": length},
        chunks=[b"x" * 600, b"x" * 600],
    )
    assert answer.status == 413


def test_raters_and_logins_send_little(settings):
    app = create_app(settings)
    for path in ("/rate/secret/answers", "/login"):
        answer = call(app, "POST", path, headers=BEARER | {"content-length": "100001"})
        assert answer.status == 413
        assert b"at most 100,000 bytes" in answer.body


# Requests


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


async def fine(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@anything
@given(rate=st.integers(1, 60), burst=st.integers(1, 150))
def test_a_burst_above_the_rate_is_told_to_wait_and_accepted_afterwards(tmp_path, rate, burst):
    clock = Clock()
    limited = RateLimit(fine, Settings(folder=tmp_path, max_requests_per_second=rate), clock)
    answers = [call(limited) for _ in range(burst)]
    assert [answer.status for answer in answers] == [200] * min(rate, burst) + [429] * max(
        0, burst - rate
    )
    if burst > rate:
        assert answers[-1].headers["retry-after"] == "1"
        assert call(limited, client="10.0.0.9").status == 200  # others are not held up
        clock.now += int(answers[-1].headers["retry-after"])
        assert call(limited).status == 200


def test_the_app_itself_tells_a_client_to_wait(settings):
    app = create_app(replace(settings, max_requests_per_second=0.001))
    assert call(app, path="/static/style.css").status == 200
    answer = call(app, path="/static/style.css")
    assert answer.status == 429
    assert 900 < int(answer.headers["retry-after"]) <= 1000
    page = call(app, headers={"accept": "text/html"})
    assert page.status == 429
    assert b"Wait a moment and try again." in page.body


@given(
    rate=st.floats(0.01, 1000),
    pauses=st.lists(st.floats(0, 2), min_size=1, max_size=100),
)
def test_whatever_the_pauses_no_more_than_the_rate_gets_through(rate, pauses):
    clock = Clock()
    buckets = Buckets(rate, clock=clock)
    n_taken = 0
    for pause in pauses:
        clock.now += pause
        n_taken += buckets.take("client") == 0
    assert n_taken <= max(1, rate) + rate * clock.now + 1e-6
    wait = buckets.take("client")
    clock.now += wait
    assert wait == 0 or buckets.take("client") == 0  # waiting as long as was said is enough


@given(names=st.lists(st.text(max_size=5), max_size=80))
def test_buckets_take_bounded_memory(names):
    buckets = Buckets(10, at_most=7, clock=Clock())
    for name in names:
        buckets.take(name)
    assert len(buckets) <= 7


def test_the_most_recent_clients_are_remembered():
    buckets = Buckets(1, at_most=2, clock=Clock())
    assert [buckets.take(name) == 0 for name in "aabaca"] == [True, False, True, False, True, False]


def test_a_rater_link_is_limited_wherever_its_requests_come_from(tmp_path):
    limited = RateLimit(fine, Settings(folder=tmp_path, max_requests_per_second=3), Clock())
    statuses = [
        call(limited, path="/rate/secret/item", client=f"10.0.0.{i}").status for i in range(5)
    ]
    assert statuses == [200, 200, 200, 429, 429]
    assert call(limited, path="/rate/other/item", client="10.0.0.9").status == 200


def test_the_addresses_of_one_ipv6_network_are_one_client(tmp_path):
    limited = RateLimit(fine, Settings(folder=tmp_path, max_requests_per_second=2), Clock())
    assert [call(limited, client=f"2001:db8::{i}").status for i in range(3)] == [200, 200, 429]
    assert call(limited, client="2001:db8:0:1::").status == 200


# Seconds


def test_an_answer_that_takes_too_long_is_given_up_before_it_ends(app):
    async def measure():
        started = time.monotonic()
        answer = await call_async(app, "GET", "/sleep/4")
        return answer, time.monotonic() - started

    answer, seconds = asyncio.run(measure())
    assert answer.status == 503
    assert b"longer than 1 seconds" in answer.body
    assert 0.9 < seconds < 3.5
    assert call(app, "GET", "/sleep/0.01").status == 200


def test_a_body_that_keeps_coming_may_take_longer(app):
    async def slowly(left):
        await asyncio.sleep(0.4)
        return {"type": "http.request", "body": b"x", "more_body": left > 0}

    status = asyncio.run(_post_slowly(app, slowly, 4))
    assert status == 200


def test_a_body_that_stops_coming_is_given_up(app):
    async def never(_):
        await asyncio.sleep(60)

    started = time.monotonic()
    assert asyncio.run(_post_slowly(app, never, 4)) == 503
    assert time.monotonic() - started < 5


async def _post_slowly(app, produce, n_pieces):
    left, sent = n_pieces, []

    async def receive():
        nonlocal left
        left -= 1
        return await produce(left)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/echo",
        "raw_path": b"/echo",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(b"host", b"localhost"), (b"authorization", b"Bearer any")],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
        "state": {},
    }
    await app(scope, receive, send)
    return sent[0]["status"]


def test_few_compute_at_once_and_pages_are_served_meanwhile(settings):
    app = create_app(replace(settings, max_computing=2))
    now, most = 0, 0

    @app.get("/compute", dependencies=[Depends(compute_slot, scope="function")])
    def compute() -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        time.sleep(0.1)
        now -= 1
        return 0

    async def run():
        computing = [asyncio.create_task(call_async(app, path="/compute")) for _ in range(50)]
        await asyncio.sleep(0.05)  # all of them wait, more than there are threads
        started = time.monotonic()
        page = await call_async(app, path="/")
        return page.status, time.monotonic() - started, await asyncio.gather(*computing)

    status, seconds, answers = asyncio.run(run())
    assert status == 200
    assert seconds < 2
    assert {answer.status for answer in answers} == {200}
    assert most == 2


def test_who_is_answered_503_while_waiting_is_not_computed_for(settings):
    app = create_app(replace(settings, max_computing=1, max_seconds=0.3))
    n_computed = 0

    @app.get("/compute", dependencies=[Depends(compute_slot, scope="function")])
    def compute() -> int:
        nonlocal n_computed
        n_computed += 1
        time.sleep(0.5)
        return 0

    async def run():
        answers = await asyncio.gather(*[call_async(app, path="/compute") for _ in range(4)])
        await asyncio.sleep(0.6)
        return [answer.status for answer in answers]

    assert asyncio.run(run()) == [503] * 4
    assert n_computed == 1


def test_who_is_answered_503_waits_no_longer(settings):
    app = create_app(replace(settings, max_computing=1, max_seconds=0.2))

    @app.get("/compute", dependencies=[Depends(compute_slot, scope="function")])
    def compute() -> int:
        time.sleep(1)
        return 0

    async def run():
        await asyncio.gather(*[call_async(app, path="/compute") for _ in range(4)])
        await asyncio.sleep(0.1)
        n_tasks = len(asyncio.all_tasks())
        await asyncio.sleep(1)
        return n_tasks, (await call_async(app, path="/compute")).status, app.state.compute_slots

    n_tasks, status, slots = asyncio.run(run())
    assert n_tasks == 2  # this one, and who computes
    assert status == 503
    assert not slots._waiters


# Labels


@given(limit=st.integers(1, 10**6), n_labels=st.integers(0, 10**7))
def test_label_sets_above_the_limit_are_refused(tmp_path_factory, limit, n_labels):
    settings = Settings(folder=tmp_path_factory.getbasetemp(), max_labels=limit)
    if n_labels <= limit:
        check_label_count(n_labels, settings)
    else:
        with pytest.raises(InvalidInputError, match=f"at most {limit:,} labels; got {n_labels:,}"):
            check_label_count(n_labels, settings)


def test_too_many_labels_are_a_422(settings):
    app = create_app(replace(settings, max_labels=10))

    @app.get("/labels")
    def labels() -> int:
        check_label_count(11, settings=app.state.settings)
        return 11

    answer = call(app, path="/labels")
    assert answer.status == 422
    assert b"at most 10 labels; got 11" in answer.body
