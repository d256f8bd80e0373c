"""Limits hold for every input: bytes, requests, seconds, labels."""

import asyncio
import threading
from dataclasses import replace
from types import SimpleNamespace

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
from wassemble.web import middleware
from wassemble.web.app import create_app
from wassemble.web.middleware import Buckets, RateLimit, check_label_count, compute_slot
from wassemble.web.settings import Settings

LIMIT = 1000
MAX_SECONDS = 1000  # of an answer; nobody waits so long: tests skip them
BEARER = {"authorization": "Bearer any"}  # no cookie of a browser is at stake
anything = hypothesis_settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    made = create_app(
        Settings(
            folder=folder,
            max_upload_bytes=LIMIT,
            max_requests_per_second=1e9,
            max_seconds=MAX_SECONDS,
        )
    )

    @made.post("/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

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


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock that can be put forward."""

    skipped = 0.0

    def time(self):
        return super().time() + self.skipped


@pytest.fixture
def run(monkeypatch):
    """`run(main)` runs ``main(skip)``, where ``skip(seconds)`` lets them pass for the app."""
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        loop = runner.get_loop()
        monkeypatch.setattr(middleware, "time", SimpleNamespace(monotonic=loop.time))

        async def skip(seconds):
            loop.skipped += seconds
            await asyncio.sleep(0.01)  # who has waited for this moment has a turn

        yield lambda main: runner.run(main(skip))


async def until(is_so):
    """Wait for what other threads bring about."""
    async with asyncio.timeout(MAX_SECONDS / 10):
        while not is_so():
            await asyncio.sleep(0.001)


class Work:
    """What an endpoint does: it begins, and goes on until it is told to end."""

    def __init__(self):
        self.n_begun = self.n_now = self.most = 0
        self._lock, self._end = threading.Lock(), threading.Event()

    def __call__(self) -> int:
        with self._lock:
            self.n_begun += 1
            self.n_now += 1
            self.most = max(self.most, self.n_now)
        assert self._end.wait(MAX_SECONDS / 10)
        with self._lock:
            self.n_now -= 1
        return 0

    def end(self):
        self._end.set()


def with_work(settings, work, **changes):
    """The app, with an endpoint that computes."""
    app = create_app(replace(settings, max_seconds=MAX_SECONDS, **changes))

    @app.get("/compute", dependencies=[Depends(compute_slot, scope="function")])
    def compute() -> int:
        return work()

    return app


def test_an_answer_that_takes_too_long_is_given_up_before_it_ends(settings, run):
    work = Work()
    app = with_work(settings, work)

    async def ask(skip):
        asked = asyncio.create_task(call_async(app, path="/compute"))
        await until(lambda: work.n_begun)
        await skip(0.9 * MAX_SECONDS)
        assert not asked.done()
        await skip(0.1 * MAX_SECONDS)
        given_up = await asked
        assert work.n_now == 1
        work.end()
        return given_up, await call_async(app, path="/compute")

    given_up, in_time = run(ask)
    assert given_up.status == 503
    assert b"longer than 1000 seconds" in given_up.body
    assert in_time.status == 200


@pytest.mark.parametrize(("n_pieces", "status"), [(4, 200), (20, 503)])
def test_a_body_that_keeps_coming_may_take_longer_but_not_for_ever(app, run, n_pieces, status):
    async def post(skip):
        async def slowly(left):
            await skip(0.9 * MAX_SECONDS)
            return {"type": "http.request", "body": b"x", "more_body": left > 0}

        return await _post_slowly(app, slowly, n_pieces)

    assert run(post) == status


def test_a_body_that_stops_coming_is_given_up(app, run):
    async def post(skip):
        async def never(_):
            await skip(MAX_SECONDS)
            await asyncio.Event().wait()

        return await _post_slowly(app, never, 4)

    assert run(post) == 503


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


def test_few_compute_at_once_and_pages_are_served_meanwhile(settings, run):
    work = Work()
    app = with_work(settings, work, n_processes=2)

    async def ask(_):
        # More than there are threads.
        computing = [asyncio.create_task(call_async(app, path="/compute")) for _ in range(50)]
        await until(lambda: work.n_now == 2)
        page = await call_async(app, path="/")
        assert work.n_now == 2
        work.end()
        return page.status, {answer.status for answer in await asyncio.gather(*computing)}

    assert run(ask) == (200, {200})
    assert work.n_begun == 50
    assert work.most == 2


def test_who_is_answered_503_while_waiting_is_not_computed_for(settings, run):
    work = Work()
    app = with_work(settings, work, n_processes=1)

    async def ask(skip):
        asked = [asyncio.create_task(call_async(app, path="/compute")) for _ in range(4)]
        await until(lambda: work.n_now == 1)
        await skip(MAX_SECONDS)
        statuses = [(await each).status for each in asked]
        work.end()
        await until(lambda: not app.state.compute_slots.locked())
        return statuses

    assert run(ask) == [503] * 4
    assert work.n_begun == 1


def test_who_is_answered_503_waits_no_longer(settings, run):
    work = Work()
    app = with_work(settings, work, n_processes=1)

    async def ask(skip):
        asked = [asyncio.create_task(call_async(app, path="/compute")) for _ in range(4)]
        await until(lambda: work.n_now == 1)
        await skip(MAX_SECONDS)
        await asyncio.gather(*asked)
        await until(lambda: len(asyncio.all_tasks()) == 2)  # this one, and who computes
        assert not app.state.compute_slots._waiters
        work.end()
        return (await call_async(app, path="/compute")).status

    assert run(ask) == 200


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
