"""Runs the page on loopback until it is stopped."""

from __future__ import annotations

import importlib.util
import secrets
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from remora.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    import uvicorn

    from remora.app import Project

HOST = "127.0.0.1"
PACKAGES = ("jinja2", "starlette", "uvicorn")


def check_extra() -> None:
    """Raises `MissingExtra` if a package of the extra `view` is not installed."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(f"`{package}`, which `remora view` needs,", extra="view")


class Server:
    """The page of one project on a port of loopback. The socket is bound at once, so `url` is final."""

    def __init__(self, project: Project, *, port: int = 0, token: str | None = None) -> None:
        check_extra()
        self._project = project
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((HOST, port))
            self._socket.listen(128)  # who asks before `run` waits
        except OSError as error:
            self._socket.close()
            hint = "Name another one, or leave out `--port`"
            raise ConfigError(f"Port {port} cannot be used: {error.strerror or error}", hint=hint) from error
        self.port: int = self._socket.getsockname()[1]
        self.token = token or secrets.token_urlsafe(32)
        self._running: uvicorn.Server | None = None
        self._is_stopped = False
        self._lock = threading.Lock()

    @property
    def origin(self) -> str:
        """The address without the token."""
        return f"http://{HOST}:{self.port}"

    def url(self, path: str = "/") -> str:
        """The address of a page with the token, for the first visit."""
        return f"{self.origin}{path}{'&' if '?' in path else '?'}{urlencode({'token': self.token})}"

    def run(self) -> None:
        """Serve until Ctrl-C or SIGTERM."""
        import uvicorn

        from remora.view._app import make_app

        settings = uvicorn.Config(
            make_app(self._project, token=self.token, port=self.port, is_over=self._is_over),
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=64 * 1024,
        )
        with self._lock:
            if self._is_stopped:
                return
            self._running = uvicorn.Server(settings)
        self._running.run(sockets=[self._socket])

    def _is_over(self) -> bool:
        return self._is_stopped or (self._running is not None and self._running.should_exit)

    def stop(self) -> None:
        """End `run`, which another thread may have called, and release the port."""
        with self._lock:
            self._is_stopped = True
            if self._running is None:
                self._socket.close()
            else:
                self._running.should_exit = True
