"""The child process that runs third-party summarizers. It starts with the standard library alone and serves until EOF.

It reads pickles from its parent and writes JSON, so the parent never unpickles data of a summarizer. Each frame is a
length followed by that many bytes. Output that a summarizer prints is discarded.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
from typing import Any, BinaryIO

MAX_TEXT = 200
"""Characters kept of the text of a value that JSON cannot represent."""


def main() -> None:
    """Answer requests until EOF."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    questions = os.fdopen(os.dup(0), "rb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sys.path[:], max_result = pickle.loads(_frame(questions))  # noqa: S301 - from our own parent
    summarizers: dict[str, Any] = {}
    while question := _frame(questions):
        reply = _answer(question, summarizers)
        if len(reply) > max_result:
            reply = _json({"too_large": len(reply)})
        answers.write(struct.pack(">I", len(reply)) + reply)


def _frame(questions: BinaryIO) -> bytes:
    head = questions.read(8)
    return questions.read(struct.unpack(">Q", head)[0]) if len(head) == 8 else b""


def _answer(question: bytes, summarizers: dict[str, Any]) -> bytes:
    """Load a summarizer (answered with nothing or a problem) or run one (answered with its summary)."""
    from remora.context.summary import run_summarizer

    try:
        key, pickled, raw = pickle.loads(question)  # noqa: S301 - as above
        if pickled is not None:
            summarizers[key] = pickle.loads(pickled)  # noqa: S301 - as above
            getattr(summarizers[key], "load", lambda: None)()
            return b"{}"
        summarized = run_summarizer(summarizers[key], raw)
        return _json(
            _to_json_values(summarized.summary, summarized.knowledge, summarized.excerpts, list(summarized.problems))
        )
    except Exception as error:  # noqa: BLE001 - third-party code: any exception is reported to the parent
        return _json({"problems": [f"failed: {type(error).__name__}: {str(error)[:MAX_TEXT]}"]})


def _to_json_values(summary: str, knowledge: Any, excerpts: Any, problems: list[str]) -> dict[str, Any]:
    """Make the values serializable. A value that JSON cannot represent becomes its text, with a problem saying so."""
    known = {}
    for key, item in knowledge.items():
        try:
            json.dumps(item)
            known[str(key)] = item
        except (TypeError, ValueError, RecursionError):
            known[str(key)] = repr(item)[:MAX_TEXT]
            problems.append(f"returned knowledge that is not JSON, kept as text: {str(key)[:60]}")
    shown = [item.model_dump() if hasattr(item, "model_dump") else item for item in excerpts]
    return {"summary": summary, "knowledge": known, "excerpts": shown, "problems": problems}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


if __name__ == "__main__":
    main()
