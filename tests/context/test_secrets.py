from __future__ import annotations

import base64
import itertools
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context.secrets import MIN_SECRET, Secrets
from remora.errors import ConfigError

KEY = 'sk-live/9f8+e7"d6'
SECRETS = Secrets({"API_KEY": KEY})
long_texts = st.text(min_size=MIN_SECRET, max_size=40)


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        json.dumps(KEY)[1:-1],
        quote(KEY, safe=""),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(b"user:" + KEY.encode() + b":tail").decode(),
        base64.encodebytes(b"x" * 50 + KEY.encode() + b"y" * 50).decode(),
    ],
)
def test_a_secret_is_found_in_every_form(form: str) -> None:
    redacted = SECRETS.redact(f"before {form} after")
    assert redacted.count == 1
    assert "[secret:API_KEY]" in redacted.value
    assert form.strip() not in redacted.value


@given(before=st.binary(max_size=9), after=st.binary(max_size=9), secret=long_texts)
def test_base64_is_found_at_every_alignment(before: bytes, after: bytes, secret: str) -> None:
    raw = secret.encode(errors="surrogatepass")
    text = base64.b64encode(before + raw + after).decode()
    redacted = Secrets({"S": secret}).redact(text)
    assert redacted.count >= 1
    assert len(redacted.value.replace("[secret:S]", "")) <= len(text) - len(raw) * 8 // 6 + 1


@given(secret=long_texts, around=st.text(max_size=20))
def test_no_text_still_holds_the_secret(secret: str, around: str) -> None:
    assert secret not in Secrets({"S": secret}).redact(around + secret + around).value.replace("[secret:S]", "\x00")


@pytest.mark.parametrize(
    "value",
    [
        [f"a{KEY}"],
        {"k": {KEY: 1}},
        (1, [b"\xff" + KEY.encode()]),
        {"deep": [{"er": [KEY]}]},
    ],
)
def test_a_secret_is_found_at_any_depth_and_in_keys_and_bytes(value: Any) -> None:
    redacted = SECRETS.redact(value)
    assert redacted.count == 1
    assert KEY not in repr(redacted.value)
    assert type(redacted.value) is type(value)


def test_what_holds_no_secret_is_left_as_it_is() -> None:
    value = {"a": [1, 2.5, None, True, "text"], "b": b"bytes"}
    assert SECRETS.redact(value).value == value
    assert Secrets().redact(value).value is value


def test_a_secret_inside_another_leaves_nothing_behind() -> None:
    both = Secrets({"SHORT": "abcdefgh", "LONG": "abcdefgh-ijkl"})
    assert both.redact("abcdefgh-ijkl abcdefgh").value == "[secret:LONG] [secret:SHORT]"


def test_a_value_too_short_to_find_safely_is_refused() -> None:
    with pytest.raises(ConfigError, match="`PIN` is shorter than 8"):
        Secrets({"PIN": "1234567"})


@given(
    secret=long_texts, before=st.binary(max_size=30), after=st.binary(max_size=30), cuts=st.lists(st.integers(0, 200))
)
def test_a_secret_split_over_chunks_is_found_as_if_it_were_whole(
    secret: str, before: bytes, after: bytes, cuts: list[int]
) -> None:
    secrets = Secrets({"S": secret})
    whole = before + secret.encode(errors="surrogatepass") + after
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    chunks = secrets.redact_chunks([whole[start:end] for start, end in itertools.pairwise(places)])
    expected = secrets.redact(whole)
    assert (b"".join(chunks), chunks.count) == (expected.value, expected.count)
