"""Write the pictures of the web app into docs/images: `.venv/bin/python docs/screenshot.py`."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from report.browser import open_browser  # noqa: E402

# By name: the address, and width and height of the window.
PICTURES = {
    "explorer": ("/explorer/view?example=languages&show=gained&sample=1380&label=vep", 1180, 1100),
    "explorer-all": ("/explorer/all?example=languages", 1180, 1020),
    "explorer-phone": ("/explorer/view?example=languages&show=gained&sample=1380", 390, 800),
    "front": ("/", 1180, 760),
    "study": ("/studies/1/preview/1", 1180, 890),
}


def main() -> None:
    """Serve the app, open its pages, and keep what the browser shows."""
    with tempfile.TemporaryDirectory() as folder:
        (served := Path(folder) / "served").mkdir()
        command = [sys.executable, "-m", "paper", "serve", str(served), "--port", "0", "--no-token"]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                found = re.search(r"http://\S+", process.stderr.readline())
                assert found, "the server did not start"
                with open_browser(Path(folder) / "profile") as driver:
                    _begin_study(driver, found[0])
                    pictures = {
                        name: _shoot(driver, found[0] + path, width, height)
                        for name, (path, width, height) in PICTURES.items()
                    }
            finally:
                process.terminate()
                process.communicate()
    for name, picture in pictures.items():
        out = ROOT / "docs" / "images" / f"{name}.png"
        out.parent.mkdir(exist_ok=True)
        out.write_bytes(picture)
        print(f"wrote {out.relative_to(ROOT)}, {len(picture):,} bytes")


def _begin_study(driver: Any, server: str) -> None:
    """Create the example study, which is the first."""
    driver.get(f"{server}/studies")
    driver.find_element("css selector", "form[action='/studies'] button").click()


def _shoot(driver: Any, url: str, width: int, height: int) -> bytes:
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    light = [{"name": "prefers-color-scheme", "value": "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
    driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    driver.get(url)
    # The front page's example stands still where it is best seen.
    driver.execute_script("document.getElementById('demo-play')?.click()")
    driver.execute_async_script("setTimeout(arguments[0], 500)")
    found = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    return base64.b64decode(found["data"])


if __name__ == "__main__":
    main()
