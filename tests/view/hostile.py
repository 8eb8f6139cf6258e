"""Payloads that try to run a script, and streams with one of them in every field that a page may show."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from remora.events import (
    ActionDelta,
    AgentEndEvent,
    AgentErrorEvent,
    AgentResumedEvent,
    AgentStartEvent,
    Call,
    CandidateAction,
    ErrorDelta,
    EscalationEvent,
    Event,
    EvidenceDelta,
    Excerpt,
    FileChange,
    HubDelta,
    HubUpdateEvent,
    KnowledgeDelta,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    PacketDelta,
    PacketUpdateEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UserInputEvent,
)

RUN = "window.pwned=1"
_HANDLERS = ("onerror", "onload", "onclick", "onfocus", "onmouseover", "ontoggle", "onanimationstart", "onbeforetoggle")
_TAGS = ("img src=x", "svg", "body", "details open", "input autofocus", "video src=x", "iframe src=x", "a href=x")
_BREAKS = (
    "",
    '"',
    "'",
    ">",
    '">',
    "'>",
    "</title>",
    "</textarea>",
    "</script>",
    "</style>",
    "-->",
    "]]>",
    "</template>",
)
_WHOLE = (
    f"<script>{RUN}</script>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><a xlink:href='javascript:{RUN}'><text>x</text></a></svg>",
    f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror={RUN}&gt;'>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<object data='javascript:{RUN}'></object>",
    f"<embed src='javascript:{RUN}'>",
    f"<base href='javascript:{RUN}//'>",
    f"<form action='javascript:{RUN}'><button>x</button></form>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    "<link rel=stylesheet href=https://example.invalid/a.css>",
    "<img src=https://example.invalid/a.png>",
    "<style>@import 'https://example.invalid/a.css';</style>",
    f"javascript:{RUN}",
    f"jaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    "{{7*7}}{% for x in ().__class__.__base__.__subclasses__() %}{{x}}{% endfor %}",
    f"${{{RUN}}}",
    f"<%= {RUN} %>",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"<ScRiPt/x>{RUN}</sCrIpT >",
    f"<script\x00>{RUN}</script>",
    f"<script\x0c>{RUN}</script>",
    f"\u202e<script>{RUN}</script>\u202c",
    f"\ufeff<script>{RUN}</script>",
    f"＜script＞{RUN}＜/script＞",
    f"<!--><script>{RUN}</script>-->",
    f"<![CDATA[<script>{RUN}</script>]]>",
    f"<x contenteditable onblur={RUN}>lose focus!",
    f"<button popovertarget=x>x</button><xss onbeforetoggle={RUN} popover id=x>",
    f"</pre></li></ol><script>{RUN}</script>",
    f"\n\n<script>{RUN}</script>\n\n",
    f"event: end\ndata: {{}}\n\n<script>{RUN}</script>",
    f"\r\nSet-Cookie: a=b\r\n\r\n<script>{RUN}</script>",
    "\x1b]8;;https://example.invalid\x07click\x1b]8;;\x07",
)
PAYLOADS = [
    *_WHOLE,
    *(
        f"{start}<{tag} {handler}={RUN}>"
        for start, (tag, handler) in zip(_BREAKS * 5, product(_TAGS, _HANDLERS), strict=False)
    ),
    *(f"{start}<script>{RUN}</script>" for start in _BREAKS[1:]),
    *(f'{start} {handler}="{RUN}" x="' for start, handler in product(_BREAKS[1:], _HANDLERS[:4])),
]
"""At least 150, all different."""


def whole_agent(payload: str, change: FileChange) -> list[Event]:
    """A run of one turn with the payload in every text of every kind of event."""
    return [start(payload), *turn(payload, 1, change), end(payload)]


def start(text: str) -> Event:
    return AgentStartEvent(
        format=1,
        goal=text,
        name=text,
        operation=text,
        node_id=text,
        run_id=text,
        node={"type": text, "name": text},
        tools=({"name": text, "description": text},),
        model={"model": text, "policy": text},
        check={"before": text},
        parent={"agent_id": text, "relation": text, "title": text, "source": text},
    )


def end(text: str) -> Event:
    check = {"tool": text, "key": text, "before": text, "after": text, "why": text, "evidence": [text]}
    return AgentEndEvent(outcome="partial", reason=text, summary=text, verdict=text, check=check)


def turn(text: str, number: int, change: FileChange) -> list[Event]:
    """One turn with the payload in every text."""
    drafts: list[Event] = [
        TurnStartEvent(),
        UserInputEvent(text=text, delta=delta(text)),
        HubUpdateEvent(
            nodes=(text,), freshness={text: text}, delta=PacketDelta(hub=HubDelta(set={text: {text: text}}))
        ),
        PacketUpdateEvent(source=text, delta=delta(text)),
        request(text),
        ModelResponseEvent(
            text=text, reasoning=text, model=text, error=text, finish=text, usage={text: text}, calls=(call(text),)
        ),
        ToolCallEvent(call_id=text, tool=text, args={text: {text: [text]}}),
        ToolResultEvent(call_id=text, tool=text, outcome="error", raw=text, files=(change,), delta=delta(text)),
        ToolCallEvent(call_id="2", tool=text, args={text: text}),
        ToolResultEvent(
            call_id="2",
            tool=text,
            outcome="success",
            raw={text: [text, {text: text}]},
            attachments=({"name": text, "ref": {"blob": text, "size": 1, "encoding": "utf-8"}}, {text: text}),
            delta=delta(text),
        ),
        ToolCallEvent(call_id="open", tool=text, args={text: text}),
        EscalationEvent(source=text, target=text, rule=text, reason=text, handed={text: text}, model={text: text}),
        NoticeEvent(code=text, message=text),
        AgentErrorEvent(code=text, message=text),
        AgentResumedEvent(reason=text),
        SubmitResultEvent(result={"summary": text, text: text}),
    ]
    return [draft.model_copy(update={"turn": number}) for draft in drafts]


def call(text: str) -> Call:
    return Call(call_id=text, tool=text, args={text: text})


def delta(text: str) -> PacketDelta:
    return PacketDelta(
        v=2,
        action=ActionDelta(tool=text, summary=text, outcome="error", nodes=(text,)),
        knowledge={text: KnowledgeDelta(value={text: text})},
        error=ErrorDelta(set=text),
        diagnostics=(text,),
        candidate_actions=(CandidateAction(tool=text, args={text: text}, reason=text),),
        state_summary=text,
        excerpts=(Excerpt(label=text, text=text),),
        extensions={text: text},
        evidence=EvidenceDelta(speaker="call", text=text, given=(text,), lines=(text,)),
    )


def request(text: str) -> Event:
    """A prompt whose packet is JSON with the payload in names and values."""
    packet: dict[str, Any] = {
        "goal": text,
        text: text,
        "recent_actions": [{"tool": text, "summary": text, "outcome": text, text: text}],
        "knowledge": {text: text},
        "extensions": {text: {text: text}},
        "hub_context": {text: {text: text}},
        "excerpts": [{"label": text, "text": text, "start_line": text}],
        "candidate_actions": [{"tool": text, "args": {text: text}, "reason": text}],
        "diagnostics": [text],
        "evidence": [f"#3 {text}", f" {text}"],
        "last_error": text,
    }
    return ModelRequestEvent(
        messages=({"role": "system", "content": text}, {"role": "user", "content": json.dumps(packet) + "\n\n" + text}),
        tokens={"total": 5, "goal": 1, text: 2},
        limit=10,
        left_out={text: 1},
        offered=(text,),
        counter={"name": text},
        renderer=text,
        rung=text,
    )
