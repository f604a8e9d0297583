"""The same names as `holdfast.guards`, awaitable."""

from ..fencing import Fence, Floors, fence_from_environ, fence_of

__all__ = ["Fence", "Floors", "fence_from_environ", "fence_of"]
