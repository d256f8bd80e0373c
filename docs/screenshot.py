"""Write docs/images/explorer.png, the README's picture: `.venv/bin/python docs/screenshot.py`."""

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

VIEW = "/explorer/view?example=words"
WIDTH, HEIGHT = 1180, 1130


def main() -> None:
    """Serve the explorer, open it, and keep what the browser shows."""
    with tempfile.TemporaryDirectory() as folder:
        (served := Path(folder) / "served").mkdir()
        command = [sys.executable, "-m", "paper", "serve", str(served), "--port", "0", "--no-token"]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                found = re.search(r"http://\S+", process.stderr.readline())
                assert found, "the server did not start"
                with open_browser(Path(folder) / "profile") as driver:
                    picture = _shoot(driver, found[0] + VIEW)
            finally:
                process.terminate()
                process.communicate()
    out = ROOT / "docs" / "images" / "explorer.png"
    out.parent.mkdir(exist_ok=True)
    out.write_bytes(picture)
    print(f"wrote {out.relative_to(ROOT)}, {len(picture):,} bytes")


def _shoot(driver: Any, url: str) -> bytes:
    screen = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    light = [{"name": "prefers-color-scheme", "value": "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
    driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    driver.get(url)
    driver.execute_script("document.querySelector('details.weights').open = false")
    driver.execute_async_script("setTimeout(arguments[0], 2000)")  # plots are drawn
    found = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    return base64.b64decode(found["data"])


if __name__ == "__main__":
    main()
