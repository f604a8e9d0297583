"""(Generated from _async/guards/store.py by tools/unasync.py: do not edit.) A guard for any store that can compare and set: the token travels with the data (S23)."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ...fencing import check_domain, check_resource, fence_of
from .guard import Guard
from .store_item import Item, Record, Load, Save, adopt

T = TypeVar("T")


class StoreGuard(Guard, Generic[T]):
    """Guards the resources of a store that you can read, and write if it has not changed.

    `load(resource)` returns `(data, fence, version)`: what is stored, the guard's text that was
    saved with it (None if there is none), and what the store calls this version (an ETag, a
    revision, a number; None if there is nothing). `save(resource, data, fence, version)` stores
    data and text in one write if the version is still this one, and returns whether it did. It
    returns False only if surely nothing was written; in doubt it raises.
    """

    kind = "store"

    def __init__(self, load: Load[T], save: Save[T]) -> None:
        super().__init__()
        self._load = load
        self._save = save

    def transaction(self, resource: str, lease: Any) -> Item[T]:
        """Return a transaction to enter: it records the token, and saves what you write.

        `lease` is a lease or a Fence. StaleToken, and nothing is written, if the resource has seen
        a newer token, when it is entered or when it is left.
        """
        return Item(self, self._record(resource), fence_of(lease))

    def adopt(self, resource: str, domain: str) -> None:
        """Let tokens of another domain fence it from now on; call it while nobody writes."""
        adopt(self, self._record(resource), check_domain(domain))

    def _record(self, resource: str) -> Record[T]:
        return Record(check_resource(resource), self._load, self._save)
