"""The explorer in a real browser: sliders, labels, flows, links, downloads, phone and dark."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from patience import SECONDS
from report.browser import find_requests, set_screen
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait
from web.explorer.small import LABELS, TAG, histograms

from wassemble import Predictions, write_predictions

ANIMALS = "/explorer/view?example=animals"


@pytest.fixture(scope="module")
def pages(server, browser):
    """Open a page of the server, and wait until its figures are drawn."""
    for name, model in zip("ab", histograms(2), strict=True):
        write_predictions(server.folder / f"{name}.npz", model)
    (server.folder / "vectors.txt").write_text("cat 1 0\ndog 0.9 0.1\ncar 0 1\nbus 0.1 0.9\n")

    def show(path, width=1280, scheme="light", drawn=3):
        set_screen(browser, width, scheme)
        for kind in ("browser", "performance"):
            browser.get_log(kind)
        browser.get(server.url + path)
        wait(browser, lambda: n_drawn(browser) >= drawn)
        return browser

    return show


def wait(browser, is_so):
    return WebDriverWait(browser, SECONDS).until(lambda _: is_so())


def n_drawn(browser):
    return browser.execute_script(
        "return document.querySelectorAll('.plot .main-svg .bars path, .plot .sankey-link').length"
    )


def text_of(browser, name):
    return browser.find_element(By.ID, name).text


def query(browser):
    return parse_qs(urlsplit(browser.current_url).query)


def brightness(color):
    parts = color[color.index("(") + 1 : -1].split(",")
    return sum(float(part) for part in parts[:3]) / 3


def errors(browser):
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_an_example_opens_from_the_first_page(pages, server):
    browser = pages("/explorer", drawn=0)
    browser.find_element(By.LINK_TEXT, "Animals from attributes").click()
    wait(browser, lambda: n_drawn(browser) > 20)
    assert "Consensus: " in text_of(browser, "summary")
    assert errors(browser) == []
    asked = [each for each in find_requests(browser) if each.startswith(("http", "ws"))]
    assert all(each.startswith(server.url) for each in asked)
    # The address names the sample that was opened first.
    assert query(browser)["example"] == ["animals"]
    assert query(browser)["sample"][0] in browser.find_element(By.ID, "sample").text


def test_a_slider_moved_by_keys_changes_answer_and_address(pages):
    browser = pages(ANIMALS)
    before = text_of(browser, "summary")
    table = text_of(browser, "table-rules")
    slider = browser.find_element(By.CSS_SELECTOR, "[data-slider=epsilon]")
    slider.send_keys(*[Keys.ARROW_RIGHT] * 20)
    wait(browser, lambda: "epsilon" in query(browser))
    wait(browser, lambda: text_of(browser, "table-rules") != table)
    epsilon = float(query(browser)["epsilon"][0])
    assert epsilon == pytest.approx(0.3 * 10**0.4, rel=0.02)
    assert float(browser.find_element(By.ID, "epsilon").get_attribute("value")) == epsilon
    assert text_of(browser, "summary") != before

    # Opened anew, the same.
    wait(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "[aria-busy]"))
    moved = text_of(browser, "summary"), text_of(browser, "table-rules"), browser.current_url
    browser.get(browser.current_url)
    wait(browser, lambda: n_drawn(browser) > 20)
    assert (text_of(browser, "summary"), text_of(browser, "table-rules")) == moved[:2]
    assert browser.current_url == moved[2]
    assert errors(browser) == []


def test_what_takes_long_shows_that_it_is_worked_on(pages):
    browser = pages(ANIMALS)
    assert not browser.find_element(By.ID, "working").is_displayed()
    browser.execute_script(
        "const real = fetch;"
        "window.fetch = async (...asked) => {"
        "  await new Promise((go) => { window.goOn = go; });"
        "  return real(...asked);"
        "};"
    )
    slider = browser.find_element(By.CSS_SELECTOR, "[data-slider=epsilon]")
    slider.send_keys(Keys.ARROW_RIGHT)
    wait(browser, lambda: text_of(browser, "working").startswith("Working … 2 s"))
    browser.execute_script("window.goOn()")
    wait(browser, lambda: not browser.find_element(By.ID, "working").is_displayed())
    assert "epsilon" in query(browser)
    assert errors(browser) == []


def test_a_number_out_of_range_is_refused_in_words(pages):
    browser = pages(ANIMALS)
    before = text_of(browser, "summary")
    for name, words in (
        ("epsilon", "epsilon must be a number from 0.000001 to 1000000; got -1."),
        ("weight-0", "must be a number from 0 to 1000000; got -1."),
    ):
        field = browser.find_element(By.ID, name)
        field.clear()
        field.send_keys("-1")
        wait(browser, lambda words=words: words in text_of(browser, "problem"))
        assert words in text_of(browser, f"{name}-reason")  # beside the field, too
        assert field.get_attribute("aria-invalid") == "true"
        browser.find_element(By.CSS_SELECTOR, "[data-slider=weight-1]").send_keys(Keys.ARROW_LEFT)
        assert words in text_of(browser, "problem")  # whatever else is moved
        assert name not in query(browser)
        field.clear()
        field.send_keys("1")
        wait(browser, lambda: text_of(browser, "problem") == "")
    assert text_of(browser, "summary") != before
    assert errors(browser) == []


def test_weights_and_mass_penalty_move_too_and_links_take_them_along(pages):
    browser = pages(ANIMALS)
    field = browser.find_element(By.ID, "weight-0")
    field.clear()
    field.send_keys("0")
    wait(browser, lambda: query(browser).get("weight", [""])[0] == "0.0")
    browser.find_element(By.CSS_SELECTOR, "[data-slider=mass_penalty]").send_keys(Keys.PAGE_UP)
    wait(browser, lambda: "mass_penalty" in query(browser))
    penalty = query(browser)["mass_penalty"]
    browser.find_element(By.LINK_TEXT, "Less disputed").click()
    wait(browser, lambda: "rank 2 of" in browser.find_element(By.TAG_NAME, "main").text)
    assert query(browser)["mass_penalty"] == penalty
    assert query(browser)["weight"] == ["0.0", "1.0"]


def test_a_bar_a_flow_and_a_neighbour_are_followed(pages):
    browser = pages(ANIMALS)
    first = text_of(browser, "heading")
    bar = browser.find_elements(By.CSS_SELECTOR, "#plot-answer .bars path")[1]
    ActionChains(browser).move_to_element(bar).click().perform()
    wait(browser, lambda: text_of(browser, "heading") != first)
    second = text_of(browser, "heading")
    assert query(browser)["label"] == [second]
    assert "came from" in text_of(browser, "flows-text")

    # A link that starts at a label of a model, at a place where no other link lies above it.
    browser.execute_script(
        "document.getElementById('plot-flows').scrollIntoView({block: 'center'})"
    )
    click_at(browser, *rest_at(browser, FREE_LINK))
    wait(browser, lambda: "model" in query(browser))
    label, model = query(browser)["label"][0], query(browser)["model"][0]
    assert text_of(browser, "heading") == f"{label} ({model})"
    assert f"from this label of {model}" in text_of(browser, "flows-text")

    # By keyboard: the first link of the table leads to a label of the consensus again.
    cell = browser.find_element(By.CSS_SELECTOR, "#table-flows tbody a")
    wanted = cell.text
    cell.send_keys(Keys.ENTER)
    wait(browser, lambda: text_of(browser, "heading") == wanted)
    wait(browser, lambda: browser.switch_to.active_element.get_attribute("id") == "label-heading")

    # And back, step by step.
    browser.back()
    wait(browser, lambda: text_of(browser, "heading") == f"{label} ({model})")
    browser.back()
    wait(browser, lambda: text_of(browser, "heading") == second)
    assert errors(browser) == []


FREE_LINK = """
for (const link of document.querySelectorAll("#plot-flows .sankey-link")) {
  const at = link.getBoundingClientRect();
  const [x, y] = [at.x + at.width / 2, at.y + at.height / 2];
  const isOfModel = link.__data__.link.customdata[1];
  if (isOfModel && document.elementFromPoint(x, y) === link) return [x, y];
}
return null;
"""


def rest_at(browser, script):
    """What a script finds, once it finds the same twice: flows glide to their places."""
    found = [None]

    def is_at_rest():
        found.append(browser.execute_script(script))
        return found[-1] is not None and found[-1] == found[-2]

    wait(browser, is_at_rest)
    return found[-1]


def click_at(browser, x, y):
    """Click a place of the window, as a mouse does: Plotly listens to moves first."""
    for kind, count in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 1)):
        event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": count}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)


def test_a_label_is_chosen_from_the_list(pages):
    browser = pages(ANIMALS)
    choices = browser.find_elements(By.CSS_SELECTOR, "#label option")
    wanted = choices[2].text
    choices[2].click()
    wait(browser, lambda: text_of(browser, "heading") == wanted)
    assert query(browser)["label"] == [wanted]


def test_another_kernel_is_chosen(pages):
    browser = pages("/explorer/view?example=languages&epsilon=0.5")
    browser.find_element(By.CSS_SELECTOR, "#kernel option:nth-child(2)").click()
    wait(browser, lambda: "equal names" in text_of(browser, "facts"))
    assert query(browser)["kernel"] == ["names"]
    assert "epsilon" not in query(browser)  # it counts in other units there


def test_data_and_figure_are_downloaded(pages, tmp_path):
    browser = pages(ANIMALS + "&sample=1486&epsilon=0.5")
    behavior = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
    for words in ("Data as CSV", "Data as JSON"):
        browser.find_element(By.LINK_TEXT, words).click()
    for button in browser.find_elements(By.CSS_SELECTOR, "[data-image]"):
        button.click()
    ends = ("csv", "json", "svg", "png")
    paths = [tmp_path / f"wassemble-1486.{end}" for end in ends]
    wait(browser, lambda: all(path.exists() and path.stat().st_size for path in paths))
    assert paths[0].read_text().startswith("histogram,role,label,score\nconsensus,consensus,")
    assert '"epsilon":0.5' in paths[1].read_text()
    drawing = paths[2].read_text()
    assert drawing.startswith("<svg")
    assert "resnet18" in drawing
    assert paths[3].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/explorer", ANIMALS, "/explorer/view?example=languages"])
def test_a_phone_never_scrolls_sideways(pages, path, scheme):
    browser = pages(path, 360, scheme, drawn=0 if path == "/explorer" else 3)
    width = browser.execute_script("return document.documentElement.scrollWidth")
    assert width <= 360
    small = browser.execute_script(
        """
        return Array.from(document.querySelectorAll(
          "main button, main select, main .button, main input:not([type=hidden]), .samples a"
        )).filter((each) => each.offsetParent && !["checkbox", "radio"].includes(each.type))
          .filter((each) => each.getBoundingClientRect().height < 39.5)
          .map((each) => each.outerHTML.slice(0, 120));
        """
    )
    assert small == []


def test_figures_follow_light_and_dark(pages):
    browser = pages(ANIMALS, 1280, "light")
    tick = "return getComputedStyle(document.querySelector('#plot-answer .ytick text')).fill"
    assert brightness(browser.execute_script(tick)) < 90
    set_screen(browser, 1280, "dark")
    wait(browser, lambda: brightness(browser.execute_script(tick)) > 165)


def test_panels_stand_below_each_other_on_a_phone(pages):
    browser = pages(ANIMALS, 1280)
    places = (
        "return Array.from(document.querySelectorAll('#plot-answer .annotation-text')).map("
        "(each) => Math.round(each.getBoundingClientRect().x / 200))"
    )
    assert len(set(browser.execute_script(places))) > 1
    set_screen(browser, 360, "light")
    wait(browser, lambda: len(set(browser.execute_script(places))) == 1)


def test_files_of_the_folder_open_and_a_tag_stays_text(pages):
    browser = pages("/explorer", drawn=0)
    for name in ("a.npz", "b.npz"):
        browser.find_element(By.CSS_SELECTOR, f"input[value='{name}']").click()
    browser.find_element(By.XPATH, "//form[@method='get']//button").click()
    wait(browser, lambda: n_drawn(browser) > 3)
    browser.get(f"{browser.current_url}&label={TAG}")
    wait(browser, lambda: n_drawn(browser) > 3)
    assert text_of(browser, "heading") == TAG  # an alert would have made this raise
    ticks = browser.execute_script(
        "return Array.from(document.querySelectorAll('#plot-answer .ytick text'))"
        ".map((each) => each.textContent)"
    )
    assert any(tick.startswith("<script>") for tick in ticks), ticks
    assert {tick for tick in ticks if len(tick) < 5} <= set(LABELS)
    assert browser.execute_script("return document.scripts.length") == 4
    assert errors(browser) == []


def test_a_wrong_file_is_named_and_the_choice_stays(pages, server):
    (server.folder / "broken.csv").write_text("nothing\n")
    browser = pages("/explorer", drawn=0)
    for name in ("a.npz", "broken.csv"):
        browser.find_element(By.CSS_SELECTOR, f"input[value='{name}']").click()
    browser.find_element(By.XPATH, "//form[@method='get']//button").click()
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "[role=alert]"))
    assert "broken.csv" in browser.find_element(By.CSS_SELECTOR, "[role=alert]").text
    assert browser.find_element(By.CSS_SELECTOR, "input[value='a.npz']").is_selected()
    (server.folder / "broken.csv").unlink()


def test_a_field_that_is_wrong_asks_nothing(pages):
    browser = pages(ANIMALS)
    before = text_of(browser, "summary")
    field = browser.find_element(By.ID, "epsilon")
    field.clear()
    field.send_keys("-1")
    browser.execute_async_script("setTimeout(arguments[0], 400)")
    assert text_of(browser, "summary") == before
    assert "epsilon" not in query(browser)


def test_ten_thousand_labels_answer_while_a_slider_moves(pages, server):
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(10_000)]
    for name in ("many", "more"):
        scores = rng.dirichlet(np.full(len(words), 0.05), size=2).astype(np.float32)
        write_predictions(server.folder / f"{name}.npz", Predictions(name, range(2), words, scores))
    vectors = rng.normal(size=(len(words), 20)).astype(np.float32)
    np.savez(server.folder / "words.npz", words=np.array(words), vectors=vectors)
    files = "file=many.npz&file=more.npz&kernel=embeddings&kernel_file=words.npz"
    browser = pages(f"/explorer/view?{files}")
    assert "500 of 10,000 labels" in text_of(browser, "facts")
    before = text_of(browser, "table-rules")
    slider = browser.find_element(By.CSS_SELECTOR, "[data-slider=epsilon]")
    slider.send_keys(*[Keys.ARROW_RIGHT] * 10)
    wait(browser, lambda: text_of(browser, "table-rules") != before)
    assert errors(browser) == []
