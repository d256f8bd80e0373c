"""Figures on pages are the ones their commands give."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def load_generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_hold_what_their_commands_write():
    generate = load_generator()
    for name in generate.PAGES:
        page = (ROOT / name).read_text(encoding="utf-8")
        assert generate.fill(page) == page, f"{name} is out of date: run `make docs`"


def test_the_page_of_results_is_made_of_its_records():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert load_generator().results() == page, "docs/results.md is out of date: run `make docs`"


def test_a_stale_figure_is_written_anew():
    generate = load_generator()
    page = "before\n<!-- objects: x -->\n0.999\n<!-- /objects -->\nafter"
    filled = generate.fill(page)
    assert "0.999" not in filled
    assert "| Wasserstein, tuned " in filled
    assert filled.startswith("before\n<!-- objects: x -->")
    assert filled.endswith("<!-- /objects -->\nafter")
