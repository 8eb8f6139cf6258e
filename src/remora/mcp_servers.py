"""Settings of MCP servers: those that an agent's definition names, and those of the user's own settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

PROJECT = "{project}"
"""Stands for the project's folder in a server's arguments."""
NAME = r"[a-z][a-z0-9_-]{0,63}"
"""A server's name."""


class McpServer(BaseModel):
    """An MCP server as an agent's definition may name it: a program or a URL, with its limits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: tuple[str, ...] = Field(default=(), max_length=64)
    """A program and its arguments. It speaks MCP on its standard input and output. `{project}` is replaced by the
    project's folder. It starts in a temporary folder: with the agent's files if the agent's definition names it."""
    url: str = Field(default="", max_length=2000, pattern=r"^$|^https?://[^\s@/][^\s@]*$")
    """The address of a server that speaks MCP over streamable HTTP."""
    start_s: float = Field(default=60.0, gt=0, le=600)
    """Seconds until it has listed its tools."""
    call_s: float = Field(default=30.0, gt=0, le=3600)
    """Seconds for one call."""
    max_bytes: int = Field(default=1024 * 1024, ge=1024, le=64 * 1024 * 1024)
    """Maximum bytes of one result."""

    @model_validator(mode="after")
    def _is_one_kind(self) -> McpServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("expected either `command` or `url`")
        if self.command and not self.command[0].strip():
            raise ValueError("`command` is empty: expected a program and its arguments")
        return self


class McpServerConfig(McpServer):
    """An MCP server of the user's own settings, which alone may hand it keys."""

    env: tuple[str, ...] = Field(default=(), max_length=64)
    """Names of environment variables that its program gets, besides `HOME`, `PATH` and a few others."""
    api_key_env: str = ""
    """Name of the environment variable with the key that its URL gets, as `Authorization: Bearer`."""
