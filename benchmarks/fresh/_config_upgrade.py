"""Tasks for `config_upgrade`: TOML files of a service whose settings got other names and units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

RELAY = '''"""Settings of the mail relay."""

DEPRECATED = {
    "port": "listen_port",
    "timeout_s": ("timeout_ms", 1000),
    "legacy_tls": None,
}


def load(values):
    return {key: value for key, value in values.items() if key not in DEPRECATED}
'''
SCANNER = '''"""What the picture scanner can be told."""

import tomllib

DEPRECATED = {
    "cache": "cache_dir",
    "max_mb": ("max_bytes", 1048576),
    "retain_days": ("retain_hours", 24),
    "colour_mode": None,
    "watermark": None,
}
DEFAULTS = {"cache_dir": "/tmp/scans", "max_bytes": 8388608, "retain_hours": 72}


def read(path):
    with open(path, "rb") as file:
        return DEFAULTS | tomllib.load(file)
'''


@dataclass(frozen=True)
class _Case(Case):
    """A module that names deprecated settings, config files before and after, and the way there."""

    before: Mapping[str, str]
    after: Mapping[str, str] = field(default_factory=dict)
    """Only files that change."""
    way: Sequence[Any] = ()


def _rename(file: str, key: str, new: str) -> dict[str, Any]:
    return call("rename_key", file=file, key=key, new=new)


def _convert(file: str, key: str, new: str, factor: int) -> dict[str, Any]:
    return call("convert_key", file=file, key=key, new=new, factor=factor)


def _delete(file: str, key: str) -> dict[str, Any]:
    return call("delete_key", file=file, key=key)


CASES = (
    _Case("config_upgrade-port", "easy", "relay/settings.py", RELAY,
          {"config/dev.toml": 'host = "localhost"\nport = 2525\n'},
          {"config/dev.toml": 'host = "localhost"\nlisten_port = 2525\n'},
          [_rename("config/dev.toml", "port", "listen_port")]),
    _Case("config_upgrade-tls", "easy", "relay/settings.py", RELAY,
          {"config/staging.toml": "listen_port = 25\nlegacy_tls = true  # since 2019\n"},
          {"config/staging.toml": "listen_port = 25\n"},
          [_delete("config/staging.toml", "legacy_tls")]),
    _Case("config_upgrade-seconds", "medium", "relay/settings.py", RELAY,
          {"config/dev.toml": "listen_port = 2525\ntimeout_s = 30\n"},
          {"config/dev.toml": "listen_port = 2525\ntimeout_ms = 30000\n"},
          [_convert("config/dev.toml", "timeout_s", "timeout_ms", 1000)]),
    _Case("config_upgrade-twice", "medium", "mail/settings.py", RELAY,
          {"config/dev.toml": "port = 2525\nlisten_port = 2526\n", "config/test.toml": "listen_port = 0\n"},
          {"config/dev.toml": "listen_port = 2526\n"},
          [_delete("config/dev.toml", "port")]),
    _Case("config_upgrade-oncall", "hard", "relay/settings.py", RELAY,
          {"config/production.toml": "listen_port = 25\nlegacy_tls = false\n"}),
    _Case("config_upgrade-scanners", "medium", "scanner/options.py", SCANNER,
          {"office/hall.toml": 'cache = "/var/scans"\n',
           "office/lab.toml": '[scanner]\ncache = "/srv/lab"\ndpi = 600\n'},
          {"office/hall.toml": 'cache_dir = "/var/scans"\n',
           "office/lab.toml": '[scanner]\ncache_dir = "/srv/lab"\ndpi = 600\n'},
          [[_rename("office/hall.toml", "cache", "cache_dir"), _rename("office/lab.toml", "cache", "cache_dir")]]),
    _Case("config_upgrade-vendor", "hard", "scanner/options.py", SCANNER,
          {"config/main.toml": 'cache = "/var/scans"\n', "vendor/acme/scan.toml": 'cache = "scans"\nwatermark = "A"\n'},
          {"config/main.toml": 'cache_dir = "/var/scans"\n'},
          [_rename("config/main.toml", "cache", "cache_dir")]),
    _Case("config_upgrade-archive", "hard", "scanner/options.py", SCANNER,
          {"config/archive.toml": 'max_mb = 16\nretain_days = 30\nwatermark = "copy"\n',
           "config/production.toml": 'max_bytes = 8388608\nwatermark = "ours"\n'},
          {"config/archive.toml": "max_bytes = 16777216\nretain_hours = 720\n"},
          [[_convert("config/archive.toml", "max_mb", "max_bytes", 1048576),
            _convert("config/archive.toml", "retain_days", "retain_hours", 24),
            _delete("config/archive.toml", "watermark")]]),
    _Case("config_upgrade-live", "medium", "relay/config.py", RELAY,
          {"config/production.toml": 'port = 25\nhost = "mx1.example"\n', "config/test.toml": "legacy_tls = true\n"},
          {"config/production.toml": 'listen_port = 25\nhost = "mx1.example"\n', "config/test.toml": ""},
          [[_rename("config/production.toml", "port", "listen_port"), _delete("config/test.toml", "legacy_tls")]]),
    _Case("config_upgrade-halfway", "hard", "scan/options.py", SCANNER,
          {"config/dev.toml": "max_mb = 4\nmax_bytes = 4194304\nretain_days = 2\n"},
          {"config/dev.toml": "max_bytes = 4194304\nretain_hours = 48\n"},
          [[_delete("config/dev.toml", "max_mb"), _convert("config/dev.toml", "retain_days", "retain_hours", 24)]]),
)  # fmt: skip


def config_upgrade_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        files = {case.path: case.source, **case.before}
        yield made(case.name, case.level, files, case.path, case.after, list(case.way))
