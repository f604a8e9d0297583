"""Keys of a Redis or Valkey server, guarded by scripts that judge the token and work in one step.

Rule 1 (S23): Redis has no transaction that spans a read, some thinking and a write. So `begin`
              records the token before the first read, and whatever writes judges it again, in the
              same script as the work. An old holder then either wrote before the new one began,
              and is seen by it, or is refused.
Rule 2: what a script answers is a value; no text of an error is ever read.
Rule 3: an answer that was lost is the client's own error; some clients then repeat the call.
        Equal tokens pass, so the work may be done twice: where that matters, use `once`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any

from ...fencing import Fence, Floors, check_domain, check_resource, fence_of, must_write
from ...guards.redis_scripts import Script, base_key, check_client, key_for, load, text_of
from ...guards.store_state import check_key
from ...model import Seconds
from .guard import AsyncGuard

NOTHING = ""
ONE_COMMAND = "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))"


class AsyncRedisGuard(AsyncGuard):
    """Guards keys on the server of `client`, a redis.asyncio client or one that has its methods.

    `key` says where fences lie (see the guide for clusters): it is given a resource's name.
    """

    kind = "redis"

    def __init__(self, client: Any, *, key: Callable[[str], str] = base_key) -> None:
        super().__init__()
        self._client = check_client(client, iscoroutinefunction(self.begin))
        self._key = key

    async def begin(self, resource: str, lease: Any) -> None:
        """Record the token before you read; StaleToken if another holder came after you.

        With a shared lease this is all there is to do: it only reads.
        """
        await self._fenced(load("fenced", NOTHING), resource, fence_of(lease))

    async def execute(
        self, resource: str, lease: Any, command: str, key: str | bytes, *arguments: Any
    ) -> Any:
        """Run one command that writes, if the token passes, and return its raw reply.

        `key` is the command's first argument, as most have it; use `script` for all others.
        """
        fence = fence_of(lease)
        must_write(resource, fence)
        script = load("fenced", ONE_COMMAND)
        return await self._fenced(script, resource, fence, (key,), (command, *arguments))

    def script(self, text: str, *, read_only: bool = False) -> AsyncFencedScript:
        """Return a Lua script of yours, to be called: it runs if the token passes, else not at all.

        Its KEYS and ARGV are what they were without the guard. `read_only` is your word that it
        writes nothing: then a shared lease will do.
        """
        return AsyncFencedScript(self, text, read_only)

    async def once(
        self,
        key: str,
        script: str,
        keys: Sequence[str | bytes] = (),
        args: Sequence[Any] = (),
        *,
        keep: Seconds | None = None,
    ) -> Any:
        """Run a Lua script once per `key`; whoever comes later is given what it returned.

        A script that fails leaves the key free; what it wrote before stays written, as always in
        Redis: let it check first. After `keep` the key is forgotten; without, never.
        """
        marker = key_for(self._key, check_key(key), "once")
        reply = await self._run(load("once", script), (marker, *keys), (_millis(keep), *args))
        return _result(reply)

    async def adopt(self, resource: str, domain: str) -> None:
        """Move a resource to tokens of another domain, once, while nobody writes.

        Its floors start again at 0; in its own domain nothing changes.
        """
        fence = key_for(self._key, check_resource(resource), "fence")
        words = (check_domain(domain).encode(),)
        for previous in await self._run(load("adopt"), (fence,), words):
            self._adopted(resource, text_of(previous), domain)

    async def _fenced(
        self,
        script: Script,
        resource: str,
        fence: Fence,
        keys: Sequence[Any] = (),
        args: Sequence[Any] = (),
    ) -> Any:
        """Run work behind the fence, tell how that went, and return what it gave."""
        own_key = key_for(self._key, check_resource(resource), "fence")
        own = (fence.token, fence.domain.encode(), fence.mode.value)
        reply = await self._run(script, (own_key, *keys), (*own, *args))
        passed, exclusive, shared, *rest = reply
        floors = Floors(fence.domain, int(exclusive), int(shared))
        if not passed:
            if rest:
                floors = floors._replace(domain=text_of(rest[0]))
            self._refuse(resource, floors, fence)
        result = _result(rest)
        self._accepted(resource, floors, fence)
        return result

    async def _run(self, script: Script, keys: Sequence[Any], args: Sequence[Any]) -> Any:
        """Run a script by its digest, or by its text where the server does not know it."""
        words = (len(keys), *keys, *args)
        try:
            return await self._client.evalsha(script.digest, *words)
        except Exception as error:
            # Known by its name, not its class: clients have one each. Nothing has run yet.
            if type(error).__name__ != "NoScriptError":
                raise
        return await self._client.eval(script.text, *words)


class AsyncFencedScript:
    """A Lua script that only those may run whose token passes."""

    def __init__(self, guard: AsyncRedisGuard, text: str, read_only: bool) -> None:
        self._guard = guard
        self._script = load("fenced", text)
        self._read_only = read_only

    async def __call__(
        self,
        resource: str,
        lease: Any,
        keys: Sequence[str | bytes] = (),
        args: Sequence[Any] = (),
    ) -> Any:
        """Run it if the token passes, and return what it returns."""
        fence = fence_of(lease)
        if not self._read_only:
            must_write(resource, fence)
        return await self._guard._fenced(self._script, resource, fence, keys, args)


def _result(given: Sequence[Any]) -> Any:
    """Return what the work gave, None if that was nil; an error of its own is raised."""
    result = given[0] if given else None
    if isinstance(result, Exception):
        raise result
    return result


def _millis(keep: Seconds | None) -> int:
    """Return how long a marker is kept, in milliseconds; 0 is for ever."""
    if keep is None:
        return 0
    seconds = keep.total_seconds() if isinstance(keep, timedelta) else keep
    if not 0.001 <= seconds < 2**53 / 1000:
        raise ValueError(f"A result is kept for some seconds, or for ever (None), not {keep!r}.")
    return round(seconds * 1000)
