"""The app under test: in this process, as a real server, and in a browser."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from patience import SECONDS
from report.browser import open_browser

from wassemble.web.app import create_app
from wassemble.web.settings import Settings


@dataclass(frozen=True)
class Server:
    """A running `wassemble serve`: its address, its process, its folder."""

    url: str
    process: subprocess.Popen
    folder: Path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of an app on an empty folder; tests come from one address, faster than people do."""
    return Settings(folder=tmp_path, max_requests_per_second=10_000, max_seconds=SECONDS)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """A client of the app in this process, under a name that loopback servers answer to."""
    with TestClient(create_app(settings), base_url="http://localhost") as found:
        yield found


@pytest.fixture(scope="module")
def serve() -> Callable[..., Any]:
    """`serve(folder, *options)`: a context manager that yields a running `Server`."""
    return run_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`wassemble serve` in a process of its own on a free port, for one module of tests."""
    with run_server(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium driven by Selenium, for one module of tests."""
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@contextmanager
def run_server(folder: Path, *options: str) -> Iterator[Server]:
    """Start the command, wait for the address that it prints, and stop it in the end."""
    command = [
        *(sys.executable, "-m", "wassemble", "serve", str(folder), "--port", "0"),
        *("--max-requests-per-second", "10000", "--max-seconds", str(SECONDS), *options),
    ]
    if "--token" not in options and "WASSEMBLE_TOKEN" not in os.environ:
        command.append("--no-token")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        yield Server(_read_address(process), process, folder)
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def _read_address(process: subprocess.Popen) -> str:
    assert process.stderr is not None
    said = ""
    while select.select([process.stderr], [], [], SECONDS)[0]:
        line = process.stderr.readline()
        said += line
        if found := re.search(r"https?://[^\s#/]+", line):
            return found[0]
        if not line:
            break
    pytest.fail(f"the server did not start:\n{said}")
