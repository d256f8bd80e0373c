"""Optional dependencies: what an interrupt meets while one is imported."""

import signal
import sys
import threading

import pytest

from wassemble import MissingExtraError
from wassemble._extras import load_extra


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A module that is interrupted in its midst; says when it has come to its end."""
    # A shell that starts the tests in the background has interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    text = "import signal\nsignal.raise_signal(signal.SIGINT)\nis_whole = True\n"
    (tmp_path / "slow_extra.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield "slow_extra"
    sys.modules.pop("slow_extra", None)
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_until_a_module_is_whole(slow):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        load_extra(slow, "tables", purpose="this")
    assert sys.modules[slow].is_whole
    assert signal.getsignal(signal.SIGINT) is before
    assert load_extra(slow, "tables", purpose="this").is_whole  # not interrupted again


def test_an_interrupt_that_is_ignored_stays_ignored(slow):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert load_extra(slow, "tables", purpose="this").is_whole
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_imports_without_touching_signals(tmp_path, monkeypatch):
    (tmp_path / "quiet_extra.py").write_text("is_whole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(load_extra("quiet_extra", "tables", purpose="this"))
    )
    thread.start()
    thread.join()
    sys.modules.pop("quiet_extra", None)
    assert found[0].is_whole


def test_a_missing_module_is_an_error_that_says_how_to_install_it():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(MissingExtraError, match=r"this needs nowhere_to_be_found"):
        load_extra("nowhere_to_be_found", "tables", purpose="this")
    assert signal.getsignal(signal.SIGINT) is before
