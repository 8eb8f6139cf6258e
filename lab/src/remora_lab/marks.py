"""Generated figures in a documentation page, between two comments."""

from __future__ import annotations

from remora.errors import ConfigError

END = "<!-- end of figures -->"


def between_marks(page: str, begin: str, figures: str, *, name: str = "The page") -> str:
    """Replace the text between `begin` and `END` in `page` by `figures`.

    Raises `ConfigError`, with the page's `name`, if a mark is missing.
    """
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ConfigError(f"{name} has no place for figures: expected `{begin}` and `{END}`")
    return f"{before}{begin}\n\n{figures}\n\n{END}{after}"
