"""Settings: what there is to set, and how a file that sets it is checked. See `remora.settings` for which one wins."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from remora.errors import DefinitionError, MissingExtra
from remora.repository import FOR_REPOSITORIES, rule_for

CONFIG_FILE = "remora.yaml"
MAX_S = 30 * 24 * 3600.0
MAX_TOKENS = 100_000_000
MAX_TURNS = 1_000
"""What nobody means to go beyond: more is a slip, and would only break later."""

Model = TypeVar("Model", bound=BaseModel)


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DiscoveryConfig(_Block):
    """Which code is looked at."""

    exclude: tuple[str, ...] = ()
    """Patterns of files and folders to leave out, written as in a `.gitignore`, beside those of the project's own."""
    queries: Path | None = None
    """A folder with tree-sitter queries (`<language>.scm`) that are used in place of ours."""


class ServerConfig(_Block):
    """Who decides. Only your own settings, the environment and flags may say it, never a repository."""

    server: str = "embedded"
    """`embedded`, `ollama`, `vllm`, `llamacpp`, `lmstudio`, or a URL; or no model: `scripted`, `first-candidate`,
    `random`."""
    model: str = ""
    """The model's name on that server, such as `qwen3:4b`; where empty, the first that the server offers."""
    api_key_env: str = ""
    """The environment variable that holds the server's key."""
    mode: Literal["auto", "json", "tools"] = "auto"
    """How calls are asked for: as JSON bound to a schema, or by native tool calling; `auto` knows the server."""
    timeout_s: float = Field(default=30.0, gt=0, le=MAX_S)
    """Seconds to wait for a connection, and for the next part of a reply."""
    deadline_s: float = Field(default=120.0, gt=0, le=MAX_S)
    """Seconds that one decision may take in all, retries included."""
    max_tokens: int = Field(default=256, ge=16, le=MAX_TOKENS)
    """Tokens that a reply may take."""
    temperature: float = Field(default=0.0, ge=0, le=100)
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """What draws begin with: of `random`, and of a model where the temperature is above zero."""
    context: int | None = Field(default=None, ge=512, le=MAX_TOKENS)
    """The model's context window, where the server does not tell it."""
    gguf: Path | None = None
    """Weights for the embedded server in place of ours."""
    adapter: Literal["bundled", "none"] | Path | None = "bundled"
    """The LoRA adapter of the embedded server: `bundled`, which came with the package, `none`, or a GGUF file."""
    adapters: dict[str, Literal["bundled", "none"] | Path] = Field(default_factory=dict)
    """Other adapters for single operations, by their names."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """Threads of the embedded server; by itself it leaves a core free when the machine is busy."""


class SandboxConfig(_Block):
    """How code of the project may run. Only your own settings and flags may say it, never a repository."""

    allow_unsandboxed: bool = False
    """Whether tests may run without an OS sandbox; every such run is recorded."""


class OperationConfig(_Block):
    """One operation's own limits."""

    enabled: bool = True
    priority: int = Field(default=0, ge=-1_000_000, le=1_000_000)
    """Operations with a higher number are run first."""
    max_turns: int | None = Field(default=None, ge=1, le=MAX_TURNS)
    """Caps the agent definition's own limit."""


class MemoryConfig(_Block):
    """The two tracks."""

    enabled: bool = True
    """False gives the same agent plain chat history: the baseline to compare with."""
    packet_size_limit: int | None = Field(default=None, ge=100, le=MAX_TOKENS)
    """Tokens that the whole prompt may take: system text, tool schemas, packet, template.

    Where it is not set, the model decides: 1,000 for the embedded one, else 3,000 for the packet beside system text and
    tools.
    """
    trace_store: Literal["jsonl", "kv"] = "jsonl"
    """`kv` also keeps the specification's trace keys in a view beside the streams, `trace.kv`, as each agent ends."""
    summarizer_mode: Literal["tool_specific", "fallback"] = "tool_specific"
    """Who sums up a result without a summary of its own: the tool's summarizer, or only the generic one."""
    history_limit: int | None = Field(default=None, ge=100, le=MAX_TOKENS)
    """Without the packet: tokens to which chat history is cut; by default it is sent whole, up to the window."""
    trace_indexing: tuple[Literal["node", "run", "operation"], ...] = ("node", "run", "operation")
    """By what that view can be listed."""


class RunnerConfig(_Block):
    """How one agent runs."""

    memory: MemoryConfig = MemoryConfig()
    max_turns: int | None = Field(default=None, ge=1, le=MAX_TURNS)
    """Caps every agent definition's own limit."""
    max_concurrent: int = Field(default=4, ge=1, le=1024)
    """Agents that run at once."""
    max_errors: int = Field(default=5, ge=1, le=10_000)
    """Failed tool calls in a row after which an agent is stopped."""
    max_repeats: int = Field(default=5, ge=1, le=10_000)
    """Equal calls with equal results in a row, after which an agent is stopped."""
    retries: int = Field(default=2, ge=0, le=100)
    """How often a model is asked again when it says nothing that is a call."""
    deadline_s: float | None = Field(default=None, gt=0, le=MAX_S)
    """Seconds that one agent may take."""
    total_deadline_s: float | None = Field(default=None, gt=0, le=MAX_S)
    """Seconds that a whole run may take."""


class WorkspaceConfig(_Block):
    """Limits of what an agent may write."""

    max_file_bytes: int = Field(default=4 * 1024 * 1024, ge=1, le=1024**3)
    """Bytes of one file."""
    max_files: int = Field(default=200, ge=1, le=100_000)
    """Files in all."""


class EventStreamConfig(_Block):
    """How the Long Track is written."""

    sync: Annotated[
        Literal["always", "turn", "off"], BeforeValidator(lambda value: "off" if value is False else value)
    ] = "always"  # YAML reads a bare `off` as false
    """When an event is on the disk: before it is acknowledged, at turn boundaries and side effects, or whenever."""


class WatchConfig(_Block):
    """How `remora watch` waits."""

    debounce_ms: int = Field(default=300, ge=10, le=60_000)
    """Milliseconds of quiet after a change before agents are run."""


class HubConfig(_Block):
    """The live index of the code."""

    enabled: bool = True
    """Whether runs pull facts from it."""
    mode: Literal["auto", "read"] = "auto"
    """`auto` indexes beside a run where no daemon does; `read` only reads what is there."""


class Config(_Block):
    """All settings of a project."""

    agents_dir: Path = Path("agents")
    """A folder with agents of the project's own; until you trust them (`remora trust`) they may do less."""
    discovery: DiscoveryConfig = DiscoveryConfig()
    server: ServerConfig = ServerConfig()
    sandbox: SandboxConfig = SandboxConfig()
    operations: dict[str, OperationConfig] = Field(default_factory=dict)
    """Limits by operation; those that are not named have the defaults."""
    runner: RunnerConfig = RunnerConfig()
    workspace: WorkspaceConfig = WorkspaceConfig()
    event_stream: EventStreamConfig = EventStreamConfig()
    watch: WatchConfig = WatchConfig()
    hub: HubConfig = HubConfig()


NOT_FOR_REPOSITORIES = tuple(name for name, rule in FOR_REPOSITORIES.items() if rule.never)
"""What a cloned repository must not set at all: blocks that decide where code and keys go, and some single settings."""


def setting_paths(model: type[BaseModel] = Config, before: str = "") -> list[str]:
    """Every setting by its path, such as `runner.max_turns`; `*` stands for any name, as in `operations.*.enabled`."""
    paths: list[str] = []
    for name, field in model.model_fields.items():
        inner = _models_in(field.annotation)
        if not inner:
            paths.append(f"{before}{name}")
        for each in inner:
            any_name = "*." if get_origin(field.annotation) is dict else ""
            paths += setting_paths(each, f"{before}{name}.{any_name}")
    return paths


def config_values(text: str, file: Path | str, *, of_repository: bool) -> dict[str, Any]:
    """What a settings file holds, checked by itself. Raises `ConfigError` naming the place of every problem."""
    value = parse_yaml(text, file)
    given = {} if value is None else value
    if of_repository and isinstance(given, dict) and (closed := [key for key in NOT_FOR_REPOSITORIES if key in given]):
        raise DefinitionError(file, [f"$.{key}: {rule_for(key).problem(None)}" for key in closed])
    checked = validate(Config, given, file)
    if of_repository and (problems := list(_beyond(checked, ""))):
        raise DefinitionError(file, problems)
    return dict(given)


def _beyond(block: BaseModel, before: str) -> Iterator[str]:
    """What a repository has set and may not, each with its place."""
    for name in sorted(block.model_fields_set):
        path, value = f"{before}{name}", getattr(block, name)
        if isinstance(value, BaseModel):
            yield from _beyond(value, f"{path}.")
        elif name == "operations":
            for operation, inner in value.items():
                yield from _beyond(inner, f"{path}.{operation}.")
        elif problem := rule_for(path).problem(value):
            yield f"$.{path}: {problem}"


def parse_yaml(text: str, file: Path | str) -> Any:
    """What a YAML text holds. Raises `ConfigError` with file, line and column."""
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("PyYAML, which reads settings and agent definitions,", extra="agents") from error
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{mark.line + 1}:{mark.column + 1}: " if mark else ""
        raise DefinitionError(file, [f"{where}not YAML: {error.problem}"]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DefinitionError(file, [f"not YAML: {error}"]) from error


def validate(model: type[Model], value: Any, file: Path | str, *, hint: str | None = None) -> Model:
    """`value` as a `model`. Raises `ConfigError` that names each problem by its path, such as `$.tools[2].path`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = [_problem(model, item["loc"], item["type"], item["msg"]) for item in error.errors(include_url=False)]
        raise DefinitionError(file, problems, hint=hint) from error


def _problem(model: type[BaseModel], loc: tuple[int | str, ...], kind: str, message: str) -> str:
    around, path = _at(model, loc)
    place = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part:.200}" for part in path)
    if kind != "extra_forbidden":
        return f"{place}: {message}"
    known = list(around.model_fields)
    close = difflib.get_close_matches(str(loc[-1]), known, n=1)
    expected = f"did you mean `{close[0]}`?" if close else "expected one of " + ", ".join(f"`{name}`" for name in known)
    return f"{place}: unknown key; {expected}"


def _at(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[type[BaseModel], list[int | str]]:
    """The innermost model around a place that pydantic names, and that place as the value itself has it."""
    path: list[int | str] = []
    tagged: dict[str, type[BaseModel]] = {}
    for number, part in enumerate(loc):
        if str(part) in tagged:
            model, tagged = tagged[str(part)], {}  # the kind of a union: it says which, and is no part of the value
            continue
        path.append(part)
        field = model.model_fields.get(str(part))
        if field is None or number == len(loc) - 1:
            continue
        inner = _models_in(field.annotation)
        tagged = _by_tag(inner, field.discriminator) if isinstance(field.discriminator, str) else {}
        if len(inner) == 1:
            model = inner[0]
    return model, path


def _by_tag(models: Sequence[type[BaseModel]], tag: str) -> dict[str, type[BaseModel]]:
    return {str(model.model_fields[tag].default): model for model in models}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field may hold, by itself or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for each in get_args(annotation) for found in _models_in(each)]
