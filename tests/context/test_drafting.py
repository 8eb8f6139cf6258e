"""The prompt of a draft: instructions and examples that never change, then the packet's excerpts, within the limit."""

from __future__ import annotations

from remora.context.drafting import choose_rule, other_arguments, render_draft
from remora.context.models import DecisionPacket, Excerpt, KnowledgeEntry
from remora.context.render import render
from remora.inference import EstimatedCounter
from remora.subagent import DraftRule

RULE = DraftRule.model_validate(
    {
        "tool": "write_note",
        "argument": "text",
        "when": "state",
        "is": "equal",
        "value": "missing",
        "args": {"kind": "{state}"},
        "system_prompt": "Write one sentence.\n",
        "examples": [{"shown": "Code of b.py:g:\npass\n", "written": "Do nothing.\n"}],
        "excerpts": ["code", "uses"],
    }
)


def packet(lines: int = 4, state: str = "missing") -> DecisionPacket:
    code = "\n".join(f"    step_{number}()" for number in range(lines))
    return DecisionPacket(
        agent_id="a",
        goal="Document it",
        operation="notes",
        node_id="a.py:f",
        knowledge={"state": KnowledgeEntry(key="state", value=state, source_turn=0)},
        excerpts=[
            Excerpt(label="code", text=code, start_line=3),
            Excerpt(label="others", text="Return it.", start_line=1),
            Excerpt(label="uses", text="f()\nf(1)", start_line=1),
        ],
    )


def count(text: str) -> int:
    return len(text.split())


def test_instructions_examples_and_the_named_excerpts_are_all_that_is_shown() -> None:
    built = render_draft(packet(), RULE, 1000, count)
    assert built is not None
    assert [message["role"] for message in built.messages] == ["system", "user", "assistant", "user"]
    assert built.messages[:3] == (
        {"role": "system", "content": "Write one sentence."},
        {"role": "user", "content": "Code of b.py:g:\npass"},
        {"role": "assistant", "content": "Do nothing."},
    )
    shown = built.messages[3]["content"]
    assert shown.startswith("Code of a.py:f:\n    step_0()\n")
    assert shown.endswith("Uses:\nf()\nf(1)")
    assert "Return it." not in shown
    assert built.left_out == {}


def test_a_long_excerpt_is_cut_at_the_limit_and_the_receipt_counts_the_lines() -> None:
    for limit in (60, 80, 200):
        built = render_draft(packet(lines=300), RULE, limit, count)
        assert built is not None
        assert built.tokens["total"] <= limit
        assert built.left_out["excerpt lines"] + built.messages[-1]["content"].count("step_") == 302


def test_a_prompt_that_could_show_no_code_is_not_made() -> None:
    assert render_draft(packet(lines=300), RULE, 25, count) is None
    assert render_draft(packet().model_copy(update={"excerpts": []}), RULE, 1000, count) is None


def test_a_rule_holds_only_where_its_knowledge_and_its_tool_are_there() -> None:
    assert choose_rule([RULE], packet(), ["write_note"]) is RULE
    assert choose_rule([RULE], packet(state="complete"), ["write_note"]) is None
    assert choose_rule([RULE], packet(), ["submit_result"]) is None
    assert choose_rule([], packet(), ["write_note"]) is None
    assert other_arguments(RULE, packet()) == {"kind": "missing"}


def test_an_excerpt_for_drafts_is_in_no_other_prompt() -> None:
    texts = [Excerpt(label="draft: error", text="Only for drafts"), Excerpt(label="code", text="def f(): pass")]
    shown = packet().model_copy(update={"excerpts": texts})
    usual = str(render(shown, system_prompt="Do it.", tools=(), limit=1000, counter=EstimatedCounter()).messages)
    assert "def f(): pass" in usual
    assert "Only for drafts" not in usual
    drafted = render_draft(shown, RULE.model_copy(update={"excerpts": ("draft: error",)}), 1000, len)
    assert drafted is not None
    assert str(drafted.messages[-1]["content"]).startswith("Error of a.py:f:\nOnly for drafts")
