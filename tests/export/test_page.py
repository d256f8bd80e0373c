"""A head in the browser: the shipped page, on onnxruntime-web."""

import functools
import http.server
import shutil
import threading
from importlib.resources import files
from pathlib import Path

import pytest
from patience import SECONDS
from report.browser import open_browser

pytest.importorskip("onnxruntime", reason="heads need the extra onnx")

from export.small import GOOD, LABELS, write_head

from wassemble.export import load_head

RUNTIME = Path(__file__).parent / "node/node_modules/onnxruntime-web/dist"
NEEDED = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
if not RUNTIME.is_dir():
    pytest.skip("no onnxruntime-web: `make node` installs it", allow_module_level=True)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *arguments):
        pass


@pytest.fixture
def address(tmp_path):
    write_head(tmp_path / "head.onnx")
    for name in ("head.mjs", "page.html"):
        shutil.copy(str(files("wassemble.export") / "web" / name), tmp_path)
    for name in NEEDED:
        shutil.copy(RUNTIME / name, tmp_path)
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/page.html"
        server.shutdown()


def test_the_page_fuses_without_a_server(address, tmp_path, tmp_path_factory):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    head = load_head(tmp_path / "head.onnx")
    one = {name: rows[:1] for name, rows in GOOD.items()}
    best = head.about["target"][int(head(one)["label"][0])]
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        wait = WebDriverWait(browser, SECONDS)
        browser.get(address)
        button = browser.find_element(By.ID, "fuse")
        wait.until(lambda _: button.is_enabled())
        fill = "document.getElementById('scores').value = JSON.stringify(arguments[0])"
        browser.execute_script(fill, one)
        button.click()
        wait.until(lambda _: browser.find_elements(By.CSS_SELECTOR, "#answer tr"))
        first = browser.find_element(By.CSS_SELECTOR, "#answer tr").text.split()
        assert first == [best, f"{head(one)['scores'][0].max():.4f}"]
        browser.execute_script(fill, {"first": one["first"]})
        button.click()
        wait.until(lambda _: browser.find_element(By.ID, "error").text)
        assert "got none of 'second'" in browser.find_element(By.ID, "error").text
    assert set(LABELS) == set(head.about["models"])
