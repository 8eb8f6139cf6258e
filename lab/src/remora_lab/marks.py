"""Generated figures in a page of the documentation: they stand between two comments."""

from __future__ import annotations

from remora.errors import ConfigError

END = "<!-- end of figures -->"


def between_marks(page: str, begin: str, figures: str, *, name: str = "The page") -> str:
    """`page` with `figures` between `begin` and `END`, in place of what is there.

    Raises `ConfigError`, with the page's `name`, if a mark is missing.
    """
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ConfigError(f"{name} has no place for figures: expected `{begin}` and `{END}`")
    return f"{before}{begin}\n\n{figures}\n\n{END}{after}"
