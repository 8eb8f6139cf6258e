"""What each kind of server can do, and what it says about the model it serves.

The table is small and stated once; `docs/reference/servers.md` tells it to people. Where a server cuts a long prompt
without a word, its window is looked up before anything is sent.
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
"""The window that Ollama gives a model of which neither its file nor its own list says more."""


@dataclass(frozen=True)
class Preset:
    """A kind of server."""

    name: str
    url: str
    """Where it listens unless told otherwise."""
    mode: Literal["json", "tools"]
    """What `auto` means: JSON bound to a schema wherever the server can be held to one."""
    tokenizer: Tokenizer = "none"
    """Whose shape its `/tokenize` has; without one tokens are estimated."""
    cuts_silently: bool = False
    """Whether a prompt that is too long loses its beginning without an error."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What every request says beside OpenAI's fields: a decision is short, so no thinking before it."""


_NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "llamacpp", "http://127.0.0.1:8080/v1", "json", "llamacpp", extra={"cache_prompt": True, **_NO_THINKING}
        ),
        Preset("vllm", "http://127.0.0.1:8000/v1", "json", "vllm", extra=_NO_THINKING),
        Preset("ollama", "http://127.0.0.1:11434/v1", "json", cuts_silently=True, extra={"reasoning_effort": "none"}),
        Preset("lmstudio", "http://127.0.0.1:1234/v1", "json", cuts_silently=True),
    )
}


@dataclass(frozen=True)
class Endpoint:
    """A server, a model on it, and how it is asked."""

    preset: Preset
    url: str
    model: str = ""
    api_key: str = field(default="", repr=False)
    mode: Mode = "auto"
    timeout_s: float = 30.0
    """Until a connection is there, and between two parts of a reply."""
    deadline_s: float = 120.0
    """For a whole decision, retries included."""
    attempts: int = 4
    """How often a request is sent, until something is said."""
    max_tokens: int = 256
    temperature: float = 0.0
    seed: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request beside OpenAI's, above those of the preset."""

    @property
    def asks_for(self) -> Literal["json", "tools"]:
        """The mode, with `auto` resolved."""
        return self.preset.mode if self.mode == "auto" else self.mode

    @property
    def root(self) -> str:
        """The address without `/v1`: where a server's own questions are answered."""
        return self.url.removesuffix("/").removesuffix("/v1")


def preset_of(server: str) -> tuple[Preset, str]:
    """The kind and the address that a user means by a name or a URL. Raises `ConfigError`."""
    if server in PRESETS:
        return PRESETS[server], PRESETS[server].url
    if re.match(r"https?://[^/\s]+", server):
        url = server.rstrip("/")
        return Preset("url", url, "tools"), url if re.search(r"/v\d+$", url) else f"{url}/v1"
    names = ", ".join(f"`{name}`" for name in PRESETS)
    raise ConfigError(f"`{server}` is not a server: expected {names}, or a URL such as `http://127.0.0.1:8080/v1`")


def window_in(preset: str, answers: Mapping[str, Any], model: str) -> int | None:
    """The context window of `model`, from a server's answers by path; None where they do not tell."""
    if preset == "llamacpp":
        return _whole(_at(answers.get("/props"), "default_generation_settings", "n_ctx"))
    if preset == "vllm":
        return _whole(_named(_at(answers.get("/v1/models"), "data"), model, "id").get("max_model_len"))
    if preset == "lmstudio":
        found = _named(_at(answers.get("/api/v0/models"), "data"), model, "id")
        return _whole(found.get("loaded_context_length")) or _whole(found.get("max_context_length"))
    return _ollama_window(answers, model) if preset == "ollama" else None


def _ollama_window(answers: Mapping[str, Any], model: str) -> int | None:
    """As it was loaded; else what the model's file sets; else Ollama's default, if the model itself allows that."""
    loaded = _named(_at(answers.get("/api/ps"), "models"), model, "name")
    if _whole(loaded.get("context_length")):
        return _whole(loaded["context_length"])
    shown = answers.get("/api/show")
    if not isinstance(shown, Mapping):
        return None
    found = re.search(r"^num_ctx\s+(\d{1,9})\s*$", str(shown.get("parameters", "")), re.MULTILINE)
    own = [value for key, value in dict(shown.get("model_info") or {}).items() if str(key).endswith(".context_length")]
    limits = [limit for limit in map(_whole, own) if limit]
    return min([int(found[1]) if found else OLLAMA_DEFAULT, *limits])


def models_in(answer: Any) -> tuple[str, ...]:
    """The names in a server's list of models."""
    listed = _at(answer, "data")
    items = listed if isinstance(listed, list) else []
    return tuple(str(item["id"]) for item in items if isinstance(item, Mapping) and "id" in item)


def _named(items: Any, name: str, key: str) -> Mapping[str, Any]:
    """The item of that name; Ollama writes `:latest` where a user does not."""
    for item in items if isinstance(items, list) else []:
        if isinstance(item, Mapping) and item.get(key) in (name, f"{name}:latest"):
            return item
    return {}


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
