"""The estimate counts the whole text at once, with the same result as word by word."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from remora.inference import EstimatedCounter

BLANKS = re.compile(rb"[ \t-\r\x1c-\x1f]{2,}|[\t-\r\x1c-\x1f]")
TEXTS = st.text(st.sampled_from("aaaZ z_09.,      \t\n\r\v\f\x1c\x1f\x85é日") | st.characters(), max_size=60)


def slow_count(text: str) -> int:
    data = text.encode(errors="surrogatepass")
    words = re.findall(rb"[A-Za-z]+", data)
    signs = re.sub(rb"[A-Za-z \t-\r\x1c-\x1f]", b"", data)
    return len(signs) + sum(-(-len(run) // 4) for run in (*words, *BLANKS.findall(data)))


@given(TEXTS)
def test_an_estimate_is_what_counting_word_by_word_gives(text: str) -> None:
    assert EstimatedCounter().count(text) == slow_count(text)
