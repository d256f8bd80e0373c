"""What a server is told when it starts."""

import ipaddress
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from wassemble._checks import check_count, check_positive_number, fail, option
from wassemble.web.explorer.examples import SHIPPED, Example
from wassemble.web.explorer.names import read_names

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_MIN_TOKEN = 16


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where files lie, who may come in, and how much each may ask for."""

    folder: Path  # files are opened only inside it
    database: str = ""  # SQLAlchemy URL; empty: the SQLite file wassemble.db in the folder
    host: str = "127.0.0.1"
    port: int = 8000
    # What an operator must know. Needed wherever others than this machine can reach the server.
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()  # names besides its own; a reverse proxy's, say
    max_upload_bytes: int = 50_000_000  # of a request body
    max_labels: int = 20_000  # of a label set
    max_requests_per_second: float = 50  # of one client
    max_seconds: float = 10  # that one answer takes
    max_memory: int = 2000  # megabytes that one request takes beside what the server has
    n_processes: int = 2  # that compute, a request each; others wait, while pages are served
    names: Path | None = None  # a file of what people call labels, for files without one
    examples: tuple[Example, ...] = SHIPPED  # what the explorer offers besides files
    # Secret of this run of the server.
    run_id: str = field(default_factory=lambda: f"{os.getpid()}-{secrets.token_hex(16)}")

    def __post_init__(self) -> None:
        folder = Path(self.folder)
        if not folder.is_dir():
            fail(f"`folder` must be a folder that exists; got {str(folder)!r}.")
        object.__setattr__(self, "folder", folder.resolve())
        if not self.database:
            if "?" in str(self.folder):  # would begin the options of the URL
                fail(f"without `database`, `folder` must have no ? in its path; got {folder}.")
            object.__setattr__(self, "database", f"sqlite:///{self.folder / 'wassemble.db'}")
        if self.names is not None:
            read_names(self.names)  # a wrong one is told now
        for name in ("max_upload_bytes", "max_labels", "max_memory", "n_processes"):
            check_count(getattr(self, name), name)
        for name in ("max_requests_per_second", "max_seconds"):
            check_positive_number(getattr(self, name), name)
        if self.is_public and self.token is None:
            fail(
                f"{option('token')} is needed where others can reach the server; got host"
                f" {self.host!r} and allowed hosts {list(self.allowed_hosts)} without one.",
                hint=f"a fresh one: {secrets.token_urlsafe(24)}",
            )
        if self.token is not None and len(self.token) < _MIN_TOKEN:
            fail(
                f"{option('token')} must have at least {_MIN_TOKEN} characters; got"
                f" {len(self.token)}.",
                hint=f"a fresh one: {secrets.token_urlsafe(24)}",
            )

    @property
    def is_public(self) -> bool:
        """Whether anything but this machine may reach the server."""
        return not _is_loopback(self.host) or any(not _is_loopback(h) for h in self.allowed_hosts)


def _is_loopback(host: str) -> bool:
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name that may mean any machine
        return False
