from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context.patterns import PATTERNS, redact_patterns, redact_values

SECRETS = {
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
    "anthropic-key": "sk-ant-api03-abcdefgh12345678",
    "openai-key": "sk-proj-abcdefghijklmnop1234",
    "github-token": "ghp_abcdefghij1234567890",
    "gitlab-token": "glpat-abcdefgh12345678",
    "slack-token": "xoxb-1234567890-abcdef",
    "aws-key": "AKIAIOSFODNN7EXAMPLE",
    "google-key": "AIzaSyA-abcdefghijklmnopqrstuvwxyz12345",
    "google-oauth": "ya29.abcdefgh12345678",
    "stripe-key": "sk_live_abcdefgh12345678",
    "huggingface-token": "hf_abcdefghijklmnop",
    "npm-token": "npm_abcdefghijklmnop",
    "pypi-token": "pypi-AgEIcHlwaS5vcmcCJDE",
    "sendgrid-key": "SG.abcdefghij.klmnopqrst",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123def456",
    "bearer": "Bearer abcdefgh12345678ijkl",
    "url-password": "user:hunter22",
    "assignment": "hunter2hunter2",
}
AROUND = {"url-password": "postgres://{}@db/x", "assignment": 'password = "{}"'}


@pytest.mark.parametrize("name", PATTERNS)
def test_each_kind_of_secret_is_replaced_wherever_it_stands(name: str) -> None:
    secret, around = SECRETS[name], AROUND.get(name, "before {} after")
    text = around.format(secret)
    cleaned = redact_patterns(text)
    assert secret not in cleaned
    assert f"[redacted:{name}]" in cleaned
    assert redact_patterns(cleaned) == cleaned


def test_there_is_an_example_of_every_pattern() -> None:
    assert SECRETS.keys() == PATTERNS.keys()


@pytest.mark.parametrize(
    "text",
    [
        "skip-this-one",
        "https://example.com/a:b",
        "import secrets",
        "the bearer of bad news",
        "sha256:0a1b2c3d",
        "password=",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact_patterns(text) == text


@given(st.text())
def test_any_text_is_redacted_without_an_error_and_once_is_enough(text: str) -> None:
    once = redact_patterns(text)
    assert redact_patterns(once) == once


@pytest.mark.parametrize(
    "part", ["-----BEGIN PRIVATE KEY-----", "sk-", "eyJaaaaaaaa.", "://a:", "bearer ", "password='"]
)
def test_a_text_of_nothing_but_beginnings_is_read_once(part: str) -> None:
    redact_patterns(part * (200_000 // len(part)))  # a quadratic pattern would take hours


def test_values_are_redacted_at_any_depth() -> None:
    @dataclass(frozen=True)
    class Inner:
        text: str
        number: int = 1

    token = SECRETS["github-token"]
    found = redact_values({"a": [token, (token, 3)], token: Inner(token)})
    assert token not in repr(found)
    assert found["a"][1][1] == 3
    kept = Inner("plain")
    assert redact_values(kept) is kept
