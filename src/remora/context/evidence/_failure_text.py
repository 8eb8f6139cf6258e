"""Detects texts that report a failure of the call that returned them: messages of programs, tools and servers.

A text that only mentions errors does not count: a log, a search result, a count of errors, a field without an error.
"""

from __future__ import annotations

import re
from functools import lru_cache

HEAD = 2_000
"""Characters examined at each end of a text."""
SHORT = 400
"""Most characters of a text that is nothing but an error message."""
MAX_CODE_LINE = 80
"""Most characters of a line that states an exit code."""
AFTER_TRACEBACK = 500
"""Most characters after the traceback of a failure. If there are more, the program went on, or it is a page."""
MAX_COUNTED = 50
"""Lines of a list of counts that are examined."""

_ENDS = r"(?=\s*(?:[:;.,!(\['\"`—–-]|$|\n)|\s+(?:for|in|at|on|to|from|while|when|by|of|url|error)\b)"
"""Follows a phrase that is a whole message, not the beginning of a sentence about it."""
_FIRST = re.compile(
    r"\s*(?:(?:fatal|error|exception|failed|failure|panic)(?: ?[\[(][^\n\])]{0,40}[\])])?[:!]"
    r"|(?:fatal|syntax|usage|runtime|internal|server) ?error\b[^\n]{0,40}?:"
    r"|[\w.]*(?:Error|Exception)(?: \[\w+\])?: |error \d{2,5}(?: \(\w+\))?: "
    r"|[\w.-]{1,30}:? error(?: \w{1,8})?: (?!-?[\d.]+\s)"
    r"|error (?:while|when|in|at|on|occurred|running|executing|parsing|reading|opening|loading|calling|during)\b"
    r"|an? (?:\w+ )?(?:error|exception) (?:occurred|was raised)\b"
    r"|(?:failed|unable) to \w|could not \w|(?:execution|command|request|operation) (?:timed out|failed)\b"
    r"|can(?:not|'t) (?:read|open|find|access|write|connect|import|create|delete|parse|load|execute|resolve|query)\b"
    rf"|(?:permission|access)(?: is)? denied{_ENDS}|segmentation fault\b|(?:\w+ )?(?:rate limit|quota) exceeded\b"
    rf"|invalid (?:argument|json|request|input|option|parameter|value|path|syntax)s?{_ENDS}"
    r"|time(?:d )?out: (?!\d)|timed? ?out (?:after|while|waiting)\b"
    r"|(?:unknown|unrecognized|no such|unsupported) (?:option|argument|command|flag|tool|function|method|subcommand)s?"
    r"(?::| ['\"`-])"
    r"|<(?:\w+_)?error>(?!\s*</)|<(?:return_?code|exit_?code)>\s*-?[1-9]|uncaught \w*(?:error|exception)\b"
    r"|exception in thread \"|thread '[^'\n]*' panicked at |\d+ validation errors? for \w"
    r"|(?:http(?:/[\d.]+)?(?: status)? ?)?[45]\d\d (?:client error|server error|bad request|unauthorized|forbidden"
    r"|not found|method not allowed|request timeout|conflict|gone|too many requests|internal server error|bad gateway"
    rf"|service unavailable|gateway timeout|unprocessable \w+){_ENDS}"
    r"|(?:http )?status(?: code)?[ :=]+[45]\d\d\s*(?:$|\n)"
    r"|[^\s:]+:\d+(?::\d+)?: (?:fatal )?error: |npm (?:ERR!|error) |curl: \(\d+\) "
    r"|\S+\.rb:\d+:in |'[^'\n]{1,80}' is not recognized as |[a-z]+-[a-z]+ ?: (?:cannot|could not|the term|access) "
    r"|(?:fehler|erreur|errore|erro|fout|ошибка|błąd|hata|错误|錯誤|エラー|오류)\s?[:：!])",
    re.IGNORECASE,
)
"""Begins an error message."""
_SYSTEM_ERROR = re.compile(r"\s*E[A-Z]{3,14}: [a-z]")
"""The error of a system call as Node.js writes it, such as `ENOENT: no such file or directory`."""
_QUESTION = re.compile(r"\s*[^\n.!]{0,200}\?(?:\s|$)")
"""A title or a sentence that asks: the first line of a search result, not of an error."""
_NOTHING = r"(?:0|null|none|nil|no|false|n/a|~|-|\[\]|\{\}|\"\"|'')"
_NO_ERROR = re.compile(rf"\s*\w+(?: \w+)?\s*[:=!]\s*(?:{_NOTHING}\s*(?:$|\n|,)|\n[\w-]+:(?:\s|$))", re.IGNORECASE)
"""A field that says that there is no error, or a key without a value, as YAML has them."""
_COUNT = re.compile(r"\s*[\w. -]{1,40}[:=]\s*-?\d[\d.,]*%?\s*")
_ERROR_COUNT = re.compile(r"\s*(?:errors?|failed|failures?|exceptions?)\s*[:=]\s*\d+\s*", re.IGNORECASE)
_COMPLAINT = re.compile(
    r"^[\w./~-]+:\s+(?:.{0,200}: )?(?:no such (?:file or directory|process|user|device)|command not found|not found"
    r"|permission denied|is a directory|not a directory|file exists|directory not empty|read-only file system"
    r"|no space left on device|operation not permitted|connection (?:refused|reset by peer|timed out)"
    r"|name or service not known|(?:cannot|can't) (?:open|access|create|stat|remove|find|cd)\b.*"
    r"|could not resolve\b.*|syntax error\b.*|missing .{1,40}"
    r"|(?:unrecognized|invalid|illegal|unknown) (?:option|arguments?)\b.*)$"
    r"|^make(?:\[\d+\])?: \*\*\* ",
    re.IGNORECASE | re.MULTILINE,
)
"""A line in which a program names itself, and then what went wrong."""
_WHOLE = re.compile(
    r"\s*(?:killed|aborted|unauthorized|forbidden|not (?:found|authorized|permitted|allowed)|timed out|timeout"
    r"|connection (?:refused|reset by peer|timed out|error|aborted)|operation not permitted"
    r"|no such (?:file or directory(?:: .*)?|user|host|process|table|key|id)"
    r"|you (?:do not|don't) have (?:permission|access)\b.{0,200}"
    r"|you are not (?:authorized|allowed|permitted)\b.{0,200}"
    r"|(?:the )?(?:file|path|directory|folder|url|page|resource|module|table|column|user|key|tool|command|branch"
    r"|repository|string to replace)\b.{0,200}\b(?:not found|not find|does not exist|could not be found)\b.{0,80}"
    r"|(?:the )?\w+ ['\"`#]*[\w-]*\d[\w-]*['\"`]* (?:was |could )?not (?:be )?found)[.!]?\s*",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"\W*(?:the )?(?:process|command|script|program|tool|request)? ?(?:has )?"
    r"(?:(?:exited|failed|finished|terminated|returned)? ?(?:with )?(?:an? )?(?:non-zero )?(?:exit|return)[ _-]?"
    r"(?:code|status)?|(?:exited|failed|finished|terminated) ?(?:with )?(?:an? )?(?:code|status)(?: code)?)"
    r"(?: was| is)?[ :=]*-?[1-9]\d{0,9}\W*",
    re.IGNORECASE,
)
"""A line that states an exit code other than 0."""
_LAST = re.compile(r"(?:error|fatal|panic): \S", re.IGNORECASE)
"""Begins the last line of a program that ended with an error."""
_LEVEL = re.compile(r"^\W{0,2}(?:debug|info|warn(?:ing)?|notice)\b", re.IGNORECASE | re.MULTILINE)
"""A line of a log."""
_RAISED = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::|$)", re.MULTILINE)
_STACK = re.compile(
    r"^(?:Uncaught )?[\w.$]*(?:Error|Exception)(?: \[\w+\])?:[^\n]*\n(?:\s+at [^\n]*(?:\n|\Z))+"
    r"\s*(?:Node\.js v[\d.]+\s*)?\Z",
    re.MULTILINE,
)
"""A text that ends with an exception and its stack, as JavaScript and Java print them."""
_REFUSED = re.compile(
    r"\b(?:changes? (?:have|has) not been (?:applied|made|saved)|edit (?:was )?not applied"
    r"|has introduced new syntax error|no changes were made|no replacement was performed)\b",
    re.IGNORECASE,
)
_REFUSALS = ("not been", "not applied", "has introduced new", "no changes were", "no replacement was")
"""Of these, every text that `_REFUSED` finds contains one. Searching for them is faster."""
_STATUS_LINE = re.compile(r"\s*HTTP/\d(?:\.\d)? (\d{3})\b[^\n]*\n")
_HEADER = re.compile(r"[\w-]+:[^\n]*\n|\n|\r\n")


@lru_cache(maxsize=1)
def text_failed(text: str) -> bool:
    """Whether a text reports a failure. Cached, because an output is distilled first and then read as evidence."""
    head, tail = text[:HEAD], text[-HEAD:]
    if status := _http_status(head):
        return status >= 400
    if _begins_with_error(head) or _refuses(head) or _refuses(tail) or _states_code(head, tail):
        return True
    if _ends_with_error(text, tail) or _has_traceback(text, tail):
        return True
    return len(text) <= SHORT and (_COMPLAINT.search(text) or _WHOLE.fullmatch(text)) is not None


def _begins_with_error(head: str) -> bool:
    if _SYSTEM_ERROR.match(head):
        return True
    return (
        _FIRST.match(head) is not None
        and not _QUESTION.match(head)
        and not _NO_ERROR.match(head)
        and not _counts_only(head)
    )


def _counts_only(head: str) -> bool:
    """Whether the text counts errors: one number in each line. A single line may be an exception's message."""
    lines = [line for line in head.split("\n") if line.strip()][:MAX_COUNTED]
    return all(map((_COUNT if len(lines) > 1 else _ERROR_COUNT).fullmatch, lines))


def _http_status(head: str) -> int:
    """The status of a response with its headers, of the last one after redirects; 0 if the text is something else."""
    status, at = 0, 0
    while found := _STATUS_LINE.match(head, at):
        status, at = int(found[1]), found.end()
        while header := _HEADER.match(head, at):
            at = header.end()
            if not header[0].strip():
                break
    return status


def _states_code(head: str, tail: str) -> bool:
    """Whether the first or the last line states an exit code other than 0."""
    first, last = head.lstrip().partition("\n")[0], tail.rstrip().rpartition("\n")[2]
    return any(len(line) < MAX_CODE_LINE and _CODE.fullmatch(line) for line in (first, last))


def _ends_with_error(text: str, tail: str) -> bool:
    """Whether a short text that is no log ends with an error, or any text with an exception and its stack."""
    last = tail.rstrip().rpartition("\n")[2]
    if len(text) <= HEAD and _LAST.match(last) and not _NO_ERROR.match(last) and not _COUNT.fullmatch(last):
        return _LEVEL.search(text) is None
    return "\n" in tail and " at " in tail and _STACK.search(tail) is not None


def _has_traceback(text: str, tail: str) -> bool:
    start = text.find("Traceback (most recent call last)")
    if start < 0 and text.lstrip().startswith('File "'):
        start = text.index('File "')
    if start < 0 or text[:start].rpartition("\n")[2].strip():
        return False
    raised = [found.end() for found in _RAISED.finditer(tail)]
    return bool(raised) and (not text[:start].strip() or len(tail) - raised[-1] <= AFTER_TRACEBACK)


def _refuses(text: str) -> bool:
    if text.isascii():
        lower = text.lower()
        if not any(words in lower for words in _REFUSALS):
            return False
    return _REFUSED.search(text) is not None
