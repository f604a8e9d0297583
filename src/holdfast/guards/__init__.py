"""Guards: the resource refuses a writer whose lock is another's by now (S22 to S24).

A lock cannot stop a holder that was paused past its TTL; the resource can, by the token. There is
one guard per kind of resource; `holdfast.aio.guards` has the same names, awaitable.
"""

from ..fencing import Fence, Floors, fence_from_environ, fence_of

__all__ = ["Fence", "Floors", "fence_from_environ", "fence_of"]
