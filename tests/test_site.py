"""The site has what it promises: every public name, examples that run, pictures that are drawn."""

import importlib.util
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from test_api import NAMESPACES, public_names

import wassemble

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*.py"))


def names_in(page):
    """Full names that a page of the reference lists."""
    module = None
    for line in page.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. module:: (\S+)", line):
            module = found[1]
            yield module
        elif found := re.match(r"(?: {3}|\.\. data:: )(\w+)$", line):
            yield f"{module}.{found[1]}"


PAGES = [page for page in sorted(REFERENCE.glob("*.rst")) if page.stem != "index"]
LISTED = [name for page in PAGES for name in names_in(page)]


def find(name):
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last) if module else import_module(last)


def test_the_reference_lists_every_public_name_once():
    public = {f"wassemble.{name}" for name in wassemble.__all__} | {"wassemble"}
    for namespace in NAMESPACES:
        module = import_module(f"wassemble.{namespace}")
        # What is at the top, too, is listed there alone.
        own = set(public_names(module)) - set(wassemble.__all__)
        public |= {module.__name__, *(f"{module.__name__}.{name}" for name in own)}
    assert sorted(LISTED) == sorted(public), "docs/reference/*.rst list what is public"


@pytest.mark.parametrize("name", LISTED)
def test_what_the_reference_lists_is_there(name):
    assert find(name) is not None


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_runs_and_draws(script, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    monkeypatch.chdir(script.parent)
    runpy.run_path(str(script))
    assert pyplot.get_fignums()
    pyplot.close("all")


def test_the_gallery_has_ten_examples():
    assert len(GALLERY) >= 10


def test_every_picture_is_drawn_and_shown_on_a_page(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    assert pictures.main() == 0
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    for name in pictures.PICTURES:
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
        assert (ROOT / "docs" / "images" / f"{name}.svg").is_file()
        assert f"images/{name}.svg" in pages


def block_of(library):
    """What the page shows of another library, beside the blocks that run with all pages."""
    page = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py\n(.*?)^```$", page, re.DOTALL | re.M)
    (block,) = [each for each in blocks if f"from {library}" in each]
    return block


@pytest.mark.filterwarnings("ignore")  # of what crowd-kit calls
def test_what_is_shown_of_crowd_kit_runs_where_that_is_installed():
    block = block_of("crowdkit")
    pytest.importorskip("crowdkit")
    exec(block, {"np": np, "ws": wassemble})


class StandIn:
    """Answers as AutoGluon's TabularPredictor says it does: a frame per model, by label."""

    def __init__(self, label):
        self.label = label

    def fit(self, train):
        return self

    def predict_proba_multi(self, data):
        sure = {"tree": 0.9, "linear": 0.7}
        shares = {name: np.where(data[self.label] == "b", s, 1 - s) for name, s in sure.items()}
        return {
            name: pd.DataFrame({"a": 1 - share, "b": share}, index=data.index)
            for name, share in shares.items()
        }


def test_what_is_shown_of_autogluon_takes_frames_as_it_gives_them(monkeypatch):
    tabular = SimpleNamespace(TabularPredictor=StandIn)
    monkeypatch.setitem(sys.modules, "autogluon", SimpleNamespace(tabular=tabular))
    monkeypatch.setitem(sys.modules, "autogluon.tabular", tabular)
    rows = pd.DataFrame({"class": ["a", "b", "b"] * 20})
    names = {"ws": wassemble, "train": rows, "validation": rows[:40], "test": rows[40:]}
    exec(block_of("autogluon"), names)
    told = [best.label for best in names["consensus"].top()]
    assert told == rows["class"][40:].tolist()


def test_every_page_is_in_a_list_of_contents():
    """A page that no list names would be built, and found by nobody."""
    listed = set()
    for page in (ROOT / "docs").rglob("*.md"):
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text(), re.S | re.M):
            names = [line for line in block.split() if not line.startswith(":")]
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    pages = {page.resolve() for page in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == {(ROOT / "docs" / "index.md").resolve()}
