"""Who gets in, who is sent away, and what every answer carries."""

import re
import string
import time
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, strategies as st
from web.asgi import call

from wassemble.errors import InvalidInputError
from wassemble.web.app import create_app
from wassemble.web.middleware import HEADERS
from wassemble.web.security import local_path
from wassemble.web.settings import Settings

TOKEN = "correct horse battery"
HTML = {"accept": "text/html,*/*"}


@pytest.fixture
def guarded(settings):
    """A client of an app that has a token."""
    app = create_app(replace(settings, token=TOKEN))
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as found:
        yield found


def log_in(client, token=TOKEN, **fields):
    page = client.get("/login", headers=HTML)
    form = {"csrf": csrf_of(page), "token": token} | fields
    return client.post("/login", data=form, headers=HTML)


def csrf_of(page):
    return re.search(r'name="csrf" content="([\w-]+)"', page.text)[1]


# The token


def test_without_the_token_a_person_is_led_to_the_login(guarded):
    answer = guarded.get("/explorer?a=1", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/login?next=/explorer%3Fa%3D1",
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", "/"), ("GET", "/explorer"), ("GET", "/studies"), ("POST", "/studies")),
        *(("GET", "/api/openapi.json"), ("GET", "/nowhere"), ("DELETE", "/"), ("GET", "/login/")),
        *(("GET", "/static"), ("GET", "/rate"), ("POST", "/logout"), ("GET", "//rate/x")),
    ],
)
def test_without_the_token_a_program_is_refused(guarded, method, path):
    answer = guarded.request(method, path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


def test_raters_and_styles_need_no_token(guarded):
    assert guarded.get("/join/nothing", headers=HTML).status_code == 404
    answer = guarded.get(f"/rate/{'x' * 32}", headers=HTML)
    assert answer.status_code == 404
    assert "There is no such link." in answer.text
    assert "/studies" not in answer.text  # nothing of the operator's is offered
    assert guarded.get("/static/style.css").status_code == 200


def test_a_path_is_judged_as_it_is_routed(guarded):
    for path in ("/static/../api/openapi.json", "/rate/..%2f..%2fstudies", "/static/%2e%2e/"):
        assert guarded.get(path).status_code in (401, 404)


def test_the_bearer_token_opens_the_way(guarded):
    for path in ("/", "/api/openapi.json"):
        assert guarded.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert guarded.get(path, headers={"authorization": f"bearer {TOKEN}"}).status_code == 200
        for wrong in ("Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer ä"):
            headers = {"authorization": wrong.encode()}
            assert guarded.get(path, headers=headers).status_code == 401


def test_logging_in_and_out(guarded):
    answer = log_in(guarded, next="/studies?x=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/studies?x=1")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert TOKEN not in cookie
    page = guarded.get("/", headers=HTML)
    assert page.status_code == 200
    assert guarded.post("/logout", data={"csrf": csrf_of(page)}).status_code == 303
    assert guarded.get("/", headers=HTML).status_code == 303


def test_a_copied_cookie_is_worth_nothing_after_the_logout(guarded):
    log_in(guarded)
    copied = dict(guarded.cookies)
    page = guarded.get("/", headers=HTML)
    assert page.status_code == 200
    guarded.post("/logout", data={"csrf": csrf_of(page)})
    letters = string.ascii_letters + string.digits + "-_"
    [(name, cookie)] = [each for each in copied.items() if "operator" in each[0]]
    for last in letters:  # some spell the same signature
        found = guarded.get("/", headers=HTML | {"cookie": f"{name}={cookie[:-1]}{last}"})
        assert found.status_code == 303
    log_in(guarded)  # a new one is
    assert guarded.get("/", headers=HTML).status_code == 200


def test_a_login_ends_by_itself_after_twelve_hours(guarded, monkeypatch):
    answer = log_in(guarded)
    assert "Max-Age=43200" in answer.headers["set-cookie"]
    now = time.time()
    for hours, status in ((11.9, 200), (12.1, 303)):
        later = SimpleNamespace(time=lambda hours=hours: now + 3600 * hours)
        monkeypatch.setattr("itsdangerous.timed.time", later)
        cookie = "; ".join(f"{name}={value}" for name, value in guarded.cookies.items())
        found = guarded.get("/", headers=HTML | {"cookie": cookie})
        assert found.status_code == status, hours


@pytest.mark.parametrize("change", [str.upper, lambda cookie: cookie[:-1], lambda _: "x.y.z"])
def test_a_changed_cookie_is_nobodys(guarded, change):
    log_in(guarded)
    [name] = [name for name in guarded.cookies if name.startswith("wassemble_operator")]
    guarded.cookies.set(name, change(guarded.cookies[name]), domain="localhost.local", path="/")
    assert guarded.get("/", headers=HTML).status_code == 303


def test_servers_on_other_ports_keep_their_logins(settings):
    apps = [create_app(replace(settings, token=TOKEN, run_id=f"1-{port}")) for port in (1, 2)]
    cookies = {}
    for port, app in zip((8001, 8002), apps, strict=True):
        url = f"http://localhost:{port}"
        with TestClient(app, base_url=url, follow_redirects=False) as client:
            log_in(client)
            cookies |= dict(client.cookies)  # as one browser has them
    for port, app in zip((8001, 8002), apps, strict=True):
        with TestClient(app, base_url=f"http://localhost:{port}", cookies=cookies) as client:
            assert client.get("/", headers=HTML, follow_redirects=False).status_code == 200


def test_a_server_that_starts_anew_knows_nobody(guarded):
    log_in(guarded)
    assert guarded.get("/", headers=HTML).status_code == 200
    anew = replace(guarded.app.state.settings, run_id="another")
    with TestClient(create_app(anew), base_url=str(guarded.base_url)) as client:
        client.cookies.update(guarded.cookies)
        assert client.get("/", headers=HTML, follow_redirects=False).status_code == 303


def test_a_wrong_token_is_told_so(guarded):
    answer = log_in(guarded, token="guess")
    assert answer.status_code == 401
    assert "This is not the token." in answer.text
    assert guarded.get("/", headers=HTML).status_code == 303


def test_cookies_are_secure_over_https(settings):
    app = create_app(replace(settings, token=TOKEN))
    with TestClient(app, base_url="https://localhost", follow_redirects=False) as client:
        answer = log_in(client)
        assert "Secure" in answer.headers["set-cookie"]


@given(path=st.one_of(st.text(), st.text("/\\.:a@\n\t ").map(lambda rest: "/" + rest)))
def test_the_way_after_the_login_stays_on_this_server(path):
    found = local_path(path)
    assert found in ("/", path)
    assert re.match(r"/(?![/\\])", found)
    assert not set(found) & set("\\\n\r\t ")


# CSRF


def test_an_unsafe_request_needs_the_value_of_its_cookie(client):
    token = csrf_of(client.get("/", headers=HTML))
    for field, header in ((None, None), ("x", None), (None, "x"), (token, "x"), ("", None)):
        data = {} if field is None else {"csrf": field}
        headers = {} if header is None else {"x-csrf-token": header}
        assert client.post("/logout", data=data, headers=headers).status_code == 403
    assert client.post("/logout", data={"csrf": token}, follow_redirects=False).status_code == 303
    headers = {"x-csrf-token": token}
    assert client.post("/logout", headers=headers, follow_redirects=False).status_code == 303
    client.cookies.clear()
    assert client.post("/logout", data={"csrf": token}).status_code == 403


def test_half_a_character_is_wrong_like_any_other_value(client):
    client.get("/", headers=HTML)
    body = '--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n+2AA-\r\n--x--\r\n'
    headers = {"content-type": "multipart/form-data; boundary=x; charset=utf-7"}
    assert client.post("/logout", content=body, headers=headers).status_code == 403


def test_a_form_of_another_site_is_refused(client):
    token = csrf_of(client.get("/", headers=HTML))
    for origin, status in (
        ("http://localhost", 303),
        ("http://localhost:9999", 403),
        ("https://localhost", 403),
        ("http://evil.example", 403),
        ("null", 403),
    ):
        headers = {"origin": origin, "x-csrf-token": token}
        answer = client.post("/logout", headers=headers, follow_redirects=False)
        assert answer.status_code == status, origin


# Names of the server


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("localhost", 200), ("localhost:8000", 200), ("LOCALHOST", 200), ("127.0.0.1:1", 200)),
        *(("[::1]:8000", 200), ("evil.example", 400), ("localhost.evil.example", 400), ("", 400)),
        *(("[::1", 400), ("127.0.0.1.evil.example:80", 400), ("<script>", 400)),
    ],
)
def test_a_loopback_server_answers_to_its_own_names_only(settings, host, status):
    answer = call(create_app(settings), headers={"host": host, "accept": "text/html"})
    assert answer.status == status
    assert b"<script>" not in answer.body


def test_a_server_for_others_answers_to_any_name_or_to_those_it_was_given(settings):
    public = replace(settings, host="0.0.0.0", token=TOKEN)
    named = replace(settings, allowed_hosts=("study.example.org",), token=TOKEN)
    headers = {"authorization": f"Bearer {TOKEN}", "host": "study.example.org"}
    assert call(create_app(public), headers=headers).status == 200
    assert call(create_app(named), headers=headers).status == 200
    assert call(create_app(named), headers=headers | {"host": "evil.example"}).status == 400


@pytest.mark.parametrize(
    "options",
    [{"host": "0.0.0.0"}, {"host": "::"}, {"host": "my-laptop"}, {"allowed_hosts": ("a.org",)}],
)
def test_a_server_that_others_reach_must_have_a_token(tmp_path, options):
    with pytest.raises(InvalidInputError, match=r"`token` is needed(.|\n)*hint: a fresh one"):
        Settings(folder=tmp_path, **options)
    assert Settings(folder=tmp_path, token=TOKEN, **options).is_public


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_loopback_needs_no_token(tmp_path, host):
    assert not Settings(folder=tmp_path, host=host).is_public


def test_settings_that_make_no_sense_are_refused(tmp_path):
    (tmp_path / "what?").mkdir()
    for options, words in (
        ({"folder": tmp_path / "nowhere"}, "folder that exists"),
        ({"token": "short"}, "at least 16 characters; got 5"),
        ({"max_labels": 0}, "max_labels"),
        ({"folder": tmp_path / "what?"}, r"must have no \? in its path"),
        ({"max_seconds": -1}, "max_seconds"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            Settings(**{"folder": tmp_path} | options)


# Headers and errors


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE"]),
    path=st.one_of(
        st.text(st.characters(codec="ascii")).map("/".__add__),
        st.sampled_from(["/", "/login", "/static/style.css", "/static/x", "/fault", "/logout"]),
    ),
    host=st.sampled_from(["localhost", "evil.example"]),
    accept=st.sampled_from(["text/html", "application/json"]),
)
def test_every_answer_carries_the_headers(app, method, path, host, accept):
    answer = answer_of(app, method, path, {"host": host, "accept": accept})
    for name, value in HEADERS.items():
        if name != "Cache-Control":
            assert answer.headers[name.lower()] == value
    assert "cache-control" in answer.headers
    if answer.status >= 400:
        kind = "text/html" if accept == "text/html" else "application/json"
        assert answer.headers["content-type"].startswith(kind)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    made = create_app(Settings(folder=tmp_path_factory.mktemp("x"), max_requests_per_second=1e9))

    @made.get("/fault")
    def fault() -> str:
        raise FaultError("private words")

    @made.get("/input")
    def wrong() -> str:
        raise InvalidInputError("`x` must be <b>.\nhint: try <i>")

    return made


class FaultError(Exception):
    pass


def answer_of(app, method, path, headers):
    async def keeping(scope, receive, send):
        with suppress(FaultError):  # raised again for the log, after the answer
            await app(scope, receive, send)

    return call(keeping, method, path, headers=headers)


def test_an_inner_fault_is_answered_without_its_words(app):
    answer = answer_of(app, "GET", "/fault", {"accept": "application/json"})
    assert answer.status == 500
    assert b"private" not in answer.body
    assert b"on the server" in answer.body


def test_wrong_input_is_a_page_or_json(app):
    page = call(app, path="/input", headers={"accept": "text/html"})
    assert page.status == 422
    assert b"`x` must be &lt;b&gt;." in page.body
    assert b"Hint: try &lt;i&gt;" in page.body
    answer = call(app, path="/input")
    assert answer.status == 422
    assert answer.body == b'{"detail":"`x` must be <b>.\\nhint: try <i>"}'


def test_an_unknown_address_is_a_friendly_page(client):
    answer = client.get("/nowhere", headers=HTML)
    assert answer.status_code == 404
    assert "There is nothing at this address." in answer.text
    assert client.get("/nowhere").json() == {"detail": "There is nothing at this address."}


def test_a_wrong_parameter_is_named(client):
    long = "/" + "x" * 3000
    answer = client.get("/login", params={"next": long})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("`next`: string should have at most 2000 characters")


def test_plotly_comes_from_its_package_and_may_be_kept(client):
    plain = client.get("/static/plotly.min.js", headers={"accept-encoding": "identity"})
    small = client.get("/static/plotly.min.js", headers={"accept-encoding": "gzip"})
    assert plain.text == small.text
    assert "plotly.js v" in plain.text[:200]
    assert small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < 2_000_000
    assert "immutable" in plain.headers["cache-control"]


def test_no_page_that_loads_scripts_from_elsewhere_is_served(client):
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404
    assert client.get("/api/openapi.json").json()["info"]["title"] == "wassemble"
