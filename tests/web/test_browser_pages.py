"""Every page in a real browser: no error, nothing blocked, nothing wider than the screen."""

import re
from itertools import product

import httpx
import pytest
from patience import SECONDS
from report.browser import find_requests, set_screen
from web.axe import find_problems

TOKEN = "correct horse battery"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
PAGES = [
    *("/", "/explorer", "/explorer/view?example=languages", "/explorer/view?example=animals"),
    *("/explorer/view?example=languages&label=eng", "/explorer/all?example=languages"),
    *("/explorer/map?example=animals", "/explorer/learn?example=animals"),
    *("/studies", "/studies/new", "/studies/1", "/studies/1/results", "/studies/1/preview/1"),
    *("/rate/{fresh}", "/rate/{agreed}/items/1", "/rate/{done}"),
]
SCREENS = list(product((1280, 360), ("light", "dark")))


@pytest.fixture(scope="module")
def pages(serve, tmp_path_factory):
    """A server with a study: one rater is new, one has agreed, one is done."""
    items = "\n".join(
        f'{{"id": "{i}", "text": "A <b>text</b>", "captions": {{"a": "one <i>", "b": "two"}}}}'
        for i in range(2)
    )
    folder = tmp_path_factory.mktemp("pages")
    with serve(folder, "--token", TOKEN) as server:
        with httpx.Client(
            base_url=server.url, headers=HEADERS, follow_redirects=True, timeout=SECONDS
        ) as client:
            file = {"file": ("items.jsonl", items.encode())}
            made = client.post("/studies", data={"n_raters": "3"}, files=file)
            assert made.status_code == 200, made.text
            fresh, agreed, done = dict.fromkeys(re.findall(r"/rate/([\w-]{32})", made.text))
            for secret in (agreed, done):
                client.post(f"/rate/{secret}/consent", data={"agrees": "true"}).raise_for_status()
            for number in (1, 2):
                form = answer_all(client.get(f"/rate/{done}/items/{number}").text)
                client.post(f"/rate/{done}/items/{number}", data=form).raise_for_status()
        secrets = {"fresh": fresh, "agreed": agreed, "done": done}
        yield server, [page.format(**secrets) for page in PAGES]


def answer_all(page):
    """The first choice of every question of a form."""
    found = {}
    for tag in re.findall(r"<input[^>]*type=\"radio\"[^>]*>", page):
        name, value = (re.search(rf'{key}="([^"]*)"', tag)[1] for key in ("name", "value"))
        found.setdefault(name, value)
    assert found
    return found


@pytest.fixture(scope="module")
def operator(browser, pages):
    """The browser after it followed the link that logs in."""
    server, _ = pages
    browser.get(f"{server.url}/login#{TOKEN.replace(' ', '%20')}")
    wait_for(browser, "return location.pathname === '/'")
    assert TOKEN not in browser.page_source
    return browser


def test_no_page_has_an_error_or_loads_from_elsewhere(operator, pages):
    server, addresses = pages
    for address in addresses:
        for kind in ("browser", "performance"):
            operator.get_log(kind)
        open_page(operator, server.url + address)
        assert operator.get_log("browser") == [], address
        asked = {url for url in find_requests(operator) if not url.startswith(("data:", "blob:"))}
        assert asked, address
        assert all(url.startswith(server.url + "/") for url in asked), address


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_page_fits_the_screen_and_the_mode(operator, pages, width, scheme):
    server, addresses = pages
    set_screen(operator, width, scheme)
    for address in addresses:
        open_page(operator, server.url + address)
        found = operator.execute_script(
            "return {width: document.documentElement.scrollWidth,"
            " page: getComputedStyle(document.body).backgroundColor,"
            " headings: document.querySelectorAll('h1').length,"
            " unnamed: Array.from(document.querySelectorAll("
            "   'input:not([type=hidden]), select, textarea'))"
            "   .filter((each) => !each.labels?.length && !each.ariaLabel"
            "     && !document.getElementById(each.getAttribute('aria-labelledby'))).length}"
        )
        assert found["width"] <= width, address
        assert (found["page"] == "rgb(255, 255, 255)") == (scheme == "light"), address
        assert found["headings"] == 1, address
        assert found["unnamed"] == 0, address


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_page_can_be_used_by_everybody(operator, pages, width, scheme):
    server, addresses = pages
    set_screen(operator, width, scheme)
    wrong = []
    for address in addresses:
        open_page(operator, server.url + address)
        wrong += [f"{address}: {problem}" for problem in find_problems(operator)]
    assert wrong == []


def test_the_keyboard_reaches_the_content_first(operator, pages):
    from selenium.webdriver.common.keys import Keys

    server, addresses = pages
    for address in addresses:
        open_page(operator, server.url + address)
        operator.switch_to.active_element.send_keys(Keys.TAB)
        assert operator.switch_to.active_element.text == "Skip to the content", address
        operator.switch_to.active_element.send_keys(Keys.ENTER)
        assert operator.execute_script("return document.activeElement.id") == "main", address


def test_a_script_in_data_would_be_blocked(operator, pages):
    server, _ = pages
    open_page(operator, f"{server.url}/")
    operator.get_log("browser")
    operator.execute_script(
        "const tag = document.createElement('script'); tag.textContent = 'window.ran = true';"
        "document.body.append(tag)"
    )
    assert not operator.execute_script("return window.ran")
    assert "Content Security Policy" in operator.get_log("browser")[0]["message"]


def open_page(browser, url):
    """Open a page, and let it come to rest."""
    browser.get(url)
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 300))"
    )


def wait_for(browser, script):
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, SECONDS).until(lambda _: browser.execute_script(script))
