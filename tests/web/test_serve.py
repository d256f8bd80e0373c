"""`wassemble serve` as a person runs it: its address, its errors, its end."""

import builtins
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlparse

import httpx
import pytest
from patience import SECONDS

from wassemble.cli import main

TOKEN = "correct horse battery"


def run(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "wassemble", "serve", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=os.environ | environment,
    )
    return done.returncode, done.stderr


def get(url, **options):
    return httpx.get(url, timeout=SECONDS, **options)


def test_it_serves_and_ends_cleanly_when_interrupted(serve, tmp_path):
    with serve(tmp_path) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert "wassemble" in get(server.url).text
        server.process.send_signal(signal.SIGINT)
        _, said = server.process.communicate(timeout=SECONDS)
        assert server.process.returncode == 0
        assert said == "stopped\n"


def test_the_name_of_another_site_is_refused(server):
    assert get(server.url, headers={"host": "evil.example"}).status_code == 400


def test_only_a_server_with_another_name_believes_a_proxy(server, serve, tmp_path):
    forwarded = {"x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1"}
    assert "Secure" not in get(server.url, headers=forwarded).headers["set-cookie"]
    with serve(tmp_path, "--allowed-host", "study.example.org", "--token", TOKEN) as public:
        address, name = f"{public.url}/login", {"host": "study.example.org"}
        assert "Secure" not in get(address, headers=name).headers["set-cookie"]
        assert "Secure" in get(address, headers=name | forwarded).headers["set-cookie"]


def test_an_upload_above_the_limit_is_answered_though_its_length_was_not_told(serve, tmp_path):
    with serve(tmp_path, "--max-upload-bytes", "100000") as server:

        def pieces():
            for _ in range(400):
                yield b"x" * 10_000

        answer = httpx.post(
            f"{server.url}/logout",
            content=pieces(),
            headers={"content-type": "application/x-www-form-urlencoded"},
            timeout=SECONDS,
        )
    assert answer.status_code == 413
    assert "at most 100,000 bytes" in answer.json()["detail"]


def test_a_taken_port_is_one_clear_error(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = run(tmp_path, "--port", port)
    assert code == 2
    assert said == f"error: port {port} is in use.\nhint: --port 0 takes a free one\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "'nowhere' does not exist"),
        (["--host", "0.0.0.0", "--no-token"], "--token is needed where others can reach"),
        (["--no-token", "--token", TOKEN], "--no-token must stand alone"),
        (["--host", "0.0.0.0", "--token", "short"], "at least 16 characters"),
        (["--allowed-host", "a.org", "--no-token"], "--token is needed"),
        (["--host", "198.51.100.7", "--token", TOKEN], "cannot listen at '198.51.100.7'"),
        (["--database", "sqlite:////nowhere/at/all.db"], "database"),
        (["--database", "no url"], "database"),
    ],
)
def test_what_cannot_be_served_is_one_clear_error(tmp_path, arguments, words):
    folder = [] if arguments[0] == "nowhere" else [tmp_path]
    code, said = run(*folder, *arguments, "--port", "0")
    assert code == 2
    assert said.startswith("error: ")
    assert words in said
    assert "Traceback" not in said
    assert said.count("\n") <= 2


def test_a_default_database_that_is_none_is_told_when_the_server_starts(tmp_path):
    (tmp_path / "wassemble.db").write_text("not a database\n" * 100)
    code, said = run(tmp_path, "--port", "0")
    assert code == 2
    assert "must be one that can be opened; got: file is not a database" in said


def test_no_database_is_made_for_who_only_explores(serve, tmp_path):
    with serve(tmp_path) as server:
        assert get(f"{server.url}/explorer").status_code == 200
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_sends_no_whole_request_is_closed(serve, tmp_path):
    with serve(tmp_path, "--max-seconds", "1") as server:
        port = int(server.url.rpartition(":")[2])
        for sent in (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as silent:
                silent.sendall(sent)
                assert silent.recv(100) == b""
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            # On a busy machine an answer may be given up, and that is an answer, too.
            assert {client.get("/").status_code for _ in range(3)} <= {200, 503}


def test_the_token_is_never_written_into_a_log(serve, tmp_path, monkeypatch):
    monkeypatch.setenv("WASSEMBLE_TOKEN", TOKEN)
    with serve(tmp_path) as server:
        assert server.process.stderr.readline() == f"log in: {server.url}/login\n"
        assert get(server.url).status_code == 401
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert get(server.url, headers=headers).status_code == 200
        get(f"{server.url}/login", params={"token": TOKEN})
        server.process.send_signal(signal.SIGINT)
        _, said = server.process.communicate(timeout=SECONDS)
    assert said == "stopped\n"


def test_a_terminal_shows_the_link_that_logs_in(tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "wassemble", "serve", str(tmp_path), "--port", "0"]
    with subprocess.Popen([*command, "--token", TOKEN], stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while b"log in:" not in said or not said.endswith(b"\n"):
            said += os.read(ours, 1000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    os.close(ours)
    assert f"/login#{TOKEN.replace(' ', '%20')}".encode() in said


def test_this_machine_too_is_asked_for_a_token(tmp_path):
    command = [sys.executable, "-m", "wassemble", "serve", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        url = re.search(r"http://\S+", process.stderr.readline())[0]
        link, token = process.stderr.readline().removeprefix("log in: ").strip().split("#")
        assert link == f"{url}/login"
        assert len(token) == 32
        assert get(url).status_code == 401
        assert get(url, headers={"authorization": f"Bearer {token}"}).status_code == 200
        process.terminate()


@pytest.fixture
def opened(monkeypatch):
    """What browsers are started with, and the pages there; nothing is served."""
    import uvicorn

    from wassemble.web.workers import Workers

    found = []

    def look(address):
        path = Path(urlparse(address).path)
        found.append((address, stat.S_IMODE(path.stat().st_mode), path.read_text()))

    monkeypatch.setattr("webbrowser.open", look)
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    monkeypatch.setattr(Workers, "start", lambda _: None)
    return found


def test_the_browser_is_opened_with_the_token_that_only_its_owner_sees(tmp_path, opened, capsys):
    assert main(["serve", str(tmp_path), "--port", "0", "--open"]) == 0
    link = re.search(r"http://127.0.0.1:\d+/login#\S+", capsys.readouterr().err)[0]
    [(address, mode, page)] = opened
    assert address.startswith("file:///")
    assert mode == 0o600
    assert f'url={link}"' in page
    assert not Path(urlparse(address).path).exists()


def test_the_browser_is_left_alone_unless_asked_for(tmp_path, opened):
    assert main(["serve", str(tmp_path), "--port", "0", "--no-token"]) == 0
    assert opened == []


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "sqlalchemy", "itsdangerous"])
def test_without_the_extra_the_command_says_what_to_install(missing, capsys, monkeypatch, tmp_path):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["serve", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"error: the web app needs {missing}, which is not installed.\n"
        "hint: pip install 'wassemble[web]'\n"
    )


def test_the_help_loads_nothing_heavy():
    script = (
        "import sys; from wassemble.cli import main; main(['serve', '--help']);"
        " print(sorted({'fastapi', 'uvicorn', 'sqlalchemy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "wassemble serve --open" in done.stdout
    assert done.stdout.endswith("[]\n")


def test_many_answers_at_once_are_all_right(server):
    found = []

    def ask():
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            found.extend(client.get("/").status_code for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 160
