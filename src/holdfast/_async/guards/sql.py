"""The SQL guard: the token is recorded in the transaction that does the work, before it (S23).

Rule 1: the first statement of a guarded transaction judges and records the token, and locks its
        row until the end. Whoever comes meanwhile waits for it; whoever comes later sees it.
Rule 2: the guard is first or not at all. What was read earlier in a transaction may be another
        holder's past, so a transaction that is open already is refused, before anything is sent.
Rule 3: floor and work are one transaction: rolled back, neither has happened.
Rule 4: nobody is told "accepted" before the commit has succeeded. A commit without answer is the
        driver's error: it may have happened.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...errors import InProgress, NotSupported
from ...fencing import Fence, Floors, check_domain, must_write
from ...guards.sql_dialects import Tables
from ...guards.sql_errors import (
    ALONE,
    APART,
    BROKEN,
    FAILED,
    NESTED,
    OPEN,
    WAITED,
    codes,
    refusal,
)
from ...guards.sql_row import Entries, Resource, Row, name_of, names_of, read_fences
from ...guards.store_state import check_key, plain_result
from .guard import AsyncGuard
from .sql_judge import Again, AsyncJudge
from .sql_link import make_link
from .sql_transaction import AsyncSQLTransaction

logger = logging.getLogger("holdfast")


class AsyncSQLGuard(AsyncGuard):
    """Guards what a database holds, through a connection of yours: see `transaction`.

    `connection` is a DB-API one to SQLite, PostgreSQL, MySQL or MariaDB, or a connection or
    session of SQLAlchemy. `prefix` begins the names of its two tables ("app.holdfast_" puts them
    into a schema), which are made when first missed unless `create` is False. `dialect` is for
    drivers that it does not know.
    """

    kind = "sql"

    def __init__(
        self,
        connection: Any,
        *,
        prefix: str = "holdfast_",
        create: bool = True,
        dialect: str | None = None,
    ) -> None:
        super().__init__()
        self._link = make_link(connection, dialect)
        tables = Tables(self._link.dialect, prefix)
        self._judge = AsyncJudge(self, self._link, tables, create)
        self._inside: Entries | None = None  # what the open transaction guards
        self._spoiled = False  # and it holds what should have been undone
        self._savepoints = 0

    def transaction(
        self, resource: Resource | Mapping[Resource, Any], lease: Any = None
    ) -> AsyncSQLTransaction:
        """Return a transaction to enter: commits when the `with` is left, rolls back on an error.

        StaleToken, and nothing is written, if the resource has seen a newer token. A shared lease
        records its token too, and may only read. `{resource: lease, ...}` guards several at once.
        The connection must not be in a transaction yet.
        """
        return AsyncSQLTransaction(self, read_fences(resource, lease))

    async def check(self, resource: Resource | Mapping[Resource, Any], lease: Any = None) -> None:
        """Do the same in a transaction of your own, which must begin with this.

        What `transaction` does at the end is up to you: commit, or roll back on any error. So
        nobody is told Accepted.
        """
        entries = read_fences(resource, lease)
        name = names_of(entries)
        if self._inside is not None:
            raise refusal(name, NESTED)
        state = await self._link.state()
        # SQLite's transactions run one after the other, wherever in them the guard stands.
        if state.open and self._link.dialect.name != "sqlite":
            raise refusal(name, BROKEN if state.failed else OPEN)
        await self._judge.join(lambda: self._judge.judge(entries))
        state = await self._link.state()
        if state.open is False or (state.open is None and state.autocommit):
            raise refusal(name, ALONE)

    async def update(
        self, row: Row, lease: Any, changes: str, parameters: Any = (), *, where: str = ""
    ) -> bool:
        """Change a row that carries its fence, in one statement; say whether `where` was true.

        `changes` is what stands after SET, `where` a further condition, both with the marks of
        your driver for `parameters`. StaleToken, and nothing is written, if the row has seen a
        newer token; LookupError if there is no such row. Enough only where the statement itself
        reads what it writes: `left = left - 1`. The connection must not be in a transaction yet.
        """
        ((_, fence),) = read_fences(row, lease)
        await self._must_be_idle(row.name)
        statement = self._judge.write.update(row, fence, changes, where, parameters)
        try:
            floors = await self._judge.record(row, fence, statement)
            if floors is not None:
                await self._link.commit_if_open()
        except BaseException:
            await self._link.undo()
            raise
        if floors is None:
            await self._link.undo()
            return False
        self._accepted(row.name, floors, fence)
        return True

    async def once(self, key: str, fn: Callable[[], Awaitable[Any]], *, join: bool = False) -> Any:
        """Run `fn` unless that was done under this key before; return its result, now or then.

        Key, work and result (JSON) are one transaction: that of the `guard.transaction` around
        it, else one of its own, or with `join` the one that you have begun and will commit. `fn`
        that raises leaves the key free, and what it wrote is undone. Who comes meanwhile waits for
        the first; InProgress if that takes longer than the database lets them wait.
        """
        check_key(key)
        if join and self._inside is None:
            await self._must_be_in_one(key)
        if self._inside is not None or join:
            return await self._once_inside(key, fn)
        await self._must_be_idle(key)
        try:
            taken, stored = await self._judge.begin(lambda: self._claim(key))
        except Exception as error:
            if codes(error) & WAITED:
                raise _in_progress(key) from error
            raise
        if not taken:
            await self._link.undo()
            return stored
        self._inside, self._spoiled = (), False
        try:
            result = await self._work(key, fn)
        except BaseException:
            await self._leave(key, done=False)
            raise
        await self._leave(key, done=True)
        return result

    async def adopt(self, resource: Resource, domain: str) -> None:
        """Let tokens of another domain fence it from now on; call it once, while nobody writes.

        Its floors start again at 0; in its own domain nothing changes.
        """
        ((_, fence),) = read_fences(resource, Fence(1, check_domain(domain)))
        name = name_of(resource)
        if isinstance(resource, Row) and resource.domain_column is None:
            raise NotSupported(
                f"{name} has no column for its domain: set {resource.column} to 0 while nobody "
                "writes, and name the new domain in the code.",
                name=name,
            )
        await self._must_be_idle(name)
        previous = await self._judge.begin(lambda: self._judge.move(resource, fence))
        await self._judge.commit(name)
        if previous != domain:
            self._adopted(name, previous, domain)

    async def create(self) -> None:
        """Make the guard's tables where they are missing; for migrations there is `sql_schema`."""
        await self._must_be_idle(self._judge.tables.fence)
        await self._judge.make_tables()

    # --- Inside. ---

    async def _enter(self, entries: Entries) -> list[Floors]:
        await self._must_be_idle(names_of(entries))
        floors = await self._judge.begin(lambda: self._judge.judge(entries))
        self._inside, self._spoiled = entries, False
        return floors

    async def _leave(self, name: str, done: bool) -> None:
        self._inside = None
        if done and not self._spoiled:
            await self._judge.commit(name)
            return
        await self._link.undo()
        if done:
            raise refusal(name, FAILED)

    async def _must_be_idle(self, name: str) -> None:
        if self._inside is not None:
            raise refusal(name, NESTED)
        state = await self._link.busy()
        if state.open:
            raise refusal(name, BROKEN if state.failed else OPEN)

    async def _must_be_in_one(self, name: str) -> None:
        """Refuse to join a transaction where there is none, and none would begin by itself."""
        state = await self._link.state()
        if state.open is not False:
            return
        if not await self._link.begin_implicitly(state):
            raise refusal(name, APART)

    async def _once_inside(self, key: str, fn: Callable[[], Awaitable[Any]]) -> Any:
        for resource, fence in self._inside or ():
            must_write(name_of(resource), fence)
        self._savepoints += 1
        savepoint = await self._link.savepoint(self._savepoints)
        try:
            taken, result = await self._judge.join(lambda: self._claim(key))
            if taken:
                result = await self._work(key, fn)
        except BaseException:
            await self._go_back(savepoint)
            raise
        await self._link.release(savepoint)
        return result

    async def _go_back(self, savepoint: Any) -> None:
        """Undo what was done since; if that fails, the whole transaction must not be committed."""
        self._spoiled = True
        try:
            await self._link.go_back(savepoint)
        except Exception as error:
            logger.debug("A savepoint is gone: %r", error)
        else:
            self._spoiled = False

    async def _claim(self, key: str) -> tuple[bool, Any]:
        """Take a key; say whether it is ours now, else with which result it was done."""
        passed, _ = await self._link.passed(self._judge.write.claim(key))
        if passed is not None:
            return True, None
        found = await self._link.rows(self._judge.write.result(key))
        if not found:
            raise Again
        if found[0][0] is None:
            raise _in_progress(key)
        return False, json.loads(found[0][0])

    async def _work(self, key: str, fn: Callable[[], Awaitable[Any]]) -> Any:
        result = plain_result(key, await fn())
        await self._link.run(self._judge.write.store(key, json.dumps(result)))
        return result


def _in_progress(key: str) -> InProgress:
    return InProgress(
        f"Another caller is at work on {key!r}, and took longer than the database lets one wait: "
        "ask again for its result.",
        name=key,
    )
