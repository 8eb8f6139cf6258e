"""Changes that are proven by the whole project, and made only if tests, linter or type checker accept them."""

from typing import Any

from remora.scripts import external


@external
async def proven_changes(path: str, about: str, without: Any = ()) -> dict[str, Any]: ...


SHOWN = 8
"""Findings that the packet shows."""


async def hold_up(path: str, about: str, refuse: Any) -> dict[str, Any]:
    """The changes that `refuse` accepts: all together, or else those that it accepts one by one.

    `made` are the findings, `files` the new texts, `refused` the reasons by finding.
    """
    found = await proven_changes(path, about)
    mending = [one for one in found["findings"] if one["fixable"]]
    refused: dict[str, str] = {}
    if not mending:
        return {"made": [], "files": {}, "refused": refused}
    reason = await refuse(found["files"])
    if not reason:
        return {"made": mending, "files": found["files"], "refused": refused}
    for one in mending:
        others = [other["key"] for other in mending if other["key"] != one["key"]]
        alone = await proven_changes(path, about, others) if others else found
        said = await refuse(alone["files"]) if others else reason
        if said:
            refused[one["what"]] = said
    left = [one for one in mending if one["what"] not in refused]
    dropped = [one["key"] for one in mending if one["what"] in refused]
    rest = await proven_changes(path, about, dropped) if left else {"files": {}}
    if left and dropped and await refuse(rest["files"]):
        return {"made": [], "files": {}, "refused": {one["what"]: reason for one in mending}}
    return {"made": left, "files": rest["files"], "refused": refused}


def describe_all(findings: list[dict[str, Any]]) -> str:
    """Findings in one line: the first three, and how many more."""
    said = "; ".join(one["what"] for one in findings[:3])
    return said + (f"; {len(findings) - 3} more" if len(findings) > 3 else "")


def listed(findings: list[dict[str, Any]]) -> list[str]:
    """Findings for the packet: where, what, and why."""
    return [f"{one['path']}:{one['line']} {one['what']}: {one['why']}"[:180] for one in findings[:SHOWN]]
