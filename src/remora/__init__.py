"""Small local models as tool-calling agents over a codebase, on two tracks.

The Long Track is the event stream: complete, durable, the truth. The Short Track is the Decision Packet: small, within
a token budget, all that the model sees. Importing this package does nothing and loads no optional part.
"""

from remora._version import __version__

__all__ = ["__version__"]
