"""Whatever is sent, by real sockets to a real server: it stays under its limits, and answers."""

import io
import signal
import socket
import threading
import time
import zipfile
from contextlib import suppress

import httpx
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from patience import SECONDS

MEGABYTES = 600  # of --max-memory
ANSWER_SECONDS = 8  # of --max-seconds
VIEW = "/explorer/data.json?example=animals"


@pytest.fixture(scope="module")
def server(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    limits = ["--max-memory", str(MEGABYTES), "--max-seconds", str(ANSWER_SECONDS)]
    with serve(folder, *limits) as found:
        yield found


def get(server, path, **options):
    return httpx.get(server.url + path, timeout=SECONDS, **options)


def processes_of(server):
    return psutil.Process(server.process.pid).children(recursive=True)


class Watch:
    """The most memory that any process of a server had while it was looked at, and the server."""

    def __init__(self, server):
        self._server, self._is_over, self.most = server, threading.Event(), 0
        self.most_of_server = 0

    def __enter__(self):
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _look(self):
        while not self._is_over.wait(0.02):
            own = psutil.Process(self._server.process.pid).memory_info().rss
            self.most_of_server = max(self.most_of_server, own)
            for process in (psutil.Process(self._server.process.pid), *processes_of(self._server)):
                try:
                    self.most = max(self.most, process.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue


# -- files -----------------------------------------------------------------------------------


def many_labels():
    """1.5 million labels, 31 MB: as text each takes hundreds of bytes."""
    names = ",".join(f"label-{i}" for i in range(1_500_000))
    return "many.csv", f"sample,{names}\nx{',0.000001' * 1_500_000}\n".encode()


def repeated_text():
    """A small Arrow file that unpacks to 4 GB: one long text, again and again."""
    places = pa.array(np.zeros(40_000, dtype=np.int8))
    names = pa.DictionaryArray.from_arrays(places, pa.array(["x" * 100_000]))
    out = io.BytesIO()
    table = pa.table({"sample": names, "cat": np.ones(40_000)})
    feather.write_feather(table, out, compression="zstd")
    return "repeated.feather", out.getvalue()


def zeros():
    """An archive of 1 GB of nothing."""
    out = io.BytesIO()
    np.savez_compressed(out, scores=np.zeros((10_000, 12_500)))
    return "zeros.npz", out.getvalue()


def send(server, name, content):
    """Where the server shows a file that was sent."""
    with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        client.get("/explorer")
        headers = {"x-csrf-token": client.cookies["wassemble_csrf"]}
        sent = client.post("/explorer/upload", files=[("files", (name, content))], headers=headers)
    assert sent.status_code == 303, sent.text
    return sent.headers["location"].replace("/explorer?", "/explorer/data.json?").split("#")[0]


@pytest.mark.parametrize("make", [many_labels, repeated_text, zeros], ids=lambda f: f.__name__)
def test_a_file_that_takes_too_much_is_one_clear_answer(server, make):
    name, content = make()
    place = send(server, name, content)
    own = psutil.Process(server.process.pid).memory_info().rss
    with Watch(server) as watch:
        started = time.monotonic()
        answer = get(server, place)
        took = time.monotonic() - started
    assert answer.status_code in (422, 503), answer.text
    assert any(
        words in answer.json()["detail"]
        for words in (
            f"more than {MEGABYTES} MB, the most this server gives",
            f"longer than {ANSWER_SECONDS} seconds",
            "at most 20,000 labels",
        )
    )
    assert took < ANSWER_SECONDS + 5
    # A worker begins with what the zygote has.
    assert watch.most < max(own, 400e6) + MEGABYTES * 1e6
    started = time.monotonic()
    assert get(server, VIEW).status_code == 200
    assert time.monotonic() - started < ANSWER_SECONDS / 2


def test_two_such_files_at_once_hold_up_no_page_and_no_view_for_long(server):
    places = [send(server, *make()) for make in (repeated_text, many_labels)] * 2
    found = []
    threads = [
        threading.Thread(target=lambda p=place: found.append(get(server, p))) for place in places
    ]
    with Watch(server) as watch:
        for thread in threads:
            thread.start()
        pages = [get(server, "/").status_code for _ in range(20)]
        views = [get(server, VIEW).status_code for _ in range(3)]
        for thread in threads:
            thread.join()
    assert pages == [200] * 20
    assert set(views) <= {200, 503}  # at worst a turn did not come in time
    assert {answer.status_code for answer in found} <= {422, 503}
    assert watch.most < 400e6 + MEGABYTES * 1e6
    assert get(server, VIEW).status_code == 200


def test_what_was_killed_is_gone(server):
    place = send(server, *repeated_text())
    get(server, place)
    end = time.monotonic() + SECONDS
    while len(processes_of(server)) > 4:  # the zygote, Python's tracker, two workers
        assert time.monotonic() < end
        time.sleep(0.1)


# -- files of a study ------------------------------------------------------------------------


def zip_bomb():
    """Half a gigabyte of pictures in a file of 2 MB."""
    out, picture = io.BytesIO(), b"\x89PNG\r\n\x1a\n" + bytes(9_900_000)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(50):
            archive.writestr(f"{number}.png", picture)
    return "pictures", "bomb.zip", out.getvalue()


def long_line():
    """One line of 48 MB, which takes more than a gigabyte as JSON."""
    return "file", "items.jsonl", b'{"id": [' + b"{}," * 16_000_000 + b"{}]}"


def long_cell():
    """A table with one cell of 49 MB."""
    return "file", "items.csv", b"id,text,one,two\n1,x,y," + b"z" * 49_000_000


@pytest.mark.parametrize("make", [zip_bomb, long_line, long_cell], ids=lambda f: f.__name__)
def test_what_is_sent_for_a_study_cannot_hurt_the_server(server, make):
    field, *file = make()
    with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        client.get("/studies")
        headers = {"x-csrf-token": client.cookies["wassemble_csrf"]}
        before = psutil.Process(server.process.pid).memory_info().rss
        with Watch(server) as watch:
            answer = client.post("/studies", files={field: tuple(file)}, headers=headers)
    assert answer.status_code in (422, 503), answer.text
    assert any(
        words in answer.json()["detail"]
        for words in (
            "too many or too large for this server",
            f"more than {MEGABYTES} MB, the most this server gives",
            f"longer than {ANSWER_SECONDS} seconds",
            "must be a row of a table; got: field larger",
        )
    )
    assert watch.most < max(before, 400e6) + MEGABYTES * 1e6
    assert watch.most_of_server < before + 100e6
    assert get(server, "/studies").status_code == 200


# -- sockets ---------------------------------------------------------------------------------


def connect(server):
    port = int(server.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)


def talk(server, sent):
    """What comes back until the server closes."""
    with connect(server) as found:
        found.sendall(sent)
        received = b""
        while piece := found.recv(100_000):
            received += piece
    return received


@pytest.mark.parametrize(
    "line",
    [
        *("OPTIONS * HTTP/1.1", "GET * HTTP/1.1", "GET http://localhost/ HTTP/1.1"),
        *("CONNECT localhost:1 HTTP/1.1", "GET ?x HTTP/1.1", "TRACE / HTTP/1.1", "GET / HTTP/9.9"),
        *("GET /%00%ff HTTP/1.1", "NONSENSE", "GET //x//../ HTTP/1.1"),
    ],
)
def test_strange_requests_are_no_fault_of_the_server(server, line):
    answer = talk(server, f"{line}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 ")
    assert 200 <= int(answer.split()[1]) < 500


def test_a_head_without_end_is_refused_and_holds_up_nobody(server):
    with connect(server) as endless:
        endless.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nx: ")
        for _ in range(40):
            try:
                endless.sendall(b"x" * 10_000)
            except OSError:  # closed already
                break
        assert get(server, "/").status_code == 200
        with suppress(ConnectionError):
            assert endless.recv(12) in (b"", b"HTTP/1.1 400")


def test_a_head_that_comes_drop_by_drop_is_cut_off(server):
    started = time.monotonic()
    with connect(server) as slow, suppress(ConnectionError):
        while time.monotonic() - started < SECONDS:
            slow.sendall(b"x")
            time.sleep(0.2)
    assert time.monotonic() - started < 3 * ANSWER_SECONDS


def test_a_client_that_does_not_read_is_cut_off(server):
    with connect(server) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /static/plotly.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
        port = deaf.getsockname()[1]
        end = time.monotonic() + 4 * ANSWER_SECONDS
        while port in peers_of(server):
            assert time.monotonic() < end, "the connection is still open"
            time.sleep(0.2)


def peers_of(server):
    """Ports of the clients that are connected."""
    found = psutil.Process(server.process.pid).net_connections("tcp")
    return {each.raddr.port for each in found if each.status == "ESTABLISHED" and each.raddr}


def test_many_silent_connections_hold_up_nobody(server):
    silent = [connect(server) for _ in range(300)]
    assert get(server, "/").status_code == 200
    for each in silent:
        each.close()


@pytest.mark.parametrize("path", ["/", "/explorer", VIEW, "/static/style.css", "/nowhere"])
def test_head_is_get_without_a_body(server, path):
    with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        whole, head = client.get(path), client.head(path)
    assert head.status_code == whole.status_code
    assert head.content == b""
    assert head.headers["content-length"] == str(len(whole.content))


# -- the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_everything_ends_at_once_whatever_is_computed(serve, tmp_path, number):
    with serve(tmp_path) as server:
        place = send(server, *repeated_text())
        asked = threading.Thread(target=lambda: ask_quietly(server, place))
        asked.start()
        everybody = [psutil.Process(server.process.pid), *processes_of(server)]
        started = time.monotonic()
        server.process.send_signal(number)
        server.process.wait(SECONDS)
        _, alive = psutil.wait_procs(everybody, timeout=SECONDS)
        assert alive == []
        assert time.monotonic() - started < 10
        asked.join()
    if number != signal.SIGKILL:
        assert server.process.returncode == 0


def ask_quietly(server, place):
    with suppress(httpx.TransportError):
        get(server, place)


def test_nothing_is_written_for_strange_requests(serve, tmp_path):
    with serve(tmp_path) as server:
        for _ in range(20):
            talk(server, b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            talk(server, b"nonsense\r\n\r\n")
        server.process.terminate()
        _, said = server.process.communicate(timeout=SECONDS)
    assert len(said) < 5000
