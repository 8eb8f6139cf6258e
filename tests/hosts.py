"""Several machines on this one: hosts with a network, processes, a name and folders of their own.

A host is a set of Linux namespaces. All hosts are on one switch, which is in a namespace too, so nothing of this
machine's own network is touched. A host can be killed as by a power cut, and its cable can be pulled.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SUBNET = "10.35.0"
_UNSHARE = ("unshare", "--net")
_ADD = ("ip", "link", "add", "name")
_INIT = "mount -t tmpfs none /dev/shm && hostname {name} && ip link set lo up && echo up && (sleep infinity & wait)"
"""The first process of a host. The shell stays, to reap what its processes leave behind."""


class Host:
    """One machine: `address` in the network, `folder` for its files, which no other host and no test can see."""

    def __init__(self, name: str, number: int, folder: Path, switch: int, hidden: Sequence[Path]) -> None:
        self.name = name
        self.address = f"{SUBNET}.{number}"
        self.folder = folder
        hide = "".join(f"mount -t tmpfs none {path} && " for path in (folder, *hidden))
        spaces = ["--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._process = subprocess.Popen(
            [*_UNSHARE, *spaces, "sh", "-c", hide + _INIT.format(name=name)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"up\n", f"{name} did not start"
        self.pid = int(Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text())
        self._switch = ("nsenter", "-t", str(switch), "-n")
        self._cable = f"port{number}"
        _call(*self._switch, *_ADD, self._cable, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid))
        _call(*self._switch, "ip", "link", "set", self._cable, "master", "switch", "up")
        self.call("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self.call("ip", "link", "set", "eth0", "up")

    def command(self, *argv: str | Path) -> list[str]:
        """The command that runs `argv` on this host."""
        return ["nsenter", "-t", str(self.pid), "-n", "-m", "-u", "-p", "--", *map(str, argv)]

    def connected(self, *argv: str | Path, user: int, group: int) -> list[str]:
        """The command that runs `argv` as a process of this machine, with only the network of the host."""
        return ["nsenter", "-t", str(self.pid), "-n", "-S", str(user), "-G", str(group), "--", *map(str, argv)]

    def call(self, *argv: str | Path, **settings: Any) -> str:
        """Run a command on this host; return what it printed. Raises if it fails."""
        return _call(*self.command(*argv), **settings)

    def write(self, name: str, text: str) -> None:
        """Write a private file into the host's folder."""
        path = self.folder / name
        self.call("sh", "-c", f"umask 077; mkdir -p {path.parent} && cat > {path}", input=text)

    def read(self, name: str) -> str:
        """Read a file of the host's folder."""
        return self.call("cat", self.folder / name)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that keep what programs of this host write in its own folder, which is their home."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return kept | dict.fromkeys(("HOME", "TMPDIR", "RAY_TMPDIR"), str(self.folder))

    def unplug(self) -> None:
        """Pull the cable: no packet comes in or goes out, and nobody is told."""
        _call(*self._switch, "ip", "link", "set", self._cable, "down")

    def plug(self) -> None:
        """Put the cable in again."""
        _call(*self._switch, "ip", "link", "set", self._cable, "up")

    def lose(self, other: Host) -> None:
        """Cut this host off from another one only."""
        self.call("ip", "route", "add", "blackhole", other.address)

    def find(self, other: Host) -> None:
        """Undo `lose`."""
        self.call("ip", "route", "del", "blackhole", other.address)

    def slow(self, rate: str) -> None:
        """Let only so much through the cable, such as `1mbit`."""
        limit = ("rate", rate, "burst", "16kb", "latency", "500ms")
        _call(*self._switch, "tc", "qdisc", "replace", "dev", self._cable, "root", "tbf", *limit)
        self.call("tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *limit)

    @property
    def is_up(self) -> bool:
        """Whether nobody has killed this host. Its process id would not tell: another process may have it by now."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End everything at once, as a power cut does: no connection is closed, because no packet goes out."""
        self.unplug()
        os.kill(self.pid, signal.SIGKILL)  # the kernel kills all other processes of the host with its first one
        self._process.wait()


class Network:
    """A switch and its hosts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "own").mkdir()
        self._switch = subprocess.Popen([*_UNSHARE, "sh", "-c", "echo up && exec sleep infinity"], stdout=-1)
        assert self._switch.stdout is not None
        self._switch.stdout.readline()
        _call("nsenter", "-t", str(self._switch.pid), "-n", *_ADD, "switch", "type", "bridge")
        _call("nsenter", "-t", str(self._switch.pid), "-n", "ip", "link", "set", "switch", "up")
        self._hosts: list[Host] = []

    def add(self, name: str, hidden: Sequence[Path] = ()) -> Host:
        """A new host. It does not see the `hidden` folders of this machine."""
        number = len(self._hosts) + 1
        self._hosts.append(Host(name, number, self.folder / "own", self._switch.pid, hidden))
        return self._hosts[-1]

    def close(self) -> None:
        for host in self._hosts:
            if host.is_up:
                host.kill()
        self._switch.kill()
        self._switch.wait()


@contextmanager
def network() -> Iterator[Network]:
    """A network without hosts. Skips the test where namespaces cannot be made."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip", "tc"))):
        pytest.skip("several hosts need root, and iproute2 and util-linux of Linux")
    tried = subprocess.run([*_UNSHARE, *_ADD, "b", "type", "bridge"], capture_output=True)
    if tried.returncode:
        pytest.skip(f"this kernel makes no networks of its own: {tried.stderr.decode().strip()}")
    folder = Path(tempfile.mkdtemp(prefix="rh"))  # short: Ray's sockets are below it, and their paths are limited
    folder.chmod(0o755)
    try:
        built = Network(folder)
        try:
            yield built
        finally:
            built.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _call(*argv: str, env: Mapping[str, str] | None = None, **settings: Any) -> str:
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **settings)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}"
    return done.stdout
