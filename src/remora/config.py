"""All settings, and what a repository may set. `remora.settings` merges the sources by precedence."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from remora.errors import DefinitionError
from remora.mcp_servers import McpServerConfig
from remora.repository import FOR_REPOSITORIES, LOCAL_STORES, rule_for
from remora.validation import models_in, parse_yaml, validate

CONFIG_FILE = "remora.yaml"
TABLE_FILE = "pyproject.toml"
"""May hold the same settings, in its table `[tool.remora]`."""
MAX_S = 30 * 24 * 3600.0
MAX_TOKENS = 100_000_000
MAX_TURNS = 1_000
"""Upper bounds of plausible values. Larger ones are typing errors and would fail later."""


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DiscoveryConfig(_Block):
    """Which code Remora finds."""

    exclude: tuple[str, ...] = ()
    """Patterns of files and folders to leave out, in `.gitignore` syntax, in addition to the project's `.gitignore`.

    Copies of other projects (`_vendor`, `third_party`), inputs of tests (`tests/data`, `tests/fixtures`), migrations
    and generated files ("do not edit" in the first lines) are left out too, with a notice, unless you name the file
    or its folder.
    """
    queries: Path | None = None
    """A folder with tree-sitter queries (`<language>.scm`) that replace the built-in ones."""


class ServerConfig(_Block):
    """The model server. Only your own settings, the environment and flags can set it, never a repository."""

    server: str = "embedded"
    """`embedded`, `ollama`, `vllm`, `llamacpp`, `lmstudio` or a URL; or a policy without a model: `scripted`,
    `first-candidate`, `random`."""
    model: str = ""
    """Name of the model: on a server such as `qwen3:4b`, embedded one of `remora model ls` or a GGUF file. Empty: the
    first model of the server, or the default embedded one."""
    api_key_env: str = ""
    """Name of the environment variable with the server's API key."""
    mode: Literal["auto", "json", "tools"] = "auto"
    """How the model makes calls: as JSON constrained to a schema, or by native tool calling. `auto` picks by server."""
    reasons: bool | None = None
    """Whether a model without an adapter says why before each call, in mode `json`. By default as its entry in the
    catalogue says; no bundled one does."""
    checks_fit: bool = True
    """Whether a model without an adapter is asked if its first call does what was asked, where the agent may
    `decline`."""
    timeout_s: float = Field(default=30.0, gt=0, le=MAX_S)
    """Seconds to wait for a connection and for each part of a reply."""
    deadline_s: float = Field(default=120.0, gt=0, le=MAX_S)
    """Seconds for one decision, including retries. An embedded model has its own default (`remora model ls`)."""
    max_tokens: int = Field(default=256, ge=16, le=MAX_TOKENS)
    """Maximum tokens of a reply. An embedded model has its own default."""
    temperature: float = Field(default=0.0, ge=0, le=100)
    """Sampling temperature."""
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Random seed: of the policy `random`, and of a model with a temperature above zero."""
    context: int | None = Field(default=None, ge=512, le=MAX_TOKENS)
    """The model's context window in tokens, if the server does not report it."""
    gguf: Path | None = None
    """A GGUF file with weights for the embedded model. With `model`, that entry of the catalogue says how to ask it."""
    adapter: Literal["bundled", "requests", "none"] | Path | None = "bundled"
    """The LoRA adapter of the embedded model: `bundled`, `requests`, `none`, or a GGUF file.

    `bundled` and `requests` are part of the package; `requests` is for agents whose goal is a person's sentence.
    """
    adapters: dict[str, Literal["bundled", "requests", "none"] | Path] = Field(default_factory=dict)
    """Adapters for single operations, by operation name."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """Threads of the embedded model. By default it uses the idle cores and leaves one free on a busy machine."""


class RungConfig(_Block):
    """One model of the ladder. A text is short for a block with only `model`."""

    model: str = Field(min_length=1, max_length=2000)
    """`server` (the model of the `server` block), an embedded model by name or GGUF file, `ollama#MODEL` or `URL#MODEL`
    for a server, or a policy without a model."""
    api_key_env: str = ""
    """Name of the environment variable with the server's API key."""
    mode: Literal["auto", "json", "tools"] | None = None
    """How the model makes calls. `auto`, the default, picks by server."""
    context: int | None = Field(default=None, ge=512, le=MAX_TOKENS)
    """The model's context window in tokens, if the server does not report it."""
    prompt_tokens: int | None = Field(default=None, ge=100, le=MAX_TOKENS)
    """Maximum tokens of a whole prompt. By default a server gets 8,000 for packet and evidence, and an embedded model
    its usual limit, within the context window."""
    max_tokens: int | None = Field(default=None, ge=16, le=MAX_TOKENS)
    """Maximum tokens of a reply. By default as in the `server` block."""
    price_in: float = Field(default=0.0, ge=0, le=1e6)
    """Price of a million prompt tokens, in any currency."""
    price_out: float = Field(default=0.0, ge=0, le=1e6)
    """Price of a million reply tokens."""


def _as_rung(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


class EscalationRules(_Block):
    """When an agent moves up to the next model. 0 turns a rule off."""

    undecided: int = Field(default=2, ge=0, le=100)
    """Move up after this many replies in a row without a valid call."""
    repeats: int = Field(default=3, ge=0, le=10_000)
    """Move up after this many equal calls with equal results in a row."""
    errors: int = Field(default=3, ge=0, le=10_000)
    """Move up after this many failed calls in a row."""
    no_progress: int = Field(default=4, ge=0, le=MAX_TURNS)
    """Move up after this many turns in which the check did not get better, and on a submission without any progress."""
    ask: bool = False
    """Whether the model gets the tool `escalate`, to ask for a larger model itself."""


class EscalationConfig(EscalationRules):
    """When an agent moves up its ladder, and how much it may ask of the larger models."""

    max_moves: int = Field(default=3, ge=0, le=MAX_TURNS)
    """How often one agent may move up."""
    max_decisions: int = Field(default=10, ge=0, le=MAX_TURNS)
    """Maximum decisions of one agent above its first model."""
    max_run_decisions: int = Field(default=200, ge=0, le=1_000_000)
    """Maximum decisions of a whole run above the first model."""
    max_price: float | None = Field(default=None, ge=0, le=1e9)
    """Maximum price of a whole run, by the prices of the rungs. Every server of the ladder then needs a price."""


class SandboxConfig(_Block):
    """How project code may run. Only your own settings and flags can set it, never a repository."""

    allow_unsandboxed: bool = False
    """Allow tests to run without an OS sandbox. Every such run is recorded."""


class OperationConfig(_Block):
    """Settings of one operation."""

    enabled: bool = True
    """Whether `-o` may run it."""
    priority: int = Field(default=0, ge=-1_000_000, le=1_000_000)
    """Operations with a higher number run first."""
    max_turns: int | None = Field(default=None, ge=1, le=MAX_TURNS)
    """Maximum turns. The agent definition's limit applies if it is lower."""
    strict: bool = False
    """Whether `lint` also asks for rules that the project's settings select and that its code breaks widely."""


def _check_store(value: str) -> str:
    if value not in LOCAL_STORES and not value.startswith(("postgres://", "postgresql://")):
        raise ValueError("expected `jsonl`, `kv` or `postgres://USER@HOST/DATABASE`")
    return value


class MemoryConfig(_Block):
    """The two tracks."""

    enabled: bool = True
    """If false, agents use plain chat history instead of the packet: the baseline for comparisons."""
    packet_size_limit: int | None = Field(default=None, ge=100, le=MAX_TOKENS)
    """Maximum tokens of the whole prompt: system text, tool schemas, packet, chat template.

    The default depends on the model: 1,000 for `smollm2-135m`, the default embedded one; for others 3,000 for the
    packet, in addition to system text and tools.
    """
    trace_store: Annotated[str, AfterValidator(_check_store)] = "jsonl"
    """Where streams are kept. `jsonl`: files in the state folder. `kv` also writes the specification's trace keys into
    a view, `trace.kv`, when an agent ends. `postgres://USER@HOST/DATABASE`: a Postgres database; only your own
    settings, the environment and flags can name one."""
    summarizer_mode: Literal["tool_specific", "fallback"] = "tool_specific"
    """What summarizes results without a summary: the tool's own summarizer, or only the generic one."""
    history_limit: int | None = Field(default=None, ge=100, le=MAX_TOKENS)
    """Without the packet: maximum tokens of chat history. By default all of it is sent, up to the context window."""
    trace_indexing: tuple[Literal["node", "run", "operation"], ...] = ("node", "run", "operation")
    """The indexes of that view."""


class RunnerConfig(_Block):
    """How one agent runs."""

    memory: MemoryConfig = MemoryConfig()
    max_turns: int | None = Field(default=None, ge=1, le=MAX_TURNS)
    """Maximum turns of every agent. An agent definition's limit applies if it is lower."""
    by_rule: bool = True
    """Whether agents' rules decide where nothing is to decide. `false` asks the model at every turn, to compare."""
    max_concurrent: int = Field(default=4, ge=1, le=1024)
    """Number of agents that run concurrently."""
    max_errors: int = Field(default=5, ge=1, le=10_000)
    """Stop an agent after this many failed tool calls in a row."""
    max_repeats: int = Field(default=5, ge=1, le=10_000)
    """Stop an agent after this many equal calls with equal results in a row."""
    retries: int = Field(default=2, ge=0, le=100)
    """How often to ask a model again if its reply contains no valid call."""
    deadline_s: float | None = Field(default=None, gt=0, le=MAX_S)
    """Maximum seconds for one agent."""
    total_deadline_s: float | None = Field(default=None, gt=0, le=MAX_S)
    """Maximum seconds for a whole run."""
    escalation: EscalationConfig = EscalationConfig()


class WorkspaceConfig(_Block):
    """Limits for the files that an agent writes."""

    max_file_bytes: int = Field(default=4 * 1024 * 1024, ge=1, le=1024**3)
    """Maximum bytes of one file."""
    max_files: int = Field(default=200, ge=1, le=100_000)
    """Maximum number of files."""


class EventStreamConfig(_Block):
    """How the Long Track is written."""

    sync: Annotated[
        Literal["always", "turn", "off"], BeforeValidator(lambda value: "off" if value is False else value)
    ] = "always"  # YAML reads a bare `off` as false
    """When events are synced to disk: each one before it is acknowledged, at turn boundaries and before tool calls, or
    when the operating system decides."""


class RetentionConfig(_Block):
    """Which streams each run deletes at its end. Off by default: without a limit, everything is kept.

    Only your own settings, the environment and flags can set it, never a repository.
    """

    max_age_days: float | None = Field(default=None, ge=0)
    """Delete streams that ended longer ago than this."""
    max_total_bytes: int | None = Field(default=None, ge=0)
    """Delete the oldest streams until all together take at most this."""
    keep_last: int | None = Field(default=None, ge=0)
    """Keep this many of each operation, whatever the other rules say. Alone: delete all others."""
    keep_failed: bool = True
    """Keep runs that failed."""

    @property
    def is_on(self) -> bool:
        return any(limit is not None for limit in (self.max_age_days, self.max_total_bytes, self.keep_last))


class EngineConfig(_Block):
    """Where agents run. Only your own settings, the environment and flags can set it, never a repository."""

    name: Literal["local", "ray"] = "local"
    """`local`: in this process. `ray`: on the nodes of a Ray cluster, `runner.max_concurrent` agents on each."""
    address: str = Field(default="", max_length=2000)
    """The Ray cluster, such as `auto` or `HOST:6379`. Empty: one that is started on this machine for the run."""


class WatchConfig(_Block):
    """Settings of `remora watch`."""

    debounce_ms: int = Field(default=300, ge=10, le=60_000)
    """Milliseconds without a change before agents run."""


class HubConfig(_Block):
    """The index of the code."""

    enabled: bool = True
    """Whether runs pull facts from the Hub into packets."""
    mode: Literal["auto", "read"] = "auto"
    """`auto` updates the index during a run if no daemon does; `read` only reads it."""


class PriceConfig(_Block):
    """What one model costs."""

    input: float = Field(default=0.0, ge=0, le=1e9)
    """Price of a million tokens of prompts."""
    output: float = Field(default=0.0, ge=0, le=1e9)
    """Price of a million tokens of replies."""


class ReportConfig(_Block):
    """Settings of `remora trace report`."""

    prices: dict[str, PriceConfig] = Field(default_factory=dict)
    """Prices by the name of the model, as streams record it. Without one, reports leave the cost out."""
    currency: str = Field(default="USD", max_length=16)
    """The currency of the prices."""


class Config(_Block):
    """All settings of a project."""

    agents_dir: Path = Path("agents")
    """A folder with the project's own agents. They have fewer rights until you trust them (`remora trust`)."""
    discovery: DiscoveryConfig = DiscoveryConfig()
    server: ServerConfig = ServerConfig()
    escalation: tuple[Annotated[RungConfig, BeforeValidator(_as_rung)], ...] = ()
    """The ladder: models in the order in which an agent moves up when it is stuck. It starts on the first. Only your
    own settings, the environment and flags can set it, never a repository."""
    sandbox: SandboxConfig = SandboxConfig()
    mcp: dict[str, McpServerConfig] = Field(default_factory=dict)
    """MCP servers by name, whose tools agents may use. Only your own settings, the environment and flags can set it,
    never a repository."""
    operations: dict[str, OperationConfig] = Field(default_factory=dict)
    """Settings by operation. Others have the defaults."""
    runner: RunnerConfig = RunnerConfig()
    workspace: WorkspaceConfig = WorkspaceConfig()
    event_stream: EventStreamConfig = EventStreamConfig()
    retention: RetentionConfig = RetentionConfig()
    engine: EngineConfig = EngineConfig()
    watch: WatchConfig = WatchConfig()
    hub: HubConfig = HubConfig()
    report: ReportConfig = ReportConfig()


NOT_FOR_REPOSITORIES = tuple(name for name, rule in FOR_REPOSITORIES.items() if rule.never)
"""What a repository cannot set at all: blocks that decide where code and keys go, and some single settings."""


def setting_paths(model: type[BaseModel] = Config, before: str = "") -> list[str]:
    """The path of every setting, such as `runner.max_turns`. `*` is a placeholder, as in `operations.*.enabled`."""
    paths: list[str] = []
    for name, field in model.model_fields.items():
        inner = models_in(field.annotation)
        if not inner:
            paths.append(f"{before}{name}")
        for each in inner:
            any_name = "*." if get_origin(field.annotation) is dict else ""
            paths += setting_paths(each, f"{before}{name}.{any_name}")
    return paths


def config_values(text: str, file: Path | str, *, of_repository: bool) -> dict[str, Any]:
    """Parse and validate one settings file. Raises `ConfigError` with the place of every problem."""
    value = parse_yaml(text, file)
    return checked_values({} if value is None else value, file, of_repository=of_repository)


def table_values(text: str, file: Path | str) -> dict[str, Any]:
    """The settings in `[tool.remora]` of a repository's `pyproject.toml`, validated. Raises `ConfigError`."""
    try:
        found = tomllib.loads(text).get("tool", {}).get("remora", {})
    except (ValueError, RecursionError, AttributeError) as error:
        raise DefinitionError(file, [f"not TOML: {error}"]) from error
    return checked_values(found, file, of_repository=True)


def checked_values(given: Any, file: Path | str, *, of_repository: bool) -> dict[str, Any]:
    """Validate parsed settings. Raises `ConfigError` with the place of every problem."""
    if of_repository and isinstance(given, dict) and (closed := [key for key in NOT_FOR_REPOSITORIES if key in given]):
        raise DefinitionError(file, [f"$.{key}: {rule_for(key).problem(None)}" for key in closed])
    checked = validate(Config, given, file)
    if of_repository and (problems := list(_beyond(checked, ""))):
        raise DefinitionError(file, problems)
    return dict(given)


def _beyond(block: BaseModel, before: str) -> Iterator[str]:
    """Settings that a repository may not set, each with its place."""
    for name in sorted(block.model_fields_set):
        path, value = f"{before}{name}", getattr(block, name)
        if isinstance(value, BaseModel):
            yield from _beyond(value, f"{path}.")
        elif name == "operations":
            for operation, inner in value.items():
                yield from _beyond(inner, f"{path}.{operation}.")
        elif problem := rule_for(path).problem(value):
            yield f"$.{path}: {problem}"
