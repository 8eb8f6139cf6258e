"""The environment of every child process."""

from __future__ import annotations

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
"""The whole environment of a child: none of the user's variables, so none of their keys."""
