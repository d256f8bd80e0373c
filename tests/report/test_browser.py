"""The evidence report in a real browser, on a laptop and on a phone, in light and dark mode."""

import json
from functools import cache
from itertools import product

import pytest
from patience import SECONDS
from report.browser import find_requests, open_browser, set_screen, show
from report.trials import BREEDS, animals, birds, breeds, choose_instead, tags

from wassemble.report import write_report
from wassemble.solvers import Barycenter, PowerMean

SCREENS = list(product((1280, 390), ("light", "dark")))
PAGES = {
    "breeds": (breeds, lambda recipe: recipe.transports and recipe.kernel == "kinds"),
    "tags": (tags, lambda recipe: isinstance(recipe.rule, PowerMean)),
    "animals": (animals, lambda recipe: isinstance(recipe.rule, Barycenter)),
    "birds": (birds, lambda recipe: recipe.without_transport() is not None),
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def write_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def write(name):
        make, wanted = PAGES[name]
        case, path = make(), folder / f"{name}.html"
        learned = choose_instead(case.learned, wanted)
        write_report(learned, case.models, case.truth, path, title=f"<b>{name}</b>")
        return path

    return write


@pytest.fixture(scope="module", params=PAGES)
def page(request, write_page):
    return write_page(request.param)


def test_a_page_opens_offline_without_an_error(browser, page):
    show(browser, page)
    assert browser.get_log("browser") == []
    assert find_requests(browser) == [page.as_uri()]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_section_and_plot_is_drawn_inside_the_screen(browser, page, width, scheme):
    show(browser, page, width, scheme)
    found = browser.execute_script(
        """
        const box = (each) => each.getBoundingClientRect();
        const plots = Array.from(document.querySelectorAll("[data-plot]"));
        return {
          sections: Array.from(document.querySelectorAll("main > section")).map((section) => ({
            height: box(section).height, title: box(section.querySelector("h2")).height
          })),
          drawn: plots.map((plot) => plot.dataset.plot),
          marks: plots.map((plot) => plot.querySelectorAll(
            ".plot path.point, .plot path.js-line, .plot .bars path, .plot .heatmaplayer image"
          ).length),
          sizes: plots.flatMap((plot) => {
            const {width, height} = box(plot.querySelector("svg.main-svg"));
            return [width, height];
          }),
          width: document.documentElement.scrollWidth,
          page: getComputedStyle(document.body).backgroundColor,
          text: getComputedStyle(document.querySelector("[data-plot] .xtick text")).fill,
          wanted: Object.keys(JSON.parse(document.getElementById("plots").textContent))
        };
        """
    )
    assert len(found["sections"]) >= 10
    assert all(each["height"] > 50 and each["title"] > 10 for each in found["sections"])
    assert sorted(found["drawn"]) == sorted(found["wanted"])
    assert min(found["marks"]) > 0, found
    assert min(found["sizes"]) > 90
    assert max(found["sizes"][::2]) <= width
    assert found["width"] <= width
    light = "rgb(255, 255, 255)"
    assert (found["page"] == light) == (scheme == "light")
    assert brightness(found["text"]) < 90 if scheme == "light" else brightness(found["text"]) > 165


def test_plots_follow_the_width_and_the_mode(browser, write_page):
    show(browser, write_page("breeds"), 1280, "light")
    before = look_at_plot(browser)
    assert before["width"] > 800
    set_screen(browser, 390, "light")
    wait_until(browser, lambda: look_at_plot(browser)["width"] <= 390)
    assert look_at_plot(browser)["text"] == before["text"]
    set_screen(browser, 390, "dark")
    wait_until(browser, lambda: brightness(look_at_plot(browser)["text"]) > 165)
    assert brightness(before["text"]) < 90


def test_a_label_that_looks_like_a_tag_stays_text(browser, write_page):
    path = write_page("breeds")
    show(browser, path)  # an alert would make the next line raise
    title = browser.execute_script("return document.querySelector('h1').textContent")
    assert title == "<b>breeds</b>"
    assert browser.execute_script("return document.scripts.length") == 3
    ticks = browser.execute_script(
        "return Array.from(document.querySelectorAll('#plot-gains .ytick text'))"
        ".map((each) => each.textContent)"
    )
    tag = next(name for name in BREEDS if name.startswith("<script>"))
    record = json.loads(path.with_suffix(".json").read_text())
    gains = record["gains"]["gained"] + record["gains"]["lost"]
    assert tag in {row["label"] for row in gains}
    assert any(tick.startswith("<script>alert(1)") for tick in ticks), ticks


def test_the_list_of_labels_chooses_the_curves(browser, write_page):
    show(browser, write_page("tags"))
    curves = "return document.querySelector('#plot-precision path.js-line').getAttribute('d')"
    before = browser.execute_script(curves)
    browser.execute_script(
        "const list = document.querySelector('[data-choices]');"
        "list.value = '2'; list.dispatchEvent(new Event('change'));"
    )
    assert browser.execute_script(curves) != before
    assert browser.get_log("browser") == []


def look_at_plot(browser):
    return browser.execute_script(
        """
        const plot = document.querySelector("#plot-leaderboard");
        return {
          width: plot.querySelector("svg.main-svg").getBoundingClientRect().width,
          text: getComputedStyle(plot.querySelector(".xtick text")).fill
        };
        """
    )


def wait_until(browser, is_so):
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, SECONDS).until(lambda _: is_so())


def brightness(color):
    """Mean of red, green and blue of ``rgb(...)``."""
    parts = color[color.index("(") + 1 : -1].split(",")
    return sum(float(part) for part in parts[:3]) / 3
