"""The pages are true: what they name exists, what they show runs, where they link is there."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAPER_MAP = ROOT / "docs" / "paper-map.md"

# Every label of the paper's source, sections apart.
PAPER_LABELS = {
    "alg:Bar",
    "alg:Un-Bar",
    "def:Frechet",
    "eq:GWbary",
    "eq:GWdistance",
    "eq:Wbary",
    "eq:Wdistance",
    "fig:cherry_picked",
    "fig:glove",
    "fig:humanevaluation",
    "fig:softmaxes",
    "fig:softmaxes2",
    "fig:synonyms",
    "lemma:controllableentropy",
    "pro:arithmetic",
    "pro:bary",
    "pro:geom",
    "tab:Expandcomparison",
    "tab:MultiModels",
    "tab:MultiPerfs",
    "tab:MultiResults",
    "tab:Timings",
    "tab:WeightMulti",
    "tab:awa",
    "tab:comparison",
    "tab:controEntropyGlove",
    "tab:controEntropySynonyms",
    "tab:glove_testresults",
    "tab:mappings",
    "tab:outputbary",
}
# What the paper says without a label, or under one that covers several statements.
PAPER_ITEMS = {
    "Proposition 1.1",
    "Proposition 1.2",
    "Proposition 1.3",
    "Proposition 1.4",
    "Proposition 2.1",
    "Proposition 2.2",
    "Proposition 2.3",
    "Proposition 3.1",
    "Proposition 3.2",
    "Proposition 3.3",
    "Lemma 1",
    "Lemma 2",
    "Remark 1",
    "Remark 2",
    "Remark 3",
    "Arithmetic mean",
    "Geometric mean",
    "Extended KL",
    "Wasserstein Frechet mean",
    "Entropy of a coupling",
    "Entropic distance, balanced",
    "Entropic distance, unbalanced",
    "Entropic barycenters",
    "Barycenter at convergence",
    "Controllable entropy",
    "Smoothness energy",
    "Linear map of a mean",
    "Kernel from word vectors",
    "Kernel from synonyms",
    "Kernel from counts",
    "Diagonal kernel of the top scores",
    "Weights by performance",
    "Precision, recall and F1",
    "Mean average precision",
    "Beam search",
    "Randomized beam search",
    "Robustness to shuffled predictions",
    "Hellinger limit",
    "Interpolation to MMD",
    "Complexity",
    "Complexity remark 1",
    "Complexity remark 2",
    "Complexity remark 3",
    "Complexity remark 4",
}


def test_every_name_in_the_paper_map_exists():
    names = [name for row in paper_map() for name in names_in(row[-1])]
    assert names, "the paper map names nothing"
    assert [fault for name in names if (fault := why_missing(name))] == []


def test_every_row_of_the_paper_map_names_what_covers_it_or_says_not_yet():
    silent = [row[0] for row in paper_map() if not names_in(row[-1]) and "not yet" not in row[-1]]
    assert silent == []


def test_the_paper_map_has_every_labelled_item_of_the_paper_and_no_other():
    listed = {label for row in paper_map() for label in re.findall(r"\w+:[\w-]+", row[0])}
    assert listed == PAPER_LABELS


@pytest.mark.parametrize("item", sorted(PAPER_ITEMS))
def test_the_paper_map_has_every_item_without_a_label_of_its_own(item):
    starts = [row[0] for row in paper_map() if re.match(rf"{re.escape(item)}(?! ?[\w.])", row[0])]
    assert len(starts) == 1, f"rows for {item!r}: {starts}"


def test_every_row_of_the_paper_map_has_as_many_cells_as_its_header():
    assert {len(row) for row in paper_map()} == {3}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_blocks_of_a_page_run_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    for first_line, block in python_blocks(page.read_text(encoding="utf-8")):
        # Empty lines in front keep the line numbers of the page in a traceback.
        exec(compile("\n" * first_line + block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", ["README.md", "docs/concepts.md"])
def test_pages_that_teach_show_python(page):
    assert python_blocks((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_of_a_page_point_to_files(page):
    links = relative_links(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_a_heading_of_a_page_find_it(page):
    links = [link.partition("#") for link in links_inside(page.read_text(encoding="utf-8"))]
    places = [(page.parent / path if path else page, name) for path, _, name in links if name]
    lost = [(path, name) for path, name in places if path.suffix == ".md"]
    assert [f"{path}#{name}" for path, name in lost if name not in anchors_of(path)] == []


def test_headings_are_found_as_they_are_linked():
    text = "# One `two`: three-four\n\n```sh\n# no heading\n```\n\n## Twice\n\n## Twice\n"
    assert anchors_in(text) == {"one-two-three-four", "twice", "twice-1"}


@cache
def paper_map():
    """Cells of each row of the map's tables, headers and rules left out."""
    lines = PAPER_MAP.read_text(encoding="utf-8").splitlines()
    rows = [line.strip().strip("|") for line in lines if line.startswith("|")]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return [row for row in cells if row[0] != "item" and set(row[0]) - set("-: ")]


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


def why_missing(name):
    """Why ``name`` does not exist, or None if it does."""
    if "::" in name:
        path, function = name.split("::")
        if not (ROOT / path).is_file():
            return f"{name}: no such file"
        return None if function in functions_of(path) else f"{name}: no such function"
    if "/" in name:
        return None if (ROOT / name).exists() else f"{name}: no such file"
    return None if resolves(name) else f"{name}: does not resolve"


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def resolves(name):
    """Whether a dotted name is a module or can be reached from one."""
    parts = name.split(".")
    for n_modules in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n_modules]))
        except ModuleNotFoundError:
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[n_modules:])
    return False


def python_blocks(text):
    """Line before each python block, and the block."""
    pattern = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, m.start(1)), m.group(1)) for m in pattern.finditer(text)]


def relative_links(text):
    """Targets of the links that stay in the repository, anchors left out."""
    return [path for link in links_inside(text) if (path := link.partition("#")[0])]


def links_inside(text):
    """Targets of the links that stay in the repository, code left out."""
    text = re.sub(r"`[^`\n]*`", "", without_blocks(text))
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if ":" not in target]


def without_blocks(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def anchors_of(path):
    return anchors_in(path.read_text(encoding="utf-8"))


def anchors_in(text):
    """What a link calls the headings of a page: small letters, hyphens for blanks, no signs."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", without_blocks(text), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        n_before = len([each for each in found if re.fullmatch(rf"{re.escape(name)}(-\d+)?", each)])
        found.add(f"{name}-{n_before}" if n_before else name)
    return found
