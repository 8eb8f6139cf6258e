"""Training: tokens as the server makes them, runs that can be stopped, adapters that llama.cpp reads as torch does."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from inference.real import smollm2
from inference.tiny import ALPHABET, string, value
from remora.context.contracts import ToolSpec
from remora.errors import ConfigError
from remora.gguf import read_layout, read_pairs
from remora.inference import Adapter, EmbeddedPolicy, EmbeddedServer, EstimatedCounter, read_adapter, sha256_of
from remora.ports import Prompt
from remora.subagent import SUBMIT_RESULT
from remora_lab.train import TrainingRow, answer_text, run_training, synthetic_rows, write_rows
from train.torch_python import with_torch

TOKENS = """
import json, sys
from pathlib import Path
from remora_lab.trainer.tensors import Gguf
from remora_lab.trainer.tokens import RowTokenizer
tokenizer = RowTokenizer(Gguf(Path(sys.argv[1])))
rows = tokenizer.rows([json.loads(line) for line in Path(sys.argv[2]).read_bytes().splitlines()])
print(json.dumps([[list(row.prompt), list(row.answer)] for row in rows]))
"""

# An adapter of chance, strong on queries and keys: what comes of it depends on the order of every row.
STRONG = """
import json, sys
from pathlib import Path
import torch
from remora_lab.trainer.tensors import Gguf, write_adapter
from remora_lab.trainer.model import BaseModel
from remora_lab.trainer.tokens import RowTokenizer, chatml
gguf = Gguf(Path(sys.argv[1]))
torch.set_num_threads(1)
model = BaseModel(gguf, rank=16, alpha=32.0, dtype=torch.float32, seed=3)
with torch.no_grad():
    for block in model.blocks:
        for name, layer in block.linear.items():
            layer.b.copy_(torch.randn(layer.b.shape) * (0.3 if name in ("attn_q", "attn_k") else 0.005))
ids = RowTokenizer(gguf).ids(chatml([{"role": "user", "content": "Name three colours, and the capital of France."}]))
with torch.no_grad():
    said = model.logits(model.hidden(torch.tensor([ids]))[0, -1]).log_softmax(-1).topk(10)
meta = {"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora", "adapter.lora.alpha": 32.0}
tensors = dict(model.adapter())
write_adapter(Path(sys.argv[2]), tensors, meta)
for name, tensor in tensors.items():
    if name.endswith("lora_b") and ("attn_q" in name or "attn_k" in name):
        halves = tensor.reshape(-1, 2, 32, 16)
        tensors[name] = halves.swapaxes(1, 2).reshape(tensor.shape)
write_adapter(Path(sys.argv[3]), tensors, meta)
print(json.dumps({"prompt": ids, "said": dict(zip(said.indices.tolist(), said.values.tolist()))}))
"""

# Every row alone, and all of them packed into sequences that share what they begin with.
PACKED = """
import json, sys
from pathlib import Path
import torch
from remora_lab.trainer.batches import batches, collate
from remora_lab.trainer.model import BaseModel
from remora_lab.trainer.tensors import Gguf
from remora_lab.trainer.tokens import RowTokenizer
gguf = Gguf(Path(sys.argv[1]))
rows = RowTokenizer(gguf).rows([json.loads(line) for line in Path(sys.argv[2]).read_bytes().splitlines()])
model = BaseModel(gguf, rank=2, alpha=2.0, dtype=torch.float32, seed=3)
away, seen, read = 0.0, 0, 0
with torch.no_grad():
    for group in batches(rows, int(sys.argv[3]), 7):
        batch = collate(group, torch.device("cpu"))
        found = model.logits(model.hidden(batch.ids, batch.positions, batch.mask).flatten(0, 1)[batch.places])
        read += sum(len(tree.ids) for tree in group)
        at = 0
        for row in batch.rows:
            alone = model.logits(model.hidden(torch.tensor([row.prompt + row.answer]))[0, len(row.prompt) - 1 : -1])
            away = max(away, float((found[at : at + len(row.answer)] - alone).abs().max()))
            assert batch.answers[at : at + len(row.answer)].tolist() == list(row.answer)
            at, seen = at + len(row.answer), seen + 1
print(json.dumps({"away": away, "rows": seen, "read": read, "whole": sum(map(len, rows))}))
"""


async def likeliest(gguf: Path, adapter: Path, prompt: list[int]) -> dict[int, float]:
    """What llama.cpp would say next with this adapter: tokens and the logarithms of their chances."""
    asked = {"prompt": prompt, "n_predict": 1, "n_probs": 40, "temperature": 0, "lora": [{"id": 0, "scale": 1.0}]}
    async with EmbeddedServer(gguf, context=512, adapters=[adapter]) as server:
        child = await server.ready()
        async with httpx2.AsyncClient(base_url=child.url, headers={"Authorization": f"Bearer {child.key}"}) as client:
            told = (await client.post("/completion", json=asked, timeout=60)).json()
    return {item["id"]: item["logprob"] for item in told["completion_probabilities"][0]["top_logprobs"]}


async def test_an_adapter_of_chance_changes_llama_cpp_by_as_much_as_it_changes_torch(tmp_path: Path) -> None:
    gguf = smollm2()
    good, permuted = tmp_path / "good.gguf", tmp_path / "permuted.gguf"
    made = with_torch("-c", STRONG, gguf, good, permuted)
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    wanted = {int(token): chance for token, chance in told["said"].items()}

    async def apart(adapter: Path) -> float:
        found = await likeliest(gguf, adapter, told["prompt"])
        return sum(abs(found.get(token, -20.0) - chance) for token, chance in wanted.items()) / len(wanted)

    assert await apart(good) < 0.15
    assert await apart(permuted) > 0.5


def code_tool(name: str) -> ToolSpec:
    schema = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    return ToolSpec(name=name, description="Mend one.", parameters=schema)


def small_rows() -> list[tuple[TrainingRow, tuple[ToolSpec, ...]]]:
    """Four short prompts whose answers cannot be guessed from each other."""
    made = []
    for tool, code in (("mend", "Q17"), ("sweep", "zor-9"), ("patch", "K3"), ("close", "#88")):
        tools = (code_tool(tool), SUBMIT_RESULT)
        listed = "\n".join(json.dumps({"name": each.name, "args": each.parameters["properties"]}) for each in tools)
        packet = json.dumps({"goal": "Clean up", "open": [code], "turn": 1})
        messages = ({"role": "system", "content": f"Tools:\n{listed}"}, {"role": "user", "content": packet})
        answer = answer_text(tool, {"code": code}, tools) or ""
        made.append((TrainingRow(f"{tool}/1", "trace", "lint", "json-2", messages, answer), tools))
    return made


async def test_rows_become_the_tokens_that_the_server_makes_of_the_same_messages(tmp_path: Path) -> None:
    gguf = smollm2()
    rows = [*synthetic_rows(3, 40, EstimatedCounter())]
    odd = ({"role": "user", "content": "Äöü 漢字 <|im_end|> \t x1234\r\n" + "é" * 9},)
    rows.append(TrainingRow("odd/1", "trace", "", "json-2", odd, '{"tool":"a","args":{}}'))
    write_rows(tmp_path / "rows.jsonl", rows)
    made = with_torch("-c", TOKENS, gguf, tmp_path / "rows.jsonl")
    assert made.returncode == 0, made.stderr
    async with EmbeddedServer(gguf, context=1024) as server:
        child = await server.ready()
        async with httpx2.AsyncClient(base_url=child.url, headers={"Authorization": f"Bearer {child.key}"}) as client:
            for row, (prompt, answer) in zip(rows, json.loads(made.stdout), strict=True):
                asked = await client.post("/apply-template", json={"messages": row.messages})
                told = {"content": asked.json()["prompt"], "parse_special": True}
                assert (await client.post("/tokenize", json=told)).json()["tokens"] == prompt
                told = {"content": row.answer + "<|im_end|>", "parse_special": True}
                assert (await client.post("/tokenize", json=told)).json()["tokens"] == answer


@pytest.mark.faults
async def test_an_adapter_says_in_llama_cpp_what_it_said_in_torch(tmp_path: Path) -> None:
    gguf, rows = smollm2(), small_rows()
    path = tmp_path / "rows.jsonl"
    write_rows(path, [row for row, _ in rows])
    base = ["--base", gguf, "--rows", path, "--valid", path, "--out", tmp_path / "out", "--holdout", "0"]
    done = with_torch("-m", "remora_lab.trainer", *base, "--epochs", "12", "--lr", "2e-3", "--threads", "1")
    assert done.returncode == 0, done.stderr
    judged = orjson.loads((tmp_path / "out" / "metrics.json").read_bytes())["judged"]["all"]
    assert (judged["exact"], judged["right_tool"]) == (1.0, 1.0)
    adapter = tmp_path / "out" / "adapter.gguf"
    found = read_adapter(adapter)
    assert (found.renderers, found.base, found.calling) == (("json-2",), f"sha256:{sha256_of(gguf)}", "text")
    assert adapter.stat().st_size < 10_000_000
    async with EmbeddedPolicy(EmbeddedServer(gguf, context=1024, adapters=[adapter]), adapter=Adapter(0)) as policy:
        for row, tools in rows:
            assert (await policy.decide(Prompt(row.messages, tools, (), 1))).text == row.answer
        plain = policy.using(None)
        said = [(await plain.decide(Prompt(row.messages, tools, (), 1))).text for row, tools in rows]
        assert said != [row.answer for row, _ in rows]


def tiny_model(path: Path, like: Path | None = None) -> Path:
    """A llama of two narrow layers with a byte-level tokenizer: nothing in it means anything, all can be trained.

    With `like`, it has the tokenizer of that file.
    """
    width, heads, size, feed = 32, 4, 8, 48
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *ALPHABET]
    meta: dict[str, Any] = {
        "general.architecture": "llama", "llama.block_count": 2, "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": 2, "llama.rope.dimension_count": size, "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.token_type": [3, 3, 3] + [1] * len(ALPHABET), "tokenizer.chat_template": "<|im_start|>",
    }  # fmt: skip
    tokens.append("ab")
    meta["tokenizer.ggml.token_type"].append(1)
    if like is not None:
        meta |= {name: held for name, held in read_pairs(like, ("tokenizer.ggml.",)).items() if name in meta}
        tokens = meta["tokenizer.ggml.tokens"]
    body = b"".join(string(key) + value(item) for key, item in meta.items())
    body += string("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-5)
    shapes = {"token_embd": (width, len(tokens)), "output_norm": (width,)}
    for block in ("blk.0.", "blk.1."):
        shapes |= {f"{block}attn_q": (width, width), f"{block}attn_k": (width, 16), f"{block}attn_v": (width, 16)}
        shapes |= {f"{block}attn_output": (width, width), f"{block}ffn_gate": (width, feed)}
        shapes |= {f"{block}ffn_up": (width, feed), f"{block}ffn_down": (feed, width)}
        shapes |= {f"{block}attn_norm": (width,), f"{block}ffn_norm": (width,)}
    data = b""
    for place, (name, dims) in enumerate(shapes.items()):
        body += string(f"{name}.weight") + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, len(data))
        count = dims[0] * (dims[1] if len(dims) > 1 else 1)
        numbers = [
            ((7 * place + 31 * n * n + 17 * n) % 101 / 101 - 0.5) * (2 if len(dims) == 1 else 0.6) for n in range(count)
        ]
        data += struct.pack(f"<{count}f", *numbers)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(meta) + 1) + body
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path


@pytest.mark.parametrize("tokens", [4000, 40000])
def test_rows_that_share_their_beginning_are_learned_as_if_each_were_alone(tmp_path: Path, tokens: int) -> None:
    write_rows(tmp_path / "rows.jsonl", [*synthetic_rows(5, 12, EstimatedCounter())])
    done = with_torch("-c", PACKED, tiny_model(tmp_path / "tiny.gguf"), tmp_path / "rows.jsonl", str(tokens))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["rows"] == 12
    assert told["away"] < 1e-4
    assert told["read"] < 0.9 * told["whole"]


def test_an_adapter_of_the_last_blocks_has_no_tensors_of_the_others(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", [*synthetic_rows(5, 12, EstimatedCounter())])
    base = tiny_model(tmp_path / "tiny.gguf")
    common = ["-m", "remora_lab.trainer", "--base", base, "--rows", tmp_path / "rows.jsonl", "--batch-tokens", "8000"]
    common += ["--max-tokens", "20000", "--epochs", "1", "--threads", "1", "--device", "cpu", "--blocks", "1"]
    done = with_torch(*common, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    names = {tensor.name.split(".")[1] for tensor in read_layout(tmp_path / "out" / "adapter.gguf").tensors}
    assert names == {"1"}


# A run in which one gradient is not a number.
SKIPPED = """
import sys, torch
from remora_lab.trainer.__main__ import Training, arguments
training = Training(arguments(sys.argv[1:]))
weight = next(training.model.parameters())
weight.register_hook(lambda gradient: gradient * float("nan") if training.done == 1 else gradient)
assert training.run() and training.done > 2
assert all(bool(torch.isfinite(each).all()) for each in training.model.parameters())
print(training.report()["skipped"])
"""


def test_a_step_whose_gradient_is_not_a_number_changes_no_weight(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", [*synthetic_rows(5, 12, EstimatedCounter())])
    words = ["--base", tiny_model(tmp_path / "tiny.gguf"), "--rows", tmp_path / "rows.jsonl", "--out", tmp_path]
    words += ["--batch-tokens", "8000", "--max-tokens", "20000", "--threads", "1", "--device", "cpu"]
    done = with_torch("-c", SKIPPED, *words)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr
    assert "step 2 is skipped: the gradient is nan" in done.stderr


def test_prompts_of_a_file_are_answered_once_each(tmp_path: Path) -> None:
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    rows = [{"id": str(number), "text": "say " * number, "begin": "{"} for number in (3, 1, 2)]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows[:2]), encoding="utf-8")
    words = ["--base", tiny_model(tmp_path / "tiny.gguf"), "--prompts", prompts, "--out", out, "--most", "4"]
    answer = ["-m", "remora_lab.trainer.answer", *words, "--slots", "2", "--length", "64", "--device", "cpu"]
    assert with_torch(*answer).returncode == 0
    first = out.read_text(encoding="utf-8")
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert with_torch(*answer).returncode == 0
    assert out.read_text(encoding="utf-8").startswith(first)
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in found] == ["1", "3", "2"]
    assert all(set(row) == {"id", "text"} and row["text"].startswith("{") for row in found)


def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", [*synthetic_rows(5, 12, EstimatedCounter())])
    base = tiny_model(tmp_path / "tiny.gguf")
    common = ["-m", "remora_lab.trainer", "--base", base, "--rows", tmp_path / "rows.jsonl", "--batch-tokens", "8000"]
    common += ["--max-tokens", "20000", "--epochs", "3", "--threads", "1", "--device", "cpu", "--holdout", "0.2"]
    whole = with_torch(*common, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    stopped = with_torch(*common, "--out", tmp_path / "parts", "--minutes", "0.000001")
    assert stopped.returncode == 3, stopped.stderr
    assert with_torch(*common, "--out", tmp_path / "parts", "--resume").returncode == 0
    one, two = (orjson.loads((tmp_path / name / "metrics.json").read_bytes()) for name in ("whole", "parts"))
    assert one["settings"] == two["settings"]
    assert one["judged"] == two["judged"]
    assert one["settings"]["steps"] == one["done"] > 3
    tensors = [(tmp_path / name / "adapter.gguf").read_bytes()[-1000:] for name in ("whole", "parts")]
    assert tensors[0] == tensors[1]
    other = with_torch(*common, "--out", tmp_path / "parts", "--resume", "--seed", "2")
    assert other.returncode == 2
    assert "of other rows or settings" in other.stderr
    assert "Traceback" not in other.stderr


def test_a_run_that_starts_from_an_adapter_knows_what_that_one_had_learned(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", [*synthetic_rows(5, 12, EstimatedCounter())])
    base = tiny_model(tmp_path / "tiny.gguf")
    common = [
        "-m",
        "remora_lab.trainer",
        "--base",
        base,
        "--rows",
        tmp_path / "rows.jsonl",
        "--valid",
        tmp_path / "rows.jsonl",
    ]
    common += ["--batch-tokens", "8000", "--max-tokens", "20000", "--threads", "1", "--device", "cpu", "--holdout", "0"]
    first = with_torch(*common, "--out", tmp_path / "first", "--epochs", "8")
    assert first.returncode == 0, first.stderr
    learned = tmp_path / "first" / "adapter.gguf"
    # Another alpha weighs the same numbers differently; at a rate of almost nothing the adapter stays what it was.
    again = with_torch(
        *common, "--out", tmp_path / "again", "--epochs", "1", "--start", learned, "--lr", "1e-12", "--alpha", "16"
    )
    assert again.returncode == 0, again.stderr
    one, two = (orjson.loads((tmp_path / name / "metrics.json").read_bytes()) for name in ("first", "again"))
    assert two["judged"]["all"]["loss"] == pytest.approx(one["judged"]["all"]["loss"], rel=0.01)
    assert two["settings"]["start"].startswith("sha256:")
    wide = with_torch(*common, "--out", tmp_path / "wide", "--start", learned, "--rank", "8")
    assert wide.returncode == 2
    assert "cannot be gone on from" in wide.stderr
    assert "expected (8, 32)" in wide.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"x": 1', "rows.jsonl:1` is no row: JSONDecodeError"),
        ('{"messages": [], "answer": "a"}\n{"x": 1}', "rows.jsonl:2` is no row: KeyError: 'messages'"),
        ("[]", "rows.jsonl:1` is no row"),
        ("", "There is no row to learn from in"),
    ],
)
def test_rows_that_are_none_are_told_by_their_line(tmp_path: Path, text: str, told: str) -> None:
    rows, base = tmp_path / "rows.jsonl", tiny_model(tmp_path / "tiny.gguf")
    rows.write_text(text)
    done = with_torch("-m", "remora_lab.trainer", "--base", base, "--rows", rows, "--out", tmp_path / "out")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert told in done.stderr
    assert not (tmp_path / "out" / "adapter.gguf").exists()


def test_an_adapter_of_other_weights_is_not_gone_on_from(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", [row for row, _ in small_rows()])
    base = tiny_model(tmp_path / "tiny.gguf")
    with pytest.raises(ConfigError, match="was trained for other weights"):
        run_training(base, [tmp_path / "rows.jsonl"], tmp_path / "out", start="bundled")
    with pytest.raises(ConfigError, match="is not an adapter"):
        run_training(base, [tmp_path / "rows.jsonl"], tmp_path / "out", start=str(base))
