"""Inspect logs: samples of an evaluation, with attachments for long texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from remora.analysis.logs._document import Document
from remora.context.text import one_line

_ATTACHMENT = "attachment://"


def is_inspect(fields: Mapping[str, Document]) -> bool:
    """Whether a document is an Inspect log with its samples."""
    return "eval" in fields and "samples" in fields and fields["samples"].is_list


def inspect_samples(place: str, fields: Mapping[str, Document]) -> Iterator[tuple[str, Document]]:
    """Every sample of a log. Its messages are the conversation."""
    for index, sample in enumerate(fields["samples"].elements()):
        yield f"{place}.samples[{index}]", sample


def sample_error(sample: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """A notice if the sample ended with an error, which its messages do not show."""
    error = sample.get("error")
    message = error.get("message") if isinstance(error, Mapping) and "epoch" in sample else None
    told = one_line(message, 300) if isinstance(message, str) else ""
    return (("ended_with_error", f"The sample ended with an error: {told}"),) if told else ()


def resolve_attachments(value: Any, attachments: Mapping[str, Any]) -> Any:
    """The value with every reference to an attachment replaced by its text."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, list):
        return [resolve_attachments(each, attachments) for each in value]
    if isinstance(value, dict):
        return {key: resolve_attachments(each, attachments) for key, each in value.items()}
    return value
