"""A study as files: a table of answers, verdicts for a jury, links, everything as JSON.

Only the list of links holds the secrets of links.
"""

import json
import shlex
from dataclasses import asdict
from typing import Any

from wassemble.web.pages import write_csv
from wassemble.web.study.answers import Given, Participant, Snapshot, fails_check, letter
from wassemble.web.study.design import Shown
from wassemble.web.study.questions import Question
from wassemble.web.study.results import compute_results, name_choice, name_verdict, share_best
from wassemble.web.study.store import Link

_PERSON = ["rater", "participant", "task", "session"]


def to_csv(snapshot: Snapshot) -> str:
    """One row for each rater, item and system shown that is answered in full.

    Texts that a spreadsheet would take for a formula get an apostrophe in front. ``letter`` is
    what the rater saw the caption under; a best choice is 1 for the chosen caption, divided by the
    number of systems that said it; ``check`` is passed or failed for attention checks. Without
    captions there is a row for each rater and item.
    """
    head = [*_PERSON, "item", "system", "caption", "letter"]
    head += [question.name for question in snapshot.design.questions]
    head += ["check", "seconds", "answered_at"]
    rows = (
        row
        for rater in snapshot.raters
        for shown, answer in rater.list_complete()
        for row in _list_rows(snapshot, rater, shown, answer)
    )
    return write_csv([head, *rows], line_end="\r\n")


def _list_rows(
    snapshot: Snapshot, rater: Participant, shown: Shown, answer: Given
) -> list[list[Any]]:
    item, questions = snapshot.items[shown.item], snapshot.design.questions
    begin = [rater.number, *vars(rater.person).values(), item.id]
    check = ""
    if item.check is not None:
        check = "failed" if fails_check(item, answer, questions) else "passed"
    end = [check, answer.seconds, answer.answered_at]
    if not shown.order:
        return [[*begin, "", "", "", *(answer.said[each.name] for each in questions), *end]]
    return [
        [
            *(*begin, system, caption, letter(shown.order.index(item.choice_of(system)))),
            *(_cell(snapshot, shown, answer, question, system) for question in questions),
            *end,
        ]
        for system, caption in item.captions.items()
        if item.choice_of(system) in shown.order
    ]


def _cell(snapshot: Snapshot, shown: Shown, answer: Given, question: Question, system: str) -> Any:
    """What was said of a system's caption: its grade, or its share of the best choice."""
    item, said = snapshot.items[shown.item], answer.said[question.name]
    if question.kind == "grade":
        return answer.grades(question.name)[item.choice_of(system)]
    if question.kind == "best":
        is_pairwise = snapshot.design.is_pairwise
        return round(share_best(item, shown.order, said, is_pairwise)[system], 4)
    return said


def to_verdicts(snapshot: Snapshot, question: Question) -> str:
    """What each rater said to one question, in JSON lines that ``wassemble jury`` reads.

    The items of grades are captions; those of best choices are what is chosen from, so that in
    pairs each pair of an item is one of its own. Attention checks are left out.
    """
    lines = [
        {"judge": f"rater {rater.number}", "item": item, "verdict": verdict}
        for rater in snapshot.raters
        for shown, answer in rater.list_complete()
        if snapshot.items[shown.item].check is None
        for item, verdict in _list_verdicts(snapshot, shown, answer, question)
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _list_verdicts(
    snapshot: Snapshot, shown: Shown, answer: Given, question: Question
) -> list[tuple[str, str]]:
    item, said = snapshot.items[shown.item], answer.said[question.name]
    names = {choice: name_choice(item, choice) for choice in sorted(shown.order)}
    if question.kind == "grade":
        grades = answer.grades(question.name)
        return [
            (f"{item.id}: {name}", question.options[(grades[choice] or 1) - 1])
            for choice, name in names.items()
        ]
    if question.kind == "best":
        if len(names) < 2:  # nobody was asked
            return []
        within = f": {', '.join(names.values())}" if snapshot.design.is_pairwise else ""
        return [(f"{item.id}{within}", name_verdict(item, said))]
    return [(item.id, str(said))]


def jury_command(study: int, question: Question) -> str:
    """What to type to hear the raters as a jury."""
    scale = ["--scale", ",".join(question.options)] if question.kind == "grade" else []
    return shlex.join(["wassemble", "jury", verdicts_name(study, question), *scale])


def verdicts_name(study: int, question: Question) -> str:
    """The name of the file of verdicts."""
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in question.name)
    return f"study-{study}-{name}.jsonl"


def to_json(snapshot: Snapshot) -> str:
    """Everything, and the results with and without raters who failed a check."""
    record = snapshot.record() | {
        "results": asdict(compute_results(snapshot)),
        "results_of_attentive_raters": asdict(compute_results(snapshot, only_attentive=True)),
    }
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def list_links(links: list[Link], base: str) -> str:
    """Links as a table, for mails: who, where, and how far."""
    head = [*_PERSON, "link", "answered", "of", "state", "seconds"]
    rows = [
        [
            *(link.number, *vars(link.person).values(), f"{base}{link.secret}"),
            *(link.n_done, link.n_shown, link.state, round(link.seconds)),
        ]
        for link in links
    ]
    return write_csv([head, *rows], line_end="\r\n")
