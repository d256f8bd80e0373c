"""Debian's Chromium for tests: offline, headless, with a profile of its own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import SECONDS

# Chromium calls home for itself unless it is told not to.
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@contextmanager
def open_browser(profile: Path) -> Iterator[Any]:
    """A driver of the browser, closed in the end; ``profile`` must be an empty folder.

    Without a browser the test is skipped, but where ``CI`` is set it fails.
    """
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up("needs a browser: `make browser` installs it")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options, webdriver.ChromeService(driver))
    found.set_script_timeout(SECONDS)
    try:
        yield found
    finally:
        found.quit()


def set_screen(driver: Any, width: int, scheme: str) -> None:
    """A laptop or a phone, in light or dark mode."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})


def show(driver: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
    """Open a page without a network, and let it come to rest."""
    set_screen(driver, width, scheme)
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    for kind in ("browser", "performance"):
        driver.get_log(kind)  # what was before is forgotten
    driver.get(path.as_uri())
    driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 100))"
    )


def find_requests(driver: Any) -> list[str]:
    """Addresses that were asked for since the page was opened."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    wanted = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return [each["request"]["url"] for each in wanted]
