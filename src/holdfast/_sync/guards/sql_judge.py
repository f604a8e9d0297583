"""(Generated from _async/guards/sql_judge.py by tools/unasync.py: do not edit.) Judging tokens in the database: how a guarded transaction begins and ends.

Rule 1: as long as only the guard's own statement has run, all may be tried again: tables that are
        missing are made, and one that the database made give way comes again.
Rule 2: what did not pass is explained by a second look, and only that costs a second statement.
Rule 3: whatever goes wrong, no transaction stays open.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ...errors import NotSupported
from ...fencing import Fence, Floors, passes
from ...guards.sql_dialects import Tables
from ...guards.sql_errors import (
    AUTOCOMMIT,
    CLASH,
    ENDED,
    FAILED,
    MISSING,
    UNSAID,
    YIELD,
    codes,
    missing_tables,
    refusal,
)
from ...guards.sql_row import Entries, Resource, Row, name_of
from ...guards.sql_statements import Statement, Statements
from ...model import Mode
from .guard import Guard
from .sql_link import Link

TRIES = 64  # each that fails is somebody else's success

T = TypeVar("T")


class Again(Exception):
    """What was refused a moment ago would pass now: look once more."""


class Judge:
    """Lets holders in, or keeps them out, for one guard."""

    def __init__(self, guard: Guard, link: Link, tables: Tables, create: bool) -> None:
        self._guard = guard
        self._link = link
        self.tables = tables
        self._create = create
        self.write = Statements(tables, link.mark)

    def begin(self, first: Callable[[], T]) -> T:
        """Begin a transaction with the guard's own statements; return what they give."""
        for _ in range(TRIES):
            try:
                self._link.begin()
                found = first()
                if (self._link.state()).open is False:
                    raise NotSupported(AUTOCOMMIT)
                return found
            except BaseException as error:
                self._link.undo()
                if not self._mend(error):
                    raise
        raise NotSupported(UNSAID)

    def join(self, first: Callable[[], T]) -> T:
        """Run the guard's own statements in a transaction that has begun: there is one try."""
        try:
            return first()
        except Again:
            raise NotSupported(UNSAID) from None
        except Exception as error:
            self._raise_if_missing(error)
            raise

    def judge(self, entries: Entries) -> list[Floors]:
        """Record each token, or refuse; return the floors that the resources have now."""
        found = []
        for resource, fence in entries:
            floors = self.record(resource, fence, self.write.judge(resource, fence))
            if floors is None:
                raise Again
            found.append(floors)
        return found

    def record(self, resource: Resource, fence: Fence, statement: Statement) -> Floors | None:
        """Execute what records a token, or refuse; None if neither: nothing is in the way now."""
        name = name_of(resource)
        if isinstance(resource, Row) and resource.domain not in (None, fence.domain):
            assert resource.domain is not None
            self._guard._refuse(name, Floors(resource.domain), fence)
        passed, count = self._link.passed(statement)
        if passed is None:
            floors = self.floors(resource, fence)
            if floors is not None and not passes(floors, fence):
                self._guard._refuse(name, floors, fence)
            return None
        if isinstance(resource, Row) and count > 1:
            raise ValueError(f"{count} rows are {name}: a row needs a key that is its own.")
        if self._link.dialect.returning:
            return Floors(fence.domain, *passed)
        if fence.mode is Mode.SHARED and self._guard._listeners:
            # The highest token that was seen may be another reader's.
            return self.floors(resource, fence)
        return Floors(fence.domain, fence.token)

    def floors(
        self, resource: Resource, fence: Fence, *, lock: bool = False
    ) -> Floors | None:
        """Return what the resource remembers; None if it was never touched."""
        found = self._link.rows(self.write.floors(resource, lock=lock))
        if isinstance(resource, Row):
            if not found:
                raise LookupError(f"There is no row {resource.name}: nothing was written.")
            domain, token, _ = found[0]
            return resource.floors(_text(domain), token, fence)
        if not found:
            return None
        domain, exclusive, shared = found[0]
        return Floors(_text(domain), exclusive, shared)

    def move(self, resource: Resource, fence: Fence) -> str:
        """Move a resource to the fence's domain; return the one that it had."""
        floors = self.floors(resource, fence, lock=True)
        if floors is None:
            assert isinstance(resource, str)
            self._link.run(self.write.settle(resource, fence.domain))
            return ""
        if floors.domain != fence.domain:
            self._link.run(self.write.adopt(resource, fence.domain))
        return floors.domain

    def commit(self, name: str) -> None:
        """Commit, unless what would be committed is not what was guarded."""
        try:
            state = self._link.state()
            if state.failed or state.open is False:
                raise refusal(name, FAILED if state.failed else ENDED)
            if state.failed is None:
                # PostgreSQL takes COMMIT for ROLLBACK after a failure, and says so to no caller.
                self._probe(name)
            self._link.commit()
        except BaseException:
            self._link.undo()
            raise

    def make_tables(self) -> None:
        """Make the guard's tables where they are missing."""
        for text in self.tables.schema():
            if self._link.dialect.name == "mysql":
                # Its note about a table that exists is a warning in Python with some drivers.
                text = text.replace("IF NOT EXISTS ", "")
            try:
                self._link.run(Statement(text))
                self._link.commit_if_open()
            except BaseException as error:
                self._link.undo()
                # Two that make the same table at once: one of them fails, and finds it there.
                if not codes(error) & CLASH:
                    raise

    # --- Inside. ---

    def _probe(self, name: str) -> None:
        try:
            self._link.run(Statement("SELECT 1"))
        except Exception as error:
            raise refusal(name, FAILED) from error

    def _raise_if_missing(self, error: BaseException) -> None:
        """Say what to do about tables that are missing, if it is that."""
        if self._is_missing(error):
            raise RuntimeError(missing_tables(self.tables.prefix)) from error

    def _is_missing(self, error: BaseException) -> bool:
        """Say whether one of the guard's own tables is missing, and none of the user's."""
        return bool(codes(error) & MISSING) and any(
            name in str(error) for name in self.tables.names
        )

    def _mend(self, error: BaseException) -> bool:
        """Say whether another try makes sense, after removing what was in the way."""
        if isinstance(error, Again) or codes(error) & YIELD:
            return True
        if not self._create:
            self._raise_if_missing(error)
        if not self._is_missing(error):
            return False
        self.make_tables()
        return True


def _text(value: Any) -> Any:
    """Return a name as it was before it was stored as bytes."""
    return bytes(value).decode() if isinstance(value, bytes | bytearray | memoryview) else value
