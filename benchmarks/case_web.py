"""The web app: a minute of mixed traffic, and a slider's answer at 10,000 labels."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any
from urllib.parse import unquote_plus, urlencode

import numpy as np

__all__ = ["run"]

RATE = 100  # requests a second
N_RATERS = 50
N_PROCESSES = 2  # that compute, a core each
# Of ten requests; every kind but the first is what many people do at once.
MIX = {"slider, 10,000 labels": 1, "page": 2, "sample": 3, "item": 2, "answer": 2}
WORDS = "/explorer/view?example=words"
PART = {"HX-Request": "true"}  # as a slider asks


def run(*, quick: bool) -> dict:
    """Latencies by kind of request, errors, and a slider alone."""
    import httpx

    seconds = 6 if quick else 60
    load = os.getloadavg()[0]
    with _server() as (url, process), httpx.Client(base_url=url, timeout=60) as client:
        _open_examples(url)
        raters = _make_study(client)
        sliders = _time_sliders(client, n_moves=10 if quick else 60)
        plan = _make_plan(client, raters, seconds)
        plan |= {"url": url, "cookies": dict(client.cookies)}
        plan["headers"] = {"X-CSRF-Token": client.cookies["wassemble_csrf"]}
        before = _cpu_seconds(process)
        answers = _send(plan)
        used = sum(_cpu_seconds(process).values()) - sum(before.values())
        n_kept = _count_answers(client)
    asked = plan["requests"]
    wrong = [a["status"] for a in answers if not 200 <= a["status"] < 400]
    acknowledged = {
        request["path"]
        for request, answer in zip(asked, answers, strict=True)
        if request["kind"] == "answer" and 200 <= answer["status"] < 400
    }
    if n_kept < len(acknowledged):
        raise RuntimeError(f"{len(acknowledged)} answers were acknowledged, {n_kept} were kept")
    kinds = {
        kind: [a for r, a in zip(asked, answers, strict=True) if r["kind"] == kind] for kind in MIX
    }
    return {
        "load": load,
        "n_cores": os.cpu_count(),
        "rate": RATE,
        "seconds": seconds,
        "n_requests": len(answers),
        "n_raters": N_RATERS,
        "n_answers": n_kept,
        "errors": {str(status): wrong.count(status) for status in sorted(set(wrong))},
        "all": _summary(answers),
        "kinds": {kind: _summary(each) for kind, each in kinds.items()},
        "generator_late": float(np.percentile([a["late"] for a in answers], 95)),
        "n_processes": N_PROCESSES,
        "server_cores": used / seconds,
        "slider_alone": _summary(sliders),
    }


def _cpu_seconds(process: int) -> dict[int, float]:
    """What the server and its workers have used so far, by process."""
    import psutil

    own = psutil.Process(process)
    return {each.pid: sum(each.cpu_times()[:2]) for each in (own, *own.children(recursive=True))}


@contextmanager
def _server() -> Iterator[tuple[str, int]]:
    """Address and process of the real command, without its limit on requests of one address."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "paper", "serve", folder, "--port", "0"]
        command += ["--max-requests-per-second", "1000000", "--processes", str(N_PROCESSES)]
        command += ["--no-token"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                said = process.stderr.readline()
                found = re.search(r"http://[\d.:]+", said)
                if found is None:
                    raise RuntimeError(f"the server did not start: {said}")
                yield found[0], process.pid
            finally:
                process.terminate()
                process.communicate()


def _open_examples(url: str) -> None:
    """The server has read them; what its pages look like is made when the first is asked for."""
    import httpx

    for example in ("words", "languages", "animals"):
        address = f"{url}/explorer/view?example={example}"
        httpx.get(address, timeout=60).raise_for_status()


def _make_study(client: Any) -> list[str]:
    """Raters of the shipped study who have agreed to take part; their secrets."""
    client.get("/studies").raise_for_status()
    token = {"csrf": client.cookies["wassemble_csrf"]}
    form = token | {"is_example": "true", "n_raters": str(N_RATERS)}
    client.post("/studies", data=form, follow_redirects=True).raise_for_status()
    raters = list(dict.fromkeys(re.findall(r"/rate/([\w-]{32})", client.get("/studies/1").text)))
    for secret in raters:
        answer = client.post(f"/rate/{secret}/consent", data=token | {"agrees": "true"})
        assert answer.status_code == 303, answer.text
    return raters


def _time_sliders(client: Any, n_moves: int) -> list[dict[str, Any]]:
    """Moves one after the other, each to a place where no slider has been."""
    client.get(WORDS).raise_for_status()  # opens the files
    found = []
    for query in _slider_moves(client, np.random.default_rng(1), n_moves):
        started = time.perf_counter()
        client.get(query, headers=PART).raise_for_status()
        found.append({"milliseconds": 1e3 * (time.perf_counter() - started)})
    return found


def _slider_moves(client: Any, rng: np.random.Generator, n_moves: int) -> list[str]:
    samples = _samples(client, "words")
    moves = []
    for number in range(n_moves):
        values: list[tuple[str, Any]] = [("sample", samples[rng.integers(len(samples))])]
        if number % 3 == 0:
            values += [("epsilon", f"{10 ** rng.uniform(-1.3, 0):.4g}")]
        elif number % 3 == 1:
            values += [("weight", f"{w:.3f}") for w in rng.uniform(0.1, 2, 3)]
        else:
            penalty = 10 ** rng.uniform(-1, 1)
            values += [("mass", "unbalanced"), ("mass_penalty", f"{penalty:.4g}")]
        moves.append(f"{WORDS}&{urlencode(values)}")
    return moves


def _samples(client: Any, example: str) -> list[str]:
    """Samples that the explorer lists first."""
    page = client.get(f"/explorer/all?example={example}").raise_for_status().text
    found = re.findall(r"[?&;]sample=([^&\"]+)", page)
    assert found
    return [unquote_plus(unescape(name)) for name in dict.fromkeys(found)]


def _make_plan(client: Any, raters: list[str], seconds: int) -> dict[str, Any]:
    """Requests at random times, at the rate on average, in the shares of `MIX`."""
    rng = np.random.default_rng(0)
    n_requests = RATE * seconds
    kinds = np.repeat(list(MIX), n_requests // 10 * np.array(list(MIX.values())))
    rng.shuffle(kinds)
    sliders = iter(_slider_moves(client, rng, n_requests))
    samples = {name: _samples(client, name) for name in ("languages", "animals")}
    forms = _read_forms(client, raters)
    times = np.sort(rng.uniform(0, seconds, n_requests))
    requests = []
    for at, kind in zip(times.tolist(), kinds.tolist(), strict=True):
        asked: dict[str, Any] = {"at": at, "kind": kind}
        if kind == "page":
            asked["path"] = str(rng.choice(["/", "/explorer", "/studies", "/static/style.css"]))
        elif kind == "sample":
            example = str(rng.choice(list(samples)))
            chosen = samples[example][rng.integers(len(samples[example]))]
            asked["path"] = "/explorer/view?" + urlencode({"example": example, "sample": chosen})
        elif kind in ("item", "answer"):
            path = list(forms)[rng.integers(len(forms))]
            asked["path"] = path
            if kind == "answer":
                asked["form"] = {
                    name: str(rng.choice(values)) for name, values in forms[path].items()
                }
        else:
            asked |= {"path": next(sliders), "headers": PART}
        requests.append(asked)
    return {"requests": requests}


def _read_forms(client: Any, raters: list[str]) -> dict[str, dict[str, list[str]]]:
    """The questions of some items of each rater: address, fields, and what each may say."""
    found: dict[str, dict[str, list[str]]] = {}
    for secret in raters:
        for number in (1, 2, 3):
            path = f"/rate/{secret}/items/{number}"
            page = client.get(path).raise_for_status().text
            fields: dict[str, list[str]] = {}
            for tag in re.findall(r'<input[^>]*type="radio"[^>]*>', page):
                name, value = (re.search(rf'{key}="([^"]*)"', tag)[1] for key in ("name", "value"))
                fields.setdefault(name, []).append(value)
            assert fields
            found[path] = fields
    return found


def _send(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """What the generator measured, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.web_load"]
    done = subprocess.run(
        command, input=json.dumps(plan), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def _count_answers(client: Any) -> int:
    """Items that raters have answered, in the export."""
    rows = csv.DictReader(io.StringIO(client.get("/studies/1/answers.csv").text))
    return len({(row["rater"], row["item"]) for row in rows})


def _summary(answers: list[dict[str, Any]]) -> dict[str, float]:
    times = [each["milliseconds"] for each in answers]
    median, high = np.percentile(times, [50, 95])
    return {"n": len(times), "median": median, "p95": high, "max": max(times)}
