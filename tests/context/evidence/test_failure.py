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
    "/bin/sh: 1: cd: can't cd to /nonexistent\n",
    "/usr/bin/python3: can't open file '/x.py': [Errno 2] No such file or directory\n",
    "[eval]:1\nx\n^\n\nReferenceError: x is not defined\n    at [eval]:1:1\n    at node:x:1\n\nNode.js v18.20.8\n",
    "Looking in links: /w\nERROR: Could not find a version\nERROR: No matching distribution found for x\n",
    "\nno tests ran in 0.04s\nERROR: file or directory not found: /nonexistent\n\n",
    "bash: -c: line 2: syntax error: unexpected end of file\n",
    "Warning: no terminal.\nssh: Could not resolve hostname x: Name or service not known\n",
    "awk: line 2: missing } near end of file\n",
    "unzip:  cannot find or open /x.zip, /x.zip.zip or /x.zip.ZIP.\n",
    "Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?\n",
    "ENOENT: no such file or directory, open '/x'",
    "ERROR 1064 (42000): You have an error in your SQL syntax",
    "HTTP/2 500 \ncontent-type: text/html\n\n<html>oops</html>",
    "HTTP/1.1 301 Moved Permanently\nLocation: /x\n\nHTTP/1.1 404 Not Found\n\nnope",
    "status: 404",
    "<returncode>1</returncode>\n<output>x</output>",
    "No replacement was performed, old_str `x` did not appear verbatim in /a.py.",
    "Timeout after 30s",
    "Connection refused",
    "Unknown tool: foo",
    "1 validation error for Order\ntotal\n  Field required [type=missing]",
    "Order #W123 not found",
    "You do not have permission to do that",
    "Access is denied.",
    "'foo' is not recognized as an internal or external command,\noperable program or batch file.",
    "Get-Item : Cannot find path 'C:\\x' because it does not exist.",
    "x.rb:1:in `<main>': undefined local variable (NameError)",
    "KeyError: 7",
    "Fehler: Datei nicht gefunden",
    "错误：找不到文件",
    {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"},
    {"kind": "Status", "metadata": {}, "status": "Failure", "message": "pods x not found", "details": {}, "code": 404},
    {"detail": [{"loc": ["body", "x"], "msg": "field required", "type": "missing"}]},
    {"__type": "ResourceNotFoundException", "message": "Requested resource not found"},
    {"fault": {"faultstring": "Invalid key"}},
    {"code": "not_found", "message": "No such thing"},
    {"errorMessage": "boom", "errorType": "ValueError"},
    {"errcode": 40001, "errmsg": "invalid credential"},
    {"error": 1, "message": "boom"},
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
    "error: 0",
    "error: 12\nwarning: 3\n",
    "ValueError: 3\nKeyError: 1\n",
    "Failed: 0, Passed: 12",
    "error: null\nitems:\n- a\n",
    "Error: None\nValue: 1",
    'error: ""\nresult: 3',
    "error:\nresult: 5",
    "failed: []",
    "<error></error>",
    "status: 200",
    "Booking found.\nCode: 48213",
    "The code is 4711",
    "status: 7",
    "403 Forbidden is a film.",
    "Permission denied errors are gone since 1.2",
    "Invalid argument handling was added in 2.0\nFixes #12\n",
    "Failed to build wheel, how to fix? (a forum)\nhttps://example.com/q/1\n\nAnother result\n",
    "Could not find a better deal? Visit our shop.",
    "INFO: started\nWARNING: slow\nERROR: one request was refused",
    "HTTP/1.1 200 OK\nContent-Type: text/plain\n\nError: is what 404 pages begin with",
    'Intro\n\nTraceback (most recent call last):\n  File "x.py", line 1\nValueError: bad\n\n' + "It goes on. " * 60,
    {"error": 0.031, "epoch": 3},
    {"error": 0, "message": "done"},
    {"code": "E501", "message": "Line too long"},
    {"message": "Welcome", "status": "200"},
    {"content": [{"type": "text", "text": "error: none"}], "isError": False},
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
        ({"detail": [{"loc": ["user"], "msg": "no such user"}]}, "no such user"),
        ({"Error": {"Code": "NoSuchUser", "Message": "no such user"}}, "no such user"),
        ({"errcode": 7, "errmsg": "no such user"}, "no such user"),
        ({"fault": {"faultstring": "no such user"}}, "no such user"),
    ],
)
def test_the_error_says_why(output: Any, why: str) -> None:
    error = distill("look", output).delta.error
    assert error is not None
    assert error.set == why
