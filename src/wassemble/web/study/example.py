"""The example study: captions of four rules for drawn pictures, and two attention checks."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from wassemble.web.study import items
from wassemble.web.study.pictures import Picture

TITLE = "Example study"
_FOLDER: Traversable = files("wassemble.web.study") / "example"


def read_items() -> list[items.Item]:
    """What raters are shown."""
    text = (_FOLDER / "items.jsonl").read_text(encoding="utf-8")
    return items.read_items(text, name="example study")


def read_pictures() -> dict[str, Picture]:
    """The drawings, by what the items call them."""
    # Only ours may be SVG, which can hold scripts.
    return {
        path.name: Picture("image/svg+xml", path.read_bytes())
        for path in _FOLDER.iterdir()
        if path.name.endswith(".svg")
    }
