"""Socket calls of this process that fail: what a server cannot do from its side.

Sockets made within the block are of a class that counts `connect`, `send` and `recv` before the
system sees them; asyncio, and so every HTTP library over it, calls these methods. What a server of
this process accepts, and sockets of no internet family (the event loop's own), are left alone.
"""

from __future__ import annotations
