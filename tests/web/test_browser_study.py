"""A whole study in a real browser: made, answered by three raters, read and taken away."""

import csv
import io
import random
import time
from itertools import product

import pytest
from patience import SECONDS
from report.browser import set_screen
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait
from web.study.people import SYSTEMS, make_lines

HIDDEN = (*SYSTEMS, "Walrus-right", "Vole-wrong", "item-", "check-0")
SCREENS = list(product((1280, 360), ("light", "dark")))


@pytest.fixture(scope="module")
def study(browser, server, tmp_path_factory):
    """A study that was made by filling the form: its address, and its raters' links."""
    path = tmp_path_factory.mktemp("files") / "items.jsonl"
    path.write_text(make_lines(5), encoding="utf-8")
    set_screen(browser, 1280, "light")
    browser.get(f"{server.url}/studies")
    browser.find_element(By.ID, "file").send_keys(str(path))
    browser.find_element(By.ID, "title").send_keys("Which caption <b>is</b> better?")
    raters = browser.find_element(By.ID, "n_raters")
    raters.clear()
    raters.send_keys("4")
    browser.find_element(By.XPATH, "//button[text()='Create']").click()
    wait(browser, lambda: browser.find_elements(By.CLASS_NAME, "link-field"))
    links = [
        each.get_attribute("value") for each in browser.find_elements(By.CLASS_NAME, "link-field")
    ]
    assert len(links) == 4
    return browser.current_url, links


@pytest.fixture(scope="module")
def pages(browser, study):
    """The source of every page that three raters saw, one of whom used the keyboard alone."""
    seen = []
    for number, link in enumerate(study[1][:3]):
        browser.get(link)
        seen.append(browser.page_source)
        press(browser, browser.find_element(By.TAG_NAME, "button"), by_keyboard=number == 0)
        answer = answer_by_keyboard if number == 0 else answer_by_mouse
        rng = random.Random(number)
        for count in range(1, 7):
            wait(browser, lambda count=count: f"{count} of 6" in browser.page_source)
            seen.append(browser.page_source)
            answer(browser, rng)
        wait(browser, lambda: "Thank you" in browser.page_source)
        seen.append(browser.page_source)
    assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []
    return seen


def answer_by_mouse(browser, rng):
    for name, values in radio_groups(browser).items():
        place = f"input[name='{name}'][value='{rng.choice(values)}']"
        browser.find_element(By.CSS_SELECTOR, place).click()
    press(browser, browser.find_element(By.CSS_SELECTOR, "button[value=next]"))


def answer_by_keyboard(browser, rng):
    """Tab to each group, choose with space and arrows, and send with Enter."""
    groups = radio_groups(browser)
    browser.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    left = set(groups)
    for _ in range(40):
        keys(browser, Keys.TAB)
        name = browser.execute_script("return document.activeElement.name")
        if name == "go":
            break
        if name in left:
            left.discard(name)
            keys(browser, Keys.SPACE, *[Keys.ARROW_RIGHT] * rng.randrange(len(groups[name])))
    assert not left
    assert len(browser.find_elements(By.CSS_SELECTOR, "input:checked")) == len(groups)
    press(browser, browser.switch_to.active_element, by_keyboard=True)


def radio_groups(browser):
    found = {}
    for each in browser.find_elements(By.CSS_SELECTOR, "input[type=radio]"):
        found.setdefault(each.get_attribute("name"), []).append(each.get_attribute("value"))
    return found


def press(browser, button, *, by_keyboard=False):
    """Press a button, and wait until its page has gone."""
    page = browser.find_element(By.TAG_NAME, "html").id
    if by_keyboard:
        button.send_keys(Keys.ENTER)
    else:
        button.click()
    wait(browser, lambda: browser.find_element(By.TAG_NAME, "html").id != page)


def keys(browser, *wanted):
    from selenium.webdriver import ActionChains

    ActionChains(browser).send_keys(*wanted).perform()


def wait(browser, is_so):
    from selenium.common.exceptions import WebDriverException

    WebDriverWait(browser, SECONDS, ignored_exceptions=[WebDriverException]).until(
        lambda _: is_so()
    )


def test_three_raters_finish_and_never_see_a_system(browser, study, pages):
    assert len(pages) == 3 * 8
    for page in pages:
        for name in HIDDEN:
            assert name.lower() not in page.lower()
    browser.get(study[0])
    assert browser.page_source.count("6 of 6") == 3
    assert "not begun" in browser.page_source


def test_results_show_both_charts_and_their_figures(browser, study, pages):
    browser.get_log("browser")
    set_screen(browser, 1280, "light")
    browser.get(f"{study[0]}/results")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#charts[data-drawn]"))
    assert browser.get_log("browser") == []
    assert "15 answers of 3 raters to 5 items" in browser.page_source
    assert (
        browser.find_element(By.TAG_NAME, "h1").text == "Results of Which caption <b>is</b> better?"
    )
    bars = "[data-chart={}] .bars .point"
    assert len(browser.find_elements(By.CSS_SELECTOR, bars.format("best"))) == 6
    assert len(browser.find_elements(By.CSS_SELECTOR, bars.format("opinion"))) == 6
    names = browser.find_elements(By.CSS_SELECTOR, "[data-chart=best] .legendtext")
    assert [name.text for name in names] == list(SYSTEMS)


def test_answers_are_downloaded_as_a_table(browser, study, pages, tmp_path):
    behavior = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
    browser.get(study[0])
    browser.find_element(By.LINK_TEXT, "Answers as CSV").click()
    end = time.monotonic() + SECONDS
    while not list(tmp_path.glob("*.csv")):
        assert time.monotonic() < end
        time.sleep(0.05)
    [path] = tmp_path.glob("*.csv")
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert len(rows) == 3 * (5 * 3 + 2)
    assert {row["rater"] for row in rows} == {"1", "2", "3"}


def test_what_is_missing_is_pointed_out_where_the_focus_goes(browser, study):
    browser.get(study[1][3])
    press(browser, browser.find_element(By.TAG_NAME, "button"))
    groups = radio_groups(browser)
    first, *others = groups
    browser.find_element(By.CSS_SELECTOR, f"input[name='{first}'][value='4']").click()
    press(browser, browser.find_element(By.CSS_SELECTOR, "button[value=next]"))
    assert browser.switch_to.active_element.get_attribute("id") == "missing"
    links = browser.find_elements(By.CSS_SELECTOR, "#missing a")
    assert [link.get_attribute("href").rpartition("#")[2] for link in links] == others
    [kept] = browser.find_elements(By.CSS_SELECTOR, "input:checked")
    assert (kept.get_attribute("name"), kept.get_attribute("value")) == (first, "4")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_page_fits_the_screen_and_follows_the_mode(
    browser, server, study, pages, width, scheme
):
    set_screen(browser, width, scheme)
    addresses = [f"{server.url}/studies", study[0], f"{study[0]}/results"]
    addresses += [study[1][0], f"{study[1][0]}/items/2", f"{study[1][3]}/items/1"]
    for address in addresses:
        browser.get(address)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, (
            address
        )
        color = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (color == "rgb(255, 255, 255)") == (scheme == "light")
        assert unnamed_fields(browser) == [], address


def unnamed_fields(browser):
    """Fields that no label, legend or name describes."""
    return browser.execute_script(
        """
        return Array.from(document.querySelectorAll("input:not([type=hidden]), textarea, select"))
          .filter((each) => !each.labels.length && !each.getAttribute("aria-label"))
          .map((each) => each.outerHTML);
        """
    )
