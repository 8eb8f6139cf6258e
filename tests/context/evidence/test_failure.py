"""Ordinary results that report a failure are errors; empty results and text that mentions errors are not."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from remora.context.evidence import read_output, says_failed
from remora.context.summarizers import distill

FAILED: tuple[Any, ...] = (
    {"error": True, "message": "x"},
    {"failed": True},
    {"status": 500, "body": "Internal Server Error"},
    {"status_code": 404, "text": "Not Found"},
    {"statusCode": 403, "body": "{}"},
    {"code": 404, "message": "not found"},
    {"detail": "Not found."},
    {"data": None, "errors": [{"message": "Cannot query field"}]},
    {"result": "error", "reason": "x"},
    {"type": "error", "error": {"type": "invalid_request_error"}},
    {"stdout": "", "stderr": "x", "code": 1},
    {"exitCode": 1},
    {"content": [{"type": "text", "text": "boom"}], "isError": True},
    {"content": [{"type": "text", "text": '{"error": "no such user"}'}]},
    [{"type": "text", "text": "Error: no such user"}],
    b"Error: no such user",
    "HTTP 404 Not Found",
    "HTTP/1.1 500 Internal Server Error\ncontent-type: text/html\n",
    "404 Client Error: Not Found for url: https://example.com",
    "Exit code: 1\nfoo",
    "foo\n\nCommand exited with code 1",
    "[exit code: 2]",
    "Process exited with code 1\nOutput:\nx",
    "Permission denied",
    "make: *** [Makefile:3: all] Error 2",
    "main.c:3:5: error: expected ';' before 'return'\n",
    "npm ERR! code ENOENT\nnpm ERR! path /x\n",
    '  File "x.py", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n',
    'Exception in thread "main" java.lang.NullPointerException\n\tat Main.main(Main.java:5)',
    "thread 'main' panicked at src/main.rs:2:5:\nx",
    "Segmentation fault (core dumped)",
    "Killed",
    "Uncaught TypeError: x is not a function",
    "curl: (6) Could not resolve host: x",
    "Invalid JSON",
    "rate limit exceeded",
    "psql: error: connection refused",
    "The file /x does not exist.",
    "<tool_use_error>String to replace not found in file.</tool_use_error>",
)
FINE: tuple[Any, ...] = (
    None,
    "",
    [],
    {},
    {"results": []},
    {"count": 0},
    {"errors": []},
    {"error": False, "data": 1},
    {"success": True, "error": ""},
    {"status": 200},
    {"status_code": 204, "body": ""},
    {"code": 200, "message": "done"},
    {"code": "ABC", "name": "x"},
    {"returncode": 0, "stderr": "a warning"},
    {"content": [{"type": "text", "text": "none found"}], "isError": False},
    [{"status": "error"}, {"status": "ok"}],
    {"id": 1, "name": "nightly", "branch": "main", "started": "today", "status": "failed"},
    "No matches found",
    "0 results",
    "exit code: 0",
    "all good\nCommand exited with code 0",
    "1 failed, 2 passed in 0.3s",
    "404 apples",
    "500 rows",
    "Timeout: 30",
    "Standard error: 0.3 (n = 12)",
    "Unauthorized access is logged in auth.py",
    "Killed the process 12",
    "status 404 is handled in views.py, line 7",
)


@pytest.mark.parametrize("output", FAILED)
def test_an_ordinary_failure_is_an_error(output: Any) -> None:
    assert says_failed(output)
    assert read_output(output).failed
    assert distill("look", output).outcome == "error"


@pytest.mark.parametrize("output", [value for value in FAILED if isinstance(value, dict)])
def test_a_failure_written_as_json_text_is_an_error(output: Any) -> None:
    assert distill("look", orjson.dumps(output).decode()).outcome == "error"


@pytest.mark.parametrize("output", FINE)
def test_an_empty_result_or_one_that_names_errors_is_no_error(output: Any) -> None:
    assert not says_failed(output)
    assert distill("look", output).outcome == "success"


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ('{"error": "no such user"}', "no such user"),
        ({"error": {"code": 7, "message": "no such user"}}, "no such user"),
        ({"error": True, "message": "no such user"}, "no such user"),
        ({"detail": "no such user"}, "no such user"),
        ({"returncode": 2, "stderr": "no such user"}, "no such user"),
        ({"data": None, "errors": [{"message": "no such user"}]}, "no such user"),
        ({"content": [{"type": "text", "text": "no such user\nat line 3"}], "isError": True}, "no such user"),
    ],
)
def test_the_error_says_why(output: Any, why: str) -> None:
    error = distill("look", output).delta.error
    assert error is not None
    assert error.set == why
