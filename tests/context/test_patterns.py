from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from remora.context.patterns import PATTERNS, Redactor, redact_patterns, redact_values

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
    "env-secret": "hunter2hunter2",
}
AROUND = {"url-password": "postgres://{}@db/x", "assignment": 'password = "{}"', "env-secret": "DB_PASSWORD={}"}


@pytest.mark.parametrize("name", PATTERNS)
def test_each_kind_of_secret_is_replaced_wherever_it_stands(name: str) -> None:
    secret, around = SECRETS[name], AROUND.get(name, "before {} after")
    text = around.format(secret)
    cleaned = redact_patterns(text)
    assert secret not in cleaned
    assert f"[redacted:{name}]" in cleaned
    assert redact_patterns(cleaned) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "export DB_PASSWORD=s3cr3t-va1ue",
        "AWS_SECRET_ACCESS_KEY=abc/DEF+1234567",
        "db_password: s3cretvalue",
        "SECRET_KEY=django-insecure-1x",
        "?api_key=abc12345",
    ],
)
def test_a_secret_without_quotes_is_redacted(text: str) -> None:
    name, _, value = text.replace(": ", "=").rpartition("=")
    assert value not in redact_patterns(text)
    assert redact_patterns(text).startswith(name)


def test_there_is_an_example_of_every_pattern() -> None:
    assert SECRETS.keys() == PATTERNS.keys()


@pytest.mark.parametrize(
    "text",
    [
        "skip-this-one",
        "https://example.com/a:b",
        "import secrets",
        "hf_transfer and hf_telemetry",
        "npm_lifecycle_event=build npm_package_name",
        "the bearer of bad news",
        "sha256:0a1b2c3d",
        "password=",
        "password=args.password",
        "login(password=get_password(user1))",
        "SECRET=/run/secrets/db1",
        "PASSWORD=$DB_PASSWORD_1",
        "max_tokens=12345678",
        "API_KEY: required",
        "the secret: nobody knows",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact_patterns(text) == text


@given(st.text())
def test_any_text_is_redacted_without_an_error_and_once_is_enough(text: str) -> None:
    once = redact_patterns(text)
    assert redact_patterns(once) == once


@pytest.mark.parametrize(
    "part", ["-----BEGIN PRIVATE KEY-----", "sk-", "eyJaaaaaaaa.", "://a:", "bearer ", "password='", "password=a"]
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


def test_entries_whose_keys_are_secrets_stay_as_many() -> None:
    tokens = {f"ghp_abcdefghij123456789{number}": number for number in range(3)}
    assert list(redact_values(tokens).values()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('password = "hunter2hunter2…', 'password = "[redacted:assignment]…'),
        ("postgres://user:hunter2hun…", "postgres://[redacted:url-password]…"),
        ("http://localhost:8080…", "http://localhost:8080…"),
        ("docker://alpine:latest", "docker://alpine:latest"),
    ],
)
def test_a_secret_whose_end_was_cut_is_recognized(text: str, shown: str) -> None:
    assert redact_patterns(text) == shown


def test_a_secret_is_redacted_also_where_it_stands_without_what_it_was_recognized_by() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow12345678AB\nQUJDREVGR0hJSktM\n-----END RSA PRIVATE KEY-----"
    shown = redact_values(["QUJDREVGR0hJSktM", "was right-horse-1", {"url": "postgres://me:right-horse-1@db/x"}, key])
    assert shown[:2] == ["[redacted:private-key]", "was [redacted:url-password]"]
    assert shown[2:] == [{"url": "postgres://[redacted:url-password]@db/x"}, "[redacted:private-key]"]


def test_of_two_secrets_of_which_one_is_in_the_other_nothing_is_left() -> None:
    short, long = "right-horse-1", "the-right-horse-1-battery"
    values = [f'password = "{short}"', f'password = "{long}"', f"{long} {short}", f"x{long}x"]
    for order in (values, values[::-1]):
        assert not [shown for shown in redact_values(order) if "horse" in shown or "battery" in shown]


def test_many_secrets_compile_no_expression_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one for all that was found, 3,000 long secrets took four minutes."""
    monkeypatch.delattr(re, "compile")
    shown = redact_values([f'password = "{at}-{"x" * 300}-{at}"' for at in range(300)])
    assert set(shown) == {'password = "[redacted:assignment]"'}


def test_the_lines_of_a_key_in_a_list_are_redacted_to_its_end() -> None:
    lines = ["before", "-----BEGIN RSA PRIVATE KEY-----", "QUJDREVGR0hJSktM", "-----END RSA PRIVATE KEY-----", "after"]
    shown = redact_values(lines)
    assert "QUJDREVGR0hJSktM" not in shown
    assert (shown[0], shown[-1]) == ("before", "after")


def test_a_key_that_ends_within_an_item_is_redacted_up_to_there() -> None:
    begins, ends = "-----BEGIN RSA PRIVATE KEY-----\nQUJDREVG", "R0hJSktM\n-----END RSA PRIVATE KEY-----\nafter"
    shown = redact_values(["before", begins, "TU5PUFFS", ends, "more"])
    redacted = "[redacted:private-key]"
    assert shown == ["before", redacted, redacted, f"{redacted}\nafter", "more"]


def test_an_item_of_many_keys_that_begin_is_searched_once() -> None:
    text = "-----BEGIN PRIVATE KEY-----" * 20_000 + "-----END PRIVATE KEY-----" + "x" * 500_000
    assert redact_values([text, "after"])[1] == "after"  # a search from each would take a minute


def test_an_ordinary_word_that_stands_for_a_secret_is_not_redacted_elsewhere() -> None:
    for word in ("configuration", "new_password", "Forgot-Password"):
        text = f'secret = "{word}"'
        assert redact_values([text, f"the {word}"]) == ['secret = "[redacted:assignment]"', f"the {word}"]


class Model(BaseModel):
    text: str
    inner: tuple[str, ...] = ()


class Pair(NamedTuple):
    one: str
    other: int


@pytest.mark.parametrize("mask", ["*" * 16, "." * 12, "-=" * 8, "0" * 12, "xxXX" * 4])
def test_a_mask_in_place_of_a_secret_is_redacted_only_there(mask: str) -> None:
    assert redact_values([f'password = "{mask}"', mask * 3]) == ['password = "[redacted:assignment]"', mask * 3]


def test_models_and_named_tuples_stay_what_they_are() -> None:
    token = SECRETS["github-token"]
    assert redact_values(Model(text=token, inner=("a",))) == Model(text="[redacted:github-token]", inner=("a",))
    assert redact_values(Pair(token, 1)) == Pair("[redacted:github-token]", 1)


def test_different_secrets_are_counted_once_each() -> None:
    redactor = Redactor()
    redactor.values([SECRETS["github-token"], SECRETS["github-token"], {"a": SECRETS["npm-token"]}])
    assert redactor.count == 2


def test_a_value_of_thousands_of_levels_is_shown_as_it_is_or_not_at_all() -> None:
    def nested(inside: Any) -> Any:
        for level in range(5000):
            inside = [inside] if level % 2 else {"k": inside}
        return inside

    shown: Any = nested("harmless")
    assert redact_values(shown) is shown
    shown = redact_values(nested(SECRETS["github-token"]))
    for level in range(100):
        shown = shown[0] if level % 2 == 0 else shown["k"]
    assert shown == "[redacted:nested]"
