"""What each type of server supports, and the context window of the model it serves.

`docs/reference/servers.md` documents this table. If a server silently truncates a long prompt, its window is looked up
before anything is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from remora.errors import ConfigError

Mode = Literal["auto", "json", "tools"]
Tokenizer = Literal["llamacpp", "vllm", "none"]

OLLAMA_DEFAULT = 4096
"""The window that Ollama uses if neither the model's file nor `/api/ps` sets one."""


@dataclass(frozen=True)
class Preset:
    """A type of server."""

    name: str
    url: str
    """Its default address."""
    mode: Literal["json", "tools"]
    """What `auto` means: JSON constrained by a schema wherever the server supports it."""
    tokenizer: Tokenizer = "none"
    """The format of its `/tokenize`. Without one, tokens are estimated."""
    cuts_silently: bool = False
    """Whether it silently drops the beginning of a prompt that is too long."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Extra fields of every request: decisions are short, so thinking is off."""
    grammar: bool = False
    """Whether it accepts a llama.cpp grammar, which makes replies shorter than a schema does."""


_NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "llamacpp",
            "http://127.0.0.1:8080/v1",
            "json",
            "llamacpp",
            extra={"cache_prompt": True, **_NO_THINKING},
            grammar=True,
        ),
        Preset("vllm", "http://127.0.0.1:8000/v1", "json", "vllm", extra=_NO_THINKING),
        Preset("ollama", "http://127.0.0.1:11434/v1", "json", cuts_silently=True, extra={"reasoning_effort": "none"}),
        Preset("lmstudio", "http://127.0.0.1:1234/v1", "json", cuts_silently=True),
    )
}


@dataclass(frozen=True)
class Endpoint:
    """A server, a model on it, and request settings."""

    preset: Preset
    url: str
    model: str = ""
    api_key: str = field(default="", repr=False)
    mode: Mode = "auto"
    timeout_s: float = 30.0
    """Seconds to connect, and between two chunks of a reply."""
    deadline_s: float = 120.0
    """Seconds for a whole decision, retries included."""
    attempts: int = 4
    """Most attempts until there is output."""
    max_tokens: int = 256
    longer_reply: int = 0
    """Most tokens of the reply after one that was cut; 0 for no more than before."""
    temperature: float = 0.0
    seed: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Extra request fields, overriding those of the preset."""
    system_role: str = "system"
    """The role of the first message. FunctionGemma's is `developer`."""
    reasoned: bool = False
    """Whether a reply says why before it calls, in mode `json`."""
    constrained: bool = True
    """Whether the server holds a reply to a schema. If not, the prompt alone asks for JSON."""
    checks_fit: bool = True
    """Whether a model that may decline is asked if its first call does what was asked. Not for one that was trained
    to decline."""

    @property
    def asks_for(self) -> Literal["json", "tools"]:
        """The mode, with `auto` resolved."""
        return self.preset.mode if self.mode == "auto" else self.mode

    def reply_limit(self, *, after_cut: bool = False) -> int:
        """Most tokens of a reply."""
        return max(self.max_tokens, self.longer_reply) if after_cut else self.max_tokens

    @property
    def root(self) -> str:
        """The address without `/v1`, for the server's own API."""
        return self.url.removesuffix("/").removesuffix("/v1")


def preset_of(server: str) -> tuple[Preset, str]:
    """The server type and address for a name or URL. Raises `ConfigError`."""
    if server in PRESETS:
        return PRESETS[server], PRESETS[server].url
    if re.match(r"https?://[^/\s]+", server):
        # Guides often show the address of a request instead of the server's.
        url = re.sub(r"(?<=/v\d)/(chat/completions|completions|models)$", "", server.rstrip("/"))
        return Preset("url", url, "tools"), url if re.search(r"/v\d+$", url) else f"{url}/v1"
    names = ", ".join(f"`{name}`" for name in PRESETS)
    raise ConfigError(
        f"`{server}` is not a server: expected `embedded`, {names}, or a URL such as `http://127.0.0.1:8080/v1`"
    )


def window_in(preset: str, answers: Mapping[str, Any], model: str) -> int | None:
    """The context window of `model`, from a server's answers by path; None if unknown."""
    if preset == "llamacpp":
        return _positive_int(_at(answers.get("/props"), "default_generation_settings", "n_ctx"))
    if preset == "vllm":
        return _positive_int(_find_named(_at(answers.get("/v1/models"), "data"), model, "id").get("max_model_len"))
    if preset == "lmstudio":
        found = _find_named(_at(answers.get("/api/v0/models"), "data"), model, "id")
        return _positive_int(found.get("loaded_context_length")) or _positive_int(found.get("max_context_length"))
    if preset == "ollama":
        return _ollama_window(answers, model)
    # OpenRouter lists `context_length`, and other servers vLLM's name.
    found = find_model(answers.get("/v1/models"), model)
    return _positive_int(found.get("context_length")) or _positive_int(found.get("max_model_len"))


def server_type(answers: Mapping[str, Any]) -> str | None:
    """The preset that a server's answers show; None if they show none."""
    listed = _at(answers.get("/v1/models"), "data")
    owners = {item.get("owned_by") for item in listed if isinstance(item, Mapping)} if isinstance(listed, list) else {}
    if "vllm" in owners:
        return "vllm"
    if "llamacpp" in owners or _at(answers.get("/props"), "default_generation_settings") is not None:
        return "llamacpp"
    if isinstance(_at(answers.get("/api/version"), "version"), str):
        return "ollama"
    return "lmstudio" if isinstance(_at(answers.get("/api/v0/models"), "data"), list) else None


def find_model(answer: Any, model: str) -> Mapping[str, Any]:
    """What a server's list of models says about one."""
    return _find_named(_at(answer, "data"), model, "id")


def _ollama_window(answers: Mapping[str, Any], model: str) -> int | None:
    """The window as loaded, else as set in the model's file, else Ollama's default, within the model's own limit."""
    loaded = _find_named(_at(answers.get("/api/ps"), "models"), model, "name")
    if _positive_int(loaded.get("context_length")):
        return _positive_int(loaded["context_length"])
    shown = answers.get("/api/show")
    if not isinstance(shown, Mapping):
        return None
    found = re.search(r"^num_ctx\s+(\d{1,9})\s*$", str(shown.get("parameters", "")), re.MULTILINE)
    own = [value for key, value in dict(shown.get("model_info") or {}).items() if str(key).endswith(".context_length")]
    limits = [limit for limit in map(_positive_int, own) if limit]
    return min([int(found[1]) if found else OLLAMA_DEFAULT, *limits])


def models_in(answer: Any) -> tuple[str, ...]:
    """The names in a server's list of models."""
    listed = _at(answer, "data")
    items = listed if isinstance(listed, list) else []
    return tuple(str(item["id"]) for item in items if isinstance(item, Mapping) and "id" in item)


def _find_named(items: Any, name: str, key: str) -> Mapping[str, Any]:
    """The item with that name. Ollama adds `:latest` if the user gives no tag."""
    for item in items if isinstance(items, list) else []:
        if isinstance(item, Mapping) and item.get(key) in (name, f"{name}:latest"):
            return item
    return {}


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _positive_int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
