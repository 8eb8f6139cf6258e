"""Model servers on loopback, over real HTTP: obedient ones that behave like a known server, and broken ones.

`FakeServer(*replies)` plays one reply a request, the last one for ever; each is a function of the open connection.
"""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Reply = Callable[["Wire"], None]


@dataclass
class Request:
    """What a server was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Wire:
    """An open connection, with the request that came over it."""

    connection: socket.socket
    request: Request
    over: threading.Event
    """Set when the test is over: nothing waits longer."""

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def head(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {kind}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def reset(self) -> None:
        """Hang up so that the other side sees a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def chunk(
    content: str | None = None, *, calls: Any = None, finish: str | None = None, usage: Any = None, **more: Any
) -> bytes:
    """One event of a streamed completion."""
    delta = {"content": content, "tool_calls": calls}
    said: dict[str, Any] = {
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake",
        "choices": [{"index": 0, "delta": {k: v for k, v in delta.items() if v is not None}, "finish_reason": finish}],
    }  # fmt: skip
    return b"data: " + json.dumps({**said, **({"usage": usage} if usage else {}), **more}).encode() + b"\n\n"


def call_part(name: str = "", arguments: Any = "", *, index: Any = 0, call_id: str = "c1") -> dict[str, Any]:
    return {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}


def stream(*parts: bytes) -> Reply:
    """The events as given, and then the end of the stream."""

    def reply(wire: Wire) -> None:
        wire.head()
        for part in parts:
            wire.send(part)

    return reply


def says(text: str, finish: str = "stop") -> Reply:
    """A whole reply in text, a few letters a chunk."""
    pieces = [chunk(text[at : at + 7]) for at in range(0, len(text), 7)]
    return stream(*pieces, chunk(finish=finish, usage=USAGE), DONE)


def chooses(tool: str, **args: Any) -> Reply:
    """A call as constrained JSON."""
    return says(json.dumps({"tool": tool, "args": args}))


def calls_natively(*parts: Any) -> Reply:
    return stream(*(chunk(calls=[part]) for part in parts), chunk(finish="tool_calls", usage=USAGE), DONE)


def answer(body: Any, status: int = 200, kind: str = "application/json", **headers: str) -> Reply:
    """A whole document."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def reply(wire: Wire) -> None:
        wire.head(status, kind, Content_Length=str(len(data)), **headers)
        wire.send(data)

    return reply


def by_path(**replies: Reply) -> Reply:
    """A reply for each path (`__` for `/`); 404 for all others."""
    known = {"/" + path.replace("__", "/"): reply for path, reply in replies.items()}

    def reply(wire: Wire) -> None:
        known.get(wire.request.path, answer({"error": {"message": "no such path"}}, 404))(wire)

    return reply


@dataclass
class FakeServer:
    """Listens while its block is open, keeps what it was asked, and plays its replies."""

    replies: list[Reply]
    asked: list[Request] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __init__(self, *replies: Reply) -> None:
        self.replies, self.asked, self.over = list(replies), [], threading.Event()
        fake = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                request = _read(self.request)
                if request is None:
                    return
                fake.asked.append(request)
                reply = fake.replies[0] if len(fake.replies) == 1 else fake.replies.pop(0)
                try:
                    reply(Wire(self.request, request, fake.over))
                except OSError:
                    return  # the other side has hung up

        class Threads(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 64

        self._server = Threads(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.root = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.root}/v1"

    def __enter__(self) -> FakeServer:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _read(connection: socket.socket) -> Request | None:
    file = connection.makefile("rb")
    first = file.readline().decode().split()
    if len(first) < 2:
        return None
    headers: dict[str, str] = {}
    while (line := file.readline().decode().strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    data = file.read(int(headers.get("content-length", "0")))
    return Request(first[0], first[1], headers, json.loads(data) if data else None)


def like_llamacpp(*, n_ctx: int = 4096, reply: Reply) -> Reply:
    """llama.cpp's server: tokenizes, tells the window of a slot, refuses a prompt that is too long."""
    props = {"default_generation_settings": {"n_ctx": n_ctx}, "total_slots": 1, "model_path": "/m/tiny.gguf"}

    def tokenize(wire: Wire) -> None:
        answer({"tokens": list(range(len(wire.request.body["content"].split())))})(wire)

    def complete(wire: Wire) -> None:
        if _words(wire.request.body) > n_ctx:
            error = {"code": 400, "message": "exceeds the available context size", "type": "exceed_context_size_error"}
            return answer({"error": error}, 400)(wire)
        return reply(wire)

    models = answer({"object": "list", "data": [{"id": "tiny.gguf", "owned_by": "llamacpp"}]})
    return by_path(props=answer(props), tokenize=tokenize, v1__models=models, v1__chat__completions=complete)


def like_vllm(*, window: int = 8192, model: str = "org/tiny", reply: Reply) -> Reply:
    """vLLM: tokenizes in its own shape, tells `max_model_len`, knows one model, refuses a prompt that is too long."""

    def tokenize(wire: Wire) -> None:
        tokens = list(range(len(wire.request.body["prompt"].split())))
        answer({"count": len(tokens), "max_model_len": window, "tokens": tokens})(wire)

    def complete(wire: Wire) -> None:
        if wire.request.body["model"] != model:
            return answer({"error": {"message": "The model does not exist.", "code": 404}}, 404)(wire)
        if _words(wire.request.body) > window:
            return answer({"error": {"message": f"maximum context length is {window} tokens", "code": 400}}, 400)(wire)
        return reply(wire)

    models = answer({"object": "list", "data": [{"id": model, "max_model_len": window}]})
    return by_path(tokenize=tokenize, v1__models=models, v1__chat__completions=complete)


@dataclass
class LikeOllama:
    """Ollama: no tokenizer; a window by load, by file or by default; the start of a long prompt is cut, silently."""

    reply: Reply
    model: str = "qwen3:4b"
    num_ctx: int | None = None
    server_window: int = 4096
    own_window: int = 40960
    loaded: bool = False

    def __call__(self, wire: Wire) -> None:
        paths: Mapping[str, Reply] = {
            "/v1/models": answer({"object": "list", "data": [{"id": self.model}]}),
            "/api/show": self._show,
            "/api/ps": answer({"models": [{"name": self.model, "context_length": self.window}] * self.loaded}),
            "/api/generate": self._load,
            "/v1/chat/completions": self._complete,
        }
        paths.get(wire.request.path, answer({"error": "404 page not found"}, 404))(wire)

    @property
    def window(self) -> int:
        return min(self.num_ctx or self.server_window, self.own_window)

    def _show(self, wire: Wire) -> None:
        if wire.request.body.get("model") != self.model:
            return answer({"error": "model not found"}, 404)(wire)
        parameters = f"temperature 0.6\nnum_ctx {self.num_ctx}" if self.num_ctx else "temperature 0.6"
        info = {"general.architecture": "qwen3", "qwen3.context_length": self.own_window}
        return answer({"parameters": parameters, "model_info": info, "capabilities": ["completion", "tools"]})(wire)

    def _load(self, wire: Wire) -> None:
        self.loaded = True
        answer({"model": self.model, "response": "", "done": True, "done_reason": "load"})(wire)

    def _complete(self, wire: Wire) -> None:
        if wire.request.body["model"] != self.model:
            return answer({"error": {"message": f"model '{wire.request.body['model']}' not found"}}, 404)(wire)
        self.loaded = True
        read = min(_words(wire.request.body), self.window)
        text = json.dumps({"tool": "submit_result", "args": {"summary": "ok"}})
        usage = {"prompt_tokens": read, "completion_tokens": 9, "total_tokens": read + 9}
        return stream(chunk(text), chunk(finish="stop"), chunk(choices=[], usage=usage), DONE)(wire)


def like_lmstudio(*, loaded: int | None = 4096, reply: Reply) -> Reply:
    """LM Studio: no tokenizer; tells how a model was loaded, else what it could hold."""
    state = {"state": "loaded", "loaded_context_length": loaded} if loaded else {"state": "not-loaded"}
    listed = {"data": [{"id": "tiny", "type": "llm", "max_context_length": 32768, **state}]}
    models = answer({"object": "list", "data": [{"id": "tiny"}]})
    return by_path(api__v0__models=answer(listed), v1__models=models, v1__chat__completions=reply)


def _words(body: Any) -> int:
    return sum(len(str(message["content"]).split()) for message in body["messages"])
