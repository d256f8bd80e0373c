"""All records as one page: Markdown for the documentation, HTML for a browser."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paper.record.catalogue import EXPERIMENTS
from paper.record.findings import markdown_table, to_markdown
from paper.record.records import read_record
from wassemble._extras import load_extra
from wassemble._files import write_whole

_INTRO = """\
Every experiment runs from a clone by the command below its tables, on data that ships with the
repository. Intervals are 95 % bootstrap intervals over test samples, gains are paired; what was
tuned was tuned on other samples. Where the paper has a figure it stands beside ours.

A claim of a gain *held* if its interval lies above 0. It is *not held* if the interval lies below
0, or below the gain that the paper states where that much would have been seen. Otherwise our data
*cannot tell*; "could have seen" is the smallest gain that would have shown four times out of five.
Of a statement about every image it is the smallest share of exceptions of which one would have
shown as often; "exact" is what no sample decides. "Where" says which claims are ours and not the
paper's."""

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 0 auto; padding: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; margin: 0.5rem 0; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #8884; text-align: left; }
img { max-width: 100%; background: white; border-radius: 6px; }
code { background: #8882; padding: 0 0.2em; border-radius: 3px; }
"""


def read_records(folder: Path) -> list[dict[str, Any]]:
    """Records of a folder, in the order of the catalogue."""
    found = (read_record(name, folder) for name in EXPERIMENTS)
    return [record for record in found if record is not None]


def to_page(records: Sequence[Mapping[str, Any]], *, folder: str = "") -> str:
    """Every record as a chapter of one page of Markdown."""
    rows = [
        [f"[{record['title']}](#{_anchor(record['title'])})", record["paper"], _held(record)]
        for record in records
    ]
    header = ["experiment", "in the paper", "claims held, not held, open"]
    chapters = [to_markdown(record, level=2, folder=folder) for record in records]
    return "\n\n".join(["# Results", _INTRO, markdown_table(header, rows, (0, 1)), *chapters])


def _held(record: Mapping[str, Any]) -> str:
    verdicts = [claim["held"] for claim in record["findings"]["claims"]]
    return ", ".join(str(verdicts.count(each)) for each in (True, False, None)) if verdicts else ""


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def write_html(records: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    """The page as one HTML file with its plots inside: ``results.html``."""
    markdown_it = load_extra("markdown_it", "cli", purpose="the page of results")
    body = (
        markdown_it.MarkdownIt("commonmark", {"html": False})
        .enable("table")
        .render(to_page(records))
    )

    def inside(match: re.Match[str]) -> str:
        picture = base64.b64encode((folder / match[1]).read_bytes()).decode()
        return f'src="data:image/svg+xml;base64,{picture}"'

    body = re.sub(r'src="([\w-]+\.svg)"', inside, body)
    body = re.sub(r"<table>.*?</table>", r'<div class="wide">\g<0></div>', body, flags=re.DOTALL)
    body = re.sub(r"<h2>(.*?)</h2>", lambda m: f'<h2 id="{_anchor(m[1])}">{m[1]}</h2>', body)
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{view}'
        f"<title>wassemble: results</title><style>{_STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )
    path = folder / "results.html"
    write_whole(path, page)
    return path
