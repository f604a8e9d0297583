"""(Generated from _async/test_dynamodb_table.py by tools/unasync.py: do not edit.) The table of the DynamoDB engine: how many requests, how tokens rise, what is folded away."""

from __future__ import annotations

from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

import holdfast
from holdfast._sync.engines import dynamodb_table
from holdfast.clocks import wall_micros
from holdfast.dynamodb_record import check_table
from holdfast.model import Grant, Queued
from holdfast.testing.dynamodb_harness import TABLE, DynamoDBHarness
from tests._sync.dynamodb_suite import DynamoDBSuite

PAIRS = 10
LONG = 30.0
HOUR = 3600 * 1_000_000


class TestRequests(DynamoDBSuite):
    """How often the server is asked."""

    harness = DynamoDBHarness()

    def test_a_pair_is_two_requests(self) -> None:
        """Once a name is known, acquire and release are one update each."""
        self.cycle(self.client)
        wire = self.intrude(self.client)
        for _ in range(PAIRS):
            self.cycle(self.client)
        assert wire.counts == {"UpdateItem": 2 * PAIRS}

    def test_a_new_name_is_one_more(self) -> None:
        """The first claim of a name also reads the shared floor, once."""
        self.cycle(self.client, "other")
        wire = self.intrude(self.client)
        self.cycle(self.client, "x")
        assert wire.counts == {"UpdateItem": 2, "GetItem": 1}

    def test_busy_is_one_request(self) -> None:
        """Who does not wait is refused by its claim, which also says who holds.

        The first time it also leaves what it has seen, for later processes of its host.
        """
        self.cycle(self.client)
        lease = self.take(self.client.lock("x", ttl=LONG, label="me"))
        other = self.connect()
        assert other.lock("x").try_acquire() is None
        wire = self.intrude(other)
        answer = other.engine.claim(self.claim("x", queue=False), 5.0)
        assert isinstance(answer, Queued)
        assert answer.holder is not None
        assert (answer.holder.label, answer.holder.token) == ("me", lease.token)
        assert wire.counts == {"UpdateItem": 1}
        assert lease.release() is True

    def test_a_hand_over_is_one_update(self) -> None:
        """Who knows from its renewal that somebody waits lets it in by the release itself."""
        self.cycle(self.client)
        claim = self.claim("x", ttl=LONG)
        self.grant(self.client, claim)
        other = self.connect()
        waiting = self.queue(other, other.lock("x", ttl=LONG))
        self.client.engine.renew([claim], 5.0)
        wire = self.intrude(self.client)
        assert self.client.engine.release(claim, 5.0) is True
        assert wire.counts == {"UpdateItem": 1}
        assert (waiting.result()).release() is True

    def test_readers_do_not_disturb_each_other_s_renewals(self) -> None:
        """A renewal of one holder is one request, whoever comes and goes meanwhile."""
        leases = [self.take(self.client.rwlock("x", ttl=LONG).read()) for _ in range(3)]
        wire = self.intrude(self.client)
        leases[0].extend()
        assert wire.counts == {"UpdateItem": 1}
        for lease in leases:
            assert lease.release() is True


class TestTokens(DynamoDBSuite):
    """Tokens rise whatever the clocks say, also when items were folded away (S18, S19)."""

    harness = DynamoDBHarness()

    def test_new_name_starts_above_the_shared_floor(self) -> None:
        """Also if that is ahead of our clock."""
        floor = wall_micros() + HOUR
        self.set_floor(floor)
        token = self.cycle(self.client)
        assert token > floor
        assert self.cycle(self.connect()) > token

    def test_floor_is_compared_by_who_comes_next(self) -> None:
        """If the one that made the item did not get so far, or nobody knows."""
        floor = wall_micros() + HOUR
        self.set_floor(floor)
        self.client.ping()
        wire = self.intrude(self.client)
        wire.refuse("GetItem", "ThrottlingException")
        claim = self.claim("x")
        self.raises(holdfast.OutcomeUnknown, self.client.engine.claim, claim, 5.0)
        assert "c" not in self.item("x")
        answer = self.client.engine.claim(claim, 5.0)
        assert isinstance(answer, Grant)
        assert answer.token > floor
        assert "c" in self.item("x")

    def test_floor_is_compared_by_who_takes_over(self) -> None:
        """A holder that died before it had compared leaves that to its successor."""
        floor = wall_micros() + HOUR
        self.set_floor(floor)
        self.client.ping()
        self.intrude(self.client).refuse("GetItem", "ThrottlingException")
        dead = self.claim("x")
        self.raises(holdfast.OutcomeUnknown, self.client.engine.claim, dead, 5.0)
        lease = self.take(self.connect().lock("x"))
        assert lease.token > floor
        assert lease.release() is True

    def test_clock_that_is_behind_costs_one_more_request(self) -> None:
        """A name whose last token is ahead of our clock goes on from there."""
        self.cycle(self.client)
        ahead = wall_micros() + HOUR
        self.raw.update_item(
            **self.place("x"),
            UpdateExpression="SET t = :t",
            ExpressionAttributeValues={":t": {"N": str(ahead)}},
        )
        wire = self.intrude(self.client)
        assert self.cycle(self.client) == ahead + 1
        assert wire.counts == {"UpdateItem": 3}

    def test_idle_names_are_folded_away(self) -> None:
        """Their items go, the shared floor keeps their tokens, and new tokens are above it."""
        tokens = {name: self.cycle(self.client, name) for name in ("a", "b", "c")}
        held = self.take(self.client.lock("held", ttl=LONG))
        table: Any = self.client.engine.table  # type: ignore[attr-defined]
        space = self.place("a")["Key"]["space"]["S"]
        assert table.forget(space, min(tokens.values()), 10.0) == 0
        assert table.forget(space, wall_micros() + 1, 10.0) == 3
        assert self.item("a") == self.item("b") == self.item("c") == {}
        assert self.floor() == max(tokens.values())
        assert self.cycle(self.client, "a") > self.floor()
        assert held.held
        assert held.release() is True

    def test_pages_are_looked_at_one_after_another(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also if each is looked at by another client: where to go on stands in the table."""
        monkeypatch.setattr(dynamodb_table, "FORGET_PAGE", 2)
        for name in "abcde":
            self.cycle(self.client, name)
        space = self.place("a")["Key"]["space"]["S"]
        counts = []
        for _ in range(4):
            client = self.connect()
            client.ping()
            table: Any = client.engine.table  # type: ignore[attr-defined]
            counts.append(table.forget(space, wall_micros() + 1, 10.0))
        assert sum(counts) == 5
        assert max(counts) <= 2
        assert not any(self.item(name) for name in "abcde")

    def test_used_again_is_not_folded_away(self) -> None:
        """An item that was used since it was looked at is not deleted."""
        self.cycle(self.client)
        table: Any = self.client.engine.table  # type: ignore[attr-defined]
        wire = self.intrude(self.client)
        wire.keep("DeleteItem")
        space = self.place("x")["Key"]["space"]["S"]
        assert table.forget(space, wall_micros() + 1, 10.0) == 0
        lease = self.take(self.client.lock("x", ttl=LONG))
        late = self.client.engine.inspect(self.claim("x").key, 5.0)
        assert late.holders[0].token == lease.token
        assert self.deliver(wire.kept[0]) == 400
        assert self.holders("x") == [lease.owner]
        assert lease.release() is True

    def test_release_folds_what_is_a_day_old(self) -> None:
        """Now and then a release looks for old idle items; nobody has to clean up."""
        old = {**self.place("x")["Key"], "name": {"S": "old"}}
        item = {**old, "t": {"N": str(wall_micros() - 25 * HOUR)}, "v": {"S": "0"}}
        self.raw.put_item(TableName=TABLE, Item=item)
        table: Any = self.client.engine.table  # type: ignore[attr-defined]
        assert 0 < table.forget_chance < 0.01
        table.forget_chance = 1.0
        self.cycle(self.client)
        assert self.item("old") == {}
        assert self.floor() == int(item["t"]["N"])


class TestTable(DynamoDBSuite):
    """Which table, and whether it is made."""

    harness = DynamoDBHarness()

    def url(self, table: str, **options: str) -> str:
        """Return the URL of another table of the server."""
        base = self.harness.url.replace(f"/{TABLE}?", f"/{table}?")
        return base + "".join(f"&{name}={value}" for name, value in options.items())

    def reach(self, where: object, **options: Any) -> holdfast.Client:
        """Return one more client, closed at the end of the test."""
        client = holdfast.connect(where, **{"namespace": self.namespace, **options})
        self._clients.append(client)
        return client

    def test_made_on_first_use(self) -> None:
        """Pay per request, with the two keys that locks need."""
        client = self.reach(self.url(f"{self.namespace}-made-on-first-use"))
        self.cycle(client)
        table = self.raw.describe_table(TableName=f"{self.namespace}-made-on-first-use")["Table"]
        assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"

    def test_not_made_if_told_so(self) -> None:
        """create=False, in code or in the URL, names what to do instead."""
        client = self.reach(self.url(f"{self.namespace}-never-made", create="no"))
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "create=False" in str(error)
        assert f"{self.namespace}-never-made" not in self.raw.list_tables()["TableNames"]

    def test_made_anew_after_it_was_deleted(self) -> None:
        """A table that somebody has deleted is an error once, and then there again."""
        client = self.reach(self.url(f"{self.namespace}-made-anew"))
        first = self.cycle(client)
        self.raw.delete_table(TableName=f"{self.namespace}-made-anew")
        self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert self.cycle(client) > first

    def test_table_of_something_else_is_refused(self) -> None:
        """With one sentence, and nothing is written."""
        other = f"{self.namespace}-orders"
        self.raw.create_table(
            TableName=other,
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client = self.reach(self.url(other))
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "its key is id" in str(error)

    @pytest.mark.parametrize("consistency", ["EVENTUAL", None, "STRONG"])
    def test_global_table_must_be_strongly_consistent(self, consistency: str | None) -> None:
        """DynamoDB Local has none: the description of one is what AWS documents."""
        table = self.raw.describe_table(TableName=TABLE)["Table"]
        table["Replicas"] = [{"RegionName": "eu-west-1", "ReplicaStatus": "ACTIVE"}]
        if consistency:
            table["MultiRegionConsistency"] = consistency
        if consistency == "STRONG":
            assert check_table(table, "here")
            return
        with pytest.raises(holdfast.EngineUnavailable, match="global table"):
            check_table(table, "here")

    def test_client_of_boto3_lends_its_settings(self) -> None:
        """With the name of a table; nothing of the client itself is changed."""
        client = self.reach(self.raw, table=TABLE)
        assert TABLE in client.engine.location
        self.cycle(client)
        assert self.raw.meta.config.read_timeout == 30

    def test_table_of_boto3_is_a_place_for_locks(self) -> None:
        """A Table names itself."""
        resource = boto3.resource(
            "dynamodb",
            endpoint_url=self.server.url,
            region_name="local",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        client = self.reach(resource.Table(TABLE))
        self.cycle(client)
        resource.meta.client.close()

    @pytest.mark.parametrize(
        "url",
        [
            "dynamodb://eu-west-1",
            "dynamodb://eu-west-1/x",
            "dynamodb://key:secret@eu-west-1/locks",
            "dynamodb://eu-west-1/locks?nonsense=1",
            "dynamodb://eu-west-1/locks?endpoint=ftp://host",
            "dynamodb://eu-west-1/locks?connections=0",
        ],
    )
    def test_nonsense_is_refused(self, url: str) -> None:
        """With one sentence that shows no secret."""
        with pytest.raises(ValueError, match=r"\.$") as caught:
            self.reach(url)
        assert "secret" not in str(caught.value)
