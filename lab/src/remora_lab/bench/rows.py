"""Rows of the result table: which policy decides, and what memory it sees. To add one, add a line to `ROWS`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from remora.config import Config, MemoryConfig, RungConfig, RunnerConfig, ServerConfig
from remora.errors import ConfigError
from remora.twotrack import Memory

Decides = Literal["first-candidate", "random", "oracle", "ruff", "embedded", "server"]

LIMIT = 1000
"""Tokens of a prompt on two tracks, and to which history is cut."""
DEFAULT_MODEL = "SmolLM2-135M"
FIRST_RUNG = "smollm2-135m"
"""The model that a ladder starts on."""
DEADLINE_S = 900.0
"""Seconds after which one agent is stopped, whoever decides."""

PATIENCE_S = 600.0
"""Seconds that one decision may take: a busy machine must not look like a bad model."""


@dataclass(frozen=True)
class TableRow:
    """One row."""

    name: str
    title: str
    decides: Decides
    memory: Memory = "packet"
    adapter: str = ""
    """The name of the adapter that the embedded model is asked with; empty for the base model."""
    operations: tuple[str, ...] = ()
    """What it can do; empty for everything."""
    options: tuple[str, ...] = ()
    """What ruff is told beside `--fix`."""
    ladder: bool = False
    """Whether agents start on the row's model and move up to larger ones (`Models.above`)."""

    @property
    def adapter_option(self) -> str:
        return "--adapter" if self.adapter == "packet" else f"--{self.adapter}-adapter"

    @property
    def asks_model(self) -> bool:
        return self.decides in ("embedded", "server")


ROWS: dict[str, TableRow] = {
    row.name: row
    for row in (
        TableRow("first-candidate", "no model: first candidate", "first-candidate"),
        TableRow("random", "no model: random candidate", "random"),
        TableRow("ruff-fix", "no agent: `ruff check --fix`", "ruff", operations=("lint",)),
        TableRow(
            "ruff-fix-unsafe",
            "no agent: `ruff check --fix --unsafe-fixes`",
            "ruff",
            operations=("lint",),
            options=("--unsafe-fixes",),
        ),
        TableRow("embedded", "embedded base model, two tracks", "embedded"),
        TableRow("embedded-history", "embedded base model, chat history", "embedded", "history"),
        TableRow("embedded-cut", "embedded base model, history cut to the budget", "embedded", "cut history"),
        TableRow("adapter", "embedded model with adapter, two tracks", "embedded", adapter="packet"),
        TableRow("adapter-history", "embedded model with its adapter, chat history", "embedded", "history", "history"),
        TableRow("adapter-cut", "embedded model with its adapter, history cut", "embedded", "cut history", "history"),
        TableRow("ladder", "ladder: {model}", "embedded", adapter="packet", ladder=True),
        TableRow("server", "{model}, two tracks", "server"),
        TableRow("server-history", "{model}, chat history", "server", "history"),
        TableRow("server-cut", "{model}, history cut to the budget", "server", "cut history"),
        TableRow("oracle", "oracle, two tracks", "oracle"),
    )
}


@dataclass(frozen=True)
class Models:
    """Which models the rows ask, and how."""

    server: ServerConfig = field(default_factory=ServerConfig)
    """The server of the `server` rows; where it is `embedded` or none, there are no such rows."""
    embedded: ServerConfig = field(default_factory=ServerConfig)
    adapters: Mapping[str, Path | str] = field(default_factory=dict)
    """By the name that rows use: a file, or `bundled` or `requests`, which come with the package."""
    temperature: float = 0.0
    above: tuple[str, ...] = ()
    """Models above the first of a ladder, by their names in the catalogue."""

    def config(self, row: TableRow, seed: int, threads: int | None = None) -> ServerConfig:
        """How the row's model is asked. Raises `ConfigError` where nothing says which one it is."""
        patient = {"timeout_s": PATIENCE_S, "deadline_s": PATIENCE_S}
        drawn = {"seed": seed, "temperature": self.temperature, **patient}
        if row.decides == "server":
            return self.server.model_copy(update=drawn)
        if row.adapter and row.adapter not in self.adapters:
            raise ConfigError(
                f"Row `{row.name}` needs an adapter", hint=f"Name its file with `{row.adapter_option} FILE`"
            )
        # A base model is asked without any, also where one comes with the package.
        adapter = self.adapters.get(row.adapter, "none")
        own: dict[str, Any] = {"server": "embedded", "adapter": adapter, "adapters": {}, "threads": threads}
        return self.embedded.model_copy(update=drawn | own)

    def name(self, row: TableRow) -> str:
        """The model's name, as results give it; empty for a row without one."""
        if row.decides == "server":
            return self.server.model or self.server.server
        if row.decides != "embedded":
            return ""
        weights = self.embedded.gguf.stem if self.embedded.gguf else self.embedded.model or DEFAULT_MODEL
        adapter = self.adapters.get(row.adapter)
        name = f"{weights} + {getattr(adapter, 'name', adapter)}" if adapter else weights
        return " → ".join([name, *self.above]) if row.ladder else name

    def rungs(self, row: TableRow) -> list[ServerConfig]:
        """How the models above the row's own are asked: as a user's ladder does, with the adapters of the package."""
        shipped: dict[str, Any] = {"server": "embedded", "gguf": None, "adapter": "bundled", "adapters": {}}
        own = self.embedded.model_copy(update=shipped)
        patient = {"temperature": self.temperature, "timeout_s": PATIENCE_S, "deadline_s": PATIENCE_S}
        return [own.model_copy(update={"model": name, **patient}) for name in self.above] if row.ladder else []

    @property
    def has_server(self) -> bool:
        return self.server.server not in ("embedded", "scripted", "first-candidate", "random")

    def draws(self, row: TableRow) -> bool:
        """Whether the row's answers depend on the seed by themselves."""
        return row.decides == "random" or (row.asks_model and self.temperature > 0)


def select_rows(names: Iterable[str], models: Models) -> list[TableRow]:
    """The rows of these names; by default all that need nothing that was not given. Raises `ConfigError`."""
    wanted = list(names) or [row.name for row in ROWS.values() if _is_possible(row, models)]
    if unknown := [name for name in wanted if name not in ROWS]:
        known = ", ".join(f"`{name}`" for name in ROWS)
        raise ConfigError(f"There is no row `{unknown[0]}`: expected one of {known}")
    rows = [ROWS[name] for name in dict.fromkeys(wanted)]
    for row in rows:
        models.config(row, seed=0)
        if row.ladder and not models.above:
            raise ConfigError(f"Row `{row.name}` needs a larger model", hint="Name it with `--above MODEL`")
        if row.decides == "server" and not models.has_server:
            raise ConfigError(f"Row `{row.name}` needs a server", hint="Name it with `--server URL --model NAME`")
    return rows


def _is_possible(row: TableRow, models: Models) -> bool:
    if row.ladder and not models.above:
        return False
    return (row.decides != "server" or models.has_server) and (not row.adapter or row.adapter in models.adapters)


def run_config(row: TableRow, agents: Path | None = None, above: tuple[str, ...] = ()) -> Config:
    """The settings that the row's agents run by: ours alone, never the user's, so that tables can be compared."""
    memory = {
        "packet": MemoryConfig(),
        "history": MemoryConfig(enabled=False),
        "cut history": MemoryConfig(enabled=False, history_limit=LIMIT),
    }[row.memory]
    config = Config(runner=RunnerConfig(memory=memory, deadline_s=DEADLINE_S, by_rule=False))
    rungs = [RungConfig(model=name) for name in (FIRST_RUNG, *above)] if row.ladder else []
    return config.model_copy(update={"escalation": rungs} | ({"agents_dir": agents} if agents else {}))
