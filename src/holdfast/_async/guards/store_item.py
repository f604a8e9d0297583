"""One resource behind compare-and-set, and the transaction on it: what file and store share.

Rule 1: what the guard knows of a resource is stored in one conditional write with its data.
        Nothing is decided on what may have changed meanwhile: a refused save looks again.
Rule 2 (S23): the token is recorded before the caller sees the data, and judged again by the save
        that writes. So whoever came with a newer token in between has kept this one out.
Rule 3: what another transaction with the same token has written since this one began is not
        overwritten: InProgress. One holder may have two threads.
Rule 4: a key of `once` is marked as running, by token and transaction, before the work begins, and
        its result is stored in the same save as the data. Another with the same token is told
        InProgress; a newer token takes the mark over, which rule 2 makes safe.
Rule 5: a save that raises has an unknown outcome. Its error goes to the caller; nobody is told
        "accepted", and nothing is tried again.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from ...errors import InProgress, StaleToken
from ...fencing import Fence, Floors, must_write
from ...guards.store_state import Mark, State, check_key, dump, parse, plain_result
from .guard import AsyncGuard

logger = logging.getLogger("holdfast")

TRIES = 32  # each one that fails is a success of somebody else

T = TypeVar("T")
Load = Callable[[str], Awaitable[tuple[T, str | None, Any]]]
Save = Callable[[str, T, str, Any], Awaitable[bool]]


class Content(NamedTuple, Generic[T]):
    """What is stored under a resource's name: the user's data and the guard's state."""

    data: T
    state: State


class AsyncRecord(Generic[T]):
    """A resource that is read, and written if nobody else has written it since."""

    def __init__(self, resource: str, load: Load[T], save: Save[T]) -> None:
        self.resource = resource
        self._load = load
        self._save = save

    async def change(self, edit: Callable[[Content[T]], Content[T]]) -> Content[T]:
        """Store what `edit` makes of the content, and return it; `edit` may be called again.

        Nothing is stored if it returns what it was given.
        """
        for _ in range(TRIES):
            data, text, version = await self._load(self.resource)
            content = Content(data, parse(self.resource, text))
            new = edit(content)
            if new is content or await self._save(
                self.resource, new.data, dump(new.state), version
            ):
                return new
        raise InProgress(
            f"{self.resource!r} was changed by others {TRIES} times in a row while it was to be "
            "saved: nothing was written. Try again; if it never succeeds, look whether save() "
            "compares the version that load() returned.",
            name=self.resource,
        )


class AsyncItem(Generic[T]):
    """One transaction on a resource: `read`, `write`, `once`; saved when the `with` is left.

    Left with an exception it saves nothing. The token stays recorded in any case.
    """

    _content: Content[T]  # as the caller sees it
    _began: State  # as it was stored when the work began

    def __init__(self, guard: AsyncGuard, record: AsyncRecord[T], fence: Fence) -> None:
        self._guard = guard
        self._record = record
        self._fence = fence
        self._open = False

    @property
    def resource(self) -> str:
        """The name of the resource."""
        return self._record.resource

    def read(self) -> T:
        """Return the data as it was when the work began, or what was written since."""
        self._must_be_open()
        return self._content.data

    def write(self, data: T) -> None:
        """Replace the data when the `with` is left; StaleToken then, if a newer token has come."""
        self._must_be_open()
        must_write(self.resource, self._fence)
        self._content = self._content._replace(data=data)
        self._written = True

    async def once(self, key: str, fn: Callable[[], Awaitable[Any]]) -> Any:
        """Run `fn` unless that was done under this key before; return its result, now or then.

        The result (JSON) is stored together with the data, when the `with` is left. `fn` that
        raises leaves the key free. Raises InProgress while another caller is at work on the key.
        """
        self._must_be_open()
        must_write(self.resource, self._fence)
        check_key(key)
        if key in self._results:
            return self._results[key]
        self._marked.append(key)
        stored = (await self._record.change(lambda content: self._claim(content, key))).state
        if key in stored.done:
            return stored.done[key]
        before = self._content, self._written
        try:
            self._results[key] = plain_result(key, await fn())
        except BaseException as error:
            self._content, self._written = before
            await self._free([key], error)
            raise
        return self._results[key]

    async def __aenter__(self) -> Self:
        self._owner = secrets.token_hex(8)
        self._written = False
        self._results: dict[str, Any] = {}
        self._marked: list[str] = []  # keys that may bear a mark of ours
        self._content = await self._record.change(self._begin)
        self._began = self._content.state
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open = False
        state = self._began
        try:
            if error is None and (self._written or self._results):
                state = (await self._record.change(self._finish)).state
        except BaseException as failure:
            await self._free(self._marked, failure)
            raise
        if error is not None:
            await self._free(self._marked, error)
            return
        assert state.floors is not None
        self._guard._accepted(self.resource, state.floors, self._fence)

    # --- Inside: the steps, each as a change of the content. ---

    def _begin(self, content: Content[T]) -> Content[T]:
        admitted = self._admit(content.state)
        return content if admitted == content.state else content._replace(state=admitted)

    def _claim(self, content: Content[T], key: str) -> Content[T]:
        state = self._admit(content.state)
        if key in state.done:
            return content
        mark = Mark(self._fence.token, self._owner)
        return content._replace(state=state.claim(self.resource, key, mark))

    def _finish(self, content: Content[T]) -> Content[T]:
        if self._written and content.state.writer == self._owner:
            return content  # it was our save after all that moved the version
        state = self._admit(content.state).finish(self._results, self._owner)
        if not self._written:
            return content._replace(state=state)
        if (state.writes, state.writer) != (self._began.writes, self._began.writer):
            raise InProgress(
                f"{self.resource!r} was written by another caller with your token "
                f"{self._fence.token} since you read it: nothing was written. Do it again from "
                "the start.",
                name=self.resource,
            )
        return Content(self._content.data, state.wrote(self._owner))

    def _admit(self, state: State) -> State:
        try:
            return state.admit(self.resource, self._fence)
        except StaleToken as error:
            self._guard._refused(error, self._fence)
            raise

    async def _free(self, keys: Sequence[str], error: BaseException) -> None:
        """Take our marks away, if it can be done; else a newer token takes them over."""
        if not keys or isinstance(error, GeneratorExit):  # a coroutine that is closed cannot wait
            return

        def freed(content: Content[T]) -> Content[T]:
            state = content.state.free(keys, self._owner)
            return content if state is content.state else content._replace(state=state)

        try:
            await self._record.change(freed)
        except Exception:
            logger.exception("%r keeps keys marked as running: %s", self.resource, keys)

    def _must_be_open(self) -> None:
        if not self._open:
            raise RuntimeError(
                f"The transaction on {self.resource!r} is not open: read and write inside its with "
                "statement."
            )


async def adopt(guard: AsyncGuard, record: AsyncRecord[Any], domain: str) -> None:
    """Move a resource to tokens of another domain, with floors at 0; the same one changes nothing.

    Call it once, while nobody writes.
    """
    before: list[Floors | None] = []

    def moved(content: Content[Any]) -> Content[Any]:
        floors = content.state.floors
        before[:] = [floors]
        if floors is not None and floors.domain == domain:
            return content
        return content._replace(state=content.state.move(domain))

    await record.change(moved)
    if before[0] is not None and before[0].domain != domain:
        guard._adopted(record.resource, before[0].domain, domain)
