"""Settings of a project that keep pytest from starting are recognized by what it prints."""

from __future__ import annotations

import pytest

from remora.scripts.shared.settings_of_pytest import refused_settings


@pytest.mark.parametrize(
    ("code", "said", "refused"),
    [
        (4, "error: unrecognized arguments: --cov=shop", "--cov=shop"),
        (4, "ERROR: Missing required plugins: pytest-xdist", "pytest-xdist"),
        (3, "INTERNALERROR> pytest.PytestDeprecationWarning: The option is unset.", "pytest.PytestDeprecationWarning"),
        (1, "E   AssertionError: assert 1 == 2", ""),
        (0, "unrecognized arguments: printed by a test", ""),
    ],
)
def test_only_what_keeps_pytest_from_starting_is_refused(code: int, said: str, refused: str) -> None:
    assert refused_settings({"returncode": code, "stdout": said, "stderr": ""}) == refused
