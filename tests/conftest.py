from __future__ import annotations

from hypothesis import settings

# How long an example takes says more about the machine than about us: speed belongs in benchmarks/.
settings.register_profile("remora", deadline=None)
settings.load_profile("remora")
