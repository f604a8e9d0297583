"""What a SQL guard guards: resources by name, and rows of the user's that carry their own fence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import NotSupported
from ..fencing import Fence, Floors, check_domain, check_resource, fence_of
from ..model import Mode
from .sql_dialects import check_identifier


@dataclass(frozen=True)
class Row:
    """One row as a resource: `UPDATE table SET column = token WHERE key AND column <= token`.

    `column` is a BIGINT NOT NULL DEFAULT 0. Tokens of different domains are never compared, so
    say where its tokens come from: `domain`, that of all leases for it, or `domain_column`, where
    the row remembers it. One column is one floor: only exclusive leases fit.
    """

    table: str
    key: Mapping[str, Any] = field(hash=False)
    column: str = "fence"
    domain: str | None = None
    domain_column: str | None = None

    def __post_init__(self) -> None:
        more = () if self.domain_column is None else (self.domain_column,)
        for name in (self.table, self.column, *self.key, *more):
            check_identifier(name)
        if not self.key:
            raise ValueError(f"A row of {self.table!r} needs a key, such as {{'id': 7}}.")
        if (self.domain is None) == (self.domain_column is None):
            raise ValueError(
                f"Say where the tokens in {self.table}.{self.column} come from: domain= (the "
                "lease's own) or domain_column=, one of them."
            )
        if self.domain is not None:
            check_domain(self.domain)

    @property
    def name(self) -> str:
        """What errors and events call it."""
        return f"{self.table}({', '.join(f'{name}={value}' for name, value in self.key.items())})"

    def check(self, fence: Fence) -> None:
        """Refuse what can be refused before anything is sent."""
        if fence.mode is Mode.SHARED:
            raise NotSupported(
                f"{self.name} has one floor, for exclusive leases: shared ones need a resource in "
                "the guard's own table.",
                name=self.name,
            )

    def floors(self, domain: str | None, token: int | None, fence: Fence) -> Floors:
        """Return what the row remembers; without a domain yet it takes that of the fence."""
        if token is None:
            raise ValueError(
                f"{self.name} has NULL in {self.column}, which is below no token: nothing was "
                "written. Make the column NOT NULL DEFAULT 0."
            )
        return Floors(domain or self.domain or fence.domain, token)


Resource = str | Row
Entries = tuple[tuple[Resource, Fence], ...]


def name_of(resource: Resource) -> str:
    """Return what errors and events call a resource."""
    return resource.name if isinstance(resource, Row) else resource


def names_of(entries: Entries) -> str:
    """Return what errors call several resources."""
    return ", ".join(name_of(resource) for resource, _ in entries)


def read_fences(resource: Resource | Mapping[Resource, Any], lease: Any) -> Entries:
    """Return which fence is for which resource, in the one order in which all lock them.

    So two transactions that need the same resources cannot wait for each other.
    """
    if isinstance(resource, Mapping):
        if lease is not None or not resource:
            raise TypeError("Several resources are given as {resource: lease, ...}, and no lease.")
        pairs = list(resource.items())
    else:
        pairs = [(resource, lease)]
    fences = []
    for one, its_lease in pairs:
        fence = fence_of(its_lease)
        if isinstance(one, Row):
            one.check(fence)
        else:
            check_resource(one)
        fences.append((one, fence))
    return tuple(sorted(fences, key=lambda entry: (isinstance(entry[0], Row), name_of(entry[0]))))
