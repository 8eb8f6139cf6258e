"""A Ray cluster on several hosts, with the store on another one: set up as the guide for real machines says.

As a program it runs the poster of `ray_cluster.py` on such a cluster, from the host that has the project.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from hosts import Host, Network
from postgres import Server, make_server
from ray_cluster import PATIENT, open_marked_node, run
from remora.app import _fleet, open_project

BIN = Path(sys.executable).parent
TESTS = Path(__file__).parent
PASSWORDS = {"owner": "of-the-owner", "ci": "of-the-writer", "viewer": "of-the-reader"}
SETTINGS = {"engine.name": "ray", "engine.address": "auto", "server.server": "scripted", "runner.max_concurrent": 2}


class Fleet:
    """A host with Postgres, a head that has the project, and nodes that have only what is installed."""

    def __init__(self, network: Network, hidden: Sequence[Path], nodes: int = 3) -> None:
        self._network = network
        self._hidden = hidden
        self._numbers = count(1)
        self.database = network.add("db")
        self.server: Server = make_server(self.database)
        with self.server.connect() as connection:
            for role, password in PASSWORDS.items():
                change = "ALTER" if role == "owner" else "CREATE"
                connection.execute(f"{change} ROLE {role} LOGIN PASSWORD '{password}'")
        self.head = network.add("head")
        self._prepare(self.head)
        self.call("remora", "store", "init", self.url("owner"), "--writer", "ci", "--reader", "viewer")
        self.call("ray", "get-auth-token", "--generate")
        self._start_ray(self.head, "--head", "--port=6379", "--num-cpus=0", "--include-dashboard=false")
        self.nodes: list[Host] = []
        for _ in range(nodes):
            self.add_node()

    def url(self, role: str) -> str:
        """The store over the network. The password is in `~/.pgpass` of every host."""
        return self.server.url(user=role)

    def own_url(self) -> str:
        """The store over a socket of this machine, for a test to look at it."""
        return f"postgres://owner@/postgres?host={self.server.folder}&port={self.server.port}"

    def call(self, program: str, *args: str | Path) -> str:
        """Run a command on the head."""
        return self.head.call(BIN / program, *args, env=self.environment(self.head))

    def start(self, *argv: str | Path) -> subprocess.Popen[str]:
        """Start a program on the head."""
        command, where = self.head.command(*argv), self.environment(self.head)
        return subprocess.Popen(command, env=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def add_node(self) -> Host:
        host = self._network.add(f"node{next(self._numbers)}", self._hidden)
        self._prepare(host)
        host.write(".ray/auth_token", self.head.read(".ray/auth_token"))
        self._start_ray(host, f"--address={self.head.address}:6379", "--num-cpus=1")
        self.nodes.append(host)
        return host

    def close(self) -> None:
        self.server.remove()

    def environment(self, host: Host) -> dict[str, str]:
        return host.environment | PATIENT | {"RAY_AUTH_MODE": "token", "PYTHONPATH": str(TESTS)}

    def _prepare(self, host: Host) -> None:
        """Put the passwords where every Postgres client looks for them."""
        where = f"{self.server.address}:{self.server.port}:*"
        host.write(".pgpass", "".join(f"{where}:{role}:{password}\n" for role, password in PASSWORDS.items()))

    def _start_ray(self, host: Host, *options: str) -> None:
        small = ("--object-store-memory=100000000", "--disable-usage-stats", f"--node-ip-address={host.address}")
        said = self._network.folder / f"{host.name}.log"
        with said.open("w") as log:  # what stays in the background keeps its output open
            done = subprocess.run(
                host.command(BIN / "ray", "start", *options, *small),
                env=self.environment(host),
                stdout=log,
                stderr=log,
                check=False,
            )
        assert done.returncode == 0, said.read_text()


def main(root: str, store: str) -> None:
    """Run the poster on all functions, and print the run's id."""
    _fleet.open_node = open_marked_node
    run_id, results = run(open_project(Path(root), SETTINGS, state_dir=store), Path(root) / "a.py")
    sys.stdout.write(f"{run_id} {len(results)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
