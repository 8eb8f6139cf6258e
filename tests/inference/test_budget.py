"""Row 29: every prompt is within its limit by the real tokenizer, whatever the packet holds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import remora
from inference.tiny import gguf, tokenizer_pairs, trained
from remora.context.budget import check_limit, reserved
from remora.context.models import DecisionPacket
from remora.context.render import MESSAGE_OVERHEAD, Rendered, fixed_tokens, render, system_text
from remora.events import CandidateAction, Excerpt, ModelRequestEvent
from remora.inference import GgufCounter, JsonCounter
from remora.trace import read_events

Record = Callable[[str, object], None]
SYSTEM = "You fix code."
DENSE = ["𐀀", '"', "\\", "9", "{", "漢", "\U000f0000", "é\u0301", "\u2028", " a", "don't ", "\x7f", "aA"]
hostile = st.lists(st.sampled_from(DENSE) | st.characters(exclude_categories=["Cs"]), max_size=60).map(
    lambda parts: "".join(parts) * 12
)


@cache
def counter(size: int) -> JsonCounter:
    """A real tokenizer with `size` tokens."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        trained(size).save(str(path))
        return JsonCounter(path)


def least(size: int) -> int:
    """The smallest limit that passes the check."""
    count = counter(size)
    return fixed_tokens(system_text(SYSTEM, []), count) + reserved(count.count)


def prompt(packet: DecisionPacket, size: int, limit: int) -> Rendered:
    return render(packet, system_prompt=SYSTEM, tools=[], limit=limit, counter=counter(size))


def within(rendered: Rendered, size: int, limit: int) -> bool:
    said = sum(counter(size).count(message["content"]) for message in rendered.messages)
    return said + 2 * MESSAGE_OVERHEAD == rendered.tokens["total"] <= limit


def packed(text: str, many: int) -> DecisionPacket:
    """A packet in which everything is `text`."""
    packet = DecisionPacket(
        agent_id="a", goal=text, operation=text, node_id=text, turn=10**6, last_error=text, node_summary=text,
        state_summary=text, diagnostics=[text] * 8, excerpts=[Excerpt(label=str(n), text=text) for n in range(3)],
        candidate_actions=[CandidateAction(tool=text, reason=text)] * 5, extensions={f"{text}{n}": text for n in "ab"},
        hub_context={f"{text}{n}": text for n in "ab"}, constraints={"max_turns": 10**6, "safety": [text]},
    )  # fmt: skip
    for number in range(many):
        packet.add_action(text, text, "success")
        packet.update_knowledge(f"{text}{number}", text)
        packet.knowledge[f"{text}{number}"].pinned = number % 2 == 0
    return packet


@pytest.mark.parametrize("size", [256, 500, 2000])
@settings(max_examples=40)
@given(text=hostile, many=st.integers(0, 12), room=st.integers(0, 900))
def test_every_prompt_is_within_its_limit_by_the_real_tokenizer(size: int, text: str, many: int, room: int) -> None:
    limit = least(size) + room
    check_limit(fixed_tokens(system_text(SYSTEM, []), counter(size)), limit, reserved(counter(size).count))
    assert within(prompt(packed(text, many), size, limit), size, limit)


@pytest.mark.parametrize("dense", DENSE)
@pytest.mark.parametrize("size", [256, 2000])
def test_the_worst_packet_fits_what_is_reserved(size: int, dense: str) -> None:
    assert within(prompt(packed(dense * 300, 12), size, least(size)), size, least(size))


def test_values_of_ten_megabytes_leave_the_prompt_within_its_limit(record_property: Record) -> None:
    packet = packed("漢字", 3)
    packet.update_knowledge("huge", "9" * 10_000_000)
    packet.update_knowledge("list", ["é𐀀"] * 2_000_000)
    packet.excerpts = [Excerpt(label="log", text='{"a": "b"}\n' * 1_000_000)]
    rendered = prompt(packet, 500, 1000)
    assert within(rendered, 500, 1000)
    assert rendered.left_out["knowledge"] >= 2
    record_property("row 29", f"35 MB of values, a real tokenizer: {rendered.tokens['total']} of 1000 tokens")


def test_a_hundred_thousand_keys_leave_the_prompt_within_its_limit() -> None:
    packet = packed("x", 0)
    for number in range(100_000):
        packet.update_knowledge(f'key "{number}"', f"✓ {number}")
    rendered = prompt(packet, 500, 1000)
    assert within(rendered, 500, 1000)
    assert rendered.left_out["knowledge"] > 99_000


async def test_the_receipt_names_the_tokenizer_that_counted(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(gguf(tokenizer_pairs()))
    count = GgufCounter(tmp_path / "tiny.gguf")
    async with remora.TwoTrack(goal="Count", state_dir=tmp_path, counter=count) as track:
        await track.request()
    receipts = [event for event in read_events(track.path) if isinstance(event, ModelRequestEvent)]
    assert [receipt.counter for receipt in receipts] == [
        {"name": "gguf:tiny.gguf", "exact": True, "digest": count.digest}
    ]
