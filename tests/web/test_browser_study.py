"""Whole studies in a real browser: made, answered by three raters, read and taken away."""

import csv
import io
import json
import random
import time
import zipfile
from itertools import product

import pytest
from patience import SECONDS
from report.browser import set_screen
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait
from web.axe import find_problems
from web.study.people import SYSTEMS, make_lines
from web.study.test_pages import PNG

from wassemble.cli import main

HIDDEN = (*SYSTEMS, "Walrus-right", "Vole-wrong", "item-", "check-0")
SCREENS = list(product((1280, 360), ("light", "dark")))


@pytest.fixture(scope="module")
def study(browser, server, tmp_path_factory):
    """A study that was made by filling the form: its address, and its raters' links."""
    path = tmp_path_factory.mktemp("files") / "items.jsonl"
    path.write_text(make_lines(5), encoding="utf-8")
    set_screen(browser, 1280, "light")
    browser.get(f"{server.url}/studies/new")
    browser.find_element(By.ID, "file").send_keys(str(path))
    browser.find_element(By.ID, "title").send_keys("Which caption <b>is</b> better?")
    raters = browser.find_element(By.ID, "n_raters")
    raters.clear()
    raters.send_keys("4")
    browser.find_element(By.XPATH, "//button[text()='Create the study']").click()
    wait(browser, lambda: browser.find_elements(By.CLASS_NAME, "link-field"))
    links = [
        each.get_attribute("value") for each in browser.find_elements(By.CLASS_NAME, "link-field")
    ]
    assert len(links) == 4
    return browser.current_url, links


@pytest.fixture(scope="module")
def pages(browser, study):
    """The source of every page that three raters saw, one of whom used the keyboard alone."""
    browser.get_log("browser")  # what other tests have left there
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
        choose(browser, name, rng.choice(values))
    press(browser, browser.find_element(By.CSS_SELECTOR, "button[value=next]"))


def choose(browser, name, value):
    """Click on what a rater sees of a radio button."""
    place = f"label:has(> input[name='{name}'][value='{value}'])"
    browser.find_element(By.CSS_SELECTOR, place).click()


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
    assert len(browser.find_elements(By.CSS_SELECTOR, "input[type=radio]:checked")) == len(groups)
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
    for chart in ("Mean grades, 1 to 5", "Chosen as best"):
        bars = f"[data-chart='{chart}'] .bars .point"
        assert len(browser.find_elements(By.CSS_SELECTOR, bars)) == 6
    names = browser.find_elements(By.CSS_SELECTOR, "[data-chart='Chosen as best'] .legendtext")
    assert [name.text for name in names] == ["most correct", "most detailed"]


def test_answers_are_downloaded_as_a_table(browser, study, pages, tmp_path):
    browser.get(study[0])
    path = download(browser, browser.find_element(By.LINK_TEXT, "Answers as CSV"), tmp_path, "csv")
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert len(rows) == 3 * (5 * 3 + 2)
    assert {row["rater"] for row in rows} == {"1", "2", "3"}


def download(browser, link, folder, end):
    """The file that a link leads to."""
    behavior = {"behavior": "allow", "downloadPath": str(folder)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
    link.click()
    until = time.monotonic() + SECONDS
    while not list(folder.glob(f"*.{end}")):
        assert time.monotonic() < until
        time.sleep(0.05)
    [path] = folder.glob(f"*.{end}")
    return path


def test_what_is_missing_is_pointed_out_where_the_focus_goes(browser, study):
    browser.get(study[1][3])
    press(browser, browser.find_element(By.TAG_NAME, "button"))
    groups = radio_groups(browser)
    first, *others = groups
    choose(browser, first, "4")
    press(browser, browser.find_element(By.CSS_SELECTOR, "button[value=next]"))
    assert browser.switch_to.active_element.get_attribute("id") == "missing"
    links = browser.find_elements(By.CSS_SELECTOR, "#missing a")
    assert [link.get_attribute("href").rpartition("#")[2] for link in links] == others
    [kept] = browser.find_elements(By.CSS_SELECTOR, "input[type=radio]:checked")
    assert (kept.get_attribute("name"), kept.get_attribute("value")) == (first, "4")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_page_fits_the_screen_and_follows_the_mode(
    browser, server, study, pages, width, scheme
):
    set_screen(browser, width, scheme)
    addresses = [f"{server.url}/studies", f"{server.url}/studies/new", study[0]]
    addresses += [f"{study[0]}/{path}" for path in ("results", "preview", "preview/1")]
    addresses += [study[1][0], f"{study[1][0]}/items/2", f"{study[1][3]}/items/1"]
    addresses += [f"{study[1][3]}/leave"]
    for address in addresses:
        browser.get(address)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, (
            address
        )
        color = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (color == "rgb(255, 255, 255)") == (scheme == "light")
        assert unnamed_fields(browser) == [], address
        assert find_problems(browser) == [], address


def unnamed_fields(browser):
    """Fields that no label, legend or name describes."""
    return browser.execute_script(
        """
        return Array.from(document.querySelectorAll("input:not([type=hidden]), textarea, select"))
          .filter((each) => !each.labels.length && !each.getAttribute("aria-label"))
          .map((each) => each.outerHTML);
        """
    )


@pytest.fixture(scope="module")
def joinable(browser, server, tmp_path_factory):
    """A study of pairs to join, from a table and a zip file: its address, and its link for all."""
    folder = tmp_path_factory.mktemp("sent")
    rows = [f"{n},photos/{n}.png,a {n},b {n},c {n}" for n in range(6)]
    (folder / "items.csv").write_text("\n".join(["id,image,Zebra,Yak,Xerus", *rows]))
    with zipfile.ZipFile(folder / "photos.zip", "w") as archive:
        for number in range(6):
            archive.writestr(f"photos/{number}.png", PNG)
    set_screen(browser, 1280, "light")
    browser.get(f"{server.url}/studies/new")
    browser.find_element(By.ID, "file").send_keys(str(folder / "items.csv"))
    browser.find_element(By.ID, "pictures").send_keys(str(folder / "photos.zip"))
    browser.find_element(By.ID, "title").send_keys("Pairs")
    browser.find_element(By.CSS_SELECTOR, "[data-template=pairs]").click()
    add_question(browser, "grade", "fluency", "How fluent is it?", "broken, fair, fluent")
    browser.find_element(By.ID, "by-join").click()
    browser.find_element(By.ID, "code").send_keys("C0DE")
    press(browser, browser.find_element(By.XPATH, "//button[text()='Create the study']"))
    wait(browser, lambda: browser.find_elements(By.ID, "join-link"))
    return browser.current_url, browser.find_element(By.ID, "join-link").get_attribute("value")


def add_question(browser, *entered):
    browser.find_element(By.ID, "add-question").click()
    row = browser.find_elements(By.CSS_SELECTOR, "#questions .question-row")[-1]
    kind, *texts = entered
    Select(row.find_element(By.NAME, "question_kind")).select_by_value(kind)
    for name, text in zip(("name", "text", "options"), texts, strict=True):
        row.find_element(By.NAME, f"question_{name}").send_keys(text)


@pytest.fixture(scope="module")
def joined(browser, joinable):
    """Three who joined by the link: each saw pairs of captions, and used keys alone."""
    for number, name in enumerate(("p1", "p2", "p3")):
        browser.get(f"{joinable[1]}?PROLIFIC_PID={name}&SESSION_ID=s{number}")
        press(browser, browser.find_element(By.CSS_SELECTOR, "button[value=true]"))
        for count in range(1, 7):
            wait(browser, lambda count=count: f"{count} of 6" in browser.page_source)
            assert len(browser.find_elements(By.CLASS_NAME, "caption")) == 2
            assert browser.execute_script(
                "return document.querySelector('.given-picture').naturalWidth"
            )
            page = browser.find_element(By.TAG_NAME, "html").id
            keys(browser, *"32", str(1 + (number + count) % 3), Keys.ENTER)
            wait(browser, lambda page=page: browser.find_element(By.TAG_NAME, "html").id != page)
        wait(browser, lambda: "Thank you" in browser.page_source)
        assert browser.find_element(By.ID, "code").get_attribute("value") == "C0DE"
    return joinable


def test_three_join_by_the_link_and_a_jury_hears_them(browser, joined, tmp_path, capsys):
    browser.get(joined[0])
    assert "3 of 10 raters have finished" in browser.page_source
    assert [name in browser.page_source for name in ("p1", "p2", "p3")] == [True] * 3
    browser.get(f"{joined[0]}/results")
    assert "18 answers of 3 raters to 6 items" in browser.page_source
    assert "half of them took less than" in browser.page_source
    assert "In the paper" not in browser.page_source
    link = browser.find_element(By.CSS_SELECTOR, "a[href$='question=fluency']")
    path = download(browser, link, tmp_path, "jsonl")
    assert main(["jury", str(path), "--scale", "broken,fair,fluent", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["names"]) == {"rater 1", "rater 2", "rater 3"}


def test_who_joined_comes_back_to_the_same_place_and_a_preview_keeps_nothing(browser, joined):
    browser.get(f"{joined[1]}?PROLIFIC_PID=p2")
    assert "Thank you" in browser.page_source
    browser.get(f"{joined[0]}/preview")
    browser.find_element(By.LINK_TEXT, "I agree, begin").click()
    for count in range(1, 7):
        wait(browser, lambda count=count: f"{count} of 6" in browser.page_source)
        press(browser, browser.find_element(By.CSS_SELECTOR, "button[value=next]"))
    wait(browser, lambda: browser.current_url == joined[0])
    assert "3 of 10 raters have finished" in browser.page_source


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_pages_to_join_fit_the_screen_and_screen_readers(browser, joined, width, scheme):
    set_screen(browser, width, scheme)
    for address in (joined[0], f"{joined[0]}/results", f"{joined[1]}?pid=p9", joined[1]):
        browser.get(address)
        browser.execute_script("document.querySelectorAll('details').forEach((e) => e.open = true)")
        width_now = browser.execute_script("return document.documentElement.scrollWidth")
        assert width_now <= width, address
        assert find_problems(browser) == [], address


def test_keys_can_be_switched_off(browser, study):
    set_screen(browser, 1280, "light")
    browser.get(f"{study[0]}/preview/1")
    browser.find_element(By.CSS_SELECTOR, ".keys label").click()
    before = len(browser.find_elements(By.CSS_SELECTOR, "input[type=radio]:checked"))
    browser.execute_script("document.activeElement.blur()")
    keys(browser, "2")
    assert len(browser.find_elements(By.CSS_SELECTOR, "input[type=radio]:checked")) == before
    browser.refresh()
    assert not browser.find_element(By.ID, "has-keys").is_selected()
    browser.find_element(By.CSS_SELECTOR, ".keys label").click()
