"""What is new since the last release: `make lint` checks the files of changes/ and shows them.

With `--fold` towncrier writes them into CHANGES.md, under the heading of the version:
`make release-notes`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "changes"
_NAME = re.compile(r"\+[\w-]+\.(change|breaking)\.md")


def main() -> int:
    """Say what is wrong with the files, or hand them to towncrier."""
    folding = sys.argv[1:] == ["--fold"]
    files = sorted(path for path in FOLDER.iterdir() if path.name != "template.md")
    wrong = [said for path in files if (said := check(path))]
    if folding and not files:
        wrong = ["changes/ has no files: nothing has changed since the last release."]
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    how = ["--yes"] if folding else ["--draft"]
    command = [sys.executable, "-m", "towncrier", "build", *how]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def check(path: Path) -> str | None:
    """What is wrong with a file, in words."""
    if _NAME.fullmatch(path.name) is None:
        return (
            f"changes/{path.name}: the name must be +NAME.change.md, or +NAME.breaking.md for what"
            " no longer works as it did."
        )
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        return f"changes/{path.name}: must say what has changed; it is empty."
    if text.startswith(("-", "*", "#")):
        return f"changes/{path.name}: must be the text of one item, without a dash or a heading."
    return None


if __name__ == "__main__":
    sys.exit(main())
