"""A TCP proxy in front of Postgres that cuts or freezes a connection at a chosen message."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Literal

Side = Literal["client", "server"]


class CuttingProxy:
    """Forwards messages. Closes both ends before it forwards message number `cut_at` of the side `cut_side`, once."""

    def __init__(
        self, port: int, *, cut_side: Side = "client", cut_at: int | None = None, delay_s: float = 0.0
    ) -> None:
        self._target = port
        self._side = cut_side
        self._at = cut_at
        self._delay_s = delay_s
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.seen: dict[Side, int] = {"client": 0, "server": 0}
        self.was_cut = False
        self._thawed = threading.Event()
        self._thawed.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        """Keep every connection open, and forward nothing, like a machine that sleeps."""
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()

    def close(self) -> None:
        self.thaw()
        _close(self._listener)
        for each in self._sockets:
            _close(each)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    _close(client)
                    continue
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets += [client, server]
                for side, source, target in (("client", client, server), ("server", server, client)):
                    threading.Thread(target=self._pump, args=(side, source, target), daemon=True).start()

    def _pump(self, side: Side, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error):
            for message in _messages(source, first_is_bare=side == "client"):
                self._thawed.wait()
                if self._delay_s:
                    threading.Event().wait(self._delay_s)
                if self._counts(side):
                    break
                target.sendall(message)
        _close(source)
        _close(target)

    def _counts(self, side: Side) -> bool:
        """Count a message; whether to cut before it."""
        with self._lock:
            number = self.seen[side]
            self.seen[side] += 1
            if side == self._side and number == self._at and not self.was_cut:
                self.was_cut = True
                return True
            return False


def _messages(source: socket.socket, *, first_is_bare: bool) -> Iterator[bytes]:
    """Messages of Postgres' protocol: a type and a length; the first one of a client has no type."""
    read: Callable[[int], bytes] = lambda size: _exactly(source, size)  # noqa: E731
    if first_is_bare:
        head = read(4)
        yield head + read(struct.unpack("!I", head)[0] - 4)
    while True:
        head = read(5)
        yield head + read(struct.unpack("!I", head[1:])[0] - 4)


def _exactly(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            raise OSError("the other end closed")
        data += part
    return bytes(data)


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
