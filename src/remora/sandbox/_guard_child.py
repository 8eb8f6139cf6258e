"""The child in which foreign summarizers run. It starts with the standard library alone and answers to the end.

It reads pickles from its parent and writes JSON: what a summarizer made is never unpickled. Each frame is a length in
four bytes, then so many bytes. What the summarizer prints goes nowhere.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
from typing import Any, BinaryIO

KEPT_TEXT = 200
"""Characters of a value that JSON cannot hold."""


def main() -> None:
    """Answer frames until there are no more."""
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
    """A load is answered with nothing or a problem, a run with what the summarizer made."""
    from remora.context.summary import run_summarizer

    try:
        key, pickled, raw = pickle.loads(question)  # noqa: S301 - as above
        if pickled is not None:
            summarizers[key] = pickle.loads(pickled)  # noqa: S301 - as above
            getattr(summarizers[key], "load", lambda: None)()
            return b"{}"
        made = run_summarizer(summarizers[key], raw)
        return _json(_plain(made.summary, made.knowledge, made.excerpts, list(made.problems)))
    except Exception as error:  # noqa: BLE001 - foreign code: whatever it raises is told to the parent
        return _json({"problems": [f"failed: {type(error).__name__}: {str(error)[:KEPT_TEXT]}"]})


def _plain(summary: str, knowledge: Any, excerpts: Any, problems: list[str]) -> dict[str, Any]:
    """Only what JSON holds. Anything else is known by its text, and that is told."""
    known = {}
    for key, item in knowledge.items():
        try:
            json.dumps(item)
            known[str(key)] = item
        except (TypeError, ValueError, RecursionError):
            known[str(key)] = repr(item)[:KEPT_TEXT]
            problems.append(f"gave knowledge that is kept as text: {str(key)[:60]}")
    shown = [item.model_dump() if hasattr(item, "model_dump") else item for item in excerpts]
    return {"summary": summary, "knowledge": known, "excerpts": shown, "problems": problems}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


if __name__ == "__main__":
    main()
