"""How Sphinx builds the site of these pages: `make site`.

The pages are the Markdown files that are read in the repository as well; what only the site has
is the front page, the reference, made from docstrings, and the gallery, made by running
`examples/gallery`.
"""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_refnode

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))  # this copy, whatever is installed

import wassemble  # noqa: E402

project = "wassemble"
author = "wassemble developers"
project_copyright = author
version = release = wassemble.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["gallery/sg_execution_times.rst", "sg_execution_times.rst"]
nitpicky = True
smartquotes_action = "qe"  # two hyphens are an option of the command
default_role = "py:obj"

# Types stand in the docstrings, in words that say shapes.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
# What scikit-learn makes for every estimator, with links into its own pages.
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_predict_request, set_predict_proba_request,"
    " set_score_request, set_partial_fit_request, set_transform_request"
}
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\w+\.py$",
    "capture_repr": ("_repr_html_",),
    "run_stale_examples": True,  # the library may have changed, if the script has not
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "reference_url": {"wassemble": None},
    "doc_module": ("wassemble",),
}

html_theme = "pydata_sphinx_theme"
html_title = "wassemble"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars: dict[str, list[str]] = {"index": [], "concepts": [], "try": []}
copybutton_exclude = ".linenos, .gp, .go"


class NamesInCode(SphinxTransform):
    """`ws.fuse` in running text of a Markdown page leads to the reference."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Wrap what looks like a public name; what is none is left as it is later."""
        if not str(self.document["source"]).endswith(".md"):
            return
        for code in list(self.document.findall(nodes.literal)):
            name = re.match(r"(?:ws\.|wassemble\.)?([A-Za-z_][\w.]*)", code.astext())
            if name and not isinstance(code.parent, nodes.reference):
                link = pending_xref("", refdomain="py", reftype="obj", reftarget=name[1])
                link["refdoc"] = self.env.docname
                code.replace_self(link)
                link += code


def find_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Element
) -> nodes.Element | None:
    """The public thing that a name in backquotes means, or the name as code.

    Docstrings name arguments and attributes in the same way; only what Sphinx was asked for by
    another role than the usual one must be there.
    """
    if node["reftype"] != "obj":
        return None
    objects = env.domains.python_domain.objects
    place = objects.get(f"wassemble.{node['reftarget']}")
    # A namespace in backquotes is more often an extra of the same name.
    if place is None or place.objtype == "module" or place.docname == node["refdoc"]:
        return shown
    return make_refnode(app.builder, node["refdoc"], place.docname, place.node_id, shown)


def stay_inside(app: Sphinx, place: Any, *read: Any) -> None:
    """Links that leave this folder lead to the page that includes the file, or to nowhere."""
    source = read[-1]
    text = re.sub(r"\]\((?:\.\./)*(CONTRIBUTING|CHANGES|SECURITY)\.md", _to_page, source[0])
    source[0] = re.sub(r"\[([^]]+)\]\(\.\./((?:datasets|src|examples)/[^)]+)\)", r"\1 (`\2`)", text)


def _to_page(link: re.Match[str]) -> str:
    return f"](/{link[1].lower()}.md"


def show_shell(app: Sphinx, context: Any, lines: list[str]) -> None:
    """Lines of a help text that are kept as they are, its examples, become blocks of shell."""
    found, before = [], ""
    for line in lines:
        if line.startswith("| ") and not before.startswith("| "):
            found += [".. code-block:: sh", ""]
        found.append(f"   {line[2:]}" if line.startswith("| ") else line)
        before = line
    lines[:] = found


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the above."""
    app.add_transform(NamesInCode)
    app.connect("missing-reference", find_name)
    app.connect("source-read", stay_inside)
    app.connect("include-read", stay_inside)
    app.connect("sphinx-click-process-description", show_shell)
