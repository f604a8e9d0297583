"""(Generated from _async/test_redis_guard.py by tools/unasync.py: do not edit.) The Redis guard on real servers of both makes: who is let in, what is written and told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, ClassVar

import pytest
from redis import RedisError

import holdfast
from holdfast._sync.guards.redis import RedisGuard
from holdfast.events import Accepted, Adopted, Event, Refused
from holdfast.fencing import Fence, Floors
from holdfast.model import Mode
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.running import Spawned
from holdfast.testing.servers import valkey_program
from tests._sync.redis_suite import RedisSuite
from tests.guards.fences import BAD_FENCES, DOMAIN, NEIGHBOURS, mixture, told
from tests.guards.redis_clients import Redis

CROWD = 8
ADD = "return redis.call('INCR', KEYS[1])"


class GuardSuite(RedisSuite):
    """Tests that hold on every server; each has a resource of its own."""

    redis: Any
    guard: RedisGuard
    heard: list[Event]
    clients: ClassVar[dict[str, Any]] = {}

    def conduct(self, test: Callable[..., None], **arguments: Any) -> None:
        """Give each test a client of redis-py and a guard on it."""
        with Redis.from_url(self.harness.url, **self.clients) as self.redis:
            self.guard, self.heard = RedisGuard(self.redis), []
            self.guard.listen(self.heard.append)
            super().conduct(test, **arguments)

    @property
    def resource(self) -> str:
        """A name that no other test has."""
        return f"{self.namespace}/7"

    def fence(self, token: int, mode: Mode = Mode.EXCLUSIVE, domain: str = DOMAIN) -> Fence:
        return Fence(token, domain, mode)

    def floors(self) -> Floors | None:
        """Return what the server remembers, asked without the guard."""
        found = self.server.command("HGETALL", f"holdfast:{{{self.resource}}}:fence")
        fields = dict(zip(found[::2], found[1::2], strict=True))
        if not fields:
            return None
        return Floors(fields["domain"], int(fields["exclusive"]), int(fields["shared"]))

    def count(self) -> int:
        """Return what the counter of this test says."""
        return int(self.server.command("GET", self.resource) or 0)

    # --- Who is let in. ---

    @pytest.mark.parametrize("seed", range(3))
    def test_floors_are_those_of_the_model(self, seed: int) -> None:
        """Whoever passes or not, and what is remembered, is what `judge` says, step by step."""
        for fence, floors, passes in mixture(seed, 60):
            if passes:
                self.guard.begin(self.resource, fence)
            else:
                with pytest.raises(holdfast.StaleToken):
                    self.guard.begin(self.resource, fence)
            assert self.floors() == floors, fence
        assert {type(event) for event in self.heard} == {Accepted, Refused}

    @pytest.mark.parametrize(("high", "low"), NEIGHBOURS)
    def test_tokens_are_compared_as_integers(self, high: int, low: int) -> None:
        """One more is more, at any size; equal passes."""
        for token in (low, high, high):
            self.guard.execute(self.resource, self.fence(token), "INCR", self.resource)
        with pytest.raises(holdfast.StaleToken) as refused:
            self.guard.execute(self.resource, self.fence(low), "INCR", self.resource)
        assert (refused.value.seen, refused.value.offered) == (high, low)
        assert self.count() == 3

    def test_begin_keeps_the_old_holder_out(self) -> None:
        """A holder that was overtaken between its read and its write is refused (S23)."""
        self.guard.begin(self.resource, self.fence(1))
        self.guard.begin(self.resource, self.fence(2))  # read, and nothing written yet
        with pytest.raises(holdfast.StaleToken, match="has seen token 2, yours is 1"):
            self.guard.execute(self.resource, self.fence(1), "SET", self.resource, 1)
        assert self.server.command("EXISTS", self.resource) == 0

    def test_shared_leases_read(self) -> None:
        """Shared holders read beside one another, keep older writers out, and never write."""
        shared = self.fence(5, Mode.SHARED)
        look = self.guard.script("return redis.call('GET', KEYS[1])", read_only=True)
        self.guard.begin(self.resource, shared)
        assert look(self.resource, self.fence(4, Mode.SHARED), [self.resource]) is None
        with pytest.raises(holdfast.StaleToken):
            self.guard.execute(self.resource, self.fence(4), "SET", self.resource, 1)
        with pytest.raises(holdfast.NotSupported, match="take the lock exclusively"):
            self.guard.execute(self.resource, shared, "SET", self.resource, 1)
        with pytest.raises(holdfast.NotSupported, match="take the lock exclusively"):
            self.guard.script(ADD)(self.resource, shared, [self.resource])
        assert self.count() == 0
        self.guard.execute(self.resource, self.fence(5), "SET", self.resource, 1)
        with pytest.raises(holdfast.StaleToken, match="nothing was read"):
            look(self.resource, self.fence(4, Mode.SHARED), [self.resource])

    def test_real_leases(self) -> None:
        """A lease is shown as it is; one that was overtaken is refused."""
        first = self.take(self.client.lock("x"))
        self.guard.begin(self.resource, first)
        first.release()
        second = self.take(self.client.lock("x"))
        self.guard.execute(self.resource, second, "INCR", self.resource)
        with pytest.raises(holdfast.StaleToken):
            self.guard.execute(self.resource, first, "INCR", self.resource)
        found = self.floors()
        assert found == Floors(second.domain, second.token)
        assert self.count() == 1
        second.release()

    # --- Domains. ---

    def test_another_domain_is_refused_until_adopted(self) -> None:
        """Tokens of two origins are never compared; the error names both, and nothing changes."""
        self.guard.begin(self.resource, self.fence(7))
        with pytest.raises(holdfast.DomainMismatch, match=r"test:locks.*other:locks"):
            self.guard.execute(
                self.resource, self.fence(9, domain="other:locks"), "INCR", self.resource
            )
        assert self.count() == 0
        self.guard.adopt(self.resource, DOMAIN)
        assert self.floors() == Floors(DOMAIN, 7), "its own domain changes nothing"
        self.guard.adopt(self.resource, "other:locks")
        self.guard.begin(self.resource, self.fence(1, domain="other:locks"))
        with pytest.raises(holdfast.DomainMismatch):
            self.guard.begin(self.resource, self.fence(8))
        adopted = [event for event in self.heard if isinstance(event, Adopted)]
        assert [(event.name, event.engine, event.previous, event.domain) for event in adopted] == [
            (self.resource, "redis", DOMAIN, "other:locks")
        ]

    def test_domain_before_the_first_token(self) -> None:
        """A resource that nobody has touched can be given to a domain."""
        self.guard.adopt(self.resource, "ünï:locks")
        assert self.floors() == Floors("ünï:locks")
        with pytest.raises(holdfast.DomainMismatch, match="ünï:locks"):
            self.guard.begin(self.resource, self.fence(1))

    # --- Scripts of the user. ---

    @pytest.mark.parametrize(
        "text",
        [
            "return {KEYS[1], KEYS[2] or 'none', #KEYS, ARGV[1], ARGV[2], #ARGV}",
            "return nil",
            "return false",
            "return true",
            "return 12.9",
            "return {1, {'two', {3}}, false, 5}",
            "return redis.status_reply('FINE')",
            "return redis.call('SET', KEYS[1], ARGV[1])",
            "local function f() return KEYS[1] .. ARGV[2] end return f() -- the end",
            "redis.call('HSET', KEYS[1], 'a', 1) return redis.call('HGETALL', KEYS[1])",
            "",
        ],
    )
    def test_script_is_what_it_was_without_the_guard(self, text: str) -> None:
        """The same KEYS and ARGV, and the same answer."""
        keys, words = [f"{self.resource}:a", f"{self.resource}:b"], ["x", "ÿ"]
        bare = self.redis.eval(text, 2, *keys, *words)
        self.redis.delete(*keys)
        fenced = self.guard.script(text)
        assert fenced(self.resource, self.fence(1), keys, words) == bare

    def test_script_with_many_words(self) -> None:
        """There is no limit of our own to what a script is given."""
        count = self.guard.script("return {#KEYS, #ARGV, ARGV[#ARGV]}")
        words = list(range(1, 20_001))
        keys = [f"{self.resource}:{number}" for number in range(9000)]
        answer = count(self.resource, self.fence(1), keys, words)
        assert [int(number) for number in answer] == [9000, 20_000, 20_000]

    def test_refused_script_does_nothing(self) -> None:
        """Not one of its commands runs, and the fence stays as it is."""
        self.guard.begin(self.resource, self.fence(9))
        before = self.keys()
        script = self.guard.script("redis.call('SET', KEYS[1], 1) return 1")
        with pytest.raises(holdfast.StaleToken):
            script(self.resource, self.fence(8), [self.resource])
        with pytest.raises(holdfast.DomainMismatch):
            script(self.resource, self.fence(10, domain="else"), [self.resource])
        assert self.keys() == before
        assert self.floors() == Floors(DOMAIN, 9)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("\n\nerror('oh')", "user_script:3: oh"),
            ("return redis.call('NONSENSE')", "(?i)unknown (redis )?command"),
            ("return redis.error_reply('MINE oh')", "MINE oh"),
        ],
    )
    def test_script_that_fails(self, text: str, message: str) -> None:
        """Its error is the client's own, with the user's line; the floor rose; nobody is told."""
        with pytest.raises(Exception, match=message) as failed:
            self.guard.script(text)(self.resource, self.fence(3))
        assert type(failed.value).__name__ == "ResponseError"
        assert self.floors() == Floors(DOMAIN, 3)
        assert self.heard == []

    def test_script_with_a_shebang_is_refused(self) -> None:
        """The line that only a whole script may begin with is named."""
        with pytest.raises(holdfast.NotSupported, match="#!lua"):
            self.guard.script("#!lua flags=no-writes\nreturn 1")

    def test_server_that_forgot_the_scripts(self) -> None:
        """It is told them again, and the work is done once."""
        script = self.guard.script(ADD)
        for _ in range(2):
            self.server.command("SCRIPT", "FLUSH")
            script(self.resource, self.fence(1), [self.resource])
            self.server.command("SCRIPT", "FLUSH")
            self.guard.once(self.resource, ADD, [self.resource])
        assert self.count() == 3

    # --- Events. ---

    def test_events(self) -> None:
        """Who was let in and who was not is told: resource, highest token seen, token offered."""
        self.guard.execute(self.resource, self.fence(4), "INCR", self.resource)
        self.guard.begin(self.resource, self.fence(6, Mode.SHARED))
        with pytest.raises(holdfast.StaleToken) as refused:
            self.guard.begin(self.resource, self.fence(5))
        common = ("redis", self.resource, DOMAIN)
        assert told(self.heard) == [
            ("Accepted", *common, Mode.EXCLUSIVE, 4, 4),
            ("Accepted", *common, Mode.SHARED, 6, 6),
            ("Refused", *common, Mode.EXCLUSIVE, 6, 5),
        ]
        assert [event.error for event in self.heard if isinstance(event, Refused)] == [
            str(refused.value)
        ]

    # --- Once. ---

    @pytest.mark.parametrize(
        "text",
        [
            "return 9007199254740991",
            "return {1, 'two', {'\\0\\1', -4}}",
            "return redis.status_reply('FINE')",
            "return nil",
            "return false",
            "return ''",
        ],
    )
    def test_once_gives_the_same_to_all(self, text: str) -> None:
        """Later callers are given what the first was, to the last digit and byte."""
        bare = self.redis.eval(text, 0)
        work = f"redis.call('INCR', KEYS[1]) {text}"
        for _ in range(3):
            assert self.guard.once(self.resource, work, [self.resource]) == bare
        assert self.count() == 1

    def test_once_in_a_crowd(self) -> None:
        """Of many at the same time one works, and all are given its result."""
        work = "redis.call('INCR', KEYS[1]) return ARGV[1]"
        crowd = [
            Spawned(self.guard.once, self.resource, work, [self.resource], [number])
            for number in range(CROWD)
        ]
        results = {one.result() for one in crowd}
        assert len(results) == 1
        assert self.count() == 1

    @pytest.mark.parametrize("text", ["error('oh')", "return redis.error_reply('oh')"])
    def test_once_that_fails_may_be_tried_again(self, text: str) -> None:
        """A failure leaves the key free."""
        with pytest.raises(Exception, match="oh"):
            self.guard.once(self.resource, text)
        assert self.guard.once(self.resource, "return 5") == 5
        assert self.guard.once(self.resource, text) == 5

    def test_once_is_kept_as_long_as_told(self) -> None:
        """For ever, or for so long by the server's clock."""
        self.guard.once(f"{self.resource}/a", "return 1")
        self.guard.once(f"{self.resource}/b", "return 1", keep=60)
        assert self.server.command("PTTL", f"holdfast:{{{self.resource}/a}}:once") == -1
        assert 1000 < self.server.command("PTTL", f"holdfast:{{{self.resource}/b}}:once") <= 60_000
        for keep in (0, -1, 0.0001, float("nan")):
            with pytest.raises(ValueError, match="kept for some seconds"):
                self.guard.once(self.resource, "return 1", keep=keep)

    def test_once_after_a_lost_reply(self) -> None:
        """The work was done and nobody heard: asking again, as clients do, gives the result."""
        self.guard.once(f"{self.resource}/warm", ADD, [f"{self.resource}:warm"])
        lost = self.proxy.drop_next_reply(self.resource.encode())
        with suppress(RedisError):  # of a client that does not repeat by itself
            assert self.guard.once(self.resource, ADD, [self.resource]) == 1
        assert self.guard.once(self.resource, ADD, [self.resource]) == 1
        assert lost.is_set()
        assert self.count() == 1

    # --- What no guard takes. ---

    @pytest.mark.parametrize(("lease", "error", "says"), BAD_FENCES)
    def test_bad_fences(self, lease: Any, error: type[Exception], says: str) -> None:
        """One sentence, and not one command is sent."""
        script = self.guard.script(ADD)
        with pytest.raises(error, match=says):
            self.guard.begin(self.resource, lease)
        with pytest.raises(error, match=says):
            self.guard.execute(self.resource, lease, "INCR", self.resource)
        with pytest.raises(error, match=says):
            script(self.resource, lease, [self.resource])
        assert self.keys() == []
        assert self.heard == []

    def test_semaphore_cannot_fence(self) -> None:
        """Several hold it at once, so none is the newest."""
        lease = self.take(self.client.semaphore("s", 3))
        with pytest.raises(holdfast.NotSupported, match="cannot fence"):
            self.guard.begin(self.resource, lease)
        assert self.floors() is None
        lease.release()

    @pytest.mark.parametrize("resource", ["", "a\nb", "x" * 300, 7, None])
    def test_bad_names(self, resource: Any) -> None:
        """What cannot name a resource is refused."""
        with pytest.raises((TypeError, ValueError), match="resource"):
            self.guard.begin(resource, self.fence(1))
        with pytest.raises((TypeError, ValueError), match=r"resource|key of once"):
            self.guard.once(resource, "return 1")
        with pytest.raises((TypeError, ValueError), match="resource"):
            self.guard.adopt(resource, DOMAIN)
        with pytest.raises((TypeError, ValueError), match="omain"):
            self.guard.adopt(self.resource, resource)


class TestRedisGuard(GuardSuite):
    """On Redis."""

    harness = RedisHarness()

    def test_once_keeps_any_bytes(self) -> None:
        """What is no text comes back as it was."""
        for _ in range(2):
            assert self.guard.once(self.resource, "return '\\0\\255'") == b"\0\xff"


class TestValkeyGuard(GuardSuite):
    """On Valkey, with a client that speaks RESP3 and returns text instead of bytes."""

    harness = RedisHarness(valkey_program)
    clients: ClassVar[dict[str, Any]] = {"decode_responses": True, "protocol": 3}
