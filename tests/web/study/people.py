"""Studies for tests, and people who run and answer them through the pages."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from wassemble.web.study.answers import Answer
from wassemble.web.study.items import Item, read_items
from wassemble.web.study.questions import PAPER

SYSTEMS = ("Zebra-arithmetic", "Yak-geometric", "Xerus-barycenter")  # words in no caption


def make_lines(n_items: int = 6, *, n_checks: int = 1) -> str:
    """A study file; in item 1 two systems say the same, in item 2 all three do."""
    lines = []
    for number in range(n_items):
        said = [f"caption {number} {word}" for word in ("one", "two", "three")]
        if number == 1:
            said[1] = said[0]
        if number == 2:
            said = said[:1] * 3
        captions = dict(zip(SYSTEMS, said, strict=True))
        lines.append({"id": f"item-{number}", "text": f"text {number}", "captions": captions})
    for number in range(n_checks):
        captions = {"Walrus-right": f"right {number}", "Vole-wrong": f"wrong {number}"}
        check = {"best": "Walrus-right", "correctness": {"Vole-wrong": [1, 2]}}
        given = {"id": f"check-{number}", "text": "right", "captions": captions, "check": check}
        lines.insert(1 + 2 * number, given)
    return "".join(json.dumps(line) + "\n" for line in lines)


def make_items(n_items: int = 6, *, n_checks: int = 1) -> list[Item]:
    return read_items(make_lines(n_items, n_checks=n_checks))


def random_answer(item: Item, rng: random.Random) -> Answer:
    """An answer to the paper's questions."""
    n_choices = len(item.choices)
    said: dict[str, Any] = {}
    for question in PAPER:
        if question.kind == "grade":
            said[question.name] = tuple(rng.choices(range(1, 6), k=n_choices))
        else:
            said[question.name] = rng.randrange(n_choices)
    return Answer(said)


class Page(HTMLParser):
    """The fields of a page's forms: radio buttons by name, and what is checked."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.choices: dict[str, list[str]] = {}
        self.checked: dict[str, str] = {}
        self.hidden: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found: dict[str, Any] = dict(attrs)
        if tag == "input" and found.get("type") == "radio":
            self.choices.setdefault(found["name"], []).append(found["value"])
            if "checked" in found:
                self.checked[found["name"]] = found["value"]
        if tag == "input" and found.get("type") == "hidden":
            self.hidden[found["name"]] = found["value"]


@dataclass
class Operator:
    """Who runs studies, through a client of the pages."""

    client: Any

    def post(self, path: str, data: dict[str, Any] | None = None, **more: Any) -> Any:
        csrf = Page(self.client.get("/studies").text).hidden["csrf"]
        return self.client.post(path, data={"csrf": csrf, **(data or {})}, **more)

    def create(self, lines: str | None = None, **options: Any) -> tuple[str, list[str]]:
        """The address of a new study, and its raters' links."""
        file = {"file": ("items.jsonl", make_lines() if lines is None else lines)}
        done = self.post("/studies", {"title": "A study", **options}, files=file)
        assert done.status_code == 200, done.text
        return done.url.path, self.links(done.url.path)

    def links(self, study: str) -> list[str]:
        return re.findall(r"(/rate/[\w-]{32})", self.client.get(study).text)


@dataclass
class Person:
    """A rater who answers at random, and remembers what the server acknowledged."""

    client: Any
    link: str
    seed: int = 0
    acknowledged: dict[str, dict[str, str]] = field(default_factory=dict)
    pages: list[str] = field(default_factory=list)

    def begin(self) -> Any:
        """Agree, and come to the next item."""
        page = self._keep(self.client.get(self.link))
        if "I agree" not in page.text:
            return page
        data = {"agrees": "true", "csrf": Page(page.text).hidden["csrf"]}
        return self._keep(self.client.post(f"{self.link}/consent", data=data))

    def fill(self, page: Any) -> dict[str, str]:
        """Choices for every field of a page; the same ones every time."""
        rng = random.Random(f"{self.seed} {page.url.path}")
        return {name: rng.choice(values) for name, values in Page(page.text).choices.items()}

    def send(self, page: Any, fields: dict[str, str], go: str = "next") -> Any:
        csrf = Page(page.text).hidden["csrf"]
        path = page.url.path
        done = self._keep(self.client.post(path, data={**fields, "csrf": csrf, "go": go}))
        if done.status_code == 200:
            self.acknowledged[path] = fields
        return done

    def finish(self) -> Any:
        """Answer everything that is left."""
        page = self.begin()
        while "/items/" in page.url.path:
            page = self.send(page, self.fill(page))
            assert page.status_code == 200, page.text
        return page

    def _keep(self, page: Any) -> Any:
        self.pages.append(page.text)
        return page
