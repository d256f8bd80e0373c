"""Databases for studies, SQLite and a PostgreSQL server of the tests' own; who reads files."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from patience import SECONDS

from wassemble.web.app import create_app
from wassemble.web.settings import Settings
from wassemble.web.study.store import Store
from wassemble.web.workers import Workers

_BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of an empty PostgreSQL server; skipped without one, but fails where CI is set."""
    if not _BINARIES:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up("needs PostgreSQL: `make postgres` installs it")
    binaries = _BINARIES[-1].parent
    # Not pytest's own folder, which only its owner may enter; and sockets need a short path.
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    as_user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres", "postgres")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    data = folder / "data"
    init = ["-D", data, "-U", "tests", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run([*as_user, binaries / "initdb", *init], check=True, **quiet)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    options = ["-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1"]
    options += ["-c", f"unix_socket_directories={folder}", "-c", "fsync=off"]
    server = subprocess.Popen([*as_user, binaries / "postgres", *options], **quiet)
    try:
        is_ready = [binaries / "pg_isready", "-h", "127.0.0.1", "-p", str(port)]
        end = time.monotonic() + SECONDS
        while subprocess.run(is_ready, check=False, **quiet).returncode != 0:
            assert time.monotonic() < end, "PostgreSQL did not start"
            time.sleep(0.2)
        yield f"postgresql://tests@127.0.0.1:{port}/postgres"
    finally:
        stop = [binaries / "pg_ctl", "stop", "-D", data, "-m", "immediate", "-w"]
        subprocess.run([*as_user, *stop], check=False, **quiet)
        server.wait(timeout=SECONDS)
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'studies.db'}"
    url: str = request.getfixturevalue("postgres")
    return create_database(url)


@pytest.fixture
def open_store(database: str) -> Iterator[Callable[[], Store]]:
    """`open_store()`: one more store on the same database, closed in the end."""
    stores: list[Store] = []

    def open_one() -> Store:
        stores.append(Store(database))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()


def create_database(url: str) -> str:
    """The URL of a new database on a PostgreSQL server."""
    import psycopg

    name = f"study_{time.monotonic_ns()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{url.rpartition('/')[0]}/{name}"


@pytest.fixture(scope="session")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Workers without examples, for all apps of these tests: to start some takes seconds."""
    folder = tmp_path_factory.mktemp("readers")
    workers = Workers(Settings(folder=folder, max_seconds=SECONDS, examples=()))
    yield SimpleNamespace(ask=workers.ask, close=lambda: None)
    workers.close()


@pytest.fixture
def client(settings: Settings, readers: Any) -> Iterator[TestClient]:
    """A client of an app in this process that shares its workers."""
    app = create_app(settings)
    app.state.workers = readers
    with TestClient(app, base_url="http://localhost") as found:
        yield found
