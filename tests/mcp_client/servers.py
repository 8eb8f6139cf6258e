"""MCP servers for tests, as `python servers.py NAME [ARGUMENT]`: a real one, and ways to misbehave."""

from __future__ import annotations

import sys


def run(name: str) -> None:
    match name:
        case "stdio" | "http" | "noise":
            run_shop(name)
        case "dies":
            sys.exit("dies: no database\x1b[2J")
        case "endless":
            while True:
                sys.stdout.write("x" * 65536)


def run_shop(name: str) -> None:
    from shop_server import SHOP  # slow to import

    if name == "noise":
        sys.stdout.write("not a message\n" * 200)
        sys.stderr.write("chatter " * 100_000)
    if name == "http":
        SHOP.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]), json_response=sys.argv[3:] == ["json"])
    else:
        SHOP.run("stdio")


if __name__ == "__main__":
    run(sys.argv[1])
