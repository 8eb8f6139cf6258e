"""Texts that would run a script, send a request, add markup or steer a terminal if anything showed them unescaped."""

from __future__ import annotations

_TAGS = [
    "script",
    "img",
    "svg",
    "iframe",
    "object",
    "embed",
    "link",
    "meta",
    "base",
    "form",
    "style",
    "video",
    "math",
    "a",
]
_EVENTS = ["onerror", "onload", "onclick", "onmouseover", "onfocus", "ontoggle", "onanimationstart", "onbegin"]
_SCHEMES = [
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.example/x",
    "https://evil.example",
]
_BREAKS = ["", '"', "'", '">', "'>", "-->", "]]>", "</title>", "</style>", "</summary>", "</code>", "</pre>", "</td>"]

PAYLOADS = [
    *(f"{before}<script>alert({place})</script>" for place, before in enumerate(_BREAKS)),
    *(f'<{tag} {event}="alert(1)" src=x href=x>' for tag in _TAGS for event in _EVENTS),
    *(f'<{tag} src="{scheme}" href="{scheme}">' for tag in ("img", "a", "link", "iframe") for scheme in _SCHEMES),
    *(f"[text]({scheme}) ![image]({scheme})" for scheme in _SCHEMES),
    *(f'" {event}=alert(1) x="' for event in _EVENTS),
    "``` \n<script>alert(1)</script>\n```",
    "`code` | cell | <b>x</b>",
    "@everyone #1 owner/repo#2 [](https://evil.example)",
    "<!-- --><details open ontoggle=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\x1b]0;owned\x07\x9b2J\u202e\u200b\ufeff\u2028",
    '=HYPERLINK("https://evil.example","x")',
    "+1+cmd|'/C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\x00\x01\x02",
    "{0} %s ${x} {{x}}",
]
