"""The explorer in a real browser: sliders, flows, files, filters, learning, phone and dark."""

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
from web.explorer.small import TAG, histograms

from wassemble import Predictions, write_predictions

ANIMALS = "/explorer/view?example=animals"


@pytest.fixture(scope="module")
def pages(server, browser):
    """Open a page of the server."""
    for name, model in zip("ab", histograms(2), strict=True):
        write_predictions(server.folder / f"{name}.npz", model)

    def show(path, width=1280, scheme="light"):
        set_screen(browser, width, scheme)
        for kind in ("browser", "performance"):
            browser.get_log(kind)
        browser.get(server.url + path)
        return browser

    return show


def wait(browser, is_so):
    return WebDriverWait(browser, SECONDS).until(lambda _: is_so())


def find(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def text_of(browser, selector):
    # In one step: htmx may put another element in its place between two.
    script = "return document.querySelector(arguments[0])?.innerText || ''"
    return browser.execute_script(script, selector)


def query(browser):
    return parse_qs(urlsplit(browser.current_url).query)


def errors(browser):
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_the_front_page_moves_and_leads_to_an_example(pages, server):
    browser = pages("/")
    assert "lynx" in text_of(browser, "#demo-consensus")
    width = (
        "return parseFloat(document.querySelector('#demo-consensus rect').getAttribute('width'))"
    )
    before = browser.execute_script(width)
    wait(browser, lambda: browser.execute_script(width) != before)
    find(browser, "#demo-play").click()
    assert find(browser, "#demo-play").text == "Play"
    slider = find(browser, "#demo-slider")
    slider.send_keys(Keys.HOME)
    wait(browser, lambda: browser.execute_script(width) == pytest.approx(160 * 0.029))

    browser.find_element(By.LINK_TEXT, "Try an example").click()
    wait(browser, lambda: "✓" in text_of(browser, ".chip.consensus"))
    assert "✗" in text_of(browser, ".chip.arithmetic-mean")
    assert errors(browser) == []
    asked = [each for each in find_requests(browser) if each.startswith(("http", "ws"))]
    assert all(each.startswith(server.url) for each in asked)


def test_a_slider_moved_by_keys_changes_answer_and_address(pages):
    browser = pages(ANIMALS)
    before = text_of(browser, "#panels")
    find(browser, "[data-slider=epsilon]").send_keys(*[Keys.ARROW_RIGHT] * 20)
    wait(browser, lambda: "epsilon" in query(browser))
    wait(browser, lambda: find(browser, "#answer").get_attribute("aria-busy") == "false")
    epsilon = float(query(browser)["epsilon"][0])
    assert epsilon == pytest.approx(0.3 * 10**0.4, rel=0.05)
    assert float(find(browser, "#epsilon").get_attribute("value")) == epsilon
    moved = text_of(browser, "#panels"), browser.current_url
    assert moved[0] != before

    browser.get(browser.current_url)  # opened anew, the same
    assert (text_of(browser, "#panels"), browser.current_url) == moved
    assert errors(browser) == []


def test_what_takes_long_shows_that_it_is_worked_on(pages):
    browser = pages(ANIMALS)
    assert not find(browser, "#working").is_displayed()
    browser.execute_script(
        "const real = XMLHttpRequest.prototype.send;"
        "XMLHttpRequest.prototype.send = function (...sent) {"
        "  window.goOn = () => real.apply(this, sent);"
        "};"
    )
    find(browser, "[data-slider=epsilon]").send_keys(Keys.ARROW_RIGHT)
    wait(browser, lambda: text_of(browser, "#working").startswith("Working … 2 s"))
    browser.execute_script("window.goOn()")
    wait(browser, lambda: not find(browser, "#working").is_displayed())
    wait(browser, lambda: "epsilon" in query(browser))
    assert errors(browser) == []


def test_a_number_out_of_range_is_refused_in_words_beside_it(pages):
    browser = pages(ANIMALS)
    for name, words in (
        ("epsilon", "must be a number from 0.000001 to 1000000; got -1."),
        ("weight-0", "must be a number from 0 to 1000000; got -1."),
    ):
        field = find(browser, f"#{name}")
        field.clear()
        field.send_keys("-1")
        wait(browser, lambda name=name, words=words: words in text_of(browser, f"#{name}-wrong"))
        assert field.get_attribute("aria-invalid") == "true"
        find(browser, "[data-slider=weight-1]").send_keys(Keys.ARROW_LEFT)
        browser.execute_async_script("setTimeout(arguments[0], 400)")
        assert "weight" not in query(browser)  # whatever else is moved
        field.clear()
        field.send_keys("0.5")
        wait(browser, lambda name=name: name.split("-")[0] in query(browser))
        assert text_of(browser, f"#{name}-wrong") == ""
        browser.get(browser.current_url.split("&")[0])
    assert errors(browser) == []


def test_the_next_sample_keeps_the_sliders(pages):
    browser = pages(ANIMALS)
    field = find(browser, "#weight-0")
    field.clear()
    field.send_keys("0")
    wait(browser, lambda: query(browser).get("weight", [""])[0] == "0.0")
    find(browser, "[data-slider=mass_penalty]").send_keys(Keys.PAGE_UP)
    wait(browser, lambda: "mass_penalty" in query(browser))
    penalty, first = query(browser)["mass_penalty"], query(browser)["sample"]
    find(browser, "a[rel=next]").click()
    wait(browser, lambda: "2 of 2,350" in text_of(browser, ".steps"))
    assert query(browser)["mass_penalty"] == penalty
    assert query(browser)["weight"] == ["0.0", "1.0"]
    find(browser, "body").send_keys(Keys.ARROW_LEFT)  # by key
    wait(browser, lambda: query(browser)["sample"] == first)


def test_a_bar_opens_its_flows_and_a_flow_is_followed(pages):
    browser = pages(ANIMALS)
    bar = browser.find_elements(By.CSS_SELECTOR, ".panel.consensus tr")[1]
    wanted = bar.find_element(By.TAG_NAME, "a").text
    drawn = bar.find_element(By.TAG_NAME, "svg")  # the bar itself, not its name
    ActionChains(browser).move_to_element(drawn).click().perform()
    wait(browser, lambda: f"consensus' {wanted}" in text_of(browser, "#flows-text"))
    second = query(browser)["label"]
    assert browser.switch_to.active_element.get_attribute("id") == "flows"
    # In place: below the row of the bar, above the models.
    places = [
        browser.execute_script("return arguments[0].getBoundingClientRect().top", found)
        for found in (find(browser, ".panel.consensus"), find(browser, "#flows"),
                      find(browser, ".panel.model"))
    ]  # fmt: skip
    assert places == sorted(places)
    assert find(browser, "#flows path").size["height"] > 5

    find(browser, "#table-flows a").send_keys(Keys.ENTER)
    wait(browser, lambda: "model" in query(browser))
    assert f"{query(browser)['model'][0]}'s" in text_of(browser, "#flows-text")
    browser.back()
    wait(browser, lambda: query(browser).get("label") == second)
    wait(browser, lambda: f"consensus' {wanted}" in text_of(browser, "#flows-text"))
    find(browser, "#flows .close").click()
    wait(browser, lambda: not browser.find_elements(By.ID, "flows"))
    assert errors(browser) == []


def test_another_kernel_is_chosen(pages):
    browser = pages("/explorer/view?example=languages&epsilon=0.5")
    find(browser, "#kernel option:nth-child(2)").click()
    wait(browser, lambda: "equal names" in text_of(browser, ".titles"))
    assert query(browser)["kernel"] == ["names"]
    assert "epsilon" not in query(browser)  # it counts in other units there


def test_data_are_downloaded(pages, tmp_path):
    browser = pages(ANIMALS + "&sample=1486&epsilon=0.5")
    behavior = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
    for words in ("Data as CSV", "Data as JSON"):
        browser.find_element(By.LINK_TEXT, words).click()
    paths = [tmp_path / f"wassemble-1486.{end}" for end in ("csv", "json")]
    wait(browser, lambda: all(path.exists() and path.stat().st_size for path in paths))
    assert paths[0].read_text().startswith("histogram,role,label,score\nconsensus,consensus,")
    assert '"epsilon":0.5' in paths[1].read_text()


def test_a_list_is_filtered_sorted_and_walked_through(pages):
    browser = pages("/explorer/all?example=animals")
    assert "2,350 samples" in text_of(browser, "#n-listed")
    find(browser, "#show option[value=gained]").click()
    wait(browser, lambda: query(browser).get("show") == ["gained"])
    wait(browser, lambda: "2,350" not in text_of(browser, "#n-listed"))
    rows = browser.find_elements(By.CSS_SELECTOR, "#samples tbody tr")
    assert all("✓" in row.text and "✗" in row.text for row in rows)
    find(browser, "#samples thead a").click()
    wait(browser, lambda: query(browser).get("sort") == ["sample"])
    find(browser, "[data-slider=epsilon]").send_keys(Keys.ARROW_RIGHT)
    wait(browser, lambda: "epsilon" in query(browser))
    assert query(browser)["show"] == ["gained"]
    find(browser, ".keep-settings").click()
    wait(browser, lambda: "consensus as kept" in text_of(browser, ".board"))
    find(browser, "#samples tbody a").click()
    wait(browser, lambda: "consensus right, mean wrong" in text_of(browser, ".steps"))
    assert "epsilon" in query(browser)
    assert errors(browser) == []


def test_a_label_of_the_map_leads_to_its_samples(pages):
    browser = pages("/explorer/map?example=animals")
    point = find(browser, ".map a")
    point.send_keys(Keys.ENTER)
    wait(browser, lambda: "about" in query(browser))
    about = query(browser)["about"][0]
    assert find(browser, "#about").get_attribute("value") == about


DROP = """
const files = new DataTransfer();
for (const [name, text] of Object.entries(arguments[0])) files.items.add(new File([text], name));
for (const kind of ["dragover", "drop"]) {
  document.body.dispatchEvent(
    new DragEvent(kind, {dataTransfer: files, bubbles: true, cancelable: true}));
}
"""


def learnable():
    """Three models, one of which is right, and the truth: CSV files by name."""
    rng = np.random.default_rng(0)
    true = rng.integers(2, size=60)
    tables = {"good": np.where(true[:, None] == [0, 1], 0.8, 0.2)}
    tables |= {name: rng.dirichlet([1, 1], size=60) for name in ("poor", "poorer")}
    files = {}
    for name, table in tables.items():
        rows = [f"{i},{cat:.6f},{dog:.6f}" for i, (cat, dog) in enumerate(table)]
        files[f"{name}.csv"] = "\n".join(["sample,cat,dog", *rows])
    known = [f"{i},{('cat', 'dog')[each]}" for i, each in enumerate(true)]
    return files | {"truth.csv": "\n".join(["sample,label", *known])}


def test_files_are_dropped_looked_at_filtered_and_learned_from(pages):
    files = learnable()
    browser = pages("/")
    browser.execute_script(DROP, {"good.csv": files.pop("good.csv")})
    wait(browser, lambda: "good.csv" in text_of(browser, ".file-card"))
    browser.execute_script(DROP, files)  # beside the first
    wait(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, ".file-card")) == 3)
    assert "60, 60 in all files" in text_of(browser, ".file-card")
    assert find(browser, "#truth-file option:checked").text == "truth.csv (sent)"
    find(browser, "#look").click()
    wait(browser, lambda: "Truth:" in text_of(browser, "#verdict"))

    browser.find_element(By.LINK_TEXT, "All samples").click()
    wait(browser, lambda: "accuracy" in text_of(browser, ".board"))
    find(browser, "#show option[value=wrong]").click()
    wait(browser, lambda: query(browser).get("show") == ["wrong"])

    browser.find_element(By.LINK_TEXT, "Learn").click()
    wait(browser, lambda: browser.find_elements(By.ID, "seconds"))
    find(browser, "#seconds option").click()
    browser.find_element(By.XPATH, "//main//button[text()='Learn']").click()
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#learned progress, #rules"))
    wait(browser, lambda: "(chosen)" in text_of(browser, "#rules"))
    assert "good" in text_of(browser, "#chosen")
    assert errors(browser) == []


def test_percentages_with_numbers_for_labels_lead_to_where_the_mean_is_wrong(pages):
    files = {
        "a.csv": "id,0,1,2\nx,70,20,10\ny,30,60,10\n",
        "b.csv": "id,0,1,2\nx,60,30,10\ny,55,20,25\n",
        "truth.csv": "id,label\nx,0\ny,1\n",
        "names.csv": "label,name\n0,house cat\n1,lynx\n2,okapi\n",
    }
    browser = pages("/explorer")
    browser.execute_script(DROP, files)
    wait(browser, lambda: "Divide each row by its sum" in text_of(browser, ".file-card.broken"))
    find(browser, "[name=normalize]").click()
    find(browser, "#look").click()
    wait(browser, lambda: "Truth:" in text_of(browser, "#verdict"))
    browser.find_element(By.LINK_TEXT, "All samples").click()
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#show option[value=missed]"))
    find(browser, "#show option[value=missed]").click()
    wait(browser, lambda: "1 sample" in text_of(browser, "#n-listed"))
    assert "y\tlynx" in text_of(browser, "#samples tbody")
    find(browser, "#samples tbody a").click()
    wait(browser, lambda: "house cat" in text_of(browser, ".chip.wrong.arithmetic-mean"))
    assert find(browser, ".truth span").get_attribute("title") == "1"
    assert errors(browser) == []


def test_a_kernel_asks_for_a_file_only_if_it_needs_one(pages):
    browser = pages("/explorer")
    assert not find(browser, "#kernel-file").is_displayed()
    find(browser, "#kernel option[value=tree]").click()
    assert find(browser, "#kernel-file").is_displayed()
    find(browser, "#kernel option[value=spelling]").click()
    assert not find(browser, "#kernel-file").is_displayed()


PHONE_PAGES = ["/", "/explorer", ANIMALS, "/explorer/view?example=languages&label=eng"]
PHONE_PAGES += ["/explorer/all?example=languages", "/explorer/map?example=animals"]
PHONE_PAGES += ["/explorer/learn?example=animals"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PHONE_PAGES)
def test_a_phone_never_scrolls_sideways(pages, path, scheme):
    browser = pages(path, 360, scheme)
    width = browser.execute_script("return document.documentElement.scrollWidth")
    assert width <= 360
    small = browser.execute_script(
        """
        return Array.from(document.querySelectorAll(
          "main button, main select, main .button, main input:not([type=hidden])"
        )).filter((each) => each.offsetParent && !["checkbox", "radio"].includes(each.type))
          .filter((each) => each.getBoundingClientRect().height < 39.5)
          .map((each) => each.outerHTML.slice(0, 120));
        """
    )
    assert small == []


def test_bars_are_on_the_first_screen_of_a_phone(pages):
    browser = pages("/explorer/view?example=languages", 390)
    top = "return document.querySelector('.panel.consensus .bar').getBoundingClientRect().bottom"
    assert browser.execute_script(top) < 740
    assert not find(browser, "#mass_penalty").is_displayed()


def test_files_of_the_folder_open_and_a_tag_stays_text(pages):
    browser = pages("/explorer")
    for name in ("a.npz", "b.npz"):
        find(browser, f"input[value='{name}']").click()
    find(browser, "#look").click()
    wait(browser, lambda: browser.find_elements(By.ID, "panels"))
    browser.get(f"{browser.current_url}&label={TAG}")
    assert TAG in text_of(browser, "#flows-text")  # an alert would have made this raise
    assert browser.execute_script("return document.scripts.length") == 4
    assert errors(browser) == []


def test_a_wrong_file_is_named_and_the_choice_stays(pages, server):
    (server.folder / "broken.csv").write_text("nothing\n")
    browser = pages("/explorer")
    for name in ("a.npz", "broken.csv"):
        find(browser, f"input[value='{name}']").click()
    find(browser, "#look").click()
    wait(browser, lambda: "broken.csv" in text_of(browser, "[role=alert]"))
    assert find(browser, "input[value='a.npz']").is_selected()
    (server.folder / "broken.csv").unlink()


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
    assert "without up to" in text_of(browser, ".chip.consensus")
    find(browser, "[data-slider=epsilon]").send_keys(Keys.PAGE_UP)
    wait(browser, lambda: "epsilon" in query(browser))
    assert errors(browser) == []
